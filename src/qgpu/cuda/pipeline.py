"""From a source file to a program of machine blocks: every step of the compiler, called in its order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qgpu.cuda.compile import PtxText, compile_cuda, ptx_of_file
from qgpu.cuda.frontend import translate
from qgpu.cuda.ir import Function, KernelParameter
from qgpu.cuda.lower import lower
from qgpu.cuda.optimize import optimize
from qgpu.cuda.ptx import Module, readable_name
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.errors import PtxError
from qgpu.isa.program import Program


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel ready to be launched.

    ``parameters``: where each lies in the parameter area; word k of it is parameter word k of the launch.
    ``lines``: for every block the line of the user's source, 0 if unknown. ``ptx``: the text it came from.
    """

    name: str
    program: Program
    parameters: tuple[KernelParameter, ...]
    lines: tuple[int, ...]
    ptx: PtxText
    function: Function


def compile_file(path: str | Path, kernel: str | None = None) -> CompiledKernel:
    """A kernel of a ``.cu`` or ``.ptx`` file. ``kernel``: its name, which may be left out where there is only one.

    Raises CompileError, PtxError (also for a missing or ambiguous name, listing what there is), UnsupportedError.
    """
    return _compile(ptx_of_file(path), str(path), kernel)


def compile_source(text: str, filename: str, kernel: str | None = None) -> CompiledKernel:
    """A kernel of CUDA C text; ``filename`` is its name in messages. Raises as `compile_file` does."""
    return _compile(PtxText(compile_cuda(text, filename), f"PTX of {filename}"), filename, kernel)


def _compile(ptx: PtxText, file: str, kernel: str | None) -> CompiledKernel:
    module = parse_ptx(ptx.text, ptx.file)
    function = optimize(translate(module, kernel if kernel is not None else _only_kernel(module, file)))
    program = lower(function)
    lines = tuple(block.line for block in program.blocks)
    return CompiledKernel(function.name, program, function.parameters, lines, ptx, function)


def _only_kernel(module: Module, file: str) -> str:
    names = [readable_name(kernel.name) for kernel in module.kernels]
    if not names:
        raise PtxError(f"{file}: there is no kernel in it; mark a function with __global__ to make it one")
    if len(names) > 1:
        raise PtxError(f"{file}: there are several kernels, {', '.join(names)}: say which one by its name")
    return module.kernels[0].name
