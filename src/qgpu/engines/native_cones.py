"""How many values decide what an MLP leaves in a residual dim: keys for tables of it.

The inputs of a dim's neurons can be numbered by mixed radix. Where that gives too many values, neurons often read the
same few weighted sums (*forms*), and the values of those decide. Where one table still has too many entries, the
neurons are split into *pieces* by the forms that they read; what the pieces give is added up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qgpu.engines.native_plan import Rows
from qgpu.engines.protocol import Array

MOST, MERGED = 4096, 1024  # entries of a table; of one made of several pieces
UNIT = 2.0**-8  # of weights


@dataclass
class Piece:
    """neurons: (neuron, weight in the dim). inputs: (net, multiplier); codes times multipliers, added to ``start``, are
    a place in a table of ``size`` entries."""

    neurons: list[tuple[int, float]]
    inputs: list[tuple[int, int]]
    start: int
    size: int
    plain: bool = False  # the place is by mixed radix


@dataclass
class Forms:
    """Rows as integer multiples of a unit: the same for rows whose weights are proportional."""

    rows: Rows
    row_net: Array
    room: list[int]  # codes of a net
    roomy: list[int]  # whether some of them are no more than names of values

    def of(self, row: int) -> tuple[tuple[int, int], ...] | None:
        """(net, weight) by net; None where weights are no multiples of the unit."""
        first, last = self.rows.rptr[row], self.rows.rptr[row + 1]
        nets, weights = self.row_net[first:last], self.rows.rval[first:last]
        whole = np.round(weights / UNIT).astype(np.int64)
        if np.any(whole * UNIT != weights):
            return None
        keep = (nets != 0) & (whole != 0)
        if not np.any(keep):
            return ()
        nets, whole = nets[keep], whole[keep]
        order = np.argsort(nets)
        nets, whole = nets[order], whole[order] // np.gcd.reduce(whole)
        if whole[0] < 0:
            whole = -whole
        return tuple(zip(nets.tolist(), whole.tolist(), strict=True))

    def key(self, nets: list[int]) -> tuple[list[tuple[int, int]], int, int] | None:
        """(inputs, start, size) by mixed radix."""
        pairs, size = [], 1
        for net in nets:
            pairs.append((net, size))
            size *= self.room[net]
            if size > MOST:
                return None
        return pairs, 0, size

    def key_of_forms(self, forms: list[tuple[tuple[int, int], ...]]) -> tuple[list[tuple[int, int]], int, int] | None:
        factors: dict[int, int] = {}
        start, size = 0, 1
        for form in forms:
            if any(self.roomy[net] for net, _ in form):
                return None
            low = sum(weight * (self.room[net] - 1) for net, weight in form if weight < 0)
            high = sum(weight * (self.room[net] - 1) for net, weight in form if weight > 0)
            for net, weight in form:
                factors[net] = factors.get(net, 0) + weight * size
            start -= low * size
            size *= high - low + 1
            if size > MOST:
                return None
        return sorted(factors.items()), start, size


def cone_of(
    forms: Forms, neuron_rows: Array, by: list[tuple[int, float]], nets: list[int], old: int
) -> list[Piece] | None:
    """The pieces of a dim that ``by`` write. One piece decides what the dim holds, with its net before, ``old``; of
    several, each says what it adds. None where some neuron reads too much."""
    found = forms.key(nets)
    if found is not None:
        return [Piece(by, *found, plain=True)]
    groups: dict[tuple[tuple[tuple[int, int], ...], ...], list[tuple[int, float]]] = {}
    for n, weight in by:
        gate, up = (forms.of(int(row)) for row in neuron_rows[n])
        if gate is None or up is None:
            return None
        groups.setdefault(tuple(sorted({gate, up} - {()})), []).append((n, weight))
    own = ((old, 1),)
    together = sorted({form for group in groups for form in group} | ({own} if old else set()))
    found = forms.key_of_forms(together)
    if found is not None:
        return [Piece(by, *found)]
    pieces: list[Piece] = []
    small: list[tuple[set[int], list[tuple[int, float]]]] = []
    for group, neurons in groups.items():
        reads = sorted({net for form in group for net, _ in form})
        found = forms.key(reads)
        if found is not None and found[2] <= MERGED:
            small.append((set(reads), neurons))
            continue
        by_forms = forms.key_of_forms(list(group))
        found = by_forms or found
        if found is None:
            return None
        pieces.append(Piece(neurons, *found, plain=by_forms is None))
    merged: list[tuple[set[int], list[tuple[int, float]]]] = []
    for reads_of, neurons in sorted(small, key=lambda item: -len(item[0])):
        for place, (have, others) in enumerate(merged):
            both = forms.key(sorted(have | reads_of))
            if both is not None and both[2] <= MERGED and reads_of <= have:
                merged[place] = have | reads_of, others + neurons
                break
        else:
            merged.append((reads_of, neurons))
    for have, neurons in merged:
        key = forms.key(sorted(have))
        if key is None:
            return None
        pieces.append(Piece(sorted(neurons), *key, plain=True))
    if len(pieces) == 1:
        pieces.append(Piece([], [], 0, 1))  # one piece alone would have to know ``old``
    return pieces
