"""The native engine's token loop, compiled: all layers of one token, the argmax, and the loop that generates.

Each stage (mixer or MLP) runs in one of two ways. *Screened*, where the anchors stand as usual, so that RMSNorm
multiplies by ``scale0``: the residual is read as it stands, and only what the screen cannot rule out is computed.
*Plain* otherwise: the norm is applied to every dim and every row is computed.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numba
import numpy as np

from qgpu.engines.native_argmax import argmax
from qgpu.engines.native_math import F32, compiled, mlp_value, rounded, sources
from qgpu.engines.native_memory import BASELINE, EXPLICIT, PARTS, mixer, row_sum
from qgpu.engines.native_plan import FLUSH, Plan
from qgpu.engines.native_recall import MEMO, MEMO_WORDS, POOL
from qgpu.engines.native_screen import DE_BRUIJN
from qgpu.engines.native_units import SILENT
from qgpu.engines.protocol import Array

MAX_SAMPLES, SAMPLE_EVERY = 256, 13  # tokens at which it is counted which signals are on
SCALE_SLACK = 2.0**-10  # bfloat16 rounds away an RMS that is off by less
IRREGULAR, POSITION, TICK, SAMPLES = range(4)  # of Memory.count


class Memory(NamedTuple):
    """One sequence: what it leaves behind, and scratch."""

    x: Array  # float32 [L], the residual
    y: Array  # float32 [L], what a stage adds
    y_list: Array
    y_flag: Array
    odd_list: Array  # dims that may hold neither 0 nor 1, anchors apart
    odd_flag: Array
    on: Array  # uint64 [L / 64]: dims that are not zero
    normed: Array  # float32 [L]
    ring: Array  # float32 [layers, 4, L], mixer inputs of the last tokens
    ring_kind: Array  # int64 [layers, 4]
    ring_rho: Array  # float32 [layers, 4]
    state: Array  # float32 [C, 128, 128]
    used: Array  # uint8 [C, 128]: rows ever written
    events: Array  # uint8 [C]
    where: Array
    what: Array
    held: Array  # float32 [128]
    value: Array  # float32 [128]
    every: Array  # int64 [128]
    rest: Array  # float32 [128]
    maybe: Array  # uint64 [2]
    level: Array  # float32, value of each term of the masks
    todo: Array  # int32 [U]
    stamp: Array  # int64 [U]: tick at which a unit was last looked at
    scaled: Array  # float64 [J], scratch of the head
    energy: Array  # float64 [1], sum of the squared residual
    count: Array  # int64 [4]
    recent: Array  # uint64 [2C, MEMO_WORDS]: a part's entry as last used
    memo: Array  # uint64 [MEMO, MEMO_WORDS]
    pool_row: Array  # uint8 [POOL]
    pool_value: Array  # float32 [POOL]
    pool_used: Array  # int64 [1]
    activity: Array  # float32 [2 * layers * L]: at how many sampled tokens a dim was on
    changed: Array  # int64 [2 * layers]: how many dims each stage changed at the last token, noise apart


def make_memory(p: Plan, terms: int, units: int) -> Memory:
    """``terms`` of the screen's masks, ``units`` of neurons."""
    live, cells = len(p.dims), len(p.cell_head)
    f32, i32, i64, u8 = np.float32, np.int32, np.int64, np.uint8
    return Memory(
        np.zeros(live, f32), np.zeros(live, f32), np.zeros(live, i32), np.zeros(live, u8), np.zeros(live, i32),
        np.zeros(live, u8), np.zeros(live // 64 + 1, np.uint64), np.zeros(live, f32),
        np.zeros((p.layers, 4, live), f32), np.zeros((p.layers, 4), i64),
        np.zeros((p.layers, 4), f32), np.zeros((cells, PARTS, PARTS), f32), np.zeros((cells, PARTS), u8),
        np.zeros(cells, u8), np.zeros(PARTS, i64), np.zeros(PARTS, f32), np.zeros(PARTS, f32), np.zeros(PARTS, f32),
        np.zeros(PARTS, i64), np.zeros(PARTS, f32), np.zeros(2, np.uint64), np.zeros(max(1, terms), f32),
        np.zeros(units, i32),
        np.zeros(units, i64), np.zeros(len(p.head.dims), np.float64), np.zeros(1, np.float64), np.zeros(4, i64),
        np.zeros((2 * cells, MEMO_WORDS), np.uint64), np.zeros((MEMO, MEMO_WORDS), np.uint64),
        np.zeros(POOL, u8), np.zeros(POOL, f32), np.zeros(1, i64),
        np.zeros(2 * p.layers * live, f32), np.zeros(2 * p.layers, i64),
    )  # fmt: skip


@compiled
def embed(p, m, token, slack):  # type: ignore[no-untyped-def]
    """The residual of a token; whether its anchors stand as in the baseline."""
    x, base, odd_flag, odd_list = m.x, p.base, m.odd_flag, m.odd_list
    dims, values, codes = p.embed_dims, p.embed_values, p.embed_codes
    x[:] = 0
    for n in range(m.count[IRREGULAR]):
        odd_flag[odd_list[n]] = 0
    on = m.on
    on[:] = 0
    odd = 0
    energy = np.float64(0)
    for j in range(len(dims)):
        dim = dims[j]
        v = values[j, codes[token, j]]
        x[dim] = v
        if v != 0:
            on[dim >> 6] |= np.uint64(1) << np.uint64(dim & 63)
        energy += np.float64(v) * v
        if base[dim] == 0 and abs(v) > slack and abs(v - F32(1)) > slack:
            odd_flag[dim] = 1
            odd_list[odd] = dim
            odd += 1
    m.count[IRREGULAR] = odd
    m.energy[0] = energy
    anchors = p.anchors
    for n in range(len(anchors)):
        if x[anchors[n]] != base[anchors[n]]:
            return False
    return True


@compiled
def resume(p, m, slack):  # type: ignore[no-untyped-def]
    """What ``embed`` leaves, for the residual as it stands."""
    x, base, odd_flag, odd_list, on = m.x, p.base, m.odd_flag, m.odd_list, m.on
    for n in range(m.count[IRREGULAR]):
        odd_flag[odd_list[n]] = 0
    on[:] = 0
    odd = 0
    energy = np.float64(0)
    for dim in range(len(x)):
        v = x[dim]
        energy += np.float64(v) * v
        if v != 0:
            on[dim >> 6] |= np.uint64(1) << np.uint64(dim & 63)
        if base[dim] == 0 and abs(v) > slack and abs(v - F32(1)) > slack:
            odd_flag[dim] = 1
            odd_list[odd] = dim
            odd += 1
    m.count[IRREGULAR] = odd
    m.energy[0] = energy


@compiled
def plain_norm(p, m, stage, inverse, bf):  # type: ignore[no-untyped-def]
    """The normed residual, in units of ``scale0`` as the rows expect it."""
    x, normed, norms = m.x, m.normed, p.norms
    for d in range(len(x)):
        normed[d] = rounded(x[d] * inverse * norms[stage, d], bf) / F32(p.scale0)


@compiled
def plain_mlp(p, m, layer, bf):  # type: ignore[no-untyped-def]
    r, normed, y, y_flag, y_list = p.rows, m.normed, m.y, m.y_flag, m.y_list
    rptr, rdim, rval, const, aptr, adim, aval = r.rptr, r.rdim, r.rval, r.const, r.aptr, r.adim, r.aval
    neurons, down_ptr, down_dim, down_val = p.neuron_rows, p.down_ptr, p.down_dim, p.down_val
    touched = 0
    for n in range(p.neuron_ptr[layer], p.neuron_ptr[layer + 1]):
        gate = row_sum(rptr, rdim, rval, const, aptr, adim, aval, neurons[n, 0], normed, EXPLICIT, F32(1))
        up = row_sum(rptr, rdim, rval, const, aptr, adim, aval, neurons[n, 1], normed, EXPLICIT, F32(1))
        value = mlp_value(rounded(gate, bf), rounded(up, bf), bf)
        if value != 0:
            for e in range(down_ptr[n], down_ptr[n + 1]):
                dim = down_dim[e]
                y[dim] += down_val[e] * value
                if not y_flag[dim]:
                    y_flag[dim] = 1
                    y_list[touched] = dim
                    touched += 1
    return touched


@compiled
def step(p, u, k, m, token, screening, bf, start):  # type: ignore[no-untyped-def]
    """Feed one token: the residual after all layers stands in ``m.x``. From stage ``start`` on, if that is not 0: then
    the residual before it stands in ``m.x``, its anchors as in the baseline."""
    slack = F32(k.slack)
    if start == 0:
        anchored = embed(p, m, token, slack) and screening
    else:
        resume(p, m, slack)
        anchored = screening
    # every array is taken out of its tuple once a token: inside the loops that would cost more than the arithmetic
    x, y, y_list, y_flag, odd_list, odd_flag = m.x, m.y, m.y_list, m.y_flag, m.odd_list, m.odd_flag
    watch_mask, watch_ptr, watch_item, on = k.watch_mask, k.watch_ptr, k.watch_item, m.on
    bit_number, regular_lo, regular_hi = k.bit_number, k.lo, k.hi
    full_ptr, full_item, always_ptr, always_item = k.full_ptr, k.full_item, k.always_ptr, k.always_item
    last_read = k.last_read
    rptr, rdim, rval, const = p.rows.rptr, p.rows.rdim, p.rows.rval, p.rows.const
    unit_rows, member_ptr, member, low, per_step = u.rows, u.member_ptr, u.member, u.low, u.per_step
    floor = u.floor
    size, first, entry_ptr, entry_dim, entry_val = u.size, u.first, u.entry_ptr, u.entry_dim, u.entry_val
    down_ptr, down_dim, down_val, neuron_rows = p.down_ptr, p.down_dim, p.down_val, p.neuron_rows
    events, todo, stamp, cell_ptr, plain = m.events, m.todo, m.stamp, p.cell_ptr, p.plain
    changed = m.changed
    changed[:] = 0
    live = len(x)
    odd = m.count[IRREGULAR]
    energy = m.energy[0]
    slot = m.count[POSITION] & 3
    m.count[TICK] += 1
    tick = m.count[TICK]
    sampled = m.count[SAMPLES] < MAX_SAMPLES and tick % SAMPLE_EVERY == 0
    if sampled:
        m.count[SAMPLES] += 1
    for stage in range(start, 2 * p.layers):
        layer = stage >> 1
        is_mixer = stage & 1 == 0
        if is_mixer and cell_ptr[layer] == cell_ptr[layer + 1]:
            continue
        inverse = F32(F32(1) / F32(sqrt(F32(energy / p.hidden) + F32(p.eps))))
        ratio = F32(inverse / F32(p.scale0))
        rho = F32(1) if bf else ratio
        touched = 0
        if sampled:
            activity = m.activity
            for d in range(live):
                if abs(x[d]) > slack:
                    activity[stage * live + d] += F32(1)
        if not (anchored and plain[stage] and (not bf or abs(ratio - F32(1)) < F32(SCALE_SLACK))):
            plain_norm(p, m, stage, inverse, bf)
            if is_mixer:
                ring, normed = m.ring, m.normed
                for d in range(live):
                    ring[layer, slot, d] = normed[d]
                m.ring_kind[layer, slot] = EXPLICIT
                touched = mixer(p, k, m, layer, False, m.normed, EXPLICIT, F32(1), slot, bf)
            else:
                touched = plain_mlp(p, m, layer, bf)
        else:
            # what the screen cannot rule out
            count = 0
            for word in range(len(on)):
                bits = on[word] & watch_mask[stage, word]
                while bits != 0:
                    lowest = bits & (~bits + np.uint64(1))
                    bits ^= lowest
                    dim = word * 64 + bit_number[(lowest * DE_BRUIJN) >> np.uint64(58)]
                    if abs(x[dim]) <= slack:
                        continue
                    key = stage * live + dim
                    for i in range(watch_ptr[key], watch_ptr[key + 1]):
                        item = watch_item[i]
                        if is_mixer:
                            events[item >> 2] |= 1 << (item & 3)
                        elif stamp[item] != tick:
                            stamp[item] = tick
                            todo[count] = item
                            count += 1
            kept = 0
            for n in range(odd):
                dim = odd_list[n]
                v = x[dim]
                if abs(v) <= slack or abs(v - F32(1)) <= slack or stage > last_read[dim]:
                    odd_flag[dim] = 0
                    continue
                odd_list[kept] = dim
                kept += 1
                if regular_lo[stage, dim] <= v and v <= regular_hi[stage, dim] and v == F32(np.int32(v)):
                    continue
                for i in range(full_ptr[stage * live + dim], full_ptr[stage * live + dim + 1]):
                    item = full_item[i]
                    if is_mixer:
                        events[item >> 2] |= 1 << (item & 3)
                    elif stamp[item] != tick:
                        stamp[item] = tick
                        todo[count] = item
                        count += 1
            odd = kept
            for i in range(always_ptr[stage], always_ptr[stage + 1]):
                item = always_item[i]
                if is_mixer:
                    events[item >> 2] |= 1 << (item & 3)
                elif stamp[item] != tick:
                    stamp[item] = tick
                    todo[count] = item
                    count += 1
            if is_mixer:
                past_ptr, past_dim, ring = k.past_ptr, k.past_dim, m.ring
                for n in range(past_ptr[layer], past_ptr[layer + 1]):
                    ring[layer, slot, past_dim[n]] = x[past_dim[n]]
                m.ring_kind[layer, slot] = BASELINE
                m.ring_rho[layer, slot] = rho
                touched = mixer(p, k, m, layer, True, x, BASELINE, rho, slot, bf)
            else:
                rest_ptr, rest_dim, rest_val = u.rest_ptr, u.rest_dim, u.rest_val
                for e in range(rest_ptr[layer], rest_ptr[layer + 1]):
                    dim = rest_dim[e]
                    y[dim] = rest_val[e]
                    y_flag[dim] = 1
                    y_list[touched] = dim
                    touched += 1
                for t in range(count):
                    unit = todo[t]
                    row = unit_rows[unit, 0]
                    total = F32(0)
                    for e in range(rptr[row], rptr[row + 1]):
                        total += rval[e] * x[rdim[e]]
                    if size[unit]:
                        at = (total - low[unit]) * per_step[unit]
                        if at < 0 and floor[unit]:
                            at = F32(0)
                        entry = np.int64(at)
                        if entry == at and 0 <= entry and entry < size[unit]:
                            entry += first[unit]
                            for e in range(entry_ptr[entry], entry_ptr[entry + 1]):
                                dim = entry_dim[e]
                                y[dim] += entry_val[e]
                                if not y_flag[dim]:
                                    y_flag[dim] = 1
                                    y_list[touched] = dim
                                    touched += 1
                            continue
                    for i in range(member_ptr[unit], member_ptr[unit + 1]):
                        n = member[i]
                        gate = rounded((total + const[neuron_rows[n, 0]]) * rho, bf)
                        if size[unit] == 0 and (gate <= F32(SILENT) or gate == 0):
                            continue
                        row = neuron_rows[n, 1]
                        up = F32(0)
                        for e in range(rptr[row], rptr[row + 1]):
                            up += rval[e] * x[rdim[e]]
                        up = rounded((up + const[row]) * rho, bf)
                        value = mlp_value(gate, up, bf)
                        if size[unit]:  # off the table's grid: its part at rest is in already
                            value -= mlp_value(rounded(const[neuron_rows[n, 0]] * rho, bf), up, bf)
                        if value != 0:
                            for e in range(down_ptr[n], down_ptr[n + 1]):
                                dim = down_dim[e]
                                y[dim] += down_val[e] * value
                                if not y_flag[dim]:
                                    y_flag[dim] = 1
                                    y_list[touched] = dim
                                    touched += 1
        for n in range(touched):
            dim = y_list[n]
            old = x[dim]
            new = rounded(old + rounded(y[dim], bf), bf)
            if abs(new) < F32(FLUSH):
                new = F32(0)
            y[dim] = 0
            y_flag[dim] = 0
            x[dim] = new
            changed[stage] += abs(new - old) > slack
            bit = np.uint64(1) << np.uint64(dim & 63)
            if new != 0:
                on[dim >> 6] |= bit
            else:
                on[dim >> 6] &= ~bit
            energy += np.float64(new) * new - np.float64(old) * old
            if abs(new) > slack and abs(new - F32(1)) > slack and not odd_flag[dim] and last_read[dim] > stage:
                odd_flag[dim] = 1
                odd_list[odd] = dim
                odd += 1
    m.count[IRREGULAR] = odd
    m.energy[0] = energy
    m.count[POSITION] += 1


def _make_run(sources: str):  # type: ignore[no-untyped-def]
    @numba.njit(cache=True, nogil=True)  # so that engines of several threads run side by side
    def run(p, u, k, m, ids, answers, written, stops, screening, bf, start):  # type: ignore[no-untyped-def]
        """Feed ``ids``; ``answers``: as long, to get the argmax after each, or empty. Then fill ``written`` up to a
        stop (which is written and fed as well). How many were written. Without ids, one answer is the argmax as
        things stand. ``start``: see ``step``, for the first of one id.
        """
        _ = len(sources)
        if len(ids) == 0 and len(answers) == 1:
            answers[0] = argmax(p, m, bf)
            return 0
        count = 0
        done = False
        for i in range(len(ids) + len(written)):
            if i < len(ids):
                token = np.int64(ids[i])
            elif done:
                break
            else:
                token = argmax(p, m, bf)
                written[count] = token
                count += 1
                for n in range(len(stops)):
                    done = done or stops[n] == token
            step(p, u, k, m, token, screening, bf, start)
            if i < len(answers):
                answers[i] = argmax(p, m, bf)
        return count

    return run


run = _make_run(sources())
