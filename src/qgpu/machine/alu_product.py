"""The product of two words as counts by column, and what becomes of such counts: first two levels of unit M.

A column's *count* is how many units of ``2**k`` stand in it. Where a column is short enough, one neuron can make the
product of a bit and two bits at once (0..3); counts then go to the next columns as radix-4 digits, whose tables bend at
every fourth value only. The former saves neurons here and costs some there: ``CAP`` is how high a column may grow by
it, 0 for not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.machine.alu_terms import Term, conj

COLUMNS = 64
CAP = 0  # the largest count of partial products in a column


@cache
def cells() -> tuple[tuple[int, int, int], ...]:
    """(bit of x, bit of y, bits of y taken at once) of every partial product; no column holds more than ``CAP``."""
    heights = [min(k, 31) - max(k - 31, 0) + 1 for k in range(COLUMNS)]
    wide = set()
    for i in sorted(range(32), key=lambda i: (i % 4, i)):  # rows spread out, so that columns fill evenly
        for j in range(0, 32, 2):
            if heights[i + j] + 2 <= CAP:
                wide.add((i, j))
                heights[i + j] += 2
                heights[i + j + 1] -= 1
    found = []
    for i in range(32):
        for j in range(0, 32, 2):
            found += [(i, j, 2)] if (i, j) in wide else [(i, j, 1), (i, j + 1, 1)]
    return tuple(found)


def partial_products(x: Word, y: Word, signed: Expr) -> list[list[Term]]:
    """Terms of each column's count of x y, without ``correction``. One neuron a partial product.

    As signed numbers x is ``x - 2**32 x31``, so that x31 y and y31 x are taken off the high word.
    """
    columns: list[list[Term]] = [[] for _ in range(COLUMNS)]
    for i, j, bits in cells():
        if bits == 1:
            columns[i + j].append(conj(x[i], y[j]))
        else:
            columns[i + j].append((y[j : j + 2].value + x[i] * 4, lambda n: max(n - 4, 0)))
    for k in range(32):
        ways = [(x.sign, y[k]), (y.sign, x[k])] if k < 31 else [(x.sign, y.sign)]
        columns[32 + k] += [conj(*way, signed, weight=-2 // len(ways)) for way in ways]
    return columns


def correction(column: int, signed: Expr) -> Expr:
    """What makes a column's count right and never negative: two for what is taken off, which add up to -2**33 in all
    columns of the high word, and one more at 33 for that."""
    return signed * (3 if column == 33 else 2 if column >= 32 else 0)


def spread_counts(counts: list[Expr]) -> list[list[Term]]:
    """Terms of new columns with the same total: each count as three radix-4 digits. About half a neuron a unit."""
    columns: list[list[Term]] = [[] for _ in range(COLUMNS)]
    for k, count in enumerate(counts):
        for part in range(3):
            if k + 2 * part < COLUMNS and count.hi >> 2 * part:
                columns[k + 2 * part].append((count, _radix4(part)))
    return columns


def _radix4(part: int):  # type: ignore[no-untyped-def]
    if part == 2:
        return lambda n: n >> 4
    return lambda n: n >> 2 * part & 3


def columns_of(
    b: Builder, name: str, terms: list[list[Term]], bounds: list[tuple[int, int]], into: Sequence[Expr] = ()
) -> list[Expr]:
    """A signal for each column; the first ones are the buses ``into``."""
    names = [f"{name}.sum{k}" if k < len(into) else f"{name}{k}" for k in range(len(terms))]
    made = b.sums(
        dict(zip(names, terms, strict=True)),
        dict(zip(names, bounds, strict=True)),
        into=dict(zip(names, into, strict=False)),
    )
    return list(made.values())


def counted(columns: list[Expr]) -> Expr:
    """Neighbouring columns as one number."""
    return total(column * (1 << i) for i, column in enumerate(columns))
