"""The multiplier: products are summed by column as they are made, columns are compressed by counting, an adder ends it.

Level 1: the AND of x's bit i and y's bit j is added to the integer of column i + j. Then, level by level, neighbouring
columns that hold at most ``limit`` together are read as one small number, each bit of which is a table; the tables
share their neurons and add up to the columns of the next level. When no column holds more than two, the adder's three
levels follow. 32 by 32 bits: six levels in all, addend included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

from .adders import ZERO, add_columns
from .builder import Builder
from .ir import CircuitError, Expr, constant, total
from .tables import Table
from .word import Word

Heights = tuple[tuple[int, ...], ...]
"""For each column the largest values of the integers that stand in it."""

Unit = list[tuple[Expr, Table]]
"""Terms that are 0 or 1 together: a product, or the XOR of two."""

Counter = tuple[int, int, tuple[tuple[int, int], ...]]
"""First column, largest count, and the integers counted as (column, index)."""


def multiply(
    b: Builder,
    name: str,
    x: Word,
    y: Word,
    width: int | None = None,
    *,
    signed: bool | Expr = False,
    addend: Word | None = None,
    carry_in: Expr = ZERO,
    limit: int = 30,
    group: int = 4,
) -> Word:
    """x * y + addend + carry_in modulo ``2**width`` (default: the sum of both widths).

    ``signed``: whether x and y are two's complement; may be a bit that decides at run time. ``addend``: needed from
    level 2 on only; its bits join the columns for free. ``limit``: the largest count that is one table. 31 keeps every
    partial sum of a column within 256, so it is exact in bfloat16 in any order of summation; 15 keeps them within 70.

    32 by 32 bits plus 64 to 64: 6 levels (7 with a limit of 15), 3,056 neurons, 1,077 of them in the first level, and
    64 signals between levels up to the adder. To 32 bits: 1,485 neurons, 538 in the first level. A run-time ``signed``:
    133 neurons more.
    """
    size = x.width + y.width if width is None else width
    with b.scope(name):
        columns: list[list[Expr]] = [[] for _ in range(size)]
        for i, bit in enumerate(addend or ()):
            if i < size:
                columns[i].append(bit)
        if carry_in.terms or carry_in.const:
            columns[0].append(carry_in)
        sign = constant(int(signed)) if isinstance(signed, bool) else signed
        if sign.terms or sign.const:
            _sign_constants(columns, x.width, y.width, sign)
        for i, made in enumerate(_products(b, x, y, sign, columns, limit)):
            columns[i] += made
        columns = compress(b, columns, limit)
        return add_columns(b, "total", [total(column) for column in columns], ZERO, group)[0].named(b.path("")[:-1])


def _sign_constants(columns: list[list[Expr]], m: int, n: int, sign: Expr) -> None:
    """What is left of the sign bits' negative weights once their products are inverted: ``sign`` at three places."""
    size = len(columns)
    places = [*([m] if m == n else [m - 1, n - 1]), *range(m + n - 1, size)]
    for place in places:
        if place < size:
            columns[place].append(sign)


def _products(
    b: Builder, x: Word, y: Word, sign: Expr, others: Sequence[Sequence[Expr]], limit: int
) -> list[list[Expr]]:
    """The columns of the partial products as integers (level 1), such that each has at most ``limit`` with the others
    there.

    Where a few products too many meet, two of them leave as half adders: their AND goes to the next column.
    """
    size = len(others)
    plain: list[list[Expr]] = [[] for _ in range(size)]  # x_i + y_j, whose table is (0, 0, 1)
    units: list[list[Unit]] = [[] for _ in range(size)]
    heights = [sum(e.hi for e in column) for column in others]
    for i, p in enumerate(x):
        for j, q in enumerate(y):
            if i + j >= size:
                continue
            inverted = (i == x.width - 1) != (j == y.width - 1)
            if inverted and (sign.terms or sign.const):
                units[i + j].append([(p + q + sign * 3, _flipped)])
            else:
                plain[i + j].append(p + q)
            heights[i + j] += 1
    result: list[list[Expr]] = []
    for c in range(size):
        if heights[c] - limit <= limit // 2:  # else it is split into several integers
            while heights[c] > limit and len(plain[c]) >= 2:
                first, second = plain[c].pop(0), plain[c].pop()
                units[c].append([(first, _equals(2)), (second, _equals(2)), (first + second, _times(4, -2))])
                heights[c] -= 1
                if c + 1 < size:
                    units[c + 1].append([(first + second, _equals(4))])
                    heights[c + 1] += 1
        units[c] += [[(arg, _equals(2))] for arg in plain[c]]
        fits = heights[c] <= limit
        every = max(len(units[c]), 1) if fits else limit
        made = []
        for k in range(0, len(units[c]), every):
            chunk = units[c][k : k + every]
            name = f"product{c}" if fits else f"product{c}.part{k // every}"
            made.append(b.sum_of(name, [term for unit in chunk for term in unit], 0, len(chunk)))
        result.append(made)
    return result


def compress(b: Builder, columns: Sequence[Sequence[Expr]], limit: int = 30) -> list[list[Expr]]:
    """Columns of small non-negative integers with the same total, none of which holds more than 2.

    Chooses for each level how many neighbouring columns are counted together, so that levels, then neurons, are fewest.
    Raises CircuitError if four levels are not enough.
    """
    state = [[e for e in column if e.terms or e.const] for column in columns]
    heights = tuple(tuple(e.hi for e in column) for column in state)
    plan = _plan(heights, limit)
    if plan is None:
        tallest = max(sum(column) for column in heights)
        raise CircuitError(f"'{b.path('')[:-1]}': columns of up to {tallest} do not compress in four levels")
    for level, span in enumerate(plan):
        counters, passed = _counters(tuple(tuple(e.hi for e in column) for column in state), span, limit)
        terms: list[list[tuple[Expr, Table]]] = [[] for _ in state]
        for start, largest, members in counters:
            arg = total(state[c][k] * (1 << (c - start)) for c, k in members)
            for bit in range(largest.bit_length()):
                if start + bit < len(state):
                    terms[start + bit].append((arg, _bit(bit)))
        made = b.sums({f"level{level}.column{c}": found for c, found in enumerate(terms) if found})
        left = [[state[c][k] for k in passed[c]] for c in range(len(state))]
        state = [[*left[c], *([made[f"level{level}.column{c}"]] if terms[c] else [])] for c in range(len(state))]
    return state


def _counters(heights: Heights, span: int, limit: int) -> tuple[list[Counter], list[list[int]]]:
    """What is counted together, and for each column the indices of what passes on as it is."""
    size = len(heights)
    counters: list[Counter] = []
    passed: list[list[int]] = [[] for _ in range(size)]
    c = 0
    while c < size:
        for s in range(min(span, size - c), 0, -1):
            largest = sum(sum(heights[c + k]) << k for k in range(s))
            if largest <= limit or s == 1:
                break
        members = [(c + k, n) for k in range(s) for n in range(len(heights[c + k]))]
        if all(sum(heights[c + k]) <= 1 for k in range(s)):
            for column, n in members:
                passed[column].append(n)
        elif largest <= limit:
            counters.append((c, largest, tuple(members)))
        else:
            chunk: list[tuple[int, int]] = []
            for member in [*members, None]:
                count = sum(heights[c][n] for _, n in chunk)
                if member is None or count + heights[c][member[1]] > limit:
                    counters.append((c, count, tuple(chunk)))
                    chunk = []
                if member is not None:
                    chunk.append(member)
        c += s
    return counters, passed


def _after(heights: Heights, span: int, limit: int) -> tuple[Heights, int]:
    """The heights that a level leaves behind, and its neurons."""
    counters, passed = _counters(heights, span, limit)
    added = [0] * len(heights)
    for start, largest, _ in counters:
        for bit in range(largest.bit_length()):
            if start + bit < len(heights):
                added[start + bit] += 1
    kept = [[column[k] for k in keep] for column, keep in zip(heights, passed, strict=True)]
    result = tuple(tuple([*keep, n] if n else keep) for keep, n in zip(kept, added, strict=True))
    return result, sum(largest for _, largest, _ in counters)


@cache
def _plan(heights: Heights, limit: int) -> tuple[int, ...] | None:
    """The columns to count together, level by level; None if four levels are not enough."""
    for levels in range(5):
        found: list[tuple[int, tuple[int, ...]]] = []
        for spans in product((1, 2, 3), repeat=levels):
            state, neurons = heights, 0
            for span in spans:
                state, more = _after(state, span, limit)
                neurons += more
            if all(sum(column) <= 2 for column in state):
                found.append((neurons, spans))
        if found:
            return min(found)[1]
    return None


def _flipped(n: int) -> int:
    """x AND y of n = x + y + 3 * sign, inverted if sign is 1."""
    return int(n in (2, 3, 4))


def _equals(value: int) -> Callable[[int], int]:
    return lambda n: int(n == value)


def _times(value: int, factor: int) -> Callable[[int], int]:
    return lambda n: factor * (n == value)


def _bit(index: int) -> Callable[[int], int]:
    return lambda n: (n >> index) & 1
