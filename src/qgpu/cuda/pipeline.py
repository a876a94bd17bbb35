"""From a source file to a program of machine blocks: every step of the compiler, called in its order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from qgpu.cuda.compile import PtxText, compile_cuda, ptx_of_file
from qgpu.cuda.expand_printf import BUFFER, Format, expand_prints
from qgpu.cuda.frontend import kernel_named, translate
from qgpu.cuda.ir import Const, Function, KernelParameter, Operand, Special, Type, map_operands
from qgpu.cuda.lower import Lowered, Options, lower
from qgpu.cuda.lower_warp import plain_barriers
from qgpu.cuda.memory import (
    LOCAL,
    ModuleVariable,
    has_dynamic_shared,
    place_locals,
    place_variables,
    shared_addresses,
    used_variables,
)
from qgpu.cuda.optimize import optimize
from qgpu.cuda.promote import promote_locals
from qgpu.cuda.ptx import Module, readable_name
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.errors import PtxError, UnsupportedError
from qgpu.isa.program import Dim3, Program


@dataclass(frozen=True)
class Printf:
    """A kernel's printf calls. ``buffer``: the variable among ``CompiledKernel.variables`` that takes their records,
    which must be all 0 before each launch; `expand_printf.text_of_buffer` makes text of its bytes afterwards."""

    buffer: ModuleVariable
    formats: tuple[Format, ...]


@dataclass(frozen=True)
class LocalMemory:
    """Local memory: ``bytes_per_thread`` for every thread of a CTA, aligned to 16. ``word``: the parameter word that
    takes its address, counted from the kernel's first. The threads' own local variables come first, thread by thread,
    behind them in the same way what found no register. ``spills``: accesses of that in the program for all sizes."""

    bytes_per_thread: int
    word: int
    spills: int = 0


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """A kernel ready to be launched.

    ``program``: for launches of any size. ``parameters``: the user's own, and where each lies in the parameter area;
    word k of that is parameter word k of the launch. Further words, up to ``program.parameter_words``, are what
    ``variables`` and ``local`` say. ``lines``: for every block of ``program`` the line of the user's source, 0 if
    unknown or of another file. ``ptx``: the text it came from. ``function``: its optimised IR.

    ``shared_bytes``: of the __shared__ variables, from the start of shared memory on. Dynamic shared memory, if
    ``dynamic_shared``, begins right behind them.
    ``variables``: __device__ and __constant__ variables; kernels of one file share those of the same name.
    ``placed_bytes``: of a thread's local memory, what its own variables take.
    """

    name: str
    program: Program
    parameters: tuple[KernelParameter, ...]
    lines: tuple[int, ...]
    ptx: PtxText
    function: Function
    file: str
    shared_bytes: int = 0
    dynamic_shared: bool = False
    variables: tuple[ModuleVariable, ...] = ()
    local: LocalMemory | None = None
    printf: Printf | None = None
    placed_bytes: int = 0

    def program_for(self, grid: Dim3, cta: Dim3) -> Program:
        """The program for launches of this shape, a shorter one where a grid or CTA is only 1 wide somewhere.

        Only that is used of the sizes: an index along a dimension of size 1 is 0. ``parameters`` stay as they are.
        """
        ones = tuple(f"{name}.{axis}" for name, sizes in (("ctaid", grid), ("tid", cta))
                     for axis, size in zip("xyz", sizes, strict=True) if size == 1)  # fmt: skip
        return _specialised(self, ones)


def compile_file(path: str | Path, kernel: str | None = None, compiler: str | None = None) -> CompiledKernel:
    """A kernel of a ``.cu`` or ``.ptx`` file. ``kernel``: its name, which may be left out where there is only one.

    compiler: a row of `compile.COMPILERS`, None for the usual one.
    Raises CompileError, PtxError (also for a missing or ambiguous name, listing what there is), UnsupportedError.
    """
    return _compile(ptx_of_file(path, compiler), str(path), kernel)


def compile_source(
    text: str, filename: str, kernel: str | None = None, compiler: str | None = None
) -> CompiledKernel:
    """A kernel of CUDA C text; ``filename`` is its name in messages. Raises as `compile_file` does."""
    ptx = compile_cuda(text, filename, compiler=compiler)
    return _compile(PtxText(ptx, f"PTX of {filename}", {filename: text}), filename, kernel)


def _compile(ptx: PtxText, file: str, kernel: str | None) -> CompiledKernel:
    module = parse_ptx(ptx.text, ptx.file, ptx.sources)
    name = kernel if kernel is not None else _only_kernel(module, file)
    try:
        translated = translate(module, name)
    except UnsupportedError as error:
        raise UnsupportedError("\n".join([str(error), *_of_others(module, name)])) from None
    parts = prepare(translated, file)
    lowered = _lowered(parts.function, ptx, file, parts.local_bytes)
    lines = tuple(0 if block.file else block.line for block in lowered.program.blocks)
    words = {parameter.name: parameter.offset // 4 for parameter in lowered.parameters}
    return CompiledKernel(
        translated.name, lowered.program, translated.parameters, lines, ptx,
        replace(parts.function, parameters=lowered.parameters), file,
        shared_bytes=parts.shared_bytes, dynamic_shared=parts.dynamic_shared, variables=parts.variables,
        local=LocalMemory(lowered.local_bytes, words[LOCAL], lowered.spills) if lowered.local_bytes else None,
        printf=parts.printf, placed_bytes=parts.local_bytes,
    )  # fmt: skip


def _of_others(module: Module, name: str) -> list[str]:
    """What is refused of the other kernels of a file."""
    found = []
    this = kernel_named(module, name)
    for kernel in module.kernels:
        if kernel is not this and kernel.body is not None:
            try:
                translate(module, kernel.name)
            except UnsupportedError as error:
                found.append(str(error))
    return found


@dataclass(frozen=True)
class Prepared:
    """A kernel optimised, with every variable in its place: what lowering takes, and what the driver is told."""

    function: Function
    shared_bytes: int
    dynamic_shared: bool
    variables: tuple[ModuleVariable, ...]
    local_bytes: int
    printf: Printf | None


def prepare(function: Function, file: str = "") -> Prepared:
    """The IR of a kernel on its way to lowering. Raises UnsupportedError for what finds no place."""
    function = optimize(function)
    expanded, formats = expand_prints(function, file)
    expanded = promote_locals(plain_barriers(expanded))
    if expanded != function:
        function = optimize(expanded)
    function = before = replace(function, variables=used_variables(function))
    _, shared_bytes = shared_addresses(function, file)
    function, bytes_per_thread = place_locals(function)
    function, variables = place_variables(function)
    if function != before:
        function = optimize(function)
    buffer = next((variable for variable in variables if variable.name == BUFFER), None)
    return Prepared(
        function,
        shared_bytes,
        has_dynamic_shared(function),
        variables,
        bytes_per_thread,
        None if buffer is None else Printf(buffer, formats),
    )


def _lowered(function: Function, ptx: PtxText, file: str, local_bytes: int) -> Lowered:
    addresses, _ = shared_addresses(function, file)
    return lower(function, Options(addresses=addresses, local_bytes=local_bytes, ptx=ptx.text.splitlines(), file=file))


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
    lowered = _lowered(optimize(function), kernel.ptx, kernel.file, kernel.placed_bytes)
    # Memory for what finds no register is what the program for all sizes needs.
    room = kernel.placed_bytes if kernel.local is None else kernel.local.bytes_per_thread
    return lowered.program if lowered.local_bytes <= room else kernel.program


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
