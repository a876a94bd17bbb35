"""Expressions and Sum cells of one stage as numpy operations over [cells, batch] arrays.

Cells are sorted by fan-in, largest first, so that the k-th operands of all of them are one gather and one addition on a
prefix of the array.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .ir import Expr, Signal, Sum
from .tables import kinks

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Violation:
    """A range that did not hold: ``what`` was ``value`` in instance ``instance``, not in ``lo`` .. ``hi``."""

    what: str
    value: int
    lo: int
    hi: int
    instance: int


def violation(values: Array, low: Array, high: Array, active: Array | None) -> tuple[int, int] | None:
    """(row, instance) of the first value outside low..high; ``active``: mask of the instances to look at."""
    bad = (values < low) | (values > high)
    if not bad.any():
        return None
    if active is not None:
        bad &= active
        if not bad.any():
            return None
    row = int(bad.any(axis=1).argmax())
    return row, int(bad[row].argmax())


class ExprBlock:
    """Many expressions over one array of signal values; equal ones are computed once.

    ``rows[i]`` is the row of the i-th expression in what ``__call__`` returns. ``users``: for each expression the name
    of what uses it, for messages.
    """

    def __init__(
        self, args: Sequence[Expr], users: Sequence[str], index: Mapping[Signal, int], dtype: type[np.generic]
    ) -> None:
        keys: dict[Hashable, Expr] = {}
        names: list[Hashable] = []
        claims: list[tuple[Hashable, str, Expr]] = []
        for arg, user in zip(args, users, strict=True):
            key = (frozenset(arg.terms.items()), arg.const)
            keys.setdefault(key, arg)
            names.append(key)
            if arg.bound is not None:
                claims.append((key, user, arg))
        unique = sorted(keys, key=lambda key: -len(keys[key].terms))
        place = {key: row for row, key in enumerate(unique)}
        terms = [list(keys[key].terms.items()) for key in unique]
        self.rows: Array = np.array([place[key] for key in names], np.intp)
        self._const = np.array([keys[key].const for key in unique], dtype)[:, None]
        self._steps: list[tuple[int, Array, Array | None]] = []
        for k in range(len(terms[0]) if terms else 0):
            count = sum(1 for parts in terms if len(parts) > k)
            coefs = np.array([parts[k][1] for parts in terms[:count]], dtype)[:, None]
            sources = np.array([index[parts[k][0]] for parts in terms[:count]], np.intp)
            self._steps.append((count, sources, None if (coefs == 1).all() else coefs))
        self._claims = claims
        self._claim_rows = np.array([place[key] for key, _, _ in claims], np.intp)
        self._claim_low = np.array([arg.lo for _, _, arg in claims], np.int64).astype(np.int64)[:, None]
        self._claim_high = np.array([arg.hi for _, _, arg in claims], np.int64)[:, None]

    def __call__(self, values: Array) -> Array:
        """[expressions, batch] of [signals, batch]."""
        result = np.empty((len(self._const), values.shape[1]), self._const.dtype)
        result[:] = self._const
        for count, sources, coefs in self._steps:
            part = values[sources]
            if coefs is not None:
                part = part * coefs
            result[:count] += part
        return result

    def check(self, results: Array, active: Array | None) -> Violation | None:
        """The first claimed range that does not hold."""
        if not self._claims:
            return None
        claimed = results[self._claim_rows]
        found = violation(claimed, self._claim_low, self._claim_high, active)
        if found is None:
            return None
        row, instance = found
        _, user, arg = self._claims[row]
        what = f"an input of '{user}', {arg.short()},"
        return Violation(what, int(claimed[row, instance]), arg.lo, arg.hi, instance)


class SumStage:
    """Sum cells that depend on nothing but earlier stages. ``cells``: in the order in which they are stored."""

    def __init__(self, cells: Sequence[Sum], index: Mapping[Signal, int], dtype: type[np.generic]) -> None:
        self.cells = sorted(cells, key=lambda cell: -len(cell.terms))
        terms = [(cell.out.name, term) for cell in self.cells for term in cell.terms]
        self._args = ExprBlock([term.arg for _, term in terms], [name for name, _ in terms], index, dtype)
        ramps = [kinks(term.table) if term.table[0] == 0 else {} for _, term in terms]
        single = np.array([len(ramp) == 1 for ramp in ramps], bool)
        order = np.argsort(~single, kind="stable")
        place = np.empty(len(terms), np.intp)
        place[order] = np.arange(len(terms))
        self._singles = int(single.sum())
        chosen = [(terms[i][1], ramps[i]) for i in order]
        self._sources = self._args.rows[order]
        starts = [term.arg.lo + next(iter(ramp)) for term, ramp in chosen[: self._singles]]
        slopes = np.array([next(iter(ramp.values())) for _, ramp in chosen[: self._singles]], dtype)[:, None]
        self._starts = np.array(starts, dtype)[:, None]
        self._slopes = None if (slopes == 1).all() else slopes
        tables = [term.table for term, _ in chosen[self._singles :]]
        self._tables = np.array([entry for table in tables for entry in table], dtype)
        lengths = np.array([len(table) for table in tables], np.int64)
        lows = np.array([term.arg.lo for term, _ in chosen[self._singles :]], np.int64)
        self._bases = (np.cumsum(lengths) - lengths - lows)[:, None]
        first = np.cumsum([0, *(len(cell.terms) for cell in self.cells)])
        self._steps: list[tuple[int, Array]] = []
        for k in range(len(self.cells[0].terms) if self.cells else 0):
            count = sum(1 for cell in self.cells if len(cell.terms) > k)
            self._steps.append((count, place[first[:count] + k]))

    def run(self, values: Array, out: Array, active: Array | None) -> Violation | None:
        """Fills ``out`` [cells, batch]."""
        args = self._args(values)
        found = self._args.check(args, active)
        if found is not None:
            return found
        operands = args[self._sources]
        n = self._singles
        ramps = operands[:n]
        ramps -= self._starts
        np.maximum(ramps, 0, out=ramps)
        if self._slopes is not None:
            ramps *= self._slopes
        if n < len(operands):
            self._tables.take(operands[n:] + self._bases, mode="clip", out=operands[n:])
        out[:] = 0
        for count, sources in self._steps:
            out[:count] += operands[sources]
        return None
