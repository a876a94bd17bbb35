"""Tables over a small integer, and how to write them as few ramps.

A neuron is a ramp: ``relu(n - j)`` or ``relu(j - n)``. Any table is a constant plus ramps that all start at one
*anchor*: those to its right rise with n, those to its left rise with -n. A ramp is needed wherever the slope changes,
and one more on each side of the anchor where the table is not flat there; the anchor's position therefore decides the
number of ramps, the size their sums reach and the constant that is left over (which is free: it goes into the
expression).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from .ir import CircuitError, Expr

Table = Callable[[int], int] | Mapping[int, int] | Sequence[int]
Values = tuple[int, ...]

LARGEST_SUM = 256
"""Integers up to here are exact in bfloat16, so sums that stay below are exact in any order."""

COMFORTABLE_SUM = 64
"""Sums up to here leave room for several tables in one cell."""


def values(where: str, arg: Expr, table: Table) -> Values:
    """The table's values at ``arg.lo`` .. ``arg.hi``. A mapping's missing entries are zero; a sequence starts at
    ``arg.lo``."""
    span = range(arg.lo, arg.hi + 1)
    if isinstance(table, Mapping):
        stray = sorted(set(table) - set(span))
        if stray:
            raise CircuitError(f"{where}: the table has entries at {stray}, but {arg!r} ranges over {arg.lo}..{arg.hi}")
        return tuple(int(table.get(n, 0)) for n in span)
    if callable(table):
        return tuple(int(table(n)) for n in span)
    if len(table) != len(span):
        raise CircuitError(
            f"{where}: the table has {len(table)} entries, but {arg!r} ranges over {arg.lo}..{arg.hi}, "
            f"which takes {len(span)}"
        )
    return tuple(int(entry) for entry in table)


def is_affine(table: Values) -> bool:
    return all(table[i + 1] - table[i] == table[1] - table[0] for i in range(len(table) - 1))


def kinks(table: Values) -> dict[int, int]:
    """Ramps of a table whose first entry is zero: index j -> slope change there; ``table[i] = sum(change * relu(i -
    j))``."""
    slopes = [0] + [table[i + 1] - table[i] for i in range(len(table) - 1)]
    return {j: slopes[j + 1] - slopes[j] for j in range(len(slopes) - 1) if slopes[j + 1] != slopes[j]}


def split(table: Values, anchor: int) -> tuple[int, Values, Values]:
    """constant, rising table over n, rising table over -n: both zero at their first entry."""
    base = table[anchor]
    right = tuple(entry - base if i > anchor else 0 for i, entry in enumerate(table))
    left = tuple(entry - base if i < anchor else 0 for i, entry in enumerate(table))
    return base, right, left[::-1]


def largest_sum(ramps: Mapping[int, int], last: int) -> int:
    """The largest magnitude that a partial sum of the ramps can reach, in whatever order they are added."""
    terms = [change * (last - j) for j, change in ramps.items()]
    return max(sum(t for t in terms if t > 0), -sum(t for t in terms if t < 0))


@cache
def best_anchor(tables: tuple[Values, ...]) -> int:
    """The anchor with the fewest ramps for all these tables over one argument together.

    Ties go to the smallest sums (but below COMFORTABLE_SUM all are equal), then to few constants, then to ramps on one
    side only, then to the lowest.
    """

    def rank(anchor: int) -> tuple[int, int, int, int, int]:
        rising: set[int] = set()
        falling: set[int] = set()
        largest = constants = 0
        for table in tables:
            base, right, left = split(table, anchor)
            up, down = kinks(right), kinks(left)
            rising |= up.keys()
            falling |= down.keys()
            last = len(table) - 1
            largest += max(largest_sum(up, last), largest_sum(down, last))
            constants += base != 0
        sides = bool(rising) + bool(falling)
        return len(rising) + len(falling), max(largest, COMFORTABLE_SUM), constants, sides, anchor

    return min(range(len(tables[0])), key=rank)
