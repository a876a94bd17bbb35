"""Kernels as decorated functions: the function gives the name, its docstring or a file gives the CUDA C.

    @qgpu.kernel
    def triple(a, n):
        '''__global__ void triple(int* a, int n) { if (threadIdx.x < n) a[threadIdx.x] *= 3; }'''

    triple[1, 32](a, n)      # runs on the device that its arrays are on

Nothing of the function's body is run or translated. The kernel is compiled at its first launch, once for a device.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

from qgpu.driver.arrays import DeviceArray
from qgpu.driver.device import Device
from qgpu.driver.kernel import Kernel, Size
from qgpu.driver.launch import Launch
from qgpu.errors import CompileError, LaunchError


class KernelFunction:
    """What ``kernel`` makes of a function. ``source``: CUDA C text, or the path of its file."""

    def __init__(self, function: Callable[..., Any], source: str | Path) -> None:
        self.name = function.__name__
        self.source = source
        self.__doc__, self.__wrapped__ = function.__doc__, function
        self._names = list(inspect.signature(function).parameters)
        self._kernels: weakref.WeakKeyDictionary[Device, Kernel] = weakref.WeakKeyDictionary()

    def on(self, device: Device) -> Kernel:
        """The kernel on a device. CompileError where its parameters are not called what the function's are."""
        if device not in self._kernels:
            made = device.kernel(self.source, self.name)
            names = [parameter.name for parameter in made.parameters]
            if names != self._names:
                raise CompileError(
                    f"{self.name}: the function has the parameters ({', '.join(self._names)}), the kernel "
                    f"({', '.join(names)})"
                )
            self._kernels[device] = made
        return self._kernels[device]

    def __getitem__(self, sizes: tuple[Size, Size] | tuple[Size, Size, int]) -> Callable[..., Launch]:
        def launch(*values: Any, **named: Any) -> Launch:
            return self.on(self._device([*values, *named.values()]))[sizes](*values, **named)

        return launch

    def _device(self, values: list[Any]) -> Device:
        found = {array.device for value in values if isinstance(value, DeviceArray) and (array := value.base)}
        if len(found) != 1 or None in found:
            what = "its arrays are on several devices" if len(found) > 1 else "none of its arguments is an array"
            raise LaunchError(f"{self.name}: {what}: say which device, with {self.name}.on(device)[grid, cta](...)")
        return found.pop()  # type: ignore[return-value]

    def __repr__(self) -> str:
        where = self.source if isinstance(self.source, Path) else "its docstring"
        return f"KernelFunction({self.name}({', '.join(self._names)}), CUDA C in {where})"


@overload
def kernel(function: Callable[..., Any]) -> KernelFunction: ...


@overload
def kernel(
    *, source: str | None = None, file: str | Path | None = None
) -> Callable[[Callable[..., Any]], KernelFunction]: ...


def kernel(
    function: Callable[..., Any] | None = None, *, source: str | None = None, file: str | Path | None = None
) -> KernelFunction | Callable[[Callable[..., Any]], KernelFunction]:
    """A decorator: the kernel of the function's name, out of its docstring, out of ``source`` or out of ``file``.

    Raises CompileError where there is no CUDA C; all else at the first launch.
    """

    def made(decorated: Callable[..., Any]) -> KernelFunction:
        text = source if source is not None else inspect.getdoc(decorated)
        if file is not None:
            return KernelFunction(decorated, Path(file))
        if not text or "__global__" not in text:
            raise CompileError(
                f"{decorated.__name__}: no CUDA C: write it in the function's docstring (with __global__), or give "
                "source= or file="
            )
        return KernelFunction(decorated, text)

    return made if function is None else made(function)
