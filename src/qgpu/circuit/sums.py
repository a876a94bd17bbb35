"""From tables to Sum cells: which anchor each table gets, what stays a free expression, and where constants go."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from .ir import CircuitError, Expr, Signal, Sum, Term, constant, total
from .tables import LARGEST_SUM, Table, Values, best_anchor, is_affine, split, values

Part = tuple[Expr, Values, int | None]
"""Argument, table, anchor (None: whichever is best for this table alone)."""


def parts_of(where: str, terms: Mapping[str, Iterable[tuple[Expr, Table]]]) -> dict[str, list[Part]]:
    """Tables as values, with one common anchor for all curved tables of the same argument, so that they share
    neurons."""
    listed = {
        key: [(arg, values(f"sum '{where}{key}', term {i}", arg, table)) for i, (arg, table) in enumerate(group)]
        for key, group in terms.items()
    }
    curved: dict[Hashable, dict[Values, None]] = {}
    for group in listed.values():
        for arg, table in group:
            if not is_affine(table):
                curved.setdefault(_identity(arg), {})[table] = None
    anchors = {identity: best_anchor(tuple(tables)) for identity, tables in curved.items()}
    return {
        key: [(arg, table, None if is_affine(table) else anchors[_identity(arg)]) for arg, table in group]
        for key, group in listed.items()
    }


def _identity(arg: Expr) -> Hashable:
    return frozenset(arg.terms.items()), arg.const, arg.lo, arg.hi


def affine_sum(parts: Sequence[Part], bound: tuple[int, int] | None) -> Expr | None:
    """The sum as an expression, if all its tables are affine; None if not."""
    if not all(is_affine(table) for _, table, _ in parts):
        return None
    result = total(
        (arg - arg.lo) * (table[1] - table[0] if len(table) > 1 else 0) + table[0] for arg, table, _ in parts
    )
    if not result.terms:
        return constant(result.const)
    low, high = bound or (result.lo, result.hi)
    low, high = max(low, result.lo), min(high, result.hi)
    return result if (low, high) == (result.lo, result.hi) else result.assume(low, high)


def sum_cell(
    name: str, parts: Sequence[Part], bound: tuple[int, int] | None, signal: Callable[[int, int], Signal]
) -> tuple[Sum, Expr]:
    """The cell, and the expression that is the sum: the cell's signal, or its opposite, plus a constant.

    ``signal`` makes the signal from its bounds. Raises CircuitError for arguments too heavy for an exact gate.
    """
    low, high = bound or (sum(min(table) for _, table, _ in parts), sum(max(table) for _, table, _ in parts))
    base = 0
    terms: list[Term] = []
    for arg, table, anchor in parts:
        _check_weight(name, arg)
        middle, rising, falling = split(table, best_anchor((table,)) if anchor is None else anchor)
        base += middle
        terms += [Term(a, t) for a, t in ((arg, rising), (-arg, falling)) if any(t)]
    if low < base and high <= base:
        inverse = signal(base - high, base - low)
        return Sum(inverse, tuple(Term(t.arg, tuple(-n for n in t.table)) for t in terms)), base - inverse.expr
    out = signal(low - base, high - base)
    return Sum(out, tuple(terms)), out.expr + base


def sum_into(name: str, parts: Sequence[Part], out: Signal) -> Sum:
    """A cell that adds the sum to a signal that others drive as well. Raises as ``sum_cell`` does."""
    for arg, _, _ in parts:
        _check_weight(name, arg)
    return Sum(out, tuple(Term(arg, table) for arg, table, _ in parts if any(table)))


def _check_weight(name: str, arg: Expr) -> None:
    if arg.weight > LARGEST_SUM:
        raise CircuitError(
            f"'{name}': the coefficients of {arg.short()} add up to {arg.weight}; "
            f"a gate is exact in bfloat16 up to {LARGEST_SUM}, so split the table into two levels"
        )
