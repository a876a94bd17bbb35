"""Evaluates an expression: every operation is one or more launches of a stock kernel (see ``operations``).

The host also works out each operation exactly, to say when a result was wrapped to 32 bits and to notice a result that
is plainly wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from qgpu.driver import expression
from qgpu.driver.device import Device
from qgpu.driver.expression import COMPARISONS, Applied, Binary, Negative, Node, Number, Rows, Span
from qgpu.driver.launch import DEFAULT_MAX_TOKENS, Launch
from qgpu.driver.operations import Array, Operations
from qgpu.errors import CheckError

KINDS = ("a number", "a vector", "a matrix")
NUMBER, VECTOR, MATRIX = range(3)
VERBS = {"+": "add", "-": "subtract", "*": "multiply", "@": "multiply", "//": "divide", "%": "divide", "**": "raise"}
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "@": lambda a, b: a @ b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": np.frompyfunc(lambda a, b: _power(a, b), 2, 1),
    "==": lambda a, b: (a == b).astype(int),
    "!=": lambda a, b: (a != b).astype(int),
    "<": lambda a, b: (a < b).astype(int),
    "<=": lambda a, b: (a <= b).astype(int),
    ">": lambda a, b: (a > b).astype(int),
    ">=": lambda a, b: (a >= b).astype(int),
    "gcd": np.frompyfunc(gcd, 2, 1),
    "max": np.maximum,
    "min": np.minimum,
}
BIGGEST = 1 << 64
"""Powers are not worked out beyond it: they wrap in any case."""


@dataclass(frozen=True)
class Function:
    """``apply``: by the machine; ``exact``: by Python, of integers of any size. ``kinds``: what its one argument may
    be. ``pairs``: the operation that two and more arguments are combined by, "" if it takes one only."""

    apply: Callable[[Operations, Array], Array] | None
    exact: Callable[[Any], Any] | None
    kinds: tuple[int, ...] = (NUMBER, VECTOR, MATRIX)
    pairs: str = ""


def _first(a: Array) -> int:
    return int(a.reshape(-1)[0])


def _most(do: Operations, a: Array) -> Array:
    return do.reduced("reduce_max", a, _first(a))


def _least(do: Operations, a: Array) -> Array:
    return do.reduced("reduce_min", a, _first(a))


MANY = (VECTOR, MATRIX)
FUNCTIONS: dict[str, Function] = {
    "sum": Function(lambda do, a: do.reduced("reduce_sum", a, 0), lambda a: sum(a.reshape(-1)), MANY),
    "max": Function(_most, lambda a: max(a.reshape(-1)), MANY, "max"),
    "min": Function(_least, lambda a: min(a.reshape(-1)), MANY, "min"),
    "argmax": Function(lambda do, a: do.index_of(a, int(_most(do, a))), lambda a: int(np.argmax(a)), MANY),
    "argmin": Function(lambda do, a: do.index_of(a, int(_least(do, a))), lambda a: int(np.argmin(a)), MANY),
    "sort": Function(lambda do, a: do.sorted(a), lambda a: np.array(sorted(a), object), (VECTOR,)),
    "cumsum": Function(lambda do, a: do.cumsum(a), lambda a: np.cumsum(a, dtype=object), (VECTOR,)),
    "transpose": Function(lambda do, a: do.transposed(a), lambda a: a.T, (MATRIX,)),
    "abs": Function(lambda do, a: do.magnitude(a), abs),
    "gcd": Function(lambda do, a: do.gcd_of(a), lambda a: gcd(*a.reshape(-1)), MANY, "gcd"),
    "dot": Function(None, None, pairs="@"),
    "matmul": Function(None, None, pairs="@"),
    "pow": Function(None, None, pairs="**"),
}


@dataclass
class Calculator:
    """``launches``: all that were made, in order. ``notes``: one line for every operation whose result was wrapped."""

    device: Device
    max_tokens: int = DEFAULT_MAX_TOKENS
    check: bool = False

    def __post_init__(self) -> None:
        self._do = Operations(self.device, self.max_tokens, self.check)
        self.notes: list[str] = []

    @property
    def launches(self) -> list[Launch]:
        return self._do.launches

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
            case Applied():
                return self._applied(text, node)
        spine: list[Binary] = []  # long sums lean to the left: no recursion there
        while isinstance(node, Binary):
            spine.append(node)
            node = node.left
        value = self._value(text, node)
        for step in reversed(spine):
            right = self._value(text, step.right)
            at = (step.at, step.at + len(step.operator))
            value = self._combined(text, at, step.span, step.operator, value, right)
        return value

    def _combined(self, text: str, at: Span, span: Span, operator: str, a: Array, b: Array) -> Array:
        if problem := misfit(operator, a, b):
            raise expression.fail(text, at, problem)
        return self._noted(text, span, operator, a, b)

    def _rows(self, text: str, node: Rows, items: list[Array]) -> Array:
        for item, part in zip(node.items, items, strict=True):
            if part.ndim == 2:
                raise expression.fail(text, item.span, "a matrix cannot stand in brackets: three dims are too many")
            if part.shape != items[0].shape:
                first = shape_text(items[0])
                raise expression.fail(text, item.span, f"this is {shape_text(part)}, the first row is {first}")
        return np.stack(items)

    def _applied(self, text: str, node: Applied) -> Array:
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise expression.fail(text, node.at, f"there is no function {node.name}; there are: {', '.join(FUNCTIONS)}")
        values = [self._value(text, part) for part in node.arguments]
        if len(values) == 1:
            if function.apply is None or function.exact is None:
                raise expression.fail(text, node.at, f"{node.name} takes two arguments, one is given")
            if values[0].ndim not in function.kinds:
                wanted = " or ".join(KINDS[kind] for kind in function.kinds)
                raise expression.fail(
                    text, node.arguments[0].span, f"{node.name} takes {wanted}, not {shape_text(values[0])}"
                )
            result = function.apply(self._do, values[0])
            return self._compared(text, node.span, result, function.exact(values[0].astype(object)))
        most = 2 if function.apply is None else len(values)
        if not function.pairs or len(values) > most:
            count = "one argument" if not function.pairs else "two arguments"
            raise expression.fail(text, node.at, f"{node.name} takes {count}, {len(values)} are given")
        value = values[0]
        for right in values[1:]:
            value = self._combined(text, node.at, node.span, function.pairs, value, right)
        return value

    def _noted(self, text: str, span: Span, operator: str, a: Array, b: Array) -> Array:
        """One operation of two operands."""
        result = self._do.binary(operator, a, b)
        return self._compared(text, span, result, EXACT[operator](a.astype(object), b.astype(object)))

    def _compared(self, text: str, span: Span, result: Array, exact: Any) -> Array:
        """The machine's result; says so if it wrapped. CheckError if it is not even right when wrapped."""
        exact = np.asarray(exact, object)
        where = text[slice(*span)]
        if exact.shape != result.shape or np.any((exact - result.astype(object)) % 2**32 != 0):
            raise CheckError(f"{where}: the machine says {show(result)}, which is wrong; run it again with a check")
        over = [int(value) for value in exact.reshape(-1) if not -(2**31) <= value < 2**31]
        if over:
            more = f" and {len(over) - 1} more" if len(over) > 1 else ""
            told = "an integer of more than 64 bits" if abs(over[0]) >= BIGGEST else str(over[0])
            self.notes.append(f"{where} wrapped to 32 bits: {told}{more} does not fit")
        return result


def _power(base: int, exponent: int) -> int:
    """base ** exponent, or where that is out of all proportion something as large with the same low 32 bits."""
    if abs(base) < 2 or exponent * abs(base).bit_length() <= 4096:
        return int(base**exponent)
    low = pow(base, exponent, 1 << 32)
    return (BIGGEST << 32) + low


def misfit(operator: str, a: Array, b: Array) -> str:
    """Why the operands do not go together, or nothing."""
    if operator == "@":
        if not a.ndim or not b.ndim:
            return f"@ takes vectors and matrices, not {KINDS[0]}: use *"
        if a.shape[-1] != b.shape[0]:
            inner = f"{a.shape[-1]} columns" if a.ndim == 2 else f"{a.shape[0]} elements"
            outer = f"{b.shape[0]} rows" if b.ndim == 2 else f"{b.shape[0]} elements"
            return f"cannot multiply {shape_text(a)} and {shape_text(b)}: {inner} on the left, {outer} on the right"
        return ""
    if a.ndim and b.ndim and a.shape != b.shape:
        verb = VERBS.get(operator, "compare" if operator in COMPARISONS else "combine")
        hint = "; @ is the matrix product" if operator == "*" else ""
        return f"cannot {verb} {shape_text(a)} and {shape_text(b)}: their shapes differ{hint}"
    if operator in ("//", "%") and not np.all(b):
        return "division by zero"
    if operator == "**" and np.any(b < 0):
        return "the exponent is negative: powers of integers have exponents of at least 0"
    return ""


def shape_text(value: Array) -> str:
    """``a vector of 3``, ``a matrix of 2 x 3``."""
    sizes = " x ".join(map(str, value.shape))
    return f"{KINDS[value.ndim]} of {sizes}" if value.ndim else KINDS[0]


def show(value: Array) -> str:
    """A value as it would be written in an expression."""
    return str(value.tolist())
