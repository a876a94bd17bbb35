"""Reading weights back: rows of a matrix as integer arguments over residual dims, with their bounds and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from .network import Network, Sparse

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Line:
    """``const + sum(coef * dim)`` in units of something; coefficients are exact binary fractions. ``terms``: by dim."""

    terms: tuple[tuple[int, float], ...]
    const: float

    def scaled(self, unit: float) -> Line:
        """The same in units of ``unit``."""
        return Line(tuple((dim, coef / unit) for dim, coef in self.terms), self.const / unit)

    @property
    def whole(self) -> bool:
        """Whether all coefficients are integers and the constant is a multiple of 1/2."""
        return all(coef == int(coef) for _, coef in self.terms) and 2 * self.const == int(2 * self.const)

    def bounds(self, lo: Array, hi: Array) -> tuple[float, float]:
        """Interval of the value, dims within ``lo``..``hi``."""
        low = high = self.const
        for dim, coef in self.terms:
            a, b = coef * float(lo[dim]), coef * float(hi[dim])
            low, high = low + min(a, b), high + max(a, b)
        return low, high

    def reach(self, lo: Array, hi: Array) -> tuple[float, float]:
        """Largest magnitude of a partial sum in any order, and the sum of the terms' magnitudes."""
        positive, negative = max(self.const, 0.0), max(-self.const, 0.0)
        for dim, coef in self.terms:
            a, b = coef * float(lo[dim]), coef * float(hi[dim])
            positive, negative = positive + max(a, b, 0.0), negative - min(a, b, 0.0)
        return max(positive, negative), positive + negative

    def error(self, errors: Array) -> float:
        """How far the value can be off if the dims are off by ``errors``."""
        return float(sum(abs(coef) * errors[dim] for dim, coef in self.terms))

    def direction(self) -> tuple[tuple[tuple[int, int], ...], int]:
        """(primitive integer terms that start with a plus, factor): terms = factor * primitive. Needs ``whole``."""
        divisor = gcd(*(int(coef) for _, coef in self.terms))
        factor = divisor if self.terms[0][1] > 0 else -divisor
        return tuple((dim, int(coef) // factor) for dim, coef in self.terms), factor


@dataclass(frozen=True, eq=False)
class Anchors:
    """The constant dims. ``level``: by dim, what it is after RMSNorm; ``scale``: what RMSNorm divides signals by."""

    level: dict[int, float]
    scale: float


def anchors(network: Network) -> tuple[Anchors, list[str]]:
    """The embedding's constant dims, and what is wrong with them: powers of two whose squares make RMSNorm divide by a
    power of two."""
    table = network.embedding
    found = {}
    faults = []
    for column, dim in enumerate(table.dims):
        codes = table.codes[:, column]
        value = float(codes[0]) * float(table.scales[column]) + float(table.offsets[column])
        if (codes == codes[0]).all() and abs(value) > 256:
            found[int(dim)] = value
            if np.frexp(value)[0] != 0.5:
                faults.append(f"embedding: anchor dim {dim} holds {value:g}, no power of two")
    scale = (sum(value**2 for value in found.values()) / network.shape.hidden) ** 0.5
    if not found or np.frexp(scale)[0] != 0.5:
        faults.append(f"embedding: {len(found)} anchors make RMSNorm divide by {scale:g}, no power of two")
        scale = max(scale, 1.0)
    return Anchors({dim: value / scale for dim, value in found.items()}, scale), faults


def lines(matrix: Sparse | None, anchor: Anchors) -> Iterator[tuple[int, Line]]:
    """(row, its line in units of one signal) of every row that is not zero."""
    if matrix is None or not len(matrix.values):
        return
    starts = np.flatnonzero(np.r_[True, matrix.rows[1:] != matrix.rows[:-1]])
    ends = np.r_[starts[1:], len(matrix.rows)]
    cols, values = matrix.cols.tolist(), matrix.values.tolist()
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        terms, const = [], 0.0
        for dim, value in zip(cols[start:end], values[start:end], strict=True):
            level = anchor.level.get(dim)
            if level is None:
                terms.append((dim, value / anchor.scale))
            else:
                const += value * level
        yield int(matrix.rows[start]), Line(tuple(terms), const)


def by_row(matrix: Sparse | None) -> dict[int, list[tuple[int, float]]]:
    """row -> (column, value) of a matrix that reads no residual dims."""
    found: dict[int, list[tuple[int, float]]] = {}
    if matrix is not None:
        for row, col, value in zip(matrix.rows.tolist(), matrix.cols.tolist(), matrix.values.tolist(), strict=True):
            found.setdefault(row, []).append((col, value))
    return found


def combined(first: Sequence[tuple[int, float]], second: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Sum of two lines' terms."""
    total = dict(first)
    for dim, coef in second:
        total[dim] = total.get(dim, 0.0) + coef
    return {dim: coef for dim, coef in total.items() if coef}
