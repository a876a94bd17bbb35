"""A table over a small integer as a few neurons: where it bends, or where it steps.

Both ways of writing a table start at a *pivot*: to its right everything is made of pieces that are zero left of
themselves, to its left of pieces that are zero right of themselves; what the table holds at the pivot is a constant.
The pivot therefore decides the number of pieces, the constant, and how large their sums get. Tables of the same
argument look for a pivot together, because equal pieces are one neuron.

``ramps``: relu(n - j), one a change of slope. ``steps``: 1 from m on (or up to m), two neurons each, one a change of
value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

COMFORTABLE = 64  # sums up to here leave room for several tables in one cell

Table = tuple[int, tuple[int, ...]]
"""First argument, and the values from there on."""

Piece = tuple[int, int, int]
"""side, position, weight. Side 1 acts to the right of (a step: from) the position, side -1 to the left of (up to)
it."""


def ramps(table: Table, pivot: int) -> tuple[int, list[Piece]]:
    """Constant and pieces: side 1 is relu(n - position), side -1 is relu(position - n)."""
    lo, values = table
    at, last = pivot - lo, len(values) - 1
    pieces: list[Piece] = []
    slope = 0
    for i in range(at, last):
        change = values[i + 1] - values[i] - slope
        if change:
            pieces.append((1, lo + i, change))
            slope += change
    slope = 0
    for i in range(at, 0, -1):
        change = values[i - 1] - values[i] - slope
        if change:
            pieces.append((-1, lo + i, change))
            slope += change
    return values[at], pieces


def steps(table: Table, pivot: int) -> tuple[int, list[Piece]]:
    """Constant and pieces: side 1 is [n >= position], side -1 is [n <= position]."""
    lo, values = table
    at, last = pivot - lo, len(values) - 1
    right = [(1, lo + i, values[i] - values[i - 1]) for i in range(at + 1, last + 1) if values[i] != values[i - 1]]
    left = [(-1, lo + i, values[i] - values[i + 1]) for i in range(at - 1, -1, -1) if values[i] != values[i + 1]]
    return values[at], right + left


@cache
def pivots(tables: tuple[Table, ...], form: Callable[[Table, int], tuple[int, list[Piece]]]) -> tuple[int, ...]:
    """A pivot for each table: the same one for all (cut to each one's range), or each its own, whichever makes fewer
    different pieces; ties go to smaller sums (but those of a comfortable size are all equal), then to fewer
    constants."""
    low = min(lo for lo, _ in tables)
    high = max(lo + len(values) - 1 for lo, values in tables)
    choices = [tuple(_clamp(pivot, table) for table in tables) for pivot in range(low, high + 1)]
    if len(tables) > 1:
        own = tuple(pivots((table,), form)[0] for table in tables)
        choices.append(own)
    return min(choices, key=lambda choice: _rank(tables, choice, form))


def _rank(
    tables: tuple[Table, ...], choice: tuple[int, ...], form: Callable[[Table, int], tuple[int, list[Piece]]]
) -> tuple[int, int, int, int]:
    seen: set[tuple[int, int]] = set()
    constants = reach = large = 0
    for (lo, values), pivot in zip(tables, choice, strict=True):
        constant, pieces = form((lo, values), pivot)
        constants += constant != 0
        seen.update((side, position) for side, position, _ in pieces)
        high = lo + len(values) - 1
        own = sum(abs(weight) * (high - at if side > 0 else at - lo) for side, at, weight in pieces)
        reach, large = reach + own, large + max(own, COMFORTABLE)
    return len(seen), large, constants, reach


def _clamp(pivot: int, table: Table) -> int:
    lo, values = table
    return min(max(pivot, lo), lo + len(values) - 1)


def slope_of(table: Table) -> int:
    """The steepest slope, by magnitude: how much an error of the argument can grow."""
    values = table[1]
    return max((abs(values[i + 1] - values[i]) for i in range(len(values) - 1)), default=0)


def without_slope(table: Table) -> tuple[int, Table]:
    """The slope that most of a table has, and what is left of it without; 0 and the table if there is none such."""
    first, values = table
    changes = Counter(after - before for before, after in zip(values, values[1:], strict=False))
    slope = max(changes, key=lambda change: (changes[change], -abs(change)), default=0)
    if not slope or 2 * changes[slope] <= len(values):
        return 0, table
    return slope, (first, tuple(value - slope * i for i, value in enumerate(values)))


def is_affine(table: Table) -> bool:
    values = table[1]
    return all(values[i + 1] - values[i] == values[1] - values[0] for i in range(1, len(values) - 1))


def spike(table: Table) -> Piece | None:
    """If the table is zero but for one of its ends: side, position of that end, value there. An AND, or a NOR."""
    lo, values = table
    if len(values) > 1 and values[-1] and not any(values[:-1]):
        return 1, lo + len(values) - 1, values[-1]
    if len(values) > 1 and values[0] and not any(values[1:]):
        return -1, lo, values[0]
    return None
