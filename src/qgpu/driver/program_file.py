"""Program files (``.qgpu``): kernels compiled to blocks, to be launched where there is no compiler.

A file is JSON: what it is, its version, a checksum, and for each kernel its parameters, what it needs in memory, and
its programs as assembler text, one for each shape of launch that has one of its own. Nothing in it is ever executed on
the host; whatever it says is checked when it is read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from qgpu.cuda.expand_printf import Format
from qgpu.cuda.ir import Reference
from qgpu.cuda.memory import SHARED_BYTES, ModuleVariable
from qgpu.driver.ctypes import Parameter, Scalar
from qgpu.driver.image import Image, Local, Printed
from qgpu.errors import CompileError
from qgpu.isa import encoding, program, tokens
from qgpu.isa.assembly import assemble, disassemble
from qgpu.isa.program import Dim3, Program
from qgpu.writing import write_text

SUFFIX = ".qgpu"
FORMAT, VERSION = "qgpu program", 1
T = TypeVar("T")
Ones = frozenset[str]
"""Names of sizes of a launch that are 1: ``grid.y``, ``cta.x``, ..."""

_SIZES = ("grid.x", "grid.y", "grid.z", "cta.x", "cta.y", "cta.z")


@dataclass(frozen=True, eq=False)
class Entry:
    """A kernel of a program file. ``programs``: by which of the sizes that it may depend on are 1; the one for every
    launch has the key of none."""

    name: str
    file: str
    parameters: tuple[Parameter, ...]
    programs: Mapping[Ones, Program]
    image: Image

    @property
    def general(self) -> Program:
        """The program for launches of any size."""
        return self.programs[frozenset()]


def machine_key() -> str:
    """Tells the machine that programs are for from one with other tokens, limits or fields."""
    fields = [(f.name, f.part, f.shift, f.width) for f in encoding.FIELDS]
    kinds = [(kind.name, kind.first, kind.fields) for kind in tokens.KINDS]
    text = json.dumps([fields, encoding.CHOICES, kinds, tokens.CAUSES], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def ones_of(grid: Dim3, cta: Dim3) -> Ones:
    """Which sizes of a launch are 1."""
    sizes = zip(_SIZES, (*grid, *cta), strict=True)
    return frozenset(name for name, size in sizes if size == 1)


def entry_of(name: str, file: str, parameters: Sequence[Parameter], image: Image) -> Entry:
    """A compiled kernel with its programs for launches of all shapes: those that differ in which sizes are 1."""
    programs: dict[Ones, Program] = {}
    for count in range(len(image.sizes) + 1):
        for ones in combinations(image.sizes, count):
            sizes = tuple(1 if name in ones else 2 for name in _SIZES)
            programs[frozenset(ones)] = image.program_for(sizes[:3], sizes[3:])  # type: ignore[arg-type]
    return Entry(name, file, tuple(parameters), programs, replace(image, program_for=_Chooser(programs)))


class _Chooser:
    """The program with the most sizes known, of those that a launch may have."""

    def __init__(self, programs: Mapping[Ones, Program]) -> None:
        self.programs = sorted(programs.items(), key=lambda item: -len(item[0]))

    def __call__(self, grid: Dim3, cta: Dim3) -> Program:
        ones = ones_of(grid, cta)
        return next(found for wanted, found in self.programs if wanted <= ones)


# ---- Writing ----


def save(path: Path, entries: Sequence[Entry]) -> None:
    """Write a program file, whole or not at all, and its folder if need be. QgpuError where that cannot be."""
    write_text(path, text_of(entries))


def text_of(entries: Sequence[Entry]) -> str:
    """What a program file says."""
    body = {"machine": machine_key(), "kernels": [_document(entry) for entry in entries]}
    return json.dumps({"format": FORMAT, "version": VERSION, "sha256": _checksum(body), **body}, indent=1) + "\n"


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _document(entry: Entry) -> dict[str, Any]:
    image = entry.image
    return {
        "name": entry.name,
        "source": entry.file,
        "parameters": [asdict(parameter) for parameter in entry.parameters],
        "programs": _programs(entry.programs),
        "sources": dict(image.sources),
        "sizes": list(image.sizes),
        "shared": [list(one) for one in image.shared],
        "module": image.module,
        "shared_bytes": image.shared_bytes,
        "dynamic_shared": image.dynamic_shared,
        "zeroed": [list(span) for span in image.zeroed],
        "variables": [_variable_document(variable) for variable in image.variables],
        "local": None if image.local is None else asdict(image.local),
        "printf": None if image.printf is None else {
            "buffer": image.printf.buffer.name,
            "formats": [asdict(format_) for format_ in image.printf.formats],
        },
    }  # fmt: skip


def _programs(programs: Mapping[Ones, Program]) -> list[dict[str, Any]]:
    """Every program once, with the sizes that it is for."""
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for ones, one in programs.items():
        found.setdefault(tuple(_text(one)), []).append(sorted(ones))
    return [{"ones": ones, "blocks": list(text)} for text, ones in found.items()]


def _variable_document(variable: ModuleVariable) -> dict[str, Any]:
    initial = base64.b64encode(variable.initial).decode()
    return {**asdict(variable), "initial": initial}


def _text(found: Program) -> list[str]:
    plain = replace(found, name="kernel", blocks=tuple(replace(block, label="") for block in found.blocks))
    return disassemble(plain).splitlines()


# ---- Reading ----


def load(path: Path) -> dict[str, Entry]:
    """The kernels of a program file by name. CompileError for what is none, is damaged, or is of another version."""
    try:
        return read(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise CompileError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise CompileError(f"{path}: this is no program file of qgpu (make one with: qgpu compile FILE.cu)") from None


def read(text: str, path: Path) -> dict[str, Entry]:
    """The kernels in the text of a program file; see ``load``. ``path`` is for messages."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise CompileError(f"{path}: this is no program file of qgpu (make one with: qgpu compile FILE.cu)") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CompileError(f"{path}: this is no program file of qgpu (make one with: qgpu compile FILE.cu)")
    anew = "compile it anew with: qgpu compile"
    if document.get("version") != VERSION:
        raise CompileError(f"{path}: version {document.get('version')!r} of program files, {VERSION} is known: {anew}")
    body = {key: document.get(key) for key in ("machine", "kernels")}
    if document.get("sha256") != _checksum(body):
        raise CompileError(f"{path}: the file is damaged: its checksum is not that of its content: {anew}")
    if body["machine"] != machine_key():
        raise CompileError(f"{path}: it was compiled for another machine than this qgpu's: {anew}")
    try:
        found = {entry.name: entry for entry in map(_entry, body["kernels"])}  # type: ignore[arg-type]
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise CompileError(f"{path}: the file says what no kernel can be: {error!r}: {anew}") from None
    if not found:
        raise CompileError(f"{path}: there is no kernel in it: {anew}")
    return found


def _entry(document: Mapping[str, Any]) -> Entry:
    name = _as(str, document["name"])
    programs: dict[Ones, Program] = {}
    for one in document["programs"]:
        read = replace(assemble("\n".join(one["blocks"]), name), name=name)
        programs |= {frozenset(map(str, ones)): read for ones in one["ones"]}
    words = programs[frozenset()].parameter_words
    for known in programs.values():
        if known.parameter_words != words or program.faults(program.Launch(known, parameters=(0,) * words)):
            raise ValueError(f"{name}: a program that the machine cannot hold")
    parameters = tuple(_parameter(one, words) for one in document["parameters"])
    variables = tuple(_variable(one, words) for one in document["variables"])
    named = {variable.name for variable in variables}
    if any(part.variable not in named for variable in variables for part in variable.references):
        raise ValueError(f"{name}: a variable refers to one that is not there")
    local = None
    if document["local"] is not None:
        local = Local(_within(document["local"]["bytes_per_thread"], tokens.MEMORY_BYTES), _within(
            document["local"]["word"], words - 1))  # fmt: skip
    printf = None
    if document["printf"] is not None:
        buffer = {variable.name: variable for variable in variables}[document["printf"]["buffer"]]
        formats = (Format(_as(str, one["text"]), _within(one["pointer_bytes"], 8), _within(one["words"], 4096))
                   for one in document["printf"]["formats"])  # fmt: skip
        printf = Printed(buffer, tuple(formats))
    zeroed = tuple((_within(at, tokens.MEMORY_BYTES), _within(size, SHARED_BYTES)) for at, size in document["zeroed"])
    image = Image(
        name, _Chooser(programs), _as(str, document["module"]), _within(document["shared_bytes"], SHARED_BYTES),
        _as(bool, document["dynamic_shared"]), zeroed, variables, local, printf,
        {_as(str, name): _as(str, text) for name, text in document["sources"].items()},
        tuple(_as(str, name) for name in document["sizes"]),
        tuple((_as(str, one), _within(at, tokens.MEMORY_BYTES), _within(size, SHARED_BYTES))
              for one, at, size in document["shared"]),
    )  # fmt: skip
    return Entry(name, _as(str, document["source"]), parameters, programs, image)


def _parameter(document: Mapping[str, Any], words: int) -> Parameter:
    element = None if document["element"] is None else Scalar(**document["element"])
    found = Parameter(**{**document, "element": element})
    if element is not None and element.size not in (1, 2, 4, 8) or not isinstance(found.name, str):
        raise ValueError(f"{found.name}: no type of C")
    if not 0 < found.size <= 4 * words or not 0 <= found.offset <= 4 * words - found.size:
        raise ValueError(f"{found.name}: a parameter outside the parameter words")
    return found


def _variable(document: Mapping[str, Any], words: int) -> ModuleVariable:
    initial = base64.b64decode(document["initial"], validate=True)
    size = _within(document["size"], tokens.MEMORY_BYTES)
    references = tuple(Reference(**one) for one in document["references"])
    if len(initial) > size or any(not 0 <= one.offset <= size - one.width for one in references):
        raise ValueError(f"{document['name']}: bytes outside the variable")
    return ModuleVariable(
        _as(str, document["name"]), _as(str, document["space"]), size, _within(document["align"], 4096), initial,
        references, _within(document["word"], words - 1),
    )  # fmt: skip


def _within(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r} is not in 0..{most}")
    return value


def _as(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
