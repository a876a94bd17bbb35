"""What an expression is made of, as launches of stock kernels, over several launches where one is too big.

The host lays out operands and results and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qgpu.driver.arrays import DeviceArray
from qgpu.driver.device import Device
from qgpu.driver.kernel import Kernel
from qgpu.driver.launch import DEFAULT_MAX_TOKENS, Launch
from qgpu.driver.memory import ALIGNMENT, footprint
from qgpu.isa import tokens

Array = np.ndarray[Any, Any]

WORD = 4
LARGEST = 2**31 - 1
SORTED_AT_ONCE = 256
# operator -> kernels for (vector, vector), (vector, number), (number, vector); None: the number is laid out as a vector
ELEMENTWISE: dict[str, tuple[str, str | None, str | None]] = {
    "+": ("vector_add", "scalar_add", "scalar_add"),
    "-": ("vector_sub", None, "scalar_sub"),
    "*": ("vector_mul", "scalar_mul", "scalar_mul"),
    "//": ("vector_floordiv", None, None),
    "%": ("vector_mod", None, None),
    "**": ("vector_pow", None, None),
    "gcd": ("vector_gcd", None, None),
    "max": ("vector_max", None, None),
    "min": ("vector_min", None, None),
}
LESS, EQUAL, GREATER = 1, 2, 4
HOW = {
    "==": EQUAL, "!=": LESS | GREATER, "<": LESS, "<=": LESS | EQUAL, ">": GREATER, ">=": GREATER | EQUAL,
}  # fmt: skip
"""Comparison -> the argument of vector_compare."""


@dataclass
class Operations:
    """``launches``: all that were made, in order."""

    device: Device
    max_tokens: int = DEFAULT_MAX_TOKENS
    check: bool = False
    launches: list[Launch] = field(default_factory=list)
    _kernels: dict[str, Kernel] = field(default_factory=dict)

    def binary(self, operator: str, a: Array, b: Array) -> Array:
        """One of ELEMENTWISE or a comparison, on numbers, vectors and matrices that go together; or ``@``."""
        if operator == "@":
            return self._product(a, b)
        shape = np.broadcast_shapes(a.shape, b.shape)
        if operator in HOW:
            how = HOW[operator]
            operands = [np.broadcast_to(part, shape) for part in (a, b)]
            return self._map(lambda x, y, out, n: ("vector_compare", (x, y, out, n, how)), operands).reshape(shape)
        both, right, left = ELEMENTWISE[operator]
        if a.ndim and not b.ndim and right:
            return self._map(lambda x, out, n: (right, (x, int(b), out, n)), [a]).reshape(shape)
        if b.ndim and not a.ndim and left:
            swapped = left == right  # the kernel takes the vector first where the order does not matter
            return self._map(
                lambda x, out, n: (left, (x, int(a), out, n) if swapped else (int(a), x, out, n)), [b]
            ).reshape(shape)
        operands = [np.broadcast_to(part, shape) for part in (a, b)]
        return self._map(lambda x, y, out, n: (both, (x, y, out, n)), operands).reshape(shape)

    def magnitude(self, a: Array) -> Array:
        """|a|, element by element."""
        return self._map(lambda x, out, n: ("vector_abs", (x, out, n)), [a]).reshape(a.shape)

    def reduced(self, kernel: str, a: Array, start: int) -> Array:
        """One integer of all elements, by a kernel that starts with ``start``."""
        flat = np.ascontiguousarray(a).reshape(-1)
        out = self.device.array([start])
        most = self._largest(1)
        for first in range(0, len(flat), most):
            part = self.device.array(flat[first : first + most])
            self._launch(kernel, *_cover(part.size), (part, out, part.size))
            _free(part)
        return _taken(out).reshape(())

    def index_of(self, a: Array, value: int) -> Array:
        """The lowest index at which a value stands, over all elements row by row."""
        flat = np.ascontiguousarray(a).reshape(-1)
        out = self.device.array([LARGEST])
        most = self._largest(1)
        for first in range(0, len(flat), most):
            part = self.device.array(flat[first : first + most])
            self._launch("first_index", *_cover(part.size), (part, value, out, part.size, first))
            _free(part)
        return _taken(out).reshape(())

    def gcd_of(self, a: Array) -> Array:
        """The greatest common divisor of all elements: of one half with the other, until one is left."""
        flat = np.ascontiguousarray(a).reshape(-1)
        if len(flat) == 1:
            return self.magnitude(flat).reshape(())
        while len(flat) > 1:
            half = (len(flat) + 1) // 2
            other = np.zeros(half, np.int32)  # gcd(x, 0) is x
            other[: len(flat) - half] = flat[half:]
            flat = self.binary("gcd", flat[:half], other)
        return flat.reshape(())

    def cumsum(self, a: Array) -> Array:
        """Running sums of a vector, a CTA at a time."""
        result, total = np.empty(len(a), np.int32), 0
        most = min(tokens.THREADS_PER_CTA, self._largest(2))
        for first in range(0, len(a), most):
            part = self.device.array(a[first : first + most])
            out = self.device.zeros(part.size)
            self._launch("cumsum", 1, part.size, (part, out, part.size, total))
            _free(part)
            result[first : first + part.size] = sums = _taken(out)
            total = int(sums[-1])
        return result

    def sorted(self, a: Array) -> Array:
        """A vector's elements, lowest first: pieces that are sorted two by two, neighbours with neighbours, until every
        one can have come to its place."""
        result = np.array(a, np.int32)
        piece = max(1, min(SORTED_AT_ONCE, self._largest(1)) // 2)
        if len(result) <= 2 * piece:
            return self._sorted_piece(result)
        pieces = -(-len(result) // piece)
        for turn in range(pieces):
            for first in range(turn % 2, pieces - 1, 2):
                both = slice(first * piece, (first + 2) * piece)
                result[both] = self._sorted_piece(result[both])
        return result

    def _sorted_piece(self, a: Array) -> Array:
        part = self.device.array(a)
        threads = max(1, 1 << max(0, part.size - 1).bit_length() >> 1)
        self._launch("sort", 1, threads, (part, part.size))
        return _taken(part)

    def transposed(self, a: Array) -> Array:
        """A matrix with its rows as columns, as many rows at a time as memory holds."""
        m, n = a.shape
        result = np.empty((n, m), np.int32)
        room = self._largest(2)
        width = min(n, room)
        height = max(1, room // width)
        for i in range(0, m, height):
            for j in range(0, n, width):
                part = self.device.array(a[i : i + height, j : j + width])
                rows, columns = part.shape
                out = self.device.zeros((columns, rows))
                cta = (min(columns, 16), min(rows, tokens.THREADS_PER_CTA // 16), 1)
                grid = (-(-columns // cta[0]), -(-rows // cta[1]), 1)
                self._launch("transpose", grid, cta, (part, out, rows, columns))
                _free(part)
                result[j : j + columns, i : i + rows] = _taken(out)
        return result

    def _map(self, call: Callable[..., tuple[str, tuple[Any, ...]]], operands: list[Array]) -> Array:
        """An elementwise kernel over as many elements at a time as memory holds."""
        flat = [np.ascontiguousarray(operand).reshape(-1) for operand in operands]
        count = len(flat[0])
        most = self._largest(len(flat) + 1)
        result = np.empty(count, np.int32)
        for start in range(0, count, most):
            parts = [part[start : start + most] for part in flat]
            n = len(parts[0])
            arrays = [self.device.array(part) for part in parts]
            out = self.device.zeros(n)
            name, arguments = call(*arrays, out, n)
            self._launch(name, *_cover(n), arguments)
            _free(*arrays)
            result[start : start + n] = _taken(out)
        return result

    def _product(self, a: Array, b: Array) -> Array:
        """``a @ b`` as numpy defines it, for vectors and matrices."""
        if a.ndim == b.ndim == 1:
            return self._dot(a, b)
        m, n = (1 if a.ndim == 1 else len(a)), (1 if b.ndim == 1 else b.shape[1])
        left, right = a.reshape(m, -1), b.reshape(-1, n)
        rows, columns, depth = self._tile(m, n, left.shape[1])
        result = np.zeros((m, n), np.int32)
        for i in range(0, m, rows):
            for j in range(0, n, columns):
                for start in range(0, left.shape[1], depth):
                    inner = slice(start, start + depth)
                    part = self._block(left[i : i + rows, inner], right[inner, j : j + columns])
                    tile = result[i : i + rows, j : j + columns]
                    tile[:] = part if start == 0 else self.binary("+", tile, part)
        return result.reshape(a.shape[:-1] + b.shape[1:])

    def _tile(self, m: int, n: int, k: int) -> tuple[int, int, int]:
        """The largest sides, halved from the whole product's, whose three tiles fit in memory."""
        room = self.device.allocator.room()
        while sum(footprint(WORD * size) for size in (m * k, k * n, m * n)) > room and (m, n, k) != (1, 1, 1):
            sides = [m, n, k]
            largest = sides.index(max(sides))
            sides[largest] = -(-sides[largest] // 2)
            m, n, k = sides
        return m, n, k

    def _block(self, left: Array, right: Array) -> Array:
        (m, k), n = left.shape, right.shape[1]
        a, b, c = self.device.array(left), self.device.array(right), self.device.zeros((m, n))
        if n == 1:
            self._launch("matvec", *_cover(m), (a, b, c, m, k))
        else:
            width, height = min(n, 16), min(m, tokens.THREADS_PER_CTA // 16)
            grid = (-(-n // width), -(-m // height), 1)
            self._launch("matmul", grid, (width, height, 1), (a, b, c, m, n, k))
        _free(a, b)
        return _taken(c)

    def _dot(self, a: Array, b: Array) -> Array:
        out = self.device.zeros(1)
        most = self._largest(2)
        for start in range(0, len(a), most):
            parts = [self.device.array(part[start : start + most]) for part in (a, b)]
            n = parts[0].size
            self._launch("dot", *_cover(n), (*parts, out, n))
            _free(*parts)
        return _taken(out).reshape(())

    def _launch(self, name: str, grid: Any, cta: Any, arguments: tuple[Any, ...]) -> None:
        if name not in self._kernels:
            self._kernels[name] = self.device.kernel(name)
        self.launches.append(self._kernels[name][grid, cta](*arguments, max_tokens=self.max_tokens, check=self.check))

    def _largest(self, arrays: int) -> int:
        """How many elements each of so many arrays of one size can have."""
        return max(1, (self.device.allocator.room() // arrays - footprint(0)) // ALIGNMENT * ALIGNMENT // WORD)


def _cover(count: int) -> tuple[int, int]:
    """Grid and CTA size, one thread an element."""
    cta = min(count, tokens.THREADS_PER_CTA)
    return -(-count // cta), cta


def _free(*arrays: DeviceArray) -> None:
    for array in arrays:
        array.free()


def _taken(array: DeviceArray) -> Array:
    """The elements of an array that is not needed any more."""
    found = array.numpy()
    array.free()
    return found
