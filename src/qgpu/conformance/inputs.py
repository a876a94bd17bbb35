"""Arrays for the conformance table: edge values and numbers that look random and are the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

EDGES = (0, 1, -1, 2, -2, 7, 31, 32, 33, 127, 128, 255, 256, 32767, -32768, 65535, 65536, 123456789, -987654321,
         2**31 - 1, -(2**31), -(2**31) + 1)  # fmt: skip
"""Numbers near which 32-bit arithmetic goes wrong."""

EDGES64 = (0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32, -(2**32), 2**32 + 1, 0x0123456789ABCDEF,
           -0x0123456789ABCDEF, 2**63 - 1, -(2**63), -(2**63) + 1, 10**18)  # fmt: skip

_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407


def draws(count: int, seed: int) -> list[int]:
    """32-bit numbers of a linear congruential generator, its high halves."""
    state, found = (seed * 2654435769 + 12345) % 2**64, []
    for _ in range(count + 2):
        state = (state * _MULTIPLIER + _INCREMENT) % 2**64
        found.append(state >> 32)
    return found[2:]


def wrap(values: Sequence[int], dtype: str) -> Array:
    """Integers of any size, cut to the type."""
    bits = 8 * np.dtype(dtype).itemsize
    return np.array([value % 2**bits for value in values], f"uint{bits}").view(dtype)


def i32(*values: int) -> Array:
    return wrap(values, "int32")


def u32(*values: int) -> Array:
    return wrap(values, "uint32")


def i64(*values: int) -> Array:
    return wrap(values, "int64")


def rand(count: int, low: int, high: int, seed: int = 1, dtype: str = "int32") -> Array:
    """Numbers from ``low`` to ``high``, both included, each from two draws."""
    found = draws(2 * count, seed)
    pairs = zip(found[::2], found[1::2], strict=True)
    return wrap([low + (first << 32 | second) % (high - low + 1) for first, second in pairs], dtype)


def words(count: int, seed: int = 1, dtype: str = "uint32") -> Array:
    """Any bits at all."""
    bits = 8 * np.dtype(dtype).itemsize
    return rand(count, 0, 2**bits - 1, seed, dtype)


def zeros(count: int, dtype: str = "int32") -> Array:
    return np.zeros(count, dtype)


def filled(count: int, value: int, dtype: str = "int32") -> Array:
    return wrap([value] * count, dtype)


def edges(count: int, turn: int = 0, dtype: str = "int32") -> Array:
    """The edge values, from number ``turn`` on and round again; every second round gives other numbers near them."""
    source = EDGES64 if np.dtype(dtype).itemsize == 8 else EDGES
    spread = draws(count, turn + 77)
    found = []
    for i in range(count):
        lap, place = divmod(i + turn, len(source))
        found.append(source[place] + (spread[i] % 7 - 3 if lap % 2 else 0))
    return wrap(found, dtype)


def pairs(count: int, dtype: str = "int32") -> tuple[Array, Array]:
    """Two arrays that bring edge values together with other edge values, then with arbitrary bits."""
    source = EDGES64 if np.dtype(dtype).itemsize == 8 else EDGES
    size, bits = len(source), 8 * np.dtype(dtype).itemsize
    first, second = [], []
    chosen, other = draws(2 * count, 5), draws(2 * count, 6)
    for i in range(count):
        a, b = source[chosen[2 * i] % size], source[chosen[2 * i + 1] % size]
        if i % 4 == 3:
            a = (other[2 * i] << 32 | other[2 * i + 1]) >> (64 - bits)
        first.append(a)
        second.append(b)
    return wrap(first, dtype), wrap(second, dtype)
