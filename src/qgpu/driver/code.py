"""Compiled kernels as the driver launches them, from a source file, from text, or from a program file.

Stock kernels are kept compiled in the user's cache, so that neither compiling nor even loading the compiler is on the
way of who uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from qgpu.cuda.cache import content_key
from qgpu.cuda.cache import load as load_text
from qgpu.cuda.cache import store as store_text
from qgpu.driver.ctypes import Parameter, signature
from qgpu.driver.image import Image, image_of
from qgpu.driver.program_file import SUFFIX, Entry, entry_of, load, read, text_of
from qgpu.driver.stock import folder
from qgpu.errors import CompileError, PtxError
from qgpu.isa.program import Dim3, Program

if TYPE_CHECKING:
    from qgpu.cuda.pipeline import CompiledKernel

KEPT = "program"  # ending and folder of what is kept in the cache


@dataclass(frozen=True, eq=False)
class Code:
    """A compiled kernel as the driver needs it.

    ``file``: the name of its source in messages. ``image``: what it needs beside its arguments, and its programs for
    launches of some sizes; None where there is only ``program``.
    """

    name: str
    program: Program
    parameters: tuple[Parameter, ...]
    file: str
    image: Image | None = None

    def program_for(self, grid: Dim3, cta: Dim3) -> Program:
        """The program for launches of these sizes."""
        return self.program if self.image is None else self.image.program_for(grid, cta)


def code_of_file(path: Path, name: str | None = None, compiler: str | None = None) -> Code:
    """A kernel of a ``.cu`` or ``.ptx`` file, compiled down to blocks, or of a ``.qgpu`` file as it is. compiler: a row
    of `compile.COMPILERS`.

    Raises CompileError, PtxError (also for a missing or ambiguous name), UnsupportedError.
    """
    if path.suffix == SUFFIX:
        return _of_entries(load(path), path, name)
    key = _key(path, name) if compiler is None and path.parent == folder() else None
    if key is not None and (text := load_text(key, KEPT)) is not None:
        try:
            return _of_entries(read(text, path), path, name)
        except CompileError:
            pass  # damaged: compiled anew below
    from qgpu.cuda import pipeline
    from qgpu.cuda.compile import read_source

    compiled = pipeline.compile_file(path, name, compiler)
    made = _code(compiled, name, None if path.suffix == ".ptx" else read_source(path), str(path))
    if key is not None:
        store_text(key, KEPT, text_of([_entry(made)]))
    return made


def code_of_source(source: str, file: str, name: str | None = None) -> Code:
    """A kernel of CUDA C text, compiled down to blocks; ``file`` is its name in messages."""
    from qgpu.cuda import pipeline

    return _code(pipeline.compile_source(source, file, name), name, source, file)


def kernel_names(path: Path, source: str | None = None) -> tuple[str, ...]:
    """The kernels of a file; or of ``source``, CUDA C text that messages call ``path``."""
    if path.suffix == SUFFIX:
        return tuple(load(path))
    from qgpu.cuda.compile import compile_cuda, ptx_of_file
    from qgpu.cuda.ptx import readable_name
    from qgpu.cuda.ptx_parser import parse_ptx

    if source is not None:
        text, file = compile_cuda(source, str(path)), str(path)
    else:
        ptx = ptx_of_file(path)
        text, file = ptx.text, ptx.file
    return tuple(readable_name(kernel.name) for kernel in parse_ptx(text, file).kernels)


def entries_of(path: Path, compiler: str | None = None, names: tuple[str, ...] = ()) -> list[Entry]:
    """All kernels of a source file, or those of these names, as a program file takes them. Raises as code_of_file."""
    known = names or kernel_names(path)
    if not known:
        raise PtxError(f"{path}: there is no kernel in it; mark a function with __global__ to make it one")
    return [_entry(code_of_file(path, name, compiler)) for name in known]


def _entry(code: Code) -> Entry:
    assert code.image is not None
    return entry_of(code.name, code.file, code.parameters, code.image)


def _code(compiled: CompiledKernel, name: str | None, source: str | None, file: str) -> Code:
    from qgpu.cuda.frontend import kernel_named
    from qgpu.cuda.ptx_parser import parse_ptx

    module = parse_ptx(compiled.ptx.text, compiled.ptx.file)
    mangled = kernel_named(module, name or compiled.name).name
    return Code(
        name=compiled.name,
        program=compiled.program,
        parameters=signature(mangled, compiled.parameters, source),
        file=file,
        image=image_of(compiled),
    )


def _of_entries(entries: dict[str, Entry], path: Path, name: str | None) -> Code:
    names = ", ".join(entries)
    if name is None and len(entries) > 1:
        raise PtxError(f"{path}: there are several kernels, {names}: say which one by its name")
    entry = next(iter(entries.values())) if name is None else entries.get(name)
    if entry is None:
        raise PtxError(f"{path}: there is no kernel {name}; there are: {names}")
    return Code(entry.name, entry.general, entry.parameters, entry.file, entry.image)


def _key(path: Path, name: str | None) -> str | None:
    """What a kept kernel is called: it changes with its source and with every file of ours that it goes through."""
    try:
        sources = [path.read_text(encoding="utf-8"), path.with_suffix(".ptx").read_text(encoding="utf-8")]
    except (OSError, UnicodeDecodeError):
        return None
    return content_key(str(path), name or "", *sources, _own_files())


@cache
def _own_files() -> str:
    """Every file of the packages that compile, with its size and time."""
    root = Path(str(files("qgpu")))
    found = []
    for package in ("isa", "cuda", "driver"):
        for file in sorted((root / package).rglob("*")):
            if file.suffix != ".pyc" and file.is_file():
                facts = file.stat()
                found.append(f"{file.relative_to(root)} {facts.st_size} {facts.st_mtime_ns}")
    return "\n".join(found)
