"""Terms of the units' sums: gated tables, radix-8 digits, carries. Nothing here makes a cell.

The units add in radix 8. A *digit* is one small integer, 0..7 or, before its carry, up to 15, and lives in one dim
where three bits would take three. Results of all operations meet as digits, whose bits one last table tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.isa import encoding

Term = tuple[Expr, Table]
Values = Callable[[int], int]

DIGITS = 11
"""Radix-8 digits of a word; the last has two bits."""


def identity(n: int) -> int:
    return n


def positive(n: int) -> int:
    return max(n, 0)


def at_least(value: int) -> Values:
    return lambda n: int(n >= value)


def equals(value: int) -> Values:
    return lambda n: int(n == value)


def bit(index: int) -> Values:
    return lambda n: n >> index & 1


def conj(*literals: Expr, weight: int = 1) -> Term:
    """``weight`` where all literals are 1, else 0."""
    count = len(literals)
    return total(literals), lambda n: weight * (n == count)


def gate(arg: Expr, table: Values, *literals: Expr, weight: int = 1) -> Term:
    """``weight * table(arg)`` where all literals are 1, else 0; ``table`` must be 0 at ``arg.lo``.

    Each literal that is 0 pushes the argument below its range by one more than its width, so that what is off stays a
    whole unit away from the table's first bend.
    """
    low, span = arg.lo, arg.hi - arg.lo + 1
    assert table(low) == 0, "a gated table starts at zero"
    pushed = arg + total(literals) * span - span * len(literals)
    return pushed, lambda n: weight * table(n) if n >= low else 0


def digit(word: Word, index: int) -> Expr:
    """Radix-8 digit ``index`` of a word as an expression."""
    return word[3 * index : 3 * index + 3].value


def digits(word: Word) -> list[Expr]:
    return [digit(word, j) for j in range(DIGITS)]


def top(index: int) -> int:
    """The largest value of a digit."""
    return 7 if index < DIGITS - 1 else 3


def carries(generate: Sequence[Expr], propagate: Sequence[Expr], *literals: Expr, weight: int = 1) -> list[Term]:
    """Terms of the carry out of the last digit, lowest digit first: generated in one, propagated by all above. A digit
    does not do both. ``literals``: must be 1 as well."""
    return [
        conj(one, *propagate[t + 1 :], *literals, weight=weight)
        for t, one in enumerate(generate)
        if one.terms or one.const
    ]


def line(b: Builder, rom: Mapping[str, Word], name: str, *cases: Mapping[str, Sequence[str]]) -> Expr:
    """1 if the block's fields hold one of the listed choices in every field of a case; cases exclude each other. One
    level, a neuron a combination."""
    terms = []
    for case in cases:
        rows: list[list[Expr]] = [[]]
        for field, choices in case.items():
            names = encoding.CHOICES.get(field)
            numbers = [names.index(choice) if names else int(choice) for choice in choices]
            rows = [[*row, *literals(rom[field], number)] for row in rows for number in numbers]
        terms += [conj(*row) for row in rows]
    return b.sum_of(name, terms, 0, 1)


def literals(word: Word, value: int) -> list[Expr]:
    """Bits that are all 1 if and only if the word is ``value``."""
    return [x if value >> i & 1 else ~x for i, x in enumerate(word)]
