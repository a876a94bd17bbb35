"""Tables as ramps and steps, against the table itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qgpu.foundry.forms import ramp_row, sharp_row, step_rows
from qgpu.foundry.rows import Row
from qgpu.foundry.tables import pivots, ramps, spike, steps

tables = st.tuples(st.integers(-9, 9), st.lists(st.integers(-5, 5), min_size=1, max_size=20).map(tuple))


def value(row: Row, n: float) -> float:
    """A neuron of one signal, in exact arithmetic."""
    argument = sum(coef * n for _, coef in row.terms) + row.bias2 / 2
    return argument if row.linear else max(argument, 0.0)


@given(tables, st.data())
def test_ramps_and_steps_are_the_table(table: tuple[int, tuple[int, ...]], data: st.DataObject) -> None:
    lo, values = table
    pivot = data.draw(st.integers(lo, lo + len(values) - 1))
    terms = ((0, 1),)
    for n, wanted in enumerate(values, start=lo):
        const, pieces = ramps(table, pivot)
        assert const + sum(w * value(ramp_row(terms, (side, at, w)), n) for side, at, w in pieces) == wanted
        const, pieces = steps(table, pivot)
        for off in (-0.25, 0.0, 0.25):
            rows = [pair for piece in pieces for pair in step_rows(terms, piece)]
            assert const + sum(weight * value(row, n + off) for row, weight in rows) == wanted


@given(st.integers(-9, 9), st.integers(2, 9), st.integers(1, 5), st.booleans())
def test_spikes(lo: int, size: int, height: int, last: bool) -> None:
    values = [0] * size
    values[-1 if last else 0] = height
    end = spike((lo, tuple(values)))
    assert end is not None
    for n, wanted in enumerate(values, start=lo):
        assert end[2] * value(sharp_row(((0, 1),), end), n) == wanted
        if not wanted:
            assert value(sharp_row(((0, 1),), end), n + (0.45 if last else -0.45)) == 0


@given(st.lists(tables, min_size=1, max_size=4).map(tuple))
def test_pivots_against_every_common_pivot(group: tuple[tuple[int, tuple[int, ...]], ...]) -> None:
    """Brute force: no pivot that all tables share makes fewer different pieces, nor does each table's own."""

    def pieces(choice: Sequence[int]) -> int:
        return len({(s, at) for table, p in zip(group, choice, strict=True) for s, at, _ in ramps(table, p)[1]})

    chosen = pivots(group, ramps)
    for table, pivot in zip(group, chosen, strict=True):
        assert table[0] <= pivot < table[0] + len(table[1])
    ends = [(lo, lo + len(values) - 1) for lo, values in group]
    common = [[min(max(p, lo), hi) for lo, hi in ends] for p in range(-9, 40)]
    own = [
        min(range(lo, hi + 1), key=lambda p, t=t: len(ramps(t, p)[1])) for t, (lo, hi) in zip(group, ends, strict=True)
    ]
    assert pieces(chosen) <= min(map(pieces, common))
    assert pieces(chosen) <= sum(len(ramps(t, p)[1]) for t, p in zip(group, own, strict=True))


def test_known_costs() -> None:
    """AND, OR, parity of four and a two-sided test, in neurons."""
    costs = {(0, 0, 0, 0, 1): 1, (0, 1, 1, 1, 1): 1, (0, 1, 0, 1, 0): 4, (1, 0, 0, 1): 2, (1, 1, 0, 0): 2}
    for values, cost in costs.items():
        table = (0, values)
        assert len(ramps(table, pivots((table,), ramps)[0])[1]) == cost, values
    assert np.array_equal(sorted(len(steps((0, v), 0)[1]) for v in costs), [1, 1, 1, 2, 4])
