"""Types of elements: what numpy calls them, what C calls them, and host values made into arrays of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qgpu.errors import LaunchError

Array = np.ndarray[Any, Any]

DTYPES: Mapping[str, str] = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
}
"""numpy type -> C type of the elements an array may have, beside structs of these."""

_LISTS = ("int32", "uint32", "int64", "uint64")
"""What lists of integers become: the first that holds them all."""


def c_name(dtype: np.dtype[Any]) -> str:
    """What C calls a type of elements."""
    return DTYPES.get(dtype.name, f"a struct of {dtype.itemsize} bytes" if dtype.names else dtype.name)


def alignment(dtype: np.dtype[Any]) -> int:
    """The alignment that C gives a type, in bytes."""
    if dtype.subdtype is not None:
        return alignment(dtype.subdtype[0])
    if dtype.names is None:
        return dtype.itemsize
    return max((alignment(dtype[name]) for name in dtype.names), default=1)


def struct_fault(dtype: np.dtype[Any]) -> str:
    """Why a structured type is no C struct of integers; empty if it is one."""
    for name in dtype.names or ():
        field: np.dtype[Any] = dtype[name]
        inner = field.subdtype[0] if field.subdtype is not None else field
        if inner.names is not None:
            if fault := struct_fault(inner):
                return fault
        elif inner.name not in DTYPES:
            return f"its field {name} is {inner}, no integer"
        assert dtype.fields is not None
        if dtype.fields[name][1] % alignment(field):
            return f"its field {name} does not lie where C puts it: make the dtype with align=True"
    return "" if dtype.itemsize % alignment(dtype) == 0 else "its size is not C's: make the dtype with align=True"


def host_array(values: Any, dtype: Any = None, name: str = "") -> Array:
    """``values`` as a numpy array of a type that the device has: of ``dtype``, of their own type where they are an
    array, else of the first of int32, uint32, int64 and uint64 that holds them.

    Raises LaunchError for anything but integers and structs of them, for integers that do not fit, for ragged lists
    and empty arrays.
    """
    what = name or "the array"
    wanted: np.dtype[Any] | None = None if dtype is None else np.dtype(dtype)
    if wanted is not None and wanted.names is not None:
        return _structs(values, wanted, what)
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        raise LaunchError(f"{what}: its rows differ in length") from None
    if array.dtype.names is not None:
        return _structs(array, array.dtype, what)
    if wanted is None and (isinstance(values, np.ndarray | np.generic) or hasattr(values, "__array__")):
        wanted = array.dtype  # who passes an array means its type
    if array.size == 0:
        raise LaunchError(f"{what} is empty: arrays have at least one element")
    if array.dtype.kind == "f" and isinstance(values, Sequence):
        exact = np.asarray(values, object)  # integers that no one type of numpy holds come as floats
        array = exact if all(type(value) is int for value in exact.reshape(-1)) else array
    if array.dtype == object and all(type(value) is int for value in array.reshape(-1)):
        pass  # integers beyond 64 bits: judged below
    elif array.dtype.kind not in "iub" or (wanted is not None and wanted.name not in DTYPES):
        kind = array.dtype if wanted is None or array.dtype.kind not in "iub" else wanted
        raise LaunchError(f"{what} is {kind}: arrays hold integers of 8 to 64 bits, bool, or structs of them")
    if array.dtype.kind == "b" and wanted is None:
        return array
    low, high = int(array.min()), int(array.max())
    if wanted is None:
        fitting = (np.dtype(kind) for kind in _LISTS if _limits(kind)[0] <= low and high <= _limits(kind)[1])
        wanted = next(fitting, np.dtype(np.int64 if low < 0 else np.uint64))
    least, most = _limits(wanted.name)
    if low < least or high > most:
        value = low if low < least else high
        raise LaunchError(f"{what}: {value} does not fit in {wanted.name} ({least}..{most})")
    return array.astype(wanted.name)


def _limits(kind: str) -> tuple[int, int]:
    if kind == "bool":
        return 0, 1
    limits = np.iinfo(kind)
    return int(limits.min), int(limits.max)


def _structs(values: Any, dtype: np.dtype[Any], what: str) -> Array:
    if fault := struct_fault(dtype):
        raise LaunchError(f"{what} is {dtype}: {fault}")
    try:
        array = np.asarray(values, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise LaunchError(f"{what}: its elements do not make {dtype}: {error}") from None
    if array.size == 0:
        raise LaunchError(f"{what} is empty: arrays have at least one element")
    return array
