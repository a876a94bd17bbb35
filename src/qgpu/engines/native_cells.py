"""What a DeltaNet head does at a token of the netlist, compiled: what it selects, stores and reads.

The arithmetic is that of ``native_memory``.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from qgpu.engines.native_math import F32, compiled, inlined, rounded, sigmoid, silu
from qgpu.engines.native_memory import NEGLIGIBLE, PARTS, QUERY_SCALE, mean_square, normalised
from qgpu.engines.native_rows import looked_up, row_value, settled

NO_ROW = -50.0  # SiLU below this is 1e-20 of an entry and less
ABSENT, CODED, OTHER = 0, 1, 2  # what is known of a token's delayed inputs
POOL_USED, SELECTED = range(2)  # of Wave.count


@compiled
def evaluate_selection(p, n, w, m, part):  # type: ignore[no-untyped-def]
    """Number of the selection, put into the pool."""
    cell, which = part >> 1, 1 - (part & 1)
    first, taps, where, what, code = p.cell_rows[cell, which], p.conv[cell, which], m.where, m.what, w.code
    rptr, rval, const, row_net = p.rows.rptr, p.rows.rval, p.rows.const, n.row_net
    level_of, levels = n.level_of, w.levels
    count = np.int64(0)
    for i in range(PARTS):
        tap = taps[i, 3]
        if tap == 0:
            continue
        pre = row_value(rptr, rval, const, row_net, level_of, levels, code, first + i)
        total = rounded(tap * rounded(pre, True), True)
        if total > F32(NO_ROW) and total != 0:
            where[count], what[count] = i, rounded(silu(total), True)
            count += 1
    count = np.int64(normalised(where, what, count))
    if count == 0:
        return np.int64(0)
    used, number = w.count[POOL_USED], w.count[SELECTED]
    for i in range(count):
        w.pool_row[used + i], w.pool_value[used + i] = where[i], what[i]
    w.count[POOL_USED] += count
    w.count[SELECTED] += 1
    w.selection_at[number + 1] = used + count
    return number


@compiled
def value_row(p, n, w, cell, j, slot):  # type: ignore[no-untyped-def]
    """What a head stores in value dim ``j``, for a row of any form."""
    row = p.cell_rows[cell, 2] + j
    rptr, rval, const, row_net, row_past = p.rows.rptr, p.rows.rval, p.rows.const, n.row_net, n.row_past
    level_of, levels, past_net, past = n.level_of, w.levels, n.past_net, w.past
    total = F32(0)
    taps = p.conv[cell, 2, j]
    if taps[3] != 0:
        total += taps[3] * rounded(row_value(rptr, rval, const, row_net, level_of, levels, w.code, row), True)
    for t in range(3):
        at = (slot + 1 + t) & 3
        if taps[t] != 0 and w.past_kind[at] == CODED:
            pre = F32(0)
            for e in range(rptr[row], rptr[row + 1]):
                i = row_past[e]
                pre += rval[e] * levels[level_of[past_net[i]], past[at, i]]
            total += taps[t] * rounded(pre + const[row], True)
    return rounded(silu(rounded(total, True)), True)


@inlined
def write_cell(p, n, k, w, m, cell, slot):  # type: ignore[no-untyped-def]
    """Wipe and write. Whether that changed the state."""
    state, used = m.state[cell], m.used[cell]
    keep = w.keep[cell]
    changed = False
    if keep != 1:
        for i in range(PARTS):
            if used[i]:
                for j in range(PARTS):
                    state[i, j] *= keep
        changed = True
    selection = w.selection[2 * cell]
    first = np.int64(w.selection_at[selection])
    count = np.int64(w.selection_at[selection + 1]) - first
    if count > 0:
        beta = rounded(sigmoid(rounded(p.rows.const[p.cell_rows[cell, 5]], True)), True)
        if beta <= F32(NEGLIGIBLE):
            return changed
        held, value, row, what, code, past = m.held, m.value, w.pool_row, w.pool_value, w.code, w.past
        off, on, lo, past_net, past_kind = k.off[cell], k.on[cell], n.lo, n.past_net, w.past_kind
        plain, other, inputs, table = n.plain, n.other, n.input, w.value_table
        for j in range(PARTS):
            held[j] = F32(0)
            value[j] = off[j]
        for i in range(first, first + count):
            if used[row[i]]:
                kept = state[row[i]]
                for j in range(PARTS):
                    held[j] += what[i] * kept[j]
        for i in range(n.plain_ptr[cell], n.plain_ptr[cell + 1]):
            j, tap, net = plain[i, 0], plain[i, 1], plain[i, 2]
            if tap == 3:
                v = np.int64(code[net]) + lo[net]
            else:
                at = (slot + 1 + tap) & 3
                v = np.int64(2)
                if past_kind[at] == CODED:
                    v = np.int64(past[at, net]) + lo[past_net[net]] if net >= 0 else np.int64(0)
            if v == 1:
                value[j] = on[j]
            elif v != 0:
                value[j] = value_row(p, n, w, cell, j, slot)
        for i in range(n.other_ptr[cell], n.other_ptr[cell + 1]):
            j, quad, place = other[i, 0], other[i, 1], np.int64(other[i, 2])
            if place < 0:
                value[j] = value_row(p, n, w, cell, j, slot)
                continue
            place += looked_up(inputs, quad, code)
            v = table[place]
            if v != v:
                v = value_row(p, n, w, cell, j, slot)
                table[place] = v
            value[j] = v
        for j in range(PARTS):
            held[j] = (value[j] - held[j]) * beta
        for i in range(first, first + count):
            used[row[i]] = 1
            kept = state[row[i]]
            differs = False
            for j in range(PARTS):
                new = kept[j] + what[i] * held[j]
                differs |= new != kept[j]
                kept[j] = new
            changed |= differs
    if changed:
        item = n.read_item[cell]
        w.marked[item >> 6] |= np.uint64(1) << np.uint64(item & 63)
    return changed


@inlined
def read_cell(p, n, w, m, cell):  # type: ignore[no-untyped-def]
    selection = w.selection[2 * cell + 1]
    held, used, state, row, what = m.held, m.used[cell], m.state[cell], w.pool_row, w.pool_value
    some = False
    for i in range(w.selection_at[selection], w.selection_at[selection + 1]):
        if used[row[i]]:
            if not some:
                some = True
                for j in range(PARTS):
                    held[j] = F32(0)
            q = what[i] * F32(QUERY_SCALE)
            kept = state[row[i]]
            for j in range(PARTS):
                held[j] += q * kept[j]
    if not some and not w.reading[cell]:
        return
    w.reading[cell] = some
    read, to_ptr, to_item, marked = w.read, n.to_ptr, n.to_item, w.marked
    read_dim, read_gate, like, gated_norm = p.read_dim, p.read_gate, p.read_like, p.gated_norm[cell]
    scale = F32(0)
    if some:
        scale = F32(F32(1) / F32(sqrt(mean_square(held, True) + F32(p.eps))))
    at_gate, own_gate = np.int32(-1), F32(0)
    last_held, last_gate, last_norm, last_new = F32(0), F32(0), F32(0), F32(0)
    rptr, rval, const, row_net = p.rows.rptr, p.rows.rval, p.rows.const, n.row_net
    level_of, levels, code, z = n.level_of, w.levels, w.code, p.cell_rows[cell, 3]
    for c in range(p.read_ptr[cell], p.read_ptr[cell + 1]):
        j = read_dim[c]
        new = F32(0)
        if some and held[j] != 0:
            gate = read_gate[c]
            if gate != gate:
                if like[c] != at_gate:
                    at_gate = like[c]
                    own_gate = silu(
                        rounded(row_value(rptr, rval, const, row_net, level_of, levels, code, z + j), True)
                    )
                gate = own_gate
            if gate != 0:
                # stored bits are all of one size, so most dims repeat the one before
                if held[j] != last_held or gate != last_gate or gated_norm[j] != last_norm:
                    last_held, last_gate, last_norm = held[j], gate, gated_norm[j]
                    last_new = rounded(rounded(last_norm * rounded(last_held * scale, True), True) * gate, True)
                new = last_new
        if new != read[c]:
            read[c] = new
            for t in range(to_ptr[c], to_ptr[c + 1]):
                item = to_item[t]
                marked[item >> 6] |= np.uint64(1) << np.uint64(item & 63)


@inlined
def sum_value(first, last, sum_read, sum_val, read, held):  # type: ignore[no-untyped-def]
    """What heads leave in a dim that held ``held``."""
    y = F32(0)
    for e in range(first, last):
        y += sum_val[e] * read[sum_read[e]]
    return settled(held, y)
