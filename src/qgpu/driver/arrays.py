"""Arrays on the device: a shape, a type and a place in the machine's memory, and the host's copy of what stands there.

The host writes its copy into the prompt of every launch and takes a new one from the model's memory when the launch
ends; between launches the copy is the truth.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from qgpu.driver.memory import Allocator
from qgpu.errors import LaunchError
from qgpu.isa import tokens

Array = np.ndarray[Any, Any]

DTYPES: Mapping[str, str] = {"int32": "int", "uint32": "unsigned int"}
"""numpy type -> C type of the elements an array may have."""

Shape = tuple[int, ...]


class DeviceArray:
    """``shape``, ``dtype`` (int32 or uint32) as in numpy; ``address`` in bytes; row-major. ``name`` is for messages.

    Its memory is given back by ``free()``, or when nobody holds the array any more.
    """

    def __init__(self, values: Array, allocator: Allocator, name: str) -> None:
        self.name = name
        self._host = np.array(values, order="C")  # a copy
        self.shape: Shape = self._host.shape
        self.dtype = self._host.dtype
        self.address = allocator.allocate(self._host.nbytes, f"{name or 'an array'} {shape_text(self)}")
        self._release = weakref.finalize(self, allocator.free, self.address)

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"the array {self.name}" if self.name else "the array"

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self._host.size)

    @property
    def nbytes(self) -> int:
        return int(self._host.nbytes)

    @property
    def alive(self) -> bool:
        """Whether the array still has its memory."""
        return self._release.alive

    def numpy(self) -> Array:
        """The elements, a copy."""
        self._must_live()
        return self._host.copy()

    def fill(self, values: Any) -> None:
        """Write new elements (of the same shape, or one number for all). LaunchError if they do not fit."""
        self._must_live()
        try:
            spread = np.broadcast_to(np.asarray(values), self.shape)
        except ValueError:
            raise LaunchError(f"{self.label}: elements of shape {np.shape(values)} do not fit {self.shape}") from None
        self._host[...] = host_array(spread, self.dtype, self.name)

    def free(self) -> None:
        """Give the memory back; the array cannot be used after that. Freeing twice is harmless."""
        self._release()

    def _must_live(self) -> None:
        if not self.alive:
            raise LaunchError(f"{self.label} was freed: make a new one")

    def _words(self) -> Array:
        """The host's copy as a flat uint32 view."""
        return self._host.reshape(-1).view(np.uint32)

    def __len__(self) -> int:
        return len(self._host)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        return f"DeviceArray({self.name or 'unnamed'}: {self.dtype} {self.shape} at 0x{self.address:04x})"


def shape_text(array: DeviceArray | Array) -> str:
    """``[3]`` or ``[2, 3]``."""
    return str(list(array.shape))


def host_array(values: Any, dtype: Any = None, name: str = "") -> Array:
    """``values`` as a numpy array of a type that the device has: ``dtype``, or int32, or uint32 where only that fits.

    Raises LaunchError for anything but integers, for integers that do not fit, for ragged lists and empty arrays.
    """
    what = name or "the array"
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        raise LaunchError(f"{what}: its rows differ in length") from None
    if dtype is None and isinstance(values, np.ndarray | np.generic | DeviceArray):
        dtype = array.dtype  # who passes an array means its type
    if array.size == 0:
        raise LaunchError(f"{what} is empty: arrays have at least one element")
    if array.dtype == object and all(type(value) is int for value in array.reshape(-1)):
        pass  # integers beyond 64 bits: judged below
    elif array.dtype.kind not in "iu" or (dtype is not None and np.dtype(dtype).name not in DTYPES):
        kind = array.dtype if dtype is None else np.dtype(dtype)
        kind = array.dtype if array.dtype.kind not in "iu" else kind
        raise LaunchError(f"{what} is {kind}: arrays are {' or '.join(DTYPES)} for now; convert it with .astype")
    low, high = int(array.min()), int(array.max())
    wanted = np.dtype(dtype if dtype is not None else np.uint32 if 0 <= low and high > 0x7FFFFFFF else np.int32)
    limits = np.iinfo(wanted)
    if low < limits.min or high > limits.max:
        value = low if low < limits.min else high
        raise LaunchError(f"{what}: {value} does not fit in {wanted} ({limits.min}..{limits.max})")
    return array.astype(wanted)


def memory_rows(arrays: list[DeviceArray]) -> dict[int, tuple[int, int]]:
    """The memory rows that hold the arrays' elements: row -> (low word, high word). Rows of zeros are left out: fresh
    memory is zero."""
    memory = np.zeros(tokens.MEMORY_BYTES // 4, np.uint32)
    for array in arrays:
        first = array.address // 4
        memory[first : first + array.size] = array._words()
    pairs = memory.reshape(-1, 2)
    return {int(row): (int(pairs[row, 0]), int(pairs[row, 1])) for row in np.flatnonzero(pairs.any(axis=1))}


def take(arrays: list[DeviceArray], memory: Array) -> None:
    """New host copies from the machine's memory, uint32 [4096]."""
    for array in arrays:
        first = array.address // 4
        array._words()[:] = memory[first : first + array.size]
