"""What need not be computed: for every unit of neurons and memory event, the few inputs without which nothing can
come of it.

A threshold with many inputs is silent unless several of them are on. For each unit a small set of inputs (its
*watch*) is chosen such that, with those off, its gate is so low for any values of the others that it adds nothing;
at run time a unit is looked at only when a watched input is on. The bounds hold for inputs that are 0 or 1 to within
``slack``; an input with any other value is *irregular*, and then everything that reads it is looked at. So screening
drops no result: it is a proof from the weights, made when they are loaded, and what is looked at is computed from
its weights in full.

The same is done for memories: whether a head may be wiped, written or read, and which of its 128 rows a key can select.
"""

from __future__ import annotations

from math import exp, log, log1p
from typing import NamedTuple

import numba
import numpy as np

from qgpu.engines.native_masks import Masks, make_masks
from qgpu.engines.native_math import F32
from qgpu.engines.native_plan import PARTS, Claims, Plan, pointers
from qgpu.engines.native_units import SILENT, Units
from qgpu.engines.native_values import Values, make_values
from qgpu.engines.protocol import Array

GRID = 32.0  # where all weights are multiples of it, gates between SILENT and 0 do not occur
NO_WRITE = -50.0  # the sigmoid of this is 2e-22
UNSEEN_DECAY = 2.0**-26  # exp(-this) is 1 in float32
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # all windows of six bits differ
SLACK = (1 / 256, 0.0)  # by "bf16 activations"; there signals are exact


class Screen(NamedTuple):
    """Stage s = 2 * layer (mixer) or 2 * layer + 1 (MLP); keys are s * L + live dim.

    Items: a unit, or 4 * cell + (0 wipe, 1 write, 2 read).
    """

    slack: float
    watch_mask: Array  # uint64 [stages, L / 64]: the dims that are watched at a stage
    bit_number: Array  # int64 [64]: of a power of two times DE_BRUIJN, by its six highest bits
    watch_ptr: Array  # int32 [stages * L + 1], by key
    watch_item: Array
    lo: Array  # float32 [stages, L]: what regular inputs hold at least, and at most
    hi: Array
    full_ptr: Array  # everything that reads the dim at all
    full_item: Array
    last_read: Array  # int32 [L]: the last stage at which anything reads the dim
    always_ptr: Array  # by stage
    always_item: Array
    masks: Masks
    values: Values
    past_ptr: Array  # by layer: the dims that convolutions read from earlier tokens
    past_dim: Array


@numba.njit(cache=True)
def most_of(rows, e, lo, hi, slack):  # type: ignore[no-untyped-def]
    """The most that an entry of a row can add."""
    w, d = np.float64(rows.rval[e]), rows.rdim[e]
    return max(w * lo[d], w * hi[d]) + abs(w) * slack


@numba.njit(cache=True)
def highest(rows, row, lo, hi, slack):  # type: ignore[no-untyped-def]
    """The largest value of a row over regular inputs."""
    top = np.float64(rows.const[row])
    for e in range(rows.rptr[row], rows.rptr[row + 1]):
        top += most_of(rows, e, lo, hi, slack)
    return top


@numba.njit(cache=True)
def on_grid(rows, row):  # type: ignore[no-untyped-def]
    if rows.const[row] % F32(GRID) != 0:
        return False
    for e in range(rows.rptr[row], rows.rptr[row + 1]):
        if rows.rval[e] % F32(GRID) != 0:
            return False
    return True


@numba.njit(cache=True)
def choose(rows, row, bound, lo, hi, slack, activity, chosen):  # type: ignore[no-untyped-def]
    """Inputs whose absence keeps the row at or below ``bound``, rarest first, into ``chosen``. How many; -1: there
    are none."""
    first, last = rows.rptr[row], rows.rptr[row + 1]
    top = highest(rows, row, lo, hi, slack)
    count = 0
    while top > bound:
        best, best_score = -1, np.inf
        for e in range(first, last):
            w = most_of(rows, e, lo, hi, np.float64(0))
            if w <= 0:
                continue
            taken = False
            for n in range(count):
                taken = taken or chosen[n] == rows.rdim[e]
            score = (activity[rows.rdim[e]] + 1e-3) / min(np.float64(w), top - bound)
            if not taken and score < best_score:
                best, best_score = e, score
        if best < 0:
            return -1
        chosen[count] = rows.rdim[best]
        count += 1
        top -= most_of(rows, best, lo, hi, np.float64(0))
    return count


@numba.njit(cache=True)
def choose_both(rows, row, least, most, lo, hi, activity, chosen):  # type: ignore[no-untyped-def]
    """Inputs with which off the row's sum, anchors apart, stays within ``least`` and ``most`` (around 0). How many."""
    first, last = rows.rptr[row], rows.rptr[row + 1]
    count = 0
    for sign in (1, -1):
        excess = -np.float64(most if sign > 0 else -least)
        for e in range(first, last):
            d = rows.rdim[e]
            taken = False  # for the other sign
            for n in range(count):
                taken = taken or chosen[n] == d
            w = sign * np.float64(rows.rval[e])
            if not taken:
                excess += max(w * lo[d], w * hi[d])
        while excess > 0:
            best, best_score = -1, np.inf
            for e in range(first, last):
                w = sign * np.float64(rows.rval[e])
                w = max(w * lo[rows.rdim[e]], w * hi[rows.rdim[e]])
                taken = w <= 0
                for n in range(count):
                    taken = taken or chosen[n] == rows.rdim[e]
                score = (activity[rows.rdim[e]] + 1e-3) / min(max(w, 1e-9), excess)
                if not taken and score < best_score:
                    best, best_score = e, score
            chosen[count] = rows.rdim[best]
            count += 1
            d = rows.rdim[best]
            excess -= max(sign * rows.rval[best] * lo[d], sign * rows.rval[best] * hi[d])
    return count


@numba.njit(cache=True)
def table_rest(u, unit):  # type: ignore[no-untyped-def]
    """The sums around 0, from and to, at which a unit adds just what it adds at 0."""
    zero = np.int64(round(-u.low[unit] * u.per_step[unit]))
    first = u.first[unit]
    low, high = zero, zero
    while low > 0 and u.entry_ptr[first + low - 1] == u.entry_ptr[first + low]:
        low -= 1
    while high + 1 < u.size[unit] and u.entry_ptr[first + high + 1] == u.entry_ptr[first + high + 2]:
        high += 1
    step = np.float64(1) / u.per_step[unit]
    return (low - zero) * step, (high - zero) * step


@numba.njit(cache=True)
def unit_watches(p, u, bf, slack, lows, highs, activity, stage_of, keys, items, always):  # type: ignore[no-untyped-def]
    """Pairs (key, unit) and the units without a watch; how many of each."""
    live = len(p.dims)
    chosen, other = np.empty(live, np.int64), np.empty(live, np.int64)
    pairs = 0
    lonely = 0
    for n in range(len(u.neuron)):
        gate, up = p.neuron_rows[u.neuron[n]]
        base = np.int64(stage_of[n]) * live
        act = activity[base : base + live]
        lo, hi = lows[stage_of[n]], highs[stage_of[n]]
        if u.size[n]:
            least, most = table_rest(u, n)
            count = choose_both(p.rows, gate, least, most, lo, hi, act, chosen)
        else:
            bound = 0.0 if bf and on_grid(p.rows, gate) else SILENT
            count = choose(p.rows, gate, bound, lo, hi, slack, act, chosen)
        # a product is also zero while all inputs of its up row are
        if u.size[n] == 0 and slack == 0 and p.rows.const[up] == 0:
            first, last = p.rows.rptr[up], p.rows.rptr[up + 1]
            cost, up_cost = 0.0, 0.0
            for i in range(count):
                cost += act[chosen[i]] + 1e-3
            for e in range(first, last):
                up_cost += act[p.rows.rdim[e]] + 1e-3
                other[e - first] = p.rows.rdim[e]
            if count < 0 or up_cost < cost:
                count = last - first
                chosen[:count] = other[:count]
        if count < 0:
            always[lonely] = n
            lonely += 1
        for i in range(count):
            keys[pairs], items[pairs] = base + chosen[i], n
            pairs += 1
    return pairs, lonely


def cell_watches(
    p: Plan, masks: Masks, slack: float, lows: Array, highs: Array, activity: Array, layer_of: Array
) -> tuple[list[Array], list[int]]:
    """As ``unit_watches``, for the items of memories: (keys, items), items without a watch."""
    live = len(p.dims)
    chosen = np.empty(live, np.int64)
    keys: list[int] = []
    items: list[int] = []
    always: list[int] = []
    for cell in range(len(p.cell_rows)):
        base = 2 * int(layer_of[cell]) * live
        act = activity[base : base + live]
        lo, hi = lows[2 * int(layer_of[cell])], highs[2 * int(layer_of[cell])]
        a, b = (int(row) for row in p.cell_rows[cell, 4:])
        speed, bias = float(p.cell_decay[cell, 0]), float(p.cell_decay[cell, 1])
        dims: list[list[int] | None] = []
        if speed * log1p(exp(min(700.0, highest(p.rows, a, lo, hi, slack) + bias + 1))) < UNSEEN_DECAY:
            dims.append([])
        else:
            bound = log(UNSEEN_DECAY / speed) - bias - 2
            count = choose(p.rows, a, bound, lo, hi, slack, act, chosen)
            dims.append(None if count < 0 else chosen[:count].tolist())
        # what keys and queries select is known from their masks, so these are looked at unless nothing can come of them
        count = choose(p.rows, b, NO_WRITE, lo, hi, slack, act, chosen)
        by_beta = None if count < 0 else chosen[:count].tolist()
        dims.append(by_beta if masks.live[2 * cell] else [])
        read = p.out_ptr[cell * PARTS] < p.out_ptr[cell * PARTS + PARTS] and masks.live[2 * cell + 1]
        dims.append(None if read else [])
        for event, found in enumerate(dims):
            if found is None:
                always.append(4 * cell + event)
            else:
                keys += [base + dim for dim in found]
                items += [4 * cell + event] * len(found)
    return [np.array(keys, np.int64), np.array(items, np.int64)], always


def _grouped(keys: Array, items: Array, count: int) -> tuple[Array, Array]:
    order = np.argsort(keys, kind="stable")
    return pointers(keys, count), items[order].astype(np.int32)


def _reads(p: Plan, rows: Array, items: Array, stages: Array) -> tuple[Array, Array]:
    """(key, item) of every entry of the given rows."""
    first, last = p.rows.rptr[rows], p.rows.rptr[rows + 1]
    lengths = last - first
    entry = np.repeat(first - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) + np.arange(lengths.sum())
    return np.repeat(stages.astype(np.int64) * len(p.dims), lengths) + p.rows.rdim[entry], np.repeat(items, lengths)


def make_screen(p: Plan, u: Units, bf: bool, claims: Claims, activity: Array | None = None) -> Screen:
    """``activity``: float32 [2 * layers * L], how often each dim is on at each stage; better guesses make a faster
    screen."""
    lows, highs = claims.lo, claims.hi
    slack, live, stages = SLACK[bf], len(p.dims), 2 * p.layers
    if activity is None:
        activity = np.full(stages * live, 0.25, np.float32)
    cells, units = len(p.cell_rows), len(u.neuron)
    layer_of_cell = np.repeat(np.arange(p.layers), np.diff(p.cell_ptr))
    stage_of_unit = np.repeat(2 * np.arange(p.layers) + 1, np.diff(u.ptr))

    masks = make_masks(p, slack)
    entries = len(p.rows.rdim)
    keys, items, always = np.zeros(entries, np.int64), np.zeros(entries, np.int64), np.zeros(units, np.int64)
    pairs, lonely = unit_watches(p, u, bf, slack, lows, highs, activity, stage_of_unit, keys, items, always)
    found = [(keys[:pairs].copy(), items[:pairs].copy())]
    alone = [(stage_of_unit[always[:lonely]], always[:lonely].copy())]
    cell_found, cell_alone = cell_watches(p, masks, slack, lows, highs, activity, layer_of_cell)
    found.append((cell_found[0], cell_found[1]))
    lonely_cells = np.array(cell_alone, np.int64)
    alone.append((2 * layer_of_cell[lonely_cells // 4], lonely_cells))

    n, c = np.arange(units), np.arange(cells)
    reads = [_reads(p, p.neuron_rows[u.neuron, i], n, stage_of_unit) for i in range(2)]
    reads += [_reads(p, p.cell_rows[:, 4 + i], 4 * c + i, 2 * layer_of_cell) for i in range(2)]
    full = np.concatenate([key * (1 << 24) + item for key, item in reads])  # items are below 2**24
    full = np.unique(full)

    past_key, _ = _past(p, layer_of_cell)
    past = np.unique(past_key)
    watch_key, watch_item = (np.concatenate(x) for x in zip(*found, strict=True))
    watch_ptr, watch_item = _grouped(watch_key, watch_item, stages * live)
    full_ptr, full_item = _grouped(full >> 24, full & 0xFFFFFF, stages * live)
    always_ptr, always_item = _grouped(*(np.concatenate(x) for x in zip(*alone, strict=True)), stages)
    last_read = np.full(live, -1, np.int32)
    np.maximum.at(last_read, (full >> 24) % live, ((full >> 24) // live).astype(np.int32))
    watched = np.zeros((stages, live // 64 * 64 + 64), bool)
    watched[:, :live] = (np.diff(watch_ptr) > 0).reshape(stages, live)
    mask = np.packbits(watched, axis=1, bitorder="little").view(np.uint64)
    bit_number = np.zeros(64, np.int64)
    for bit in range(64):
        bit_number[(int(DE_BRUIJN) << bit & 2**64 - 1) >> 58] = bit
    return Screen(
        slack, mask, bit_number, watch_ptr, watch_item, lows, highs,
        full_ptr, full_item, last_read, always_ptr, always_item,
        masks, make_values(p, bf),
        pointers(past // live, p.layers), (past % live).astype(np.int32),
    )  # fmt: skip


def _past(p: Plan, layer_of_cell: Array) -> tuple[Array, Array]:
    """(layer * L + dim, row) of every entry of a row whose convolution reads earlier tokens."""
    delayed = np.any(p.conv[..., :3] != 0, axis=3)  # [C, 3, 128]
    cell, part, i = np.nonzero(delayed)
    rows = p.cell_rows[cell, part] + i
    return _reads(p, rows, rows, layer_of_cell[cell])
