"""Arrays on the device: a shape, a type and a place in the machine's memory, and the host's copy of what stands there.

The host writes its copy into the prompt of every launch and takes a new one from the model's memory when the launch
ends; between launches the copy is the truth. Views share the memory of the array they are of.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from qgpu.driver.dtypes import host_array
from qgpu.driver.memory import Allocator
from qgpu.errors import LaunchError
from qgpu.isa import tokens

if TYPE_CHECKING:
    from qgpu.driver.device import Device

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


class DeviceArray:
    """``shape``, ``dtype`` as in numpy, always in C order; ``address`` in bytes. ``name`` is for messages.

    ``device``: the one that it was made on; None for what a kernel has beside its arguments.

    Its memory is given back by ``free()``, or when nobody holds the array or a view of it any more.
    """

    def __init__(self, values: Array, allocator: Allocator, name: str = "", device: Device | None = None) -> None:
        self.name, self.device = name, device
        self._host: Array = np.array(values, order="C")  # a copy
        self._owner: DeviceArray | None = None
        self.address = allocator.allocate(self._host.nbytes, f"{name or 'an array'} {shape_text(self._host)}")
        self._release = weakref.finalize(self, allocator.free, self.address)

    def _view(self, host: Array, how: str) -> DeviceArray:
        """A view of the elements ``host``. LaunchError where those are no piece of this memory in C order."""
        base = self.base
        if not host.size or not np.may_share_memory(host, base._host) or not host.flags.c_contiguous:
            raise LaunchError(
                f"{self.label}{how} is no view in one piece and in C order: copy what you need with "
                "device.array(array.numpy()...)"
            )
        made = object.__new__(DeviceArray)
        made.name, made.device, made._host, made._owner = self.name, base.device, host, base
        made._release = base._release
        made.address = base.address + host.ctypes.data - base._host.ctypes.data
        return made

    # -- what it is

    @property
    def base(self) -> DeviceArray:
        """The array that has the memory: itself, or for a view the one it is of."""
        return self if self._owner is None else self._owner

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"the array {self.name}" if self.name else "the array"

    @property
    def shape(self) -> Shape:
        return tuple(self._host.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = self._host.dtype
        return found

    @property
    def ndim(self) -> int:
        return self._host.ndim

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

    # -- the elements

    def numpy(self) -> Array:
        """The elements, a copy."""
        self._must_live()
        return self._host.copy()

    def item(self) -> Any:
        """The only element, as a Python number. LaunchError if there are more."""
        if self.size != 1:
            raise LaunchError(f"{self.label} has {self.size} elements: item() is for arrays of one")
        return self.numpy().item()

    def fill(self, values: Any) -> None:
        """Write new elements (of the same shape, or one number for all). LaunchError if they do not fit."""
        self[...] = values

    def __getitem__(self, key: Any) -> DeviceArray:
        """A view of a part that lies in one piece: ``a[2:5]``, ``m[1]``, ``a[3]``. LaunchError for other parts."""
        self._must_live()
        return self._view(self._pick(key), f"[{_key_text(key)}]")

    def __setitem__(self, key: Any, values: Any) -> None:
        self._must_live()
        part = self._pick(key)
        try:
            spread = np.broadcast_to(np.asarray(values, self.dtype if self.dtype.names else None), part.shape)
        except (ValueError, TypeError):
            raise LaunchError(f"{self.label}: elements of shape {np.shape(values)} do not fit {part.shape}") from None
        if part.size:
            self._host[key] = host_array(spread, self.dtype, self.name)

    def reshape(self, *shape: int | Shape) -> DeviceArray:
        """A view with another shape of as many elements."""
        self._must_live()
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        try:
            return self._view(self._host.reshape(wanted), f" as {wanted}")
        except ValueError:
            raise LaunchError(f"{self.label} has {self.size} elements, which do not make {wanted}") from None

    def view(self, dtype: Any) -> DeviceArray:
        """A view that reads the same bytes as elements of another type."""
        self._must_live()
        kind = host_array(np.zeros(1, dtype), None, self.name).dtype
        try:
            return self._view(self._host.view(kind), f" as {kind}")
        except ValueError:
            raise LaunchError(f"{self.label}: its last dim of {self.dtype} does not make whole {kind}") from None

    def _pick(self, key: Any) -> Array:
        try:
            found: Array = self._host[key if isinstance(key, str) else _with_dots(key)]
        except IndexError as error:
            raise IndexError(f"{self.label}: {error}") from None
        return found

    # -- its life

    def free(self) -> None:
        """Give the memory back; the array and its views cannot be used after that. Freeing twice is harmless.

        LaunchError for a view: the memory is its base's.
        """
        if self._owner is not None:
            raise LaunchError("this is a view: free the array that it is of")
        self._release()

    def _must_live(self) -> None:
        if not self.alive:
            raise LaunchError(f"{self.label} was freed: make a new one")

    def _bytes(self) -> Array:
        """The host's copy as a flat uint8 view."""
        return self._host.reshape(-1).view(np.uint8)

    def __len__(self) -> int:
        return len(self._host)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        where = f"at 0x{self.address:04x}" if self.alive else "freed"
        values = np.array2string(self._host, threshold=8, separator=", ").replace("\n", "") if self.alive else ""
        return f"DeviceArray({self.name + ': ' if self.name else ''}{self.dtype} {self.shape} {where}: {values})"


def _with_dots(key: Any) -> tuple[Any, ...]:
    """A key that numpy answers with a view even where it names one element."""
    parts = key if isinstance(key, tuple) else (key,)
    return parts if any(part is Ellipsis for part in parts) else (*parts, ...)


def _key_text(key: Any) -> str:
    def one(part: Any) -> str:
        if isinstance(part, slice):
            ends = ["" if end is None else str(end) for end in (part.start, part.stop)]
            return ":".join(ends + ([] if part.step is None else [str(part.step)]))
        return "..." if part is Ellipsis else str(part)

    return ", ".join(map(one, key if isinstance(key, tuple) else (key,)))


def shape_text(array: DeviceArray | Array) -> str:
    """``[3]`` or ``[2, 3]``."""
    return str(list(array.shape))


def memory_rows(arrays: Iterable[DeviceArray]) -> dict[int, tuple[int, int]]:
    """The memory rows that hold the arrays' elements: row -> (low word, high word). Rows of zeros are left out: fresh
    memory is zero."""
    memory = np.zeros(tokens.MEMORY_BYTES, np.uint8)
    for array in arrays:
        memory[array.address : array.address + array.nbytes] = array._bytes()
    pairs = memory.view(np.uint32).reshape(-1, 2)
    return {int(row): (int(pairs[row, 0]), int(pairs[row, 1])) for row in np.flatnonzero(pairs.any(axis=1))}


def take(arrays: Iterable[DeviceArray], memory: Array) -> None:
    """New host copies from the machine's memory, uint32 [4096]."""
    data = memory.view(np.uint8)
    for array in arrays:
        part = data[array.address : array.address + array.nbytes]
        array._bytes()[:] = part if array.dtype.kind != "b" else part != 0


def differs(array: DeviceArray, memory: Array) -> bool:
    """Whether the machine's memory, uint32 [4096], holds something else than the host's copy."""
    part = memory.view(np.uint8)[array.address : array.address + array.nbytes]
    return bool((array._bytes() != part).any())
