"""Adders, from groups of bits: generate and propagate, carries, sum bits - three levels whatever the width.

A *column* is a small integer of weight ``2**i``, for instance the sum of the two bits there. Groups of neighbouring
columns have a count; the count alone says whether the group generates a carry or would pass one on (level 1). A carry
is the sum of exclusive ANDs: generated in one group, propagated by all between (level 2). Bit i of a group is a table
of the count of the columns up to i and the carry (level 3, six neurons a bit whatever the group's size). The carry into
the first group is part of its count, so it costs nothing.

With groups of 4, a 32-bit sum takes 211 neurons and 19 signals besides the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .builder import Builder
from .ir import CircuitError, Expr, constant, total
from .tables import Table
from .word import Word, same_width

ZERO, ONE = constant(0), constant(1)

Variants = Sequence[tuple[Expr | None, Sequence[Expr], Expr]]
"""(condition, columns, carry in): what is added where the condition holds; None: always."""


def add(b: Builder, name: str, x: Word, y: Word, carry_in: Expr = ZERO, group: int = 4) -> Word:
    """x + y + carry_in modulo ``2**width``. Three levels (two up to 2 groups, one up to 1); 32 bits: about 215
    neurons."""
    same_width(f"add '{b.path(name)}'", x, y)
    return add_columns(b, name, [p + q for p, q in zip(x, y, strict=True)], carry_in, group)[0]


def add_with_carry(b: Builder, name: str, x: Word, y: Word, carry_in: Expr = ZERO, group: int = 4) -> tuple[Word, Expr]:
    """Also the carry out of the top bit (of level 2; as many neurons more as there are groups)."""
    same_width(f"add '{b.path(name)}'", x, y)
    return add_columns(b, name, [p + q for p, q in zip(x, y, strict=True)], carry_in, group, carry_out=True)


def subtract(b: Builder, name: str, x: Word, y: Word, group: int = 4) -> Word:
    """x - y modulo ``2**width``. As ``add``."""
    return add(b, name, x, (~y).named(y.name), ONE, group)


def subtract_with_borrow(b: Builder, name: str, x: Word, y: Word, group: int = 4) -> tuple[Word, Expr]:
    """Also the borrow: x < y as unsigned numbers."""
    difference, carry = add_with_carry(b, name, x, (~y).named(y.name), ONE, group)
    return difference, ~carry


def add_subtract(b: Builder, name: str, x: Word, y: Word, subtract: Expr, group: int = 4) -> Word:
    """x - y if ``subtract``, else x + y. Three levels as ``add``, with twice its neurons (no level to invert y
    first)."""
    same_width(f"add_subtract '{b.path(name)}'", x, y)
    plus = [p + q for p, q in zip(x, y, strict=True)]
    minus = [p + ~q for p, q in zip(x, y, strict=True)]
    return _add(b, name, [(~subtract, plus, ZERO), (subtract, minus, ONE)], group, False)[0]


def add_columns(
    b: Builder, name: str, columns: Sequence[Expr], carry_in: Expr = ZERO, group: int = 4, carry_out: bool = False
) -> tuple[Word, Expr]:
    """The number ``sum(2**i * columns[i]) + carry_in`` modulo ``2**len(columns)``, and the carry out (zero if not asked
    for).

    Columns range over 0..2, or more where their group's count still leaves at most one carry. Depth and neurons as
    ``add``. Raises CircuitError for a group that could carry more than one.
    """
    return _add(b, name, [(None, columns, carry_in)], group, carry_out)


def add_variants(b: Builder, name: str, variants: Sequence[tuple[Expr, Word, Word, Expr]], group: int = 4) -> Word:
    """x + y + carry of the one variant (condition, x, y, carry) whose condition is 1; zero if there is none.

    Three levels as ``add``; as many times its neurons as there are variants.
    """
    for _, x, y, _ in variants:
        same_width(f"add '{b.path(name)}'", variants[0][1], x, y)
    pairs = [(cond, [p + q for p, q in zip(x, y, strict=True)], carry) for cond, x, y, carry in variants]
    return _add(b, name, pairs, group, False)[0]


def _add(b: Builder, name: str, variants: Variants, group: int, carry_out: bool) -> tuple[Word, Expr]:
    width = len(variants[0][1])
    starts = list(range(0, width, group))
    sizes = [min(group, width - start) for start in starts]
    with b.scope(name):
        needed = len(starts) if carry_out else len(starts) - 1
        generate, propagate = [], []
        for j in range(needed):
            size = sizes[j]
            counts = [
                (condition, _count(columns[starts[j] : starts[j] + size]) + (carry if j == 0 else ZERO))
                for condition, columns, carry in variants
            ]
            for _, count in counts:
                room = (2 << size) - 1 if j == 0 else (2 << size) - 2
                if count.lo < 0 or count.hi > room:
                    raise CircuitError(
                        f"adder '{b.path(f'group{j}')}': its count ranges over {count.lo}..{count.hi}; "
                        f"with more than {room} it would carry more than one"
                    )
            tables = {f"generate{j}": _at_least(1 << size), f"propagate{j}": _equals((1 << size) - 1)}
            if j == 0:
                del tables["propagate0"]
            made = _tables(b, counts, tables)
            generate.append(made[f"generate{j}"])
            propagate.append(made.get(f"propagate{j}", ZERO))
        carries = [ZERO] + [carry_into(b, f"carry{j}", generate[:j], propagate[:j]) for j in range(1, needed + 1)]
        bits: list[Expr] = []
        for j, start in enumerate(starts):
            for i in range(sizes[j]):
                counts = [
                    (condition, _count(columns[start : start + i + 1]) + (carries[j] if j else carry))
                    for condition, columns, carry in variants
                ]
                bits += _tables(b, counts, {f"bit{start + i}": _bit(i)}).values()
        return Word(b.path("")[:-1], tuple(bits)), carries[-1] if carry_out else ZERO


def carry_into(b: Builder, name: str, generate: Sequence[Expr], propagate: Sequence[Expr]) -> Expr:
    """Whether one of the groups (lowest first) generates a carry that all groups above it propagate.

    A group must not do both at once. One level, one neuron a group; free for one group.
    """
    top = len(generate)
    terms: list[tuple[Expr, Table]] = [
        (total([generate[t], *propagate[t + 1 :]]), _equals(top - t))
        for t in range(top)
        if generate[t].terms or generate[t].const
    ]
    return b.sum_of(name, terms, 0, 1)


def increment(b: Builder, name: str, x: Word, enable: Expr = ONE) -> Word:
    """x + enable modulo ``2**width``. One level, three neurons a bit."""
    bits = []
    for i, bit in enumerate(x):
        lower = total([enable, *x.bits[:i]])
        full = i + 1  # the number of bits in ``lower``: this bit flips if all of them are 1
        flips = _flip(full)
        bits.append(b.lookup(f"{name}.bit{i}", lower + bit * (full + 1), flips))
    return Word(b.path(name), tuple(bits))


def decrement(b: Builder, name: str, x: Word, enable: Expr = ONE) -> Word:
    """x - enable modulo ``2**width``. One level, three neurons a bit."""
    return (~increment(b, name, ~x, enable)).named(b.path(name))


def negate(b: Builder, name: str, x: Word) -> Word:
    """-x modulo ``2**width``. One level, three neurons a bit."""
    return increment(b, name, ~x)


def signed_overflow(b: Builder, name: str, x_sign: Expr, y_sign: Expr, sum_sign: Expr) -> Expr:
    """Whether x + y left the signed range (for x - y give ``~y_sign``). One level, two neurons."""
    return b.lookup(name, x_sign + y_sign - sum_sign, lambda n: int(n in (-1, 2)))


def _count(columns: Sequence[Expr]) -> Expr:
    return total(column * (1 << i) for i, column in enumerate(columns))


def _tables(
    b: Builder, counts: Sequence[tuple[Expr | None, Expr]], tables: Mapping[str, Callable[[int], int]]
) -> dict[str, Expr]:
    """0/1 tables, by name, of whichever count's condition holds."""
    terms: dict[str, list[tuple[Expr, Table]]] = {name: [] for name in tables}
    for name, table in tables.items():
        for condition, count in counts:
            terms[name] += [(count, table)] if condition is None else b.gated(condition, count, table)
    return b.sums(terms, dict.fromkeys(tables, (0, 1)))


def _at_least(value: int) -> Callable[[int], int]:
    return lambda n: int(n >= value)


def _equals(value: int) -> Callable[[int], int]:
    return lambda n: int(n == value)


def _bit(index: int) -> Callable[[int], int]:
    return lambda n: (n >> index) & 1


def _flip(full: int) -> Callable[[int], int]:
    """A bit after counting: n is the count of lower ones, plus ``full + 1`` if the bit itself is 1."""
    return lambda n: int(full <= n <= 2 * full)
