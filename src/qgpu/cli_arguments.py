"""Kernel arguments as they are typed at the command line, read into arrays and numbers.

    7  -7  0x1f        an integer
    [1, 2, 3]          an array, nested for more dims: [[1, 2], [3, 4]]
    zeros:3  zeros:2x3 an array of zeros of that shape, for results
    random:3           an array of random numbers, -100 to 100 or, where the kernel's type ends before, up to there
    @file.npy @file.json  an array (JSON: or a number) from a file
    -                  the same as JSON from standard input; an object gives several arguments by name

Each may follow ``name=``, the parameter's name in the source; arguments without names fill the places left, in order.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from qgpu.driver.arguments import fits
from qgpu.driver.ctypes import Parameter, Scalar
from qgpu.driver.dtypes import host_array
from qgpu.errors import LaunchError, MemoryFullError
from qgpu.isa import tokens

Array = np.ndarray[Any, Any]

_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(.*)", re.DOTALL)
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)")
_MADE = re.compile(r"(zeros|random):([0-9]+(?:x[0-9]+)*)")
FORMS = "an integer, [1, 2, 3], zeros:SHAPE, random:SHAPE, @FILE.npy, @FILE.json or -"


@dataclass(frozen=True)
class Zeros:
    """An array of zeros, or of random numbers, that is still to be made; its type is the parameter's."""

    shape: tuple[int, ...]
    random: bool = False


Value = int | list[Any] | Array | Zeros


@dataclass(frozen=True)
class Typed:
    """An argument as typed: ``name`` is "" for one that goes by position. ``text`` is for messages."""

    name: str
    value: Value
    text: str


def read(texts: Sequence[str], stdin: TextIO | None = None) -> list[Typed]:
    """All arguments. LaunchError lists every one that cannot be read."""
    found: list[Typed] = []
    faults: list[str] = []
    reads = 0
    for text in texts:
        named = _NAMED.fullmatch(text)
        name, body = (named[1], named[2].strip()) if named else ("", text.strip())
        reads += body == "-"
        if reads > 1:
            faults.append(f"{text}: standard input can be read only once")
            continue
        try:
            value = _value(body, stdin or sys.stdin)
        except LaunchError as error:
            faults.append(f"{_short(text)}: {error}")
            continue
        if isinstance(value, dict):
            found += [Typed(key, _json(part), f"{key} of standard input") for key, part in value.items()]
        else:
            found.append(Typed(name, value, _short(text)))
    names = [typed.name for typed in found if typed.name]
    faults += [f"{name} is given more than once" for name in sorted(set(names)) if names.count(name) > 1]
    if faults:
        raise LaunchError("\n".join(faults))
    return found


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _value(text: str, stdin: TextIO) -> Any:
    if text == "-":
        value = _load_json(stdin.read(), "standard input")
        return value if isinstance(value, dict) else _json(value)
    if text.startswith("@"):
        return _file(Path(text[1:]))
    if text.startswith("["):
        return _json(_load_json(text, "this"))
    made = _MADE.fullmatch(text)
    if made:
        shape = tuple(map(int, made[2].split("x")))
        if math.prod(shape) > tokens.MEMORY_BYTES:
            raise MemoryFullError(f"{math.prod(shape)} elements; the machine's memory has {tokens.MEMORY_BYTES} bytes")
        return Zeros(shape, made[1] == "random")
    if _INTEGER.fullmatch(text):
        return int(text, 16 if "x" in text.lower() else 10)
    if text.startswith("-") and len(text) > 1:
        raise LaunchError("there is no such option, and it is not an integer")
    raise LaunchError(f"this is no argument: give {FORMS}")


def _load_json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise LaunchError(f"{what} is not JSON: {error}") from None
    except RecursionError:
        raise LaunchError(f"{what} is not an array: it is nested too deep") from None


def _json(value: Any) -> int | list[Any]:
    """An integer or a list out of JSON; what is inside the list is judged when the array is made."""
    if isinstance(value, int) and not isinstance(value, bool) or isinstance(value, list):
        return value
    raise LaunchError(f"an integer or an array of them is expected, not {json.dumps(value)[:40]}")


def _file(path: Path) -> Value:
    try:
        if path.suffix == ".npy":
            loaded = np.load(path, allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else _wrong_file(path)
        if path.suffix == ".json":
            return _json(_load_json(path.read_text(encoding="utf-8"), str(path)))
    except FileNotFoundError:
        raise LaunchError(f"{path}: there is no such file") from None
    except MemoryError:
        raise LaunchError(f"{path}: its array is larger than this computer's memory") from None
    except (OSError, UnicodeDecodeError, ValueError, EOFError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise LaunchError(f"{path}: {error.strerror}") from None
        raise LaunchError(f"{path}: not a {path.suffix} file: {error}") from None
    return _wrong_file(path)


def _wrong_file(path: Path) -> Value:
    raise LaunchError(f"{path}: a .npy or a .json file is expected, by its ending")


def host_value(typed: Typed, parameter: Parameter | None, random: np.random.Generator) -> int | Array:
    """An argument for its parameter: an int, or an array of the element type that the kernel wants.

    LaunchError if it is no array of integers that fit.
    """
    element = parameter.element if parameter is not None else None
    value = typed.value
    what = typed.name or (parameter.name if parameter is not None else typed.text)
    if isinstance(value, int):
        return value
    if isinstance(value, np.ndarray) and (element is None or value.dtype.names or fits(element, value.dtype)):
        return host_array(value, None, what)
    if isinstance(value, Zeros):
        kind = _dtype_of(element)
        if not value.random:
            return host_array(np.zeros(value.shape, kind), kind, what)
        low, high = (0, 1) if kind.kind == "b" else (-100 if kind.kind == "i" else 0, 100)
        return host_array(random.integers(low, high, value.shape, endpoint=True), kind, what)
    return host_array(value, None if element is None else _dtype_of(element), what)


def _dtype_of(element: Scalar | None) -> np.dtype[Any]:
    """What numpy calls a C type of integers; int where it is unknown."""
    if element is None or element.name == "bool":
        return np.dtype(np.int32 if element is None else np.bool_)
    return np.dtype(f"{'int' if element.signed else 'uint'}{8 * element.size}")
