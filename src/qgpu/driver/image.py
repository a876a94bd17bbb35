"""A kernel as the driver launches it: its programs by size of launch, and what it needs in memory beside its arguments.

It comes from the compiler, or from a program file; then the compiler need not even be loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qgpu.cuda.cache import content_key
from qgpu.cuda.expand_printf import Format
from qgpu.cuda.memory import ModuleVariable
from qgpu.cuda.ptx import readable_name
from qgpu.isa.program import Dim3, Program

if TYPE_CHECKING:
    from qgpu.cuda.pipeline import CompiledKernel


@dataclass(frozen=True)
class Local:
    """Local memory; see `pipeline.LocalMemory`."""

    bytes_per_thread: int
    word: int
    spills: int = 0


@dataclass(frozen=True)
class Printed:
    """What printf calls need; see `pipeline.Printf`."""

    buffer: ModuleVariable
    formats: tuple[Format, ...]


@dataclass(frozen=True, eq=False)
class Image:
    """``program_for``: the program for a grid and a CTA size. ``module``: tells the file it is of from others; kernels
    of one share their variables. ``shared_bytes``: of __shared__ variables. ``zeroed``: (address, size) of shared
    memory that the kernel relies on to start as 0. ``sources``: texts by name, as far as they are at hand. ``sizes``:
    which sizes of a launch the program may depend on, by whether they are 1: ``grid.x``, ``cta.y``, ... ``shared``:
    (name, address, size) of __shared__ variables. The rest is as in `pipeline.CompiledKernel`."""

    name: str
    program_for: Callable[[Dim3, Dim3], Program]
    module: str
    shared_bytes: int = 0
    dynamic_shared: bool = False
    zeroed: tuple[tuple[int, int], ...] = ()
    variables: tuple[ModuleVariable, ...] = ()
    local: Local | None = None
    printf: Printed | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    shared: tuple[tuple[str, int, int], ...] = ()


_SIZES = {"ctaid": "grid", "nctaid": "grid", "tid": "cta", "ntid": "cta"}


def image_of(kernel: CompiledKernel) -> Image:
    """What the compiler has made, as the driver needs it."""
    from qgpu.cuda.ir import Special, operands
    from qgpu.cuda.lower_warp import TALLY
    from qgpu.cuda.memory import shared_addresses

    addresses, _ = shared_addresses(kernel.function)
    named = {
        f"{_SIZES[operand.name.split('.')[0]]}.{operand.name[-1]}"
        for block in kernel.function.blocks
        for item in (*block.instructions, block.terminator)
        for operand in operands(item)
        if isinstance(operand, Special) and operand.name.split(".")[0] in _SIZES
    }
    return Image(
        kernel.name,
        kernel.program_for,
        content_key(kernel.ptx.text),
        kernel.shared_bytes,
        kernel.dynamic_shared,
        ((addresses[TALLY], 4),) if TALLY in addresses else (),  # words that the compiler has added for itself
        kernel.variables,
        None if kernel.local is None else Local(kernel.local.bytes_per_thread, kernel.local.word, kernel.local.spills),
        None if kernel.printf is None else Printed(kernel.printf.buffer, kernel.printf.formats),
        dict(kernel.ptx.sources),
        tuple(sorted(named)),
        tuple(
            (variable_name(variable.name), addresses[variable.name], variable.size)
            for variable in kernel.function.variables
            if variable.space == "shared" and variable.size and variable.name in addresses and variable.name != TALLY
        ),
    )


def variable_name(mangled: str) -> str:
    """What a variable is called in the source: ``_ZZ4racePiE1s``, a variable of a function, is ``s``."""
    found = re.match(r"_ZL(\d+)", mangled) or re.match(r"_ZZ.*E(\d+)", mangled)
    return mangled[found.end() : found.end() + int(found[1])] if found else readable_name(mangled)
