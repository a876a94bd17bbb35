"""What a kernel has in memory beside its arguments: variables of its file, local and shared memory, printf's buffer.

Variables are made at the first launch that needs them and live as long as the device; kernels of the same file share
them. Everything else is there for one launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qgpu.cuda.expand_printf import BUFFER_BYTES, text_of_buffer
from qgpu.cuda.memory import SHARED_BYTES, SHARED_FIRST, ModuleVariable
from qgpu.cuda.ptx import readable_name
from qgpu.driver.arrays import DeviceArray
from qgpu.driver.image import Image
from qgpu.driver.memory import Allocator
from qgpu.driver.trace import Place
from qgpu.errors import LaunchError

Array = np.ndarray[Any, Any]
Reader = Callable[[Array], str]
"""Takes the machine's memory after a launch, uint32 [4096], and gives what printf wrote."""


@dataclass(frozen=True)
class KernelMemory:
    """What a launch adds. ``words``: parameter words (counted from the kernel's first) that hold addresses.
    ``arrays``: what must lie in memory. ``spans``: further bytes that may be touched, (address, size). ``zeroed``:
    bytes of shared memory that the kernel relies on to start as 0. ``shared``: what lies there, for messages.
    ``buffer``: of ``arrays``, the one that printf writes to."""

    words: Mapping[int, int] = field(default_factory=dict)
    arrays: tuple[DeviceArray, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    printed: Reader | None = None
    zeroed: tuple[tuple[int, int], ...] = ()
    shared: tuple[Place, ...] = ()
    buffer: DeviceArray | None = None


class Variables:
    """The variables of every file on a device, by file and name."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.arrays: dict[tuple[str, str], DeviceArray] = {}

    def free(self) -> None:
        """Give the memory of all variables back."""
        for array in self.arrays.values():
            array.free()
        self.arrays.clear()

    def memory_of(self, kernel: Image, cta: tuple[int, int, int], dynamic_shared: int) -> KernelMemory:
        """Memory for one launch. LaunchError (MemoryFullError) where it finds no place."""
        shared = kernel.shared_bytes + dynamic_shared
        if shared > SHARED_BYTES:
            raise LaunchError(
                f"{kernel.name} has {kernel.shared_bytes:,} bytes of __shared__ variables, and {dynamic_shared:,} of "
                f"dynamic shared memory are asked for; a CTA has {SHARED_BYTES:,} in all"
            )
        words: dict[int, int] = {}
        arrays: list[DeviceArray] = []
        file = kernel.module
        made = [v for v in kernel.variables if (file, v.name) not in self.arrays]
        for variable in kernel.variables:
            array = self._array(file, variable)
            words[variable.word] = array.address
            arrays.append(array)
        for variable in made:
            self._refer(file, variable)
        if kernel.local is not None:
            size = kernel.local.bytes_per_thread * math.prod(cta)
            local = DeviceArray(np.zeros(-(-size // 4), np.uint32), self.allocator, f"local memory of {kernel.name}")
            words[kernel.local.word] = local.address
            arrays.append(local)
        reader: Reader | None = None
        buffer: DeviceArray | None = None
        if kernel.printf is not None:
            buffer = self.arrays[file, kernel.printf.buffer.name]
            buffer.fill(0)
            reader = _reader(kernel, buffer.address)
        spans = ((SHARED_FIRST, shared),) if shared else ()
        named = _shared(kernel, dynamic_shared)
        return KernelMemory(words, tuple(arrays), spans, reader, kernel.zeroed, named, buffer)

    def _array(self, file: str, variable: ModuleVariable) -> DeviceArray:
        key = file, variable.name
        if key not in self.arrays:
            data = variable.initial.ljust(max(variable.size, 1), b"\0")
            kind = np.dtype(np.uint8 if len(data) % 4 else np.uint32)
            self.arrays[key] = DeviceArray(np.frombuffer(data, kind), self.allocator, readable_name(variable.name))
        return self.arrays[key]

    def _refer(self, file: str, variable: ModuleVariable) -> None:
        """Fills in the addresses that a variable starts with."""
        array = self.arrays[file, variable.name]
        data = bytearray(array.numpy().tobytes())
        for reference in variable.references:
            address = self.arrays[file, reference.variable].address + reference.addend
            data[reference.offset : reference.offset + reference.width] = address.to_bytes(reference.width, "little")
        array.fill(np.frombuffer(bytes(data), array.dtype))


def _shared(kernel: Image, dynamic: int) -> tuple[Place, ...]:
    """The variables in shared memory, for messages."""
    named = [*kernel.shared]
    if dynamic:
        named.append(("dynamic shared memory", SHARED_FIRST + kernel.shared_bytes, dynamic))
    return tuple(Place(name, at, (size,), itemsize=1, kind="bytes") for name, at, size in named)


def _reader(kernel: Image, address: int) -> Reader:
    assert kernel.printf is not None
    formats = kernel.printf.formats

    def read(memory: Array) -> str:
        data = memory.tobytes()

        def string_at(place: int) -> str:
            return data[place:].partition(b"\0")[0].decode("utf-8", "replace")

        text, lost = text_of_buffer(data[address : address + BUFFER_BYTES], formats, string_at)
        note = f"[printf: {lost:,} bytes more did not fit into the buffer of {BUFFER_BYTES:,}]\n" if lost else ""
        return text + note

    return read
