"""Binding: a kernel's arguments become the parameter words of a launch, every fault told at once."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qgpu.driver.arrays import DeviceArray
from qgpu.driver.ctypes import Parameter, Scalar
from qgpu.driver.dtypes import c_name, struct_fault
from qgpu.errors import LaunchError

Argument = Any
"""A DeviceArray, an integer (Python's or numpy's), or for a struct a numpy scalar of a structured type."""


def prototype(kernel: str, parameters: Sequence[Parameter]) -> str:
    """``dot(const int* a, const int* b, int* out, int n)``, as far as it is known."""
    parts = []
    for parameter in parameters:
        kind = parameter.text or ("pointer" if parameter.pointer else f"{8 * parameter.size} bits")
        parts.append(f"{kind} {parameter.name}")
    return f"{kernel}({', '.join(parts)})"


def order(
    kernel: str, parameters: Sequence[Parameter], positional: Sequence[Argument], named: Mapping[str, Argument]
) -> list[Argument]:
    """The arguments in the kernel's order. LaunchError for a wrong number or wrong names."""
    known = [parameter.name for parameter in parameters]
    faults = [f"there is no parameter {name}" for name in named if name not in known]
    found: dict[str, Argument] = dict(named)
    left = [name for name in known if name not in named]
    for name, value in zip(left, positional, strict=False):
        found[name] = value
    given = len(positional) + len(named)
    if given != len(known):
        faults.append(f"it takes {_count(len(known), 'argument')}, {given} given")
    if faults:
        raise LaunchError(f"{prototype(kernel, parameters)}: {'; '.join(faults)}")
    return [found[name] for name in known]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def words(
    kernel: str, parameters: Sequence[Parameter], values: Sequence[Argument], count: int, live: Sequence[DeviceArray]
) -> tuple[int, ...]:
    """The ``count`` 32-bit parameter words; ``live`` are the device's arrays.

    LaunchError lists every argument that does not fit its parameter.
    """
    area = bytearray(4 * count)
    faults = []
    for parameter, value in zip(parameters, values, strict=True):
        what = f"{parameter.text} {parameter.name}".strip()
        try:
            number = _number(parameter, value, live)
        except LaunchError as error:
            faults.append(f"{what}: {error}")
            continue
        end = parameter.offset + parameter.size
        mask = (1 << 8 * parameter.size) - 1
        area[parameter.offset : end] = (number & mask).to_bytes(parameter.size, "little")
    if faults:
        head = f"{prototype(kernel, parameters)}: {_count(len(faults), 'argument')} of the wrong type"
        raise LaunchError("\n".join([head, *(f"  {fault}" for fault in faults)]) if len(faults) > 1 else faults[0])
    return tuple(int.from_bytes(area[i : i + 4], "little") for i in range(0, len(area), 4))


def _number(parameter: Parameter, value: Argument, live: Sequence[DeviceArray]) -> int:
    """An argument as the integer whose low bytes are passed."""
    if isinstance(value, DeviceArray):
        return _address(parameter, value, live)
    if isinstance(value, np.void) or isinstance(value, np.ndarray) and (not value.ndim or is_struct(parameter)):
        if value.dtype.names is not None or value.ndim:
            return _struct(parameter, np.asarray(value))
    elif isinstance(value, np.ndarray):
        raise LaunchError("an array of the host's: put it on the device first, with device.array(...)")
    if parameter.pointer:
        raise LaunchError(f"an array is expected, {type(value).__name__} given")
    if is_struct(parameter):
        raise LaunchError(
            f"a struct of {parameter.size} bytes is expected, {type(value).__name__} given: give its members as a "
            "structured value of numpy's (in Python, or in a .npy file), or as an array of integers of the same size"
        )
    try:
        number = int(value) if isinstance(value, np.bool_) else operator.index(value)
    except TypeError:
        raise LaunchError(f"an integer is expected, {type(value).__name__} given") from None
    if parameter.text and parameter.element is None:
        raise LaunchError("only integers can be passed; a pointer to an array of its bits can be, as void*")
    if parameter.element is not None and not parameter.element.holds(number):
        raise LaunchError(f"{number} does not fit in {parameter.element.name}")
    if not -(1 << 8 * parameter.size - 1) <= number < 1 << 8 * parameter.size:
        raise LaunchError(f"{number} does not fit in {8 * parameter.size} bits")
    return number


def is_struct(parameter: Parameter) -> bool:
    """Whether a struct is passed by value, as far as that is known."""
    if parameter.pointer or parameter.element is not None:
        return False
    return parameter.size not in (1, 2, 4, 8) or bool(parameter.text) and parameter.text not in FLOATS


FLOATS = ("float", "double", "half")


def _struct(parameter: Parameter, value: np.ndarray[Any, Any]) -> int:
    """A struct's bytes. An array of integers stands for a struct of so many of them (``int2``, ``uchar4``)."""
    if parameter.pointer or parameter.element is not None:
        what = "an array" if parameter.pointer else "a number"
        raise LaunchError(f"{what} is expected, a struct is given")
    if fault := struct_fault(value.dtype):
        raise LaunchError(f"{value.dtype}: {fault}")
    if value.dtype.names is None and value.dtype.kind not in "iub":
        raise LaunchError(f"an array of {value.dtype}: a struct is made of integers")
    if value.nbytes != parameter.size:
        raise LaunchError(f"{value.nbytes} bytes are given ({value.dtype}), {parameter.size} are expected")
    return int.from_bytes(value.tobytes(), "little")


def _address(parameter: Parameter, array: DeviceArray, live: Sequence[DeviceArray]) -> int:
    if parameter.pointer is False:
        raise LaunchError("a number is expected, an array is given")
    if not array.alive:
        raise LaunchError(f"{array.label} was freed: make a new one")
    if not any(array.base is other for other in live):
        raise LaunchError(f"{array.label} is on another device")
    if not _points_to(parameter, array.dtype):
        wanted = parameter.text[:-1].strip() if parameter.element is None else parameter.element.name
        raise LaunchError(f"{array.label} holds {array.dtype} ({c_name(array.dtype)}), not {wanted}")
    return array.address


def _points_to(parameter: Parameter, dtype: np.dtype[Any]) -> bool:
    """Whether a pointer may point to elements of that type, as far as its own type is known."""
    text, element = parameter.text, parameter.element
    if not text or "void" in text:
        return True
    if element is not None:
        return fits(element, dtype)
    if text.count("*") > 1:  # addresses
        return dtype.kind == "u" and dtype.itemsize == parameter.size
    inner = text.rstrip("*& ").removeprefix("const ").removeprefix("volatile ")
    return inner not in FLOATS and (dtype.names is not None or dtype == np.uint8)


def fits(element: Scalar, dtype: np.dtype[Any]) -> bool:
    """Whether numpy's elements are this C type's: of one size and sign; ``char`` takes both signs, bool only bool."""
    if (element.name == "bool") != (dtype.kind == "b") or dtype.kind not in "iub":
        return False
    either = element.name in ("char", "bool")
    return dtype.itemsize == element.size and (either or element.signed == (dtype.kind == "i"))
