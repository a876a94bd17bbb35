"""One token through all layers, compiled: the stock model's arithmetic in float32, on the weights' non-zeros only.

A residual dim that is zero costs nothing; what the constant dims (anchors) add to every pre-activation is kept as long as
their normalised values stay the same to the bit. SiLU of less than -88 is below float32's smallest normal number and taken
as zero, which is what makes keys one-hot and most neurons silent.
"""

from __future__ import annotations

from math import exp, log1p, sqrt

import numba
import numpy as np

HEAD = 128
ROWS = 384
DEAD = -88.0


@numba.njit(cache=True, fastmath=False, inline="always")
def silu(x):  # type: ignore[no-untyped-def]
    return np.float32(0) if x < DEAD else np.float32(x / (1 + exp(-x)))


@numba.njit(cache=True)
def normalised(x, weight, eps, anchors, out, live):  # type: ignore[no-untyped-def]
    """RMSNorm of x into ``out``; the dims that are not zero and no anchors into ``live``. How many they are."""
    square = np.float64(0)
    count = 0
    for i in range(len(x)):
        v = x[i]
        if v != 0:
            square += np.float64(v) * v
            if not anchors[i]:
                live[count] = i
                count += 1
    scale = np.float32(1 / sqrt(np.float32(square / len(x)) + np.float32(eps)))
    for n in range(count):
        out[live[n]] = x[live[n]] * scale * weight[live[n]]
    for i in range(len(x)):
        if anchors[i]:
            out[i] = x[i] * scale * weight[i]
    return count


@numba.njit(cache=True)
def based(h, anchor_list, seen, base, start, index, value, offset, size):  # type: ignore[no-untyped-def]
    """Makes ``base`` what the anchors add to ``size`` pre-activations; nothing to do if they stand as in ``seen``."""
    same = True
    for n in range(len(anchor_list)):
        if seen[n] != h[anchor_list[n]]:
            same = False
            seen[n] = h[anchor_list[n]]
    if same:
        return
    base[:size] = 0
    for n in range(len(anchor_list)):
        dim = anchor_list[n]
        for e in range(start[offset + dim], start[offset + dim + 1]):
            base[index[e]] += value[e] * h[dim]


@numba.njit(cache=True)
def row_product(h, start, index, value, row):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for e in range(start[row], start[row + 1]):
        total += value[e] * h[index[e]]
    return total


@numba.njit(cache=True)
def key_of(pre, conv, plain, ring, head, part, slot, where, what):  # type: ignore[no-untyped-def]
    """The l2-normalised q or k of a head as its entries that are not zero; how many."""
    count = 0
    square = np.float32(0)
    base = head * ROWS + part * HEAD
    for i in range(HEAD):
        row = base + i
        if plain[row]:
            t = pre[row]
        else:
            t = conv[row, 3] * pre[row] + conv[row, 2] * ring[(slot + 3) % 4, row]
            t += conv[row, 1] * ring[(slot + 2) % 4, row] + conv[row, 0] * ring[(slot + 1) % 4, row]
        if t > DEAD and t != 0:
            s = silu(t)
            where[count] = i
            what[count] = s
            square += s * s
            count += 1
    scale = np.float32(1 / sqrt(square + np.float32(1e-6)))
    kept = 0
    for n in range(count):
        v = what[n] * scale
        if abs(v) > 1e-20:
            where[kept] = where[n]
            what[kept] = v
            kept += 1
    return kept


@numba.njit(cache=True)
def step(w, x, h, live, anchors, anchor_list, seen_qkv, base_qkv, seen_gate, base_gate, seen_up, base_up,
         ring, slot, state, gate, up, touched):  # type: ignore[no-untyped-def]  # fmt: skip
    """Adds all layers to the residual ``x`` in place; ``ring`` [4, live heads * 384] and ``state`` [live heads, 128, 128]
    are what the sequence has left behind."""
    layers, hidden = w.first_norm.shape
    width = len(gate)
    kw, qw = np.empty(HEAD, np.int64), np.empty(HEAD, np.int64)
    kv, qv = np.empty(HEAD, np.float32), np.empty(HEAD, np.float32)
    v, o = np.empty(HEAD, np.float32), np.empty(HEAD, np.float32)
    pre = ring[slot]
    for layer in range(layers):
        offset = layer * hidden
        if w.is_linear[layer]:
            count = normalised(x, w.first_norm[layer], w.eps, anchors, h, live)
            low, high = w.head_first[layer], w.head_first[layer + 1]
            based_rows(h, anchor_list, seen_qkv[layer], base_qkv, w.qkv_start, w.qkv_index, w.qkv_value, offset,
                       low * ROWS, high * ROWS)  # fmt: skip
            pre[low * ROWS : high * ROWS] = base_qkv[low * ROWS : high * ROWS]
            for n in range(count):
                dim = live[n]
                for e in range(w.qkv_start[offset + dim], w.qkv_start[offset + dim + 1]):
                    pre[w.qkv_index[e]] += w.qkv_value[e] * h[dim]
            for head in range(low, high):
                k_count = key_of(pre, w.conv, w.plain, ring, head, 1, slot, kw, kv)
                q_count = key_of(pre, w.conv, w.plain, ring, head, 0, slot, qw, qv)
                a = row_product(h, w.decay_start, w.decay_index, w.decay_value, head) + w.dt_bias[head]
                soft = a if a > 20 else log1p(exp(a))
                keep = np.float32(exp(-exp(w.a_log[head]) * soft))
                if keep != 1:
                    state[head] *= keep
                if k_count:
                    beta = np.float32(1 / (1 + exp(-row_product(h, w.beta_start, w.beta_index, w.beta_value, head))))
                    base = head * ROWS + 2 * HEAD
                    for i in range(HEAD):
                        row = base + i
                        t = pre[row]
                        if not w.plain[row]:
                            t = w.conv[row, 3] * pre[row] + w.conv[row, 2] * ring[(slot + 3) % 4, row]
                            t += w.conv[row, 1] * ring[(slot + 2) % 4, row] + w.conv[row, 0] * ring[(slot + 1) % 4, row]
                        held = np.float32(0)
                        for n in range(k_count):
                            held += kv[n] * state[head, kw[n], i]
                        v[i] = (silu(t) - held) * beta
                    for n in range(k_count):
                        for i in range(HEAD):
                            state[head, kw[n], i] += kv[n] * v[i]
                if q_count:
                    square = np.float32(0)
                    for i in range(HEAD):
                        total = np.float32(0)
                        for n in range(q_count):
                            total += qv[n] * state[head, qw[n], i]
                        total *= np.float32(0.08838834764831845)
                        o[i] = total
                        square += total * total
                    if square > 0:
                        scale = np.float32(1 / sqrt(square / HEAD + w.eps))
                        for i in range(HEAD):
                            column = head * HEAD + i
                            first, last = w.out_start[column], w.out_start[column + 1]
                            if first < last and o[i] != 0:
                                z = silu(row_product(h, w.z_start, w.z_index, w.z_value, column))
                                r = o[i] * scale * w.gated_norm[layer, i] * z
                                for e in range(first, last):
                                    x[w.out_index[e]] += w.out_value[e] * r
        count = normalised(x, w.second_norm[layer], w.eps, anchors, h, live)
        based(h, anchor_list, seen_gate[layer], base_gate[layer], w.gate_start, w.gate_index, w.gate_value, offset, width)
        based(h, anchor_list, seen_up[layer], base_up[layer], w.up_start, w.up_index, w.up_value, offset, width)
        gate[:] = base_gate[layer]
        up[:] = base_up[layer]
        for n in range(count):
            dim = live[n]
            for e in range(w.gate_start[offset + dim], w.gate_start[offset + dim + 1]):
                gate[w.gate_index[e]] += w.gate_value[e] * h[dim]
            for e in range(w.up_start[offset + dim], w.up_start[offset + dim + 1]):
                up[w.up_index[e]] += w.up_value[e] * h[dim]
        column = layer * width
        for i in range(width):
            if gate[i] > DEAD and gate[i] != 0 and up[i] != 0:
                r = silu(gate[i]) * up[i]
                for e in range(w.down_start[column + i], w.down_start[column + i + 1]):
                    x[w.down_index[e]] += w.down_value[e] * r
    normalised(x, w.last_norm, w.eps, anchors, h, live)


@numba.njit(cache=True)
def based_rows(h, anchor_list, seen, base, start, index, value, offset, low, high):  # type: ignore[no-untyped-def]
    """As ``based``, for the rows low..high-1 that belong to one layer."""
    same = True
    for n in range(len(anchor_list)):
        if seen[n] != h[anchor_list[n]]:
            same = False
            seen[n] = h[anchor_list[n]]
    if same:
        return
    base[low:high] = 0
    for n in range(len(anchor_list)):
        dim = anchor_list[n]
        for e in range(start[offset + dim], start[offset + dim + 1]):
            base[index[e]] += value[e] * h[dim]
