"""Binding: a kernel's arguments become the parameter words of a launch, every fault told at once."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qgpu.driver.arrays import DTYPES, DeviceArray
from qgpu.driver.ctypes import Parameter
from qgpu.errors import LaunchError

Argument = Any
"""A DeviceArray, or an int (Python's or numpy's)."""


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
    """An argument as the integer that is passed."""
    if isinstance(value, DeviceArray):
        return _address(parameter, value, live)
    if isinstance(value, np.ndarray) and value.ndim:
        raise LaunchError("an array of the host's: put it on the device first, with device.array(...)")
    if parameter.pointer:
        raise LaunchError(f"an array is expected, {type(value).__name__} given")
    try:
        number = operator.index(value)
    except TypeError:
        raise LaunchError(f"an integer is expected, {type(value).__name__} given") from None
    if parameter.text and parameter.element is None:
        raise LaunchError("only integers can be passed for now")
    if parameter.size not in (1, 2, 4, 8):
        raise LaunchError(f"a struct of {parameter.size} bytes cannot be passed: pass its members, or an array")
    if parameter.element is not None and not parameter.element.holds(number):
        raise LaunchError(f"{number} does not fit in {parameter.element.name}")
    if not -(1 << 8 * parameter.size - 1) <= number < 1 << 8 * parameter.size:
        raise LaunchError(f"{number} does not fit in {8 * parameter.size} bits")
    return number


def _address(parameter: Parameter, array: DeviceArray, live: Sequence[DeviceArray]) -> int:
    if parameter.pointer is False:
        raise LaunchError("a number is expected, an array is given")
    if not array.alive:
        raise LaunchError(f"{array.label} was freed: make a new one")
    if not any(array is other for other in live):
        raise LaunchError(f"{array.label} is on another device")
    element = parameter.element
    wanted = DTYPES[array.dtype.name]
    if parameter.text and parameter.text != "void*" and "void" not in parameter.text:
        if element is None or (element.size, element.signed) != (4, array.dtype.kind == "i"):
            raise LaunchError(f"{array.label} holds {array.dtype} ({wanted})")
    return array.address
