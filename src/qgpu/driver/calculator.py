"""Evaluates an expression: every operation is a launch of a stock kernel, over several launches where one is too big.

The host lays out operands and results and nothing else. It also works out each operation exactly, to say when a result
was wrapped to 32 bits and to notice a result that is plainly wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qgpu.driver import expression
from qgpu.driver.arrays import DeviceArray
from qgpu.driver.device import Device
from qgpu.driver.expression import Binary, Negative, Node, Number, Rows
from qgpu.driver.kernel import Kernel
from qgpu.driver.launch import DEFAULT_MAX_TOKENS, Launch
from qgpu.driver.memory import ALIGNMENT, footprint
from qgpu.errors import CheckError
from qgpu.isa import tokens

Array = np.ndarray[Any, Any]

WORD = 4
KINDS = ("a number", "a vector", "a matrix")
VERBS = {"+": "add", "-": "subtract", "*": "multiply", "@": "multiply"}
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "@": lambda a, b: a @ b,
}
# operator -> kernels for (vector, vector), (vector, number), (number, vector); None: the number is laid out as a vector
ELEMENTWISE: dict[str, tuple[str, str | None, str | None]] = {
    "+": ("vector_add", "scalar_add", "scalar_add"),
    "-": ("vector_sub", None, "scalar_sub"),
    "*": ("vector_mul", "scalar_mul", "scalar_mul"),
}


@dataclass
class Calculator:
    """``launches``: all that were made, in order. ``notes``: one line for every operation whose result was wrapped."""

    device: Device
    max_tokens: int = DEFAULT_MAX_TOKENS
    check: bool = False
    launches: list[Launch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _kernels: dict[str, Kernel] = field(default_factory=dict)

    def evaluate(self, text: str) -> Array:
        """The value of an expression, int32 of 0, 1 or 2 dims. EvalError with a caret where it has none."""
        return self._value(text, expression.parse(text))

    def _value(self, text: str, node: Node) -> Array:
        match node:
            case Number(value=number):
                return np.array(number, np.int32)
            case Rows(items=items):
                return self._rows(text, node, [self._value(text, item) for item in items])
            case Negative(operand=operand):
                return self._noted(text, node.span, "-", np.array(0, np.int32), self._value(text, operand))
        spine: list[Binary] = []  # long sums lean to the left: no recursion there
        while isinstance(node, Binary):
            spine.append(node)
            node = node.left
        value = self._value(text, node)
        for step in reversed(spine):
            right = self._value(text, step.right)
            problem = misfit(step.operator, value, right)
            if problem:
                raise expression.fail(text, (step.at, step.at + 1), problem)
            value = self._noted(text, step.span, step.operator, value, right)
        return value

    def _rows(self, text: str, node: Rows, items: list[Array]) -> Array:
        for item, part in zip(node.items, items, strict=True):
            if part.ndim == 2:
                raise expression.fail(text, item.span, "a matrix cannot stand in brackets: three dims are too many")
            if part.shape != items[0].shape:
                first = shape_text(items[0])
                raise expression.fail(text, item.span, f"this is {shape_text(part)}, the first row is {first}")
        return np.stack(items)

    def _noted(self, text: str, span: expression.Span, operator: str, a: Array, b: Array) -> Array:
        """One operation; says so if it wrapped. CheckError if the machine's result is not even right when wrapped."""
        result = self._operation(operator, a, b)
        exact = np.asarray(EXACT[operator](a.astype(object), b.astype(object)), object)
        where = text[slice(*span)]
        wrong = (exact - result.astype(object)) % 2**32 != 0
        if np.any(wrong):
            raise CheckError(f"{where}: the machine says {show(result)}, which is wrong; run it again with a check")
        over = [int(value) for value in exact.reshape(-1) if not -(2**31) <= value < 2**31]
        if over:
            more = f" and {len(over) - 1} more" if len(over) > 1 else ""
            self.notes.append(f"{where} wrapped to 32 bits: {over[0]}{more} does not fit")
        return result

    # -- operations

    def _operation(self, operator: str, a: Array, b: Array) -> Array:
        if operator == "@":
            return self._product(a, b)
        both, right, left = ELEMENTWISE[operator]
        shape = np.broadcast_shapes(a.shape, b.shape)
        if a.ndim and not b.ndim and right:
            return self._map(lambda x, out, n: (right, (x, int(b), out, n)), [a]).reshape(shape)
        if b.ndim and not a.ndim and left:
            swapped = left == right  # the kernel takes the vector first where the order does not matter
            return self._map(
                lambda x, out, n: (left, (x, int(a), out, n) if swapped else (int(a), x, out, n)), [b]
            ).reshape(shape)
        operands = [np.broadcast_to(part, shape) for part in (a, b)]
        return self._map(lambda x, y, out, n: (both, (x, y, out, n)), operands).reshape(shape)

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
            result[start : start + n] = out.numpy()
            _free(*arrays, out)
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
                    tile[:] = part if start == 0 else self._operation("+", tile, part)
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
        result = c.numpy()
        _free(a, b, c)
        return result

    def _dot(self, a: Array, b: Array) -> Array:
        out = self.device.zeros(1)
        most = self._largest(2)
        for start in range(0, len(a), most):
            parts = [self.device.array(part[start : start + most]) for part in (a, b)]
            n = parts[0].size
            self._launch("dot", *_cover(n), (*parts, out, n))
            _free(*parts)
        result = out.numpy().reshape(())
        _free(out)
        return result

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


def misfit(operator: str, a: Array, b: Array) -> str:
    """Why the operands do not go together, or nothing."""
    if operator == "@":
        if not a.ndim or not b.ndim:
            return f"@ takes vectors and matrices, not {KINDS[0]}: use *"
        if a.shape[-1] != b.shape[0]:
            inner = f"{a.shape[-1]} columns" if a.ndim == 2 else f"{a.shape[0]} elements"
            outer = f"{b.shape[0]} rows" if b.ndim == 2 else f"{b.shape[0]} elements"
            return f"cannot multiply {shape_text(a)} and {shape_text(b)}: {inner} on the left, {outer} on the right"
    elif a.ndim and b.ndim and a.shape != b.shape:
        hint = "; @ is the matrix product" if operator == "*" else ""
        return f"cannot {VERBS[operator]} {shape_text(a)} and {shape_text(b)}: their shapes differ{hint}"
    return ""


def shape_text(value: Array) -> str:
    """``a vector of 3``, ``a matrix of 2 x 3``."""
    sizes = " x ".join(map(str, value.shape))
    return f"{KINDS[value.ndim]} of {sizes}" if value.ndim else KINDS[0]


def show(value: Array) -> str:
    """A value as it would be written in an expression."""
    return str(value.tolist())
