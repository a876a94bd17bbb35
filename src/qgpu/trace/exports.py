"""Traces for other programs' eyes: the Chrome trace format, which Perfetto opens, and VCD for waveform viewers.

A token is the unit of time in both: a microsecond in the one, a nanosecond in the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from qgpu.isa import tokens, values
from qgpu.trace.model import Step, Trace, steps

# ---- The Chrome trace format


def chrome(trace: Trace) -> Iterator[str]:
    """One JSON object in pieces: a track a warp, a slice an EXEC with all that it writes; instants for barriers, CTAs,
    atomics and the end; a counter of the active lanes."""
    yield '{"displayTimeUnit":"ns","otherData":'
    yield json.dumps({"kernel": trace.kernel, "file": trace.file, "ended": trace.ended, "message": trace.message})
    yield ',"traceEvents":[\n'
    for index, event in enumerate(_events(trace)):
        yield (",\n" if index else "") + json.dumps(event, separators=(",", ":"))
    yield "\n]}\n"


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    found = list(steps(trace))
    yield _named("process_name", trace.kernel)
    for warp in sorted({step.warp for step in found if step.kind == "EXEC"}):
        yield _named("thread_name", f"warp {warp}", warp)
    executed = [index for index, step in enumerate(found) if step.kind == "EXEC"]
    for index, end in zip(executed, [*executed[1:], len(found)], strict=True):
        yield from _slice(trace, found[index:end])
    for step in found:
        yield from _instants(step)


def _slice(trace: Trace, group: list[Step]) -> Iterator[dict[str, Any]]:
    first = group[0]
    own = [step for step in group if step.kind in ("EXEC", "VAL", "VALW", "MEM")]
    where = trace.spot(first.block).under(trace.file or "line")
    lanes = [lane for lane in range(tokens.LANES) if first.lanes >> lane & 1]
    arguments: dict[str, Any] = {"quad": first.quad, "lanes": lanes, "cta": first.cta, "token": first.at}
    if where:
        arguments["line"] = where
    for step in own:
        if step.register is not None and step.words:
            arguments[f"r{step.register}"] = [values.signed(word) for _, word in step.words]
        elif step.row is not None:
            arguments[f"memory 0x{step.row * tokens.ROW_BYTES:04x}"] = [word for _, word in step.words]
    yield {
        "name": f"b{first.block}", "cat": where or "block", "ph": "X", "pid": 0, "tid": first.warp,
        "ts": first.at, "dur": sum(step.count for step in own), "args": arguments,
    }  # fmt: skip
    yield {"name": "active lanes", "ph": "C", "pid": 0, "ts": first.at, "args": {"lanes": len(lanes)}}


def _instants(step: Step) -> Iterator[dict[str, Any]]:
    at: dict[str, Any] = {"ph": "i", "pid": 0, "tid": step.warp, "ts": step.at}
    if step.kind in ("BAR", "CTA", "HALT"):
        yield {"name": step.kind, "s": "g", **at}
    elif step.cause is not None:
        cause = tokens.CAUSES[step.cause] if step.cause < len(tokens.CAUSES) else f"cause {step.cause}"
        yield {"name": f"FAULT {cause}", "s": "g", **at, "args": {"quad": step.quad, "lane": step.lane}}
    elif step.atomic and step.row is not None:
        name = f"atomic 0x{step.row * tokens.ROW_BYTES:04x}"
        yield {"name": name, "s": "t", **at, "args": {"quad": step.quad, "lane": step.lane}}


def _named(what: str, name: str, track: int = 0) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 0, "tid": track, "args": {"name": name}}


# ---- VCD

_PRINTABLE = [chr(code) for code in range(33, 127)]


def vcd(trace: Trace) -> Iterator[str]:
    """A value change dump in pieces. Signals: the token, the running quad and block, CTA, source line; of every quad
    that ran its mask, of its lanes every register that is written; every memory row that is written.

    A value changes at the last token of the group that tells of it.
    """
    found = list(steps(trace))
    signals = _Signals(found)
    yield from signals.head(trace)
    changes: list[tuple[int, str]] = []
    yield "$dumpvars\n"
    yield from (f"{change}\n" for change in signals.initial(trace))
    yield "$end\n"
    masks: dict[int, int] = {}
    for step in found:
        changes.extend(signals.changes(trace, step, masks))
    changes.extend((at, f"b{token:b} {signals.ids['token']}") for at, token in enumerate(trace.tokens))
    now = -1
    for at, change in sorted(changes, key=lambda pair: pair[0]):
        if at != now:
            yield f"#{at}\n"
            now = at
        yield change + "\n"
    yield f"#{len(trace.tokens)}\n"


class _Signals:
    """Which signals there are, and their short names. ``ids``: signal -> short name."""

    def __init__(self, found: list[Step]) -> None:
        self.quads = sorted({step.quad for step in found if step.kind in ("EXEC", "MASK")})
        self.registers = sorted(
            {(step.quad, lane, step.register) for step in found if step.register for lane, _ in step.words}
        )
        self.rows = sorted({step.row for step in found if step.row is not None})
        names: list[Any] = ["token", "quad", "block", "line", "cta", *self.registers]
        names += [("mask", quad) for quad in self.quads] + [("row", row) for row in self.rows]
        self.ids = {name: _short(index) for index, name in enumerate(names)}

    def head(self, trace: Trace) -> Iterator[str]:
        yield "$version qgpu trace $end\n$timescale 1 ns $end\n"
        yield f"$scope module {_identifier(trace.kernel)} $end\n"
        for name, bits in (("token", 17), ("quad", 5), ("block", 8), ("line", 32), ("cta", 96)):
            yield f"$var wire {bits} {self.ids[name]} {name} $end\n"
        for quad in self.quads:
            yield f"$scope module quad{quad} $end\n$var wire 4 {self.ids['mask', quad]} mask $end\n"
            for lane in range(tokens.LANES):
                own = [register for q, i, register in self.registers if (q, i) == (quad, lane)]
                if own:
                    yield f"$scope module lane{lane} $end\n"
                    yield from (f"$var reg 32 {self.ids[quad, lane, register]} r{register} $end\n" for register in own)
                    yield "$upscope $end\n"
            yield "$upscope $end\n"
        if self.rows:
            yield "$scope module memory $end\n"
            for row in self.rows:
                yield f"$var reg 64 {self.ids['row', row]} at_0x{row * tokens.ROW_BYTES:04x} $end\n"
            yield "$upscope $end\n"
        yield "$upscope $end\n$enddefinitions $end\n"

    def initial(self, trace: Trace) -> Iterator[str]:
        for name, short in self.ids.items():
            known = isinstance(name, tuple) and name[0] == "row"
            low, high = trace.launch.rows.get(name[1], (0, 0)) if known else (0, 0)
            yield f"b{low | high << 32:b} {short}" if known else f"bx {short}"

    def changes(self, trace: Trace, step: Step, masks: dict[int, int]) -> Iterator[tuple[int, str]]:
        last = step.at + step.count - 1
        if step.kind == "EXEC":
            for name, number in (("quad", step.quad), ("block", step.block), ("line", trace.spot(step.block).line)):
                yield step.at, f"b{number:b} {self.ids[name]}"
        if step.kind in ("EXEC", "MASK") and masks.get(step.quad) != step.lanes:
            masks[step.quad] = step.lanes
            yield step.at, f"b{step.lanes:04b} {self.ids['mask', step.quad]}"
        if step.kind == "CTA":
            x, y, z = step.cta
            yield last, f"b{x | y << 32 | z << 64:b} {self.ids['cta']}"
            for row in self.rows:
                if row >= tokens.SHARED_FIRST_ROW:
                    yield last, f"b0 {self.ids['row', row]}"
        for lane, word in step.words if step.register else ():
            yield last, f"b{word:b} {self.ids[step.quad, lane, step.register]}"
        if step.row is not None and step.words:
            yield last, f"b{step.words[0][1] | step.words[1][1] << 32:b} {self.ids['row', step.row]}"


def _short(index: int) -> str:
    found = ""
    while True:
        index, digit = divmod(index, len(_PRINTABLE))
        found += _PRINTABLE[digit]
        if not index:
            return found


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name) or "kernel"
