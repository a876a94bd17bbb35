"""Modules and kernels: compiled code that is ready to be launched on a device, ``kernel[grid, cta](arguments...)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgpu.driver import arguments
from qgpu.driver.code import Code, code_of_file, code_of_source, kernel_names
from qgpu.driver.ctypes import Parameter
from qgpu.driver.launch import DEFAULT_MAX_TOKENS, Launch
from qgpu.errors import LaunchError
from qgpu.isa.program import Dim3

if TYPE_CHECKING:
    from qgpu.driver.device import Device

Size = int | Sequence[int]


def size_of(size: Size, what: str) -> Dim3:
    """A grid or CTA size in x, y and z, from an int or up to three of them. LaunchError if it is neither."""
    given = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    parts = tuple(int(part) if hasattr(part, "__index__") else part for part in given)
    if not 1 <= len(parts) <= 3 or not all(isinstance(part, int) for part in parts):
        raise LaunchError(f"{what} {size!r}: give one to three integers, x, y and z")
    x, y, z = (*parts, 1, 1)[:3]
    return x, y, z


def _shared(kernel: str, size: object) -> int:
    if not isinstance(size, int) or size < 0:
        raise LaunchError(f"{kernel}[...]: {size!r} is no number of bytes of dynamic shared memory")
    return size


@dataclass(frozen=True)
class Kernel:
    """A kernel on a device. ``kernel[grid, cta]`` gives what can be called; both are ints or tuples (x, y, z). A third
    number is the size of dynamic shared memory, in bytes."""

    device: Device
    code: Code

    @property
    def name(self) -> str:
        return self.code.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.code.parameters

    def __getitem__(self, sizes: tuple[Size, Size] | tuple[Size, Size, int]) -> Configured:
        if not isinstance(sizes, tuple) or len(sizes) not in (2, 3):
            raise LaunchError(f"{self.name}[...]: give two sizes, kernel[grid, cta], e.g. {self.name}[1, 32]")
        shared = _shared(self.name, sizes[2]) if len(sizes) == 3 else 0
        return Configured(self, size_of(sizes[0], "grid"), size_of(sizes[1], "CTA"), shared)

    def __call__(
        self, grid: Size, block: Size, args: Sequence[arguments.Argument], *, shared_mem: int = 0, **options: Any
    ) -> Launch:
        """``kernel(grid, block, (a, b, 3))``, as CuPy's RawKernel is called: the same as
        ``kernel[grid, block, shared_mem](a, b, 3)``, whose options are known here too."""
        if not isinstance(args, (tuple, list)):
            raise LaunchError(f"{self.name}(grid, block, args): args are a tuple, one entry a parameter")
        return self[grid, block, shared_mem](*args, **options)

    def __repr__(self) -> str:
        return f"Kernel({arguments.prototype(self.name, self.parameters)})"


@dataclass(frozen=True)
class Configured:
    """A kernel with its grid and CTA size. ``shared``: bytes of dynamic shared memory."""

    kernel: Kernel
    grid: Dim3
    cta: Dim3
    shared: int = 0

    def __call__(
        self,
        *values: arguments.Argument,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        check: bool = False,
        shared: int | None = None,
        sanitize: bool = False,
        **named: arguments.Argument,
    ) -> Launch:
        """Run the kernel and wait for its end; arrays then hold what it wrote.

        Arguments go by position or by the names they have in the source: DeviceArrays for pointers, ints for integers.
        max_tokens: how many tokens the model may write. check: compare every token and the memory with the interpreter.
        shared: bytes of dynamic shared memory. sanitize: look for uninitialised reads, races on shared memory and
        barriers with missing threads. A parameter of one of these names goes by position.
        Raises LaunchError, FaultError, LimitError, CheckError or SanitizeError.
        """
        code = self.kernel.code
        shared = self.shared if shared is None else _shared(code.name, shared)
        ordered = arguments.order(code.name, code.parameters, values, named)
        return self.kernel.device.launch(
            code, self.grid, self.cta, ordered, max_tokens=max_tokens, check=check, shared=shared, sanitize=sanitize
        )


    def bound(self, *values: arguments.Argument, shared: int | None = None, **named: arguments.Argument) -> Call:
        """This launch with its arguments, for `Device.launch_many`. LaunchError for a wrong number or wrong names."""
        code = self.kernel.code
        ordered = arguments.order(code.name, code.parameters, values, named)
        return Call(code, self.grid, self.cta, tuple(ordered), self.shared if shared is None else shared)


@dataclass(frozen=True)
class Call:
    """A launch that is still to be made. ``values``: its arguments in the kernel's order."""

    code: Code
    grid: Dim3
    cta: Dim3
    values: tuple[arguments.Argument, ...]
    shared: int = 0


@dataclass(frozen=True)
class Module:
    """A file of CUDA C or PTX on a device; or, with ``source``, CUDA C text that messages call ``path``."""

    device: Device
    path: Path
    source: str | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of what can be launched."""
        return kernel_names(self.path, self.source)

    def kernel(self, name: str | None = None) -> Kernel:
        """The kernel of that name, compiled; without a name, the only one there is. PtxError lists what there is."""
        if self.source is not None:
            return Kernel(self.device, code_of_source(self.source, str(self.path), name))
        return Kernel(self.device, code_of_file(self.path, name))

    def __repr__(self) -> str:
        return f"Module({self.path})"
