"""A kernel as the driver launches it: its programs by size of launch, and what it needs in memory beside its arguments.

It comes from the compiler, or from a program file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from qgpu.cuda.cache import content_key
from qgpu.cuda.lower_warp import TALLY
from qgpu.cuda.memory import ModuleVariable, shared_addresses
from qgpu.cuda.pipeline import CompiledKernel, LocalMemory, Printf
from qgpu.isa.program import Dim3, Program


@dataclass(frozen=True, eq=False)
class Image:
    """``program_for``: the program for a grid and a CTA size. ``module``: tells the file it is of from others; kernels
    of one share their variables. ``shared_bytes``: of __shared__ variables. ``zeroed``: (address, size) of shared
    memory that the kernel relies on to start as 0. ``sources``: texts by name, as far as they are at hand. The rest is
    as in `pipeline.CompiledKernel`."""

    name: str
    program_for: Callable[[Dim3, Dim3], Program]
    module: str
    shared_bytes: int = 0
    dynamic_shared: bool = False
    zeroed: tuple[tuple[int, int], ...] = ()
    variables: tuple[ModuleVariable, ...] = ()
    local: LocalMemory | None = None
    printf: Printf | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


def image_of(kernel: CompiledKernel) -> Image:
    """What the compiler has made, as the driver needs it."""
    addresses, _ = shared_addresses(kernel.function)
    return Image(
        kernel.name,
        kernel.program_for,
        content_key(kernel.ptx.text),
        kernel.shared_bytes,
        kernel.dynamic_shared,
        ((addresses[TALLY], 4),) if TALLY in addresses else (),  # words that the compiler has added for itself
        kernel.variables,
        kernel.local,
        kernel.printf,
        dict(kernel.ptx.sources),
    )
