"""Neurons that read the same weighted sum, evaluated once: a table of what they add for each value of the sum.

A circuit's function of a small count is many neurons that differ in their thresholds alone. Such neurons form one
*unit*: the sum is computed once and, where it is on the grid of its weights (it is whenever the inputs are
integers), the unit's outputs stand in a table that was filled by evaluating those very neurons. What the unit adds
at sum zero is kept apart (``rest``), so that units whose inputs are all off cost nothing. Every other neuron is a
unit of its own without a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from qgpu.engines.native_math import F32, mlp_value, rounded
from qgpu.engines.native_plan import FLUSH, Claims, Plan, pointers
from qgpu.engines.protocol import Array

SILENT = -28.0  # SiLU below this is 2e-11; times a 1/64 it is less than what the residual keeps
MAX_TABLE = 128
STEP = 8.0  # gate weights that are no multiples of it have no table


class Units(NamedTuple):
    """U units, ordered by layer. Table entry i of unit u: dim/val[entry_ptr[first[u] + i] : entry_ptr[first[u] + i +
    1]]."""

    ptr: Array  # int32 [layers + 1]
    neuron: Array  # int32 [U]: a neuron of the unit; its gate row holds the inputs
    rows: Array  # int32 [U, 2]: that neuron's rows of gate and up
    member_ptr: Array  # int32 [U + 1]
    member: Array  # int32 [N]: all neurons, by unit
    low: Array  # float32 [U]: the sum of entry 0
    per_step: Array  # float32 [U]: entries per unit of the sum
    size: Array  # int32 [U]: entries; 0 without a table
    floor: Array  # uint8 [U]: at the lowest sum all its neurons are silent, and so they are below it
    first: Array  # int32 [U]
    entry_ptr: Array
    entry_dim: Array
    entry_val: Array
    rest_ptr: Array  # int32 [layers + 1]: what an MLP's tables add when all sums are zero
    rest_dim: Array
    rest_val: Array


def _groups(p: Plan, tables: bool) -> tuple[Array, Array, Array]:
    """int32 [U + 1], [N]: neurons by unit; bool [U]: may have a table."""
    rows = p.rows
    members: dict[object, list[int]] = {}
    layer_of = np.repeat(np.arange(p.layers), np.diff(p.neuron_ptr))
    for n, (gate, up) in enumerate(p.neuron_rows.tolist()):
        key: object = n
        if tables and rows.rptr[up] == rows.rptr[up + 1] and rows.rptr[gate] < rows.rptr[gate + 1]:
            span = slice(rows.rptr[gate], rows.rptr[gate + 1])
            key = (layer_of[n], rows.rdim[span].tobytes(), rows.rval[span].tobytes())
        members.setdefault(key, []).append(n)
    ordered = sorted(members.items(), key=lambda item: item[1][0])  # by first neuron, so by layer
    sizes = np.array([len(group) for _, group in ordered], np.int64)
    order = np.array([n for _, group in ordered for n in group], np.int32)
    may = np.array([not isinstance(key, int) for key, _ in ordered], bool)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32), order, may


def _grids(p: Plan, gate: Array, may: Array, claims: Claims, stage: Array) -> tuple[Array, Array, Array]:
    """(low, step, size) of every unit's table, size 0 where there is none."""
    low, step, size = (np.zeros(len(gate), kind) for kind in (np.float32, np.float32, np.int32))
    for u in np.flatnonzero(may).tolist():
        weights = p.rows.rval[p.rows.rptr[gate[u]] : p.rows.rptr[gate[u] + 1]]
        whole = (weights / STEP).astype(np.int64)
        if np.any(whole * STEP != weights):
            continue
        unit = np.gcd.reduce(whole)
        dims = p.rows.rdim[p.rows.rptr[gate[u]] : p.rows.rptr[gate[u] + 1]]
        ends = whole * claims.lo[stage[u], dims], whole * claims.hi[stage[u], dims]
        least, most = float(np.minimum(*ends).sum()), float(np.maximum(*ends).sum())
        count = int((most - least) // unit) + 1
        if count > MAX_TABLE:
            least, count = float(whole[whole < 0].sum()), int(np.abs(whole).sum() // unit) + 1
        if count <= MAX_TABLE:
            low[u], step[u], size[u] = least * STEP, unit * STEP, count
    return low, step, size


@numba.njit(cache=True)
def _fill(consts, ups, down_ptr, down_dim, down_val, group_ptr, members, low, step, size, bf, live):
    # type: ignore[no-untyped-def]
    """Evaluates every unit at every sum. Per entry: its length; the entries; and (unit, dim, value) at sum zero."""
    lengths = np.zeros(size.sum(), np.int64)
    room = 1024
    dims, values = np.empty(room, np.int32), np.empty(room, np.float32)
    rest_unit, rest_dim, rest_val = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.float32)
    total, at_rest = np.zeros(live, np.float32), np.zeros(live, np.float32)
    used, rests, entry = 0, 0, 0
    for u in range(len(size)):
        if size[u] == 0:
            continue
        for i in range(-1, size[u]):
            s = F32(0) if i < 0 else F32(low[u] + step[u] * i)
            for m in range(group_ptr[u], group_ptr[u + 1]):
                n = members[m]
                value = mlp_value(rounded(s + consts[n], bf), rounded(ups[n], bf), bf)
                for e in range(down_ptr[n], down_ptr[n + 1]):
                    if i < 0:
                        at_rest[down_dim[e]] += down_val[e] * value
                    else:
                        total[down_dim[e]] += down_val[e] * value
            for m in range(group_ptr[u], group_ptr[u + 1]):
                n = members[m]
                for e in range(down_ptr[n], down_ptr[n + 1]):
                    d = down_dim[e]
                    if used + 1 >= len(dims):
                        dims, values = np.append(dims, dims), np.append(values, values)
                    if rests + 1 >= len(rest_unit):
                        rest_unit, rest_dim = np.append(rest_unit, rest_unit), np.append(rest_dim, rest_dim)
                        rest_val = np.append(rest_val, rest_val)
                    if i < 0:
                        seen = False
                        for r in range(rests - 1, -1, -1):
                            if rest_unit[r] != u:
                                break
                            seen = seen or rest_dim[r] == d
                        if not seen and abs(at_rest[d]) >= FLUSH:
                            rest_unit[rests], rest_dim[rests], rest_val[rests] = u, d, at_rest[d]
                            rests += 1
                    else:
                        change = total[d] - at_rest[d]
                        if abs(change) >= FLUSH:
                            dims[used], values[used] = d, change
                            used += 1
                            lengths[entry] += 1
                        total[d] = at_rest[d]  # so that it is not listed twice
            for m in range(group_ptr[u], group_ptr[u + 1]):
                n = members[m]
                for e in range(down_ptr[n], down_ptr[n + 1]):
                    total[down_dim[e]] = 0
                    if i == size[u] - 1:
                        at_rest[down_dim[e]] = 0
            if i >= 0:
                entry += 1
    return lengths, dims[:used].copy(), values[:used].copy(), rest_unit[:rests].copy(), rest_dim[:rests].copy(), \
        rest_val[:rests].copy()  # fmt: skip


def make_units(p: Plan, bf: bool, claims: Claims) -> Units:
    """Tables are made for bfloat16 activations only: there signals are exact integers."""
    group_ptr, members, may = _groups(p, bf)
    neuron = members[group_ptr[:-1]]
    stage = 2 * (np.searchsorted(p.neuron_ptr, neuron, side="right") - 1) + 1
    low, step, size = _grids(p, p.neuron_rows[neuron, 0], may, claims, stage)
    split = np.flatnonzero((size == 0) & (np.diff(group_ptr) > 1))
    if len(split):  # units that got no table fall apart into their neurons
        sizes = np.diff(group_ptr)
        repeat = np.where(np.isin(np.arange(len(sizes)), split), sizes, 1)
        low, step, size = np.repeat(low, repeat), np.repeat(step, repeat), np.repeat(size, repeat)
        sizes = np.where(np.repeat(np.isin(np.arange(len(sizes)), split), repeat), 1, np.repeat(sizes, repeat))
        group_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        neuron = members[group_ptr[:-1]]
    gate, up = p.neuron_rows[:, 0], p.neuron_rows[:, 1]
    ups = p.rows.const[up]
    lengths, dims, values, rest_unit, rest_dim, rest_val = _fill(
        p.rows.const[gate], ups.astype(np.float32), p.down_ptr, p.down_dim, p.down_val, group_ptr, members, low,
        step, size, bf, len(p.dims),
    )  # fmt: skip
    layer_of = np.searchsorted(p.neuron_ptr, neuron, side="right") - 1
    first = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int32) if len(size) else np.zeros(0, np.int32)
    with np.errstate(divide="ignore"):
        per_step = np.where(size > 0, 1 / np.maximum(step, 1e-30), 0).astype(np.float32)
    highest = np.maximum.reduceat(p.rows.const[gate[members]], group_ptr[:-1]) if len(size) else low
    floor = (size > 0) & (low + highest <= SILENT)
    rest_layer = layer_of[rest_unit] if len(rest_unit) else np.zeros(0, np.int64)
    key = rest_layer.astype(np.int64) * len(p.dims) + rest_dim
    places, inverse = np.unique(key, return_inverse=True)
    sums = np.zeros(len(places), np.float32)
    np.add.at(sums, inverse, rest_val)
    keep = np.abs(sums) >= FLUSH
    return Units(
        pointers(layer_of, p.layers), neuron.astype(np.int32), p.neuron_rows[neuron], group_ptr, members, low,
        per_step, size, floor.astype(np.uint8), first, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        dims, values,
        pointers(places[keep] // len(p.dims), p.layers), (places[keep] % len(p.dims)).astype(np.int32), sums[keep],
    )  # fmt: skip
