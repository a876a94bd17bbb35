"""The DeltaNet heads of one layer for one token, compiled: wipe, write and read; rows and dims that are zero are
left out.

A key or query is the SiLU of a convolution over the last four tokens; most of its 128 entries underflow to zero, and
then their state rows take no part. Only rows that the masks leave over are computed.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

from qgpu.engines.native_math import F32, compiled, rounded, sigmoid, silu, softplus
from qgpu.engines.native_recall import recalled, remember

PARTS = 128
ORDINARY = F32(-1e9)
NEGLIGIBLE = 1e-20  # of a key or query, relative to its largest entry
QUERY_SCALE = PARTS**-0.5
WIPE, WRITE, READ = 1, 2, 4  # what may happen to a head at a token
ABSENT, BASELINE, EXPLICIT = 0, 1, 2  # a token's input: all zero; anchors as in ``const``; anchors in the vector
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled
def row_sum(rptr, rdim, rval, const, aptr, adim, aval, row, vector, kind, rho):  # type: ignore[no-untyped-def]
    """One pre-activation. ``rho``: what the anchors' scale is off by."""
    if kind == ABSENT:
        return F32(0)
    total = F32(0)
    for e in range(rptr[row], rptr[row + 1]):
        total += rval[e] * vector[rdim[e]]
    if kind == BASELINE:
        return F32((total + const[row]) * rho)
    for e in range(aptr[row], aptr[row + 1]):
        total += aval[e] * vector[adim[e]]
    return total


@compiled
def channels(
    rptr, rdim, rval, const, aptr, adim, aval, first, taps, which, count, vector, kind, rho, ring, ring_kind, ring_rho,
    slot, bf, out,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """SiLU of the convolution of some of a head's channels: out[n] of channel ``which[n]``, whose row is first +
    which[n]. ``ring`` [4, L]: the inputs of the last tokens, this one's at ``slot``.
    """
    for n in range(count):
        i = which[n]
        row = first + i
        total = F32(0)
        if taps[i, 3] != 0:
            pre = row_sum(rptr, rdim, rval, const, aptr, adim, aval, row, vector, kind, rho)
            total += taps[i, 3] * rounded(pre, bf)
        for t in range(3):
            if taps[i, t] != 0:
                at = (slot + 1 + t) & 3
                pre = row_sum(rptr, rdim, rval, const, aptr, adim, aval, row, ring[at], ring_kind[at], ring_rho[at])
                total += taps[i, t] * rounded(pre, bf)
        out[n] = rounded(silu(rounded(total, bf)), bf)


@compiled
def listed(bits0, bits1, where):  # type: ignore[no-untyped-def]
    """The rows of a mask; how many."""
    count = 0
    for half in range(2):
        bits = bits0 if half == 0 else bits1
        i = half * 64
        while bits != 0:
            if bits & np.uint64(1):
                where[count] = i
                count += 1
            bits >>= np.uint64(1)
            i += 1
    return count


@compiled
def normalised(where, what, count):  # type: ignore[no-untyped-def]
    """l2norm in place, entries that do not matter dropped; how many are left."""
    square = F32(0)
    largest = F32(0)
    for n in range(count):
        square += what[n] * what[n]
        largest = max(largest, abs(what[n]))
    scale = F32(F32(1) / F32(sqrt(square + F32(1e-6))))
    kept = 0
    for n in range(count):
        if abs(what[n]) > F32(NEGLIGIBLE) * largest:
            where[kept], what[kept] = where[n], what[n] * scale
            kept += 1
    return kept


@compiled
def evaluate_terms(low, high, term_ptr, dim, ratio, x, level):  # type: ignore[no-untyped-def]
    """Whether all their inputs are whole numbers and all levels fit eight bits."""
    whole = True
    for t in range(low, high):
        v = F32(0)
        for e in range(term_ptr[t], term_ptr[t + 1]):
            held = x[dim[e]]
            whole = whole and held == F32(np.int32(held))
            v += ratio[e] * held
        level[t] = v
        whole = whole and abs(v) < F32(128)
    return whole


@compiled
def mean_square(values, bf):  # type: ignore[no-untyped-def]
    """Round 128 values in place; the mean of their squares. Four sums side by side, as one would wait for itself."""
    a, b, c, d = F32(0), F32(0), F32(0), F32(0)
    for j in range(0, PARTS, 4):
        v0, v1 = rounded(values[j], bf), rounded(values[j + 1], bf)
        v2, v3 = rounded(values[j + 2], bf), rounded(values[j + 3], bf)
        values[j], values[j + 1], values[j + 2], values[j + 3] = v0, v1, v2, v3
        a += v0 * v0
        b += v1 * v1
        c += v2 * v2
        d += v3 * v3
    return ((a + b) + (c + d)) / F32(PARTS)


@compiled
def selectable(part, ptr, term, need, on, off, never, level, slack, out):  # type: ignore[no-untyped-def]
    """Which rows of a key or query may be other than zero, into uint64 [2]. Whether any. See native_masks."""
    left0, left1 = ~never[part, 0], ~never[part, 1]
    for t in range(ptr[part], ptr[part + 1]):
        v = level[term[t]]
        wanted = need[t]
        if wanted > ORDINARY:
            low, high = v <= wanted - F32(1) + slack, v <= wanted + slack
        else:
            low, high = abs(v) <= slack, abs(v - F32(1)) <= slack
        if low:
            left0 &= ~off[t, 0]
            left1 &= ~off[t, 1]
        elif high:
            left0 &= ~on[t, 0]
            left1 &= ~on[t, 1]
        else:
            left0, left1 = ALL, ALL
            break
    out[0], out[1] = left0, left1
    return left0 != 0 or left1 != 0


@compiled
def mixer(p, k, m, layer, screened, vector, kind, rho, slot, bf):  # type: ignore[no-untyped-def]
    """All heads of a layer, as far as ``m.events`` says. What is read is added to ``m.y``; how many of its dims are
    listed."""
    r = p.rows
    rptr, rdim, rval, const, aptr, adim, aval = r.rptr, r.rdim, r.rval, r.const, r.aptr, r.adim, r.aval
    ring, ring_kind, ring_rho = m.ring[layer], m.ring_kind[layer], m.ring_rho[layer]
    cell_rows, conv, cell_decay, gated_norm = p.cell_rows, p.conv, p.cell_decay, p.gated_norm
    out_ptr, out_dim, out_val = p.out_ptr, p.out_dim, p.out_val
    read_ptr, read_dim, read_gate, like = p.read_ptr, p.read_dim, p.read_gate, p.read_like
    steady = kind == BASELINE and rho == 1  # what the anchors give is just what the plan has
    values = k.values
    value_tap, value_dim, value_off, value_on = values.tap, values.dim, values.off, values.on
    masks = k.masks
    mask_ptr, term, need, on, off, never = masks.ptr, masks.term, masks.need, masks.on, masks.off, masks.never
    level, slack, recent, memo = m.level, F32(masks.slack), m.recent, m.memo
    pool_row, pool_value, pool_used = m.pool_row, m.pool_value, m.pool_used
    settled, whole = masks.settled, False
    if screened:
        whole = evaluate_terms(
            masks.layer_ptr[layer], masks.layer_ptr[layer + 1], masks.term_ptr, masks.dim, masks.ratio, vector, level
        )
        whole = whole and steady and bf
    events, all_state, all_used, where, what, held = m.events, m.state, m.used, m.where, m.what, m.held
    what_rest = m.rest
    value, every, maybe, y, y_flag, y_list = m.value, m.every, m.maybe, m.y, m.y_flag, m.y_list
    maybe[:] = ALL
    touched = 0
    for cell in range(p.cell_ptr[layer], p.cell_ptr[layer + 1]):
        happens = np.int64(events[cell]) if screened else WIPE | WRITE | READ
        if happens == 0:
            continue
        events[cell] = 0
        state, used = all_state[cell], all_used[cell]
        if happens & WIPE:
            a = row_sum(rptr, rdim, rval, const, aptr, adim, aval, cell_rows[cell, 4], vector, kind, rho)
            keep = F32(exp(-cell_decay[cell, 0] * softplus(rounded(a, bf) + cell_decay[cell, 1])))
            if keep != 1:
                for i in range(PARTS):
                    if used[i]:
                        for j in range(PARTS):
                            state[i, j] *= keep
        if happens & WRITE:
            part = 2 * cell
            known = whole and settled[part] != 0
            if known and recalled(part, mask_ptr, term, level, recent, memo):
                count, offset = np.int64(recent[part, 4]), np.int64(recent[part, 5])
                for n in range(count):
                    where[n], what[n] = pool_row[offset + n], pool_value[offset + n]
            else:
                count = np.int64(0)
                if not screened or selectable(part, mask_ptr, term, need, on, off, never, level, slack, maybe):
                    count = np.int64(listed(maybe[0], maybe[1], where))
                channels(rptr, rdim, rval, const, aptr, adim, aval, cell_rows[cell, 1], conv[cell, 1], where, count,
                         vector, kind, rho, ring, ring_kind, ring_rho, slot, bf, what)  # fmt: skip
                count = np.int64(normalised(where, what, count))
                if known:
                    remember(part, recent, memo, pool_row, pool_value, pool_used, where, what, count)
            beta = F32(0)
            if count:
                b = row_sum(rptr, rdim, rval, const, aptr, adim, aval, cell_rows[cell, 5], vector, kind, rho)
                beta = rounded(sigmoid(rounded(b, bf)), bf)
            if beta > F32(NEGLIGIBLE):
                held[:] = 0
                for n in range(count):
                    if used[where[n]]:
                        for j in range(PARTS):
                            held[j] += what[n] * state[where[n], j]
                rest = 0
                for j in range(PARTS):
                    tap = value_tap[cell, j]
                    v = F32(2)
                    dim = value_dim[cell, j]
                    if steady and tap == 3:
                        v = vector[dim] if dim >= 0 else F32(0)
                    elif steady and tap >= 0:
                        at = (slot + 1 + tap) & 3
                        if ring_kind[at] == BASELINE and ring_rho[at] == 1:
                            v = ring[at, dim] if dim >= 0 else F32(0)
                    if v == 0:
                        value[j] = value_off[cell, j]
                    elif v == 1:
                        value[j] = value_on[cell, j]
                    else:
                        every[rest] = j
                        rest += 1
                channels(rptr, rdim, rval, const, aptr, adim, aval, cell_rows[cell, 2], conv[cell, 2], every, rest,
                         vector, kind, rho, ring, ring_kind, ring_rho, slot, bf, what_rest)  # fmt: skip
                for n in range(rest):
                    value[every[n]] = what_rest[n]
                for j in range(PARTS):
                    held[j] = (value[j] - held[j]) * beta
                for n in range(count):
                    used[where[n]] = 1
                    for j in range(PARTS):
                        state[where[n], j] += what[n] * held[j]
        if happens & READ:
            part = 2 * cell + 1
            known = whole and settled[part] != 0
            if known and recalled(part, mask_ptr, term, level, recent, memo):
                count, offset = np.int64(recent[part, 4]), np.int64(recent[part, 5])
                for n in range(count):
                    where[n], what[n] = pool_row[offset + n], pool_value[offset + n]
            else:
                count = np.int64(0)
                if not screened or selectable(part, mask_ptr, term, need, on, off, never, level, slack, maybe):
                    count = np.int64(listed(maybe[0], maybe[1], where))
                channels(rptr, rdim, rval, const, aptr, adim, aval, cell_rows[cell, 0], conv[cell, 0], where, count,
                         vector, kind, rho, ring, ring_kind, ring_rho, slot, bf, what)  # fmt: skip
                count = np.int64(normalised(where, what, count))
                if known:
                    remember(part, recent, memo, pool_row, pool_value, pool_used, where, what, count)
            some = False
            held[:] = 0
            for n in range(count):
                if used[where[n]]:
                    some = True
                    q = what[n] * F32(QUERY_SCALE)
                    for j in range(PARTS):
                        held[j] += q * state[where[n], j]
            if some:
                scale = F32(F32(1) / F32(sqrt(mean_square(held, bf) + F32(p.eps))))
                at_gate, own_gate = np.int32(-1), F32(0)
                last_held, last_gate, last_norm, read = F32(0), F32(0), F32(0), F32(0)
                for c in range(read_ptr[cell], read_ptr[cell + 1]):
                    j = read_dim[c]
                    if held[j] == 0:
                        continue
                    gate = read_gate[c]
                    if gate != gate or not steady:
                        if like[c] != at_gate:
                            at_gate = like[c]
                            row = cell_rows[cell, 3] + j
                            z = row_sum(rptr, rdim, rval, const, aptr, adim, aval, row, vector, kind, rho)
                            own_gate = silu(rounded(z, bf))
                        gate = own_gate
                    if gate == 0:
                        continue
                    # stored bits are all of one size, so most dims repeat the one before
                    if held[j] != last_held or gate != last_gate or gated_norm[cell, j] != last_norm:
                        last_held, last_gate, last_norm = held[j], gate, gated_norm[cell, j]
                        normed = rounded(last_norm * rounded(last_held * scale, bf), bf)
                        read = rounded(normed * gate, bf)
                    first, last = out_ptr[cell * PARTS + j], out_ptr[cell * PARTS + j + 1]
                    for e in range(first, last):
                        dim = out_dim[e]
                        y[dim] += out_val[e] * read
                        if not y_flag[dim]:
                            y_flag[dim] = 1
                            y_list[touched] = dim
                            touched += 1
    return touched
