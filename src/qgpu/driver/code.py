"""Compiled kernels as the driver launches them, from a source file, from text, or from a program file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qgpu.cuda import pipeline
from qgpu.cuda.compile import ptx_of_file, read_source
from qgpu.cuda.frontend import kernel_named
from qgpu.cuda.ptx import readable_name
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.driver.ctypes import Parameter, signature
from qgpu.driver.image import Image, image_of
from qgpu.driver.program_file import SUFFIX, Entry, entry_of, load
from qgpu.errors import PtxError
from qgpu.isa.program import Dim3, Program


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
        return _of_program_file(path, name)
    compiled = pipeline.compile_file(path, name, compiler)
    return _code(compiled, name, None if path.suffix == ".ptx" else read_source(path), str(path))


def code_of_source(source: str, file: str, name: str | None = None) -> Code:
    """A kernel of CUDA C text, compiled down to blocks; ``file`` is its name in messages."""
    return _code(pipeline.compile_source(source, file, name), name, source, file)


def _code(compiled: pipeline.CompiledKernel, name: str | None, source: str | None, file: str) -> Code:
    module = parse_ptx(compiled.ptx.text, compiled.ptx.file)
    mangled = kernel_named(module, name or compiled.name).name
    return Code(
        name=compiled.name,
        program=compiled.program,
        parameters=signature(mangled, compiled.parameters, source),
        file=file,
        image=image_of(compiled),
    )


def _of_program_file(path: Path, name: str | None) -> Code:
    entries = load(path)
    names = ", ".join(entries)
    if name is None and len(entries) > 1:
        raise PtxError(f"{path}: there are several kernels, {names}: say which one by its name")
    entry = next(iter(entries.values())) if name is None else entries.get(name)
    if entry is None:
        raise PtxError(f"{path}: there is no kernel {name}; there are: {names}")
    return Code(entry.name, entry.general, entry.parameters, entry.file, entry.image)


def entries_of(path: Path, compiler: str | None = None, names: tuple[str, ...] = ()) -> list[Entry]:
    """All kernels of a source file, or those of these names, as a program file takes them. Raises as code_of_file."""
    text = ptx_of_file(path, compiler)
    known = tuple(readable_name(kernel.name) for kernel in parse_ptx(text.text, text.file).kernels)
    if not known:
        raise PtxError(f"{path}: there is no kernel in it; mark a function with __global__ to make it one")
    codes = [code_of_file(path, name, compiler) for name in names or known]
    return [entry_of(code.name, code.file, code.parameters, code.image) for code in codes if code.image is not None]
