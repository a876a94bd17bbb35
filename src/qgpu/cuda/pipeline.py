"""From a source file to a program of machine blocks: every step of the compiler, called in its order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from qgpu.cuda.compile import PtxText, compile_cuda, ptx_of_file
from qgpu.cuda.frontend import translate
from qgpu.cuda.ir import Const, Function, KernelParameter, Operand, Special, Type, map_operands
from qgpu.cuda.lower import Options, lower
from qgpu.cuda.optimize import optimize
from qgpu.cuda.ptx import Module, readable_name
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.errors import PtxError
from qgpu.isa.program import Dim3, Program


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A kernel ready to be launched.

    ``program``: for launches of any size. ``parameters``: where each lies in the parameter area; word k of that is
    parameter word k of the launch. ``lines``: for every block of ``program`` the line of the user's source, 0 if
    unknown. ``ptx``: the text it came from. ``function``: its optimised IR.
    """

    name: str
    program: Program
    parameters: tuple[KernelParameter, ...]
    lines: tuple[int, ...]
    ptx: PtxText
    function: Function
    file: str

    def program_for(self, grid: Dim3, cta: Dim3) -> Program:
        """The program for launches of this shape, a shorter one where a grid or CTA is only 1 wide somewhere.

        Only that is used of the sizes: an index along a dimension of size 1 is 0. ``parameters`` stay as they are.
        """
        ones = tuple(f"{name}.{axis}" for name, sizes in (("ctaid", grid), ("tid", cta))
                     for axis, size in zip("xyz", sizes, strict=True) if size == 1)  # fmt: skip
        return _specialised(self, ones)


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
    program = lower(function, Options(ptx=ptx.text.splitlines(), file=file))
    lines = tuple(block.line for block in program.blocks)
    return CompiledKernel(function.name, program, function.parameters, lines, ptx, function, file)


def _only_kernel(module: Module, file: str) -> str:
    names = [readable_name(kernel.name) for kernel in module.kernels]
    if not names:
        raise PtxError(f"{file}: there is no kernel in it; mark a function with __global__ to make it one")
    if len(names) > 1:
        raise PtxError(f"{file}: there are several kernels, {', '.join(names)}: say which one by its name")
    return module.kernels[0].name


@lru_cache(maxsize=256)
def _specialised(kernel: CompiledKernel, zero: tuple[str, ...]) -> Program:
    function = with_zero_indices(kernel.function, frozenset(zero))
    if function == kernel.function:
        return kernel.program
    return lower(optimize(function), Options(ptx=kernel.ptx.text.splitlines(), file=kernel.file))


def with_zero_indices(function: Function, zero: frozenset[str]) -> Function:
    """The function where these indices ("ctaid.x", "tid.z", ...) are 0, since their dimensions have size 1."""
    known = {name: 0 for name in zero} | {_SIZES[name.split(".")[0]] + name[-2:]: 1 for name in zero}

    def change(operand: Operand) -> Operand:
        value = known.get(operand.name) if isinstance(operand, Special) else None
        return operand if value is None else Const(value, Type.B32)

    return replace(
        function,
        blocks=tuple(
            replace(
                block,
                instructions=tuple(map_operands(item, change) for item in block.instructions),
                terminator=map_operands(block.terminator, change),  # type: ignore[arg-type]
            )
            for block in function.blocks
        ),
    )


_SIZES = {"ctaid": "nctaid", "tid": "ntid"}
