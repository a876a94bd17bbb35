"""Trace files: JSON lines that anybody may have written, so that everything is checked and nothing is executed.

The first line says what was launched (``format``, program, arrays, sources), every further line is one step: its
tokens, and in words what they say. Loading reads the tokens only; the words are there for people and other programs.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from qgpu.errors import QgpuError
from qgpu.isa import encoding, program, tokens, values
from qgpu.isa.program import Spot
from qgpu.trace.model import Activity, Array, Step, Trace, steps
from qgpu.writing import write_text

FORMAT, VERSION = "qgpu-trace", 1
MAX_LAYERS = 256
_T = TypeVar("_T")


class TraceError(QgpuError):
    """A file that is no trace, or cannot be read."""


# ---- Writing


def lines(trace: Trace) -> Iterator[str]:
    """The lines of a trace file, without their ends."""
    yield _json(header(trace))
    for step in steps(trace):
        yield _json(event(trace, step))
    if trace.activity is not None:
        packed = base64.b64encode(zlib.compress(trace.activity.counts)).decode("ascii")
        yield _json({"activity": {"layers": trace.activity.layers, "counts": packed}})


def header(trace: Trace) -> dict[str, Any]:
    """The first line: all that is known before the first token."""
    launch = trace.launch
    return {
        "format": FORMAT,
        "version": VERSION,
        "kernel": trace.kernel,
        "file": trace.file,
        "ended": trace.ended,
        "message": trace.message,
        "grid": launch.grid,
        "cta": launch.cta,
        "parameters": launch.parameters,
        "arrays": [
            {"name": a.name, "address": a.address, "shape": a.shape, "dtype": a.dtype, "itemsize": a.itemsize}
            for a in trace.arrays
        ],
        "program": {
            "name": launch.program.name,
            "parameter_words": launch.program.parameter_words,
            "pool": launch.program.pool,
            "blocks": [
                {**_spot(b.spot()), "instructions": b.instructions, "label": b.label,
                 **({"ports": {port: _spot(spot) for port, spot in b.ports.items()}} if b.ports else {}),
                 "fields": {name: number for name, number in b.fields.items() if number}}
                for b in launch.program.blocks
            ],
        },
        "rows": [[row, *words] for row, words in sorted(launch.rows.items())],
        "allocated": [[row, f"{bits:#x}"] for row, bits in sorted(launch.allocated.items())],
        "sources": dict(trace.sources),
    }  # fmt: skip


def event(trace: Trace, step: Step) -> dict[str, Any]:
    """One step in words: lanes as lists, registers as signed words, memory by address."""
    found: dict[str, Any] = {
        "at": step.at,
        "kind": step.kind,
        "tokens": trace.tokens[step.at : step.at + step.count],
    }
    if step.kind in ("EXEC", "VAL", "VALW", "MEM", "MASK", "FAULT"):
        found |= {"quad": step.quad, "lanes": [i for i in range(tokens.LANES) if step.lanes >> i & 1]}
    if step.kind == "EXEC":
        found |= {"block": step.block, "cta": step.cta}
        found |= _spot(trace.spot(step.block))
    if step.kind == "MASK":
        found["leader"] = step.leader
    if step.kind == "CTA":
        found["cta"] = step.cta
    if step.register is not None and step.words:
        found |= {"register": step.register, "values": [values.signed(word) for _, word in step.words]}
    if step.row is not None:
        found |= {"address": step.row * tokens.ROW_BYTES, "lane": step.lane, "words": [word for _, word in step.words]}
        if step.atomic:
            found["atomic"] = True
    if step.cause is not None:
        known = step.cause < len(tokens.CAUSES)
        cause = tokens.CAUSES[step.cause] if known else f"cause {step.cause}"
        found |= {"cause": cause, "lane": step.lane, **_spot(trace.spot(step.block, cause.split(" ")[0]))}
    return found


def _spot(spot: Spot) -> dict[str, Any]:
    """``line``, and ``file`` where it is not the kernel's own; nothing if the line is unknown."""
    return {} if not spot.line else {"line": spot.line, **({"file": spot.file} if spot.file else {})}


def save(trace: Trace, path: Path | str) -> None:
    """Write a trace file, whole or not at all. QgpuError if it cannot be written."""
    write_text(Path(path), (line + "\n" for line in lines(trace)))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# ---- Reading


def load(path: Path | str) -> Trace:
    """Read a trace file. TraceError names the file and the line of what is wrong with it."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise TraceError(f"{path} is no trace: it is not text. qgpu run ... --record FILE writes one") from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from None
    return parse(text, str(path))


def parse(text: str, name: str = "trace") -> Trace:
    """The trace that the text of a trace file spells; see ``load``."""
    written: list[int] = []
    activity: Activity | None = None
    head: dict[str, Any] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            if not isinstance(value, dict):
                raise ValueError("a line is a JSON object")
            if head is None:
                head = _checked_header(value)
            elif "activity" in value:
                activity = _activity(_dict(value["activity"], "activity"))
            else:
                written += (_number(token, "token", tokens.USED_IDS) for token in _list(value.get("tokens"), "tokens"))
        except (ValueError, RecursionError, zlib.error) as error:
            raise TraceError(f"{name}:{number}: this is no trace: {error}") from None
    if head is None:
        raise TraceError(f"{name} is no trace: it is empty. qgpu run ... --record FILE writes one")
    try:
        made = _trace(head, tuple(written), activity)
        program.prompt(made.launch)
    except (ValueError, TypeError) as error:
        raise TraceError(f"{name}:1: this is no trace: {error}") from None
    return made


def _checked_header(value: dict[str, Any]) -> dict[str, Any]:
    if value.get("format") != FORMAT:
        raise ValueError(f"its first line does not say \"format\": \"{FORMAT}\"")
    if value.get("version") != VERSION:
        raise ValueError(f"it is of version {value.get('version')!r}, and this qgpu reads version {VERSION}")
    return value


def _trace(head: dict[str, Any], written: tuple[int, ...], activity: Activity | None) -> Trace:
    code = _dict(head.get("program"), "program")
    launch = program.Launch(
        program.Program(
            _text(code.get("name"), "program's name"),
            tuple(_block(_dict(block, "block")) for block in _list(code.get("blocks"), "blocks")),
            _number(code.get("parameter_words"), "parameter_words", program.PARAM_WORDS + 1),
            _each(code.get("pool"), "pool", lambda word: _number(word, "pool", 1 << 32)),
        ),
        _size(head.get("grid"), "grid"),
        _size(head.get("cta"), "cta"),
        _each(head.get("parameters"), "parameters", lambda word: _number(word, "parameter", 1 << 32, -(1 << 31))),
        dict(_each(head.get("rows"), "rows", _row)),
        dict(_each(head.get("allocated"), "allocated", _map_row)),
    )
    sources = _dict(head.get("sources"), "sources")
    if activity is not None and activity.tokens != len(written):
        raise ValueError(f"activity is of {activity.tokens} tokens, but there are {len(written)}")
    return Trace(
        _text(head.get("kernel"), "kernel"),
        launch,
        written,
        _text(head.get("file"), "file"),
        {name: _text(text, "source") for name, text in sources.items()},
        _each(head.get("arrays"), "arrays", lambda one: _array(_dict(one, "array"))),
        _text(head.get("message"), "message"),
        activity,
    )


def _block(value: dict[str, Any]) -> program.Block:
    fields = _dict(value.get("fields"), "fields")
    for name, number in fields.items():
        _number(number, name, 1 << 16, -(1 << 15))
    encoding.encode(fields)
    own = _read_spot(value)
    ports = _dict(value.get("ports", {}), "ports")
    if not ports.keys() <= {"load", "store"}:
        raise ValueError(f"ports {sorted(ports)!r:.40} are not load and store")
    return program.Block(
        fields,
        _number(value.get("instructions"), "instructions", 1 << 31),
        own.line,
        _text(value.get("label"), "label"),
        own.file,
        {port: _read_spot(_dict(spot, "port")) for port, spot in ports.items()},
    )


def _read_spot(value: dict[str, Any]) -> Spot:
    return Spot(_number(value.get("line", 0), "line", 1 << 31), _text(value.get("file", ""), "file"))


def _array(value: dict[str, Any]) -> Array:
    found = Array(
        _text(value.get("name"), "array's name"),
        _number(value.get("address"), "address", tokens.MEMORY_BYTES),
        _each(value.get("shape"), "shape", lambda extent: _number(extent, "extent", tokens.MEMORY_BYTES + 1)),
        _text(value.get("dtype"), "dtype"),
        _number(value.get("itemsize"), "itemsize", tokens.MEMORY_BYTES + 1, 1),
    )
    if found.address + found.nbytes > tokens.MEMORY_BYTES:
        raise ValueError(f"array {found.name!r} reaches past the end of memory")
    return found


def _activity(value: dict[str, Any]) -> Activity:
    layers = _number(value.get("layers"), "layers", MAX_LAYERS + 1, 1)
    packed = base64.b64decode(_text(value.get("counts"), "counts"), validate=True)
    limit = 4 * layers * 4_000_000  # what no launch of a sensible length reaches, lest a small file fill the memory
    unpacker = zlib.decompressobj()
    counts = unpacker.decompress(packed, limit)
    if unpacker.unconsumed_tail or not unpacker.eof or len(counts) % (4 * layers):
        raise ValueError("the activity is not whole")
    return Activity(layers, counts)


def _row(value: Any) -> tuple[int, tuple[int, int]]:
    row, low, high = _exactly(value, 3, "row of memory")
    return _number(row, "row", tokens.ROWS), (_number(low, "word", 1 << 32), _number(high, "word", 1 << 32))


def _map_row(value: Any) -> tuple[int, int]:
    row, bits = _exactly(value, 2, "row of the allocation map")
    return _number(row, "row", tokens.MAP_ROWS), _number(int(_text(bits, "bits"), 16), "bits", 1 << 64)


def _size(value: Any, what: str) -> program.Dim3:
    x, y, z = (_number(size, what, 1 << 31, 1) for size in _exactly(value, 3, what))
    return x, y, z


def _exactly(value: Any, count: int, what: str) -> list[Any]:
    found = _list(value, what)
    if len(found) != count:
        raise ValueError(f"a {what} has {count} numbers, not {len(found)}")
    return found


def _each(value: Any, what: str, read: Callable[[Any], _T]) -> tuple[_T, ...]:
    return tuple(read(one) for one in _list(value, what))


def _number(value: Any, what: str, end: int, first: int = 0) -> int:
    if type(value) is not int or not first <= value < end:
        raise ValueError(f"{what} {value!r:.40} is no integer in {first}..{end - 1}")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is missing, or no text")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is missing, or no list")
    return value


def _dict(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is missing, or no object")
    return value
