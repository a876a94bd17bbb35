"""One token through the netlist, compiled: only what a changed input reaches is evaluated anew.

What every net and head had at the last token is kept. Inputs that differ from then mark their readers, and marked items
are evaluated in order, each of which marks the readers of what it changed.

An item is evaluated from the weights, by the rows of the plan. What it gave is kept under the exact codes of its
inputs, and looked up there first. Where a value turns up that its net has no code for, the
token goes on in ``native_kernel``, which knows no codes.

Functions take arrays, not the tuples that hold them: a tuple is handed over as a whole, at each call.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np

from qgpu.engines.native_argmax import argmax
from qgpu.engines.native_bits import lowest_bit
from qgpu.engines.native_cells import (
    CODED,
    OTHER,
    POOL_USED,
    SELECTED,
    evaluate_selection,
    read_cell,
    sum_value,
    write_cell,
)
from qgpu.engines.native_kernel import POSITION
from qgpu.engines.native_math import F32, compiled, inlined, rounded, softplus
from qgpu.engines.native_nets import (
    BASE,
    CONE,
    COUNT_MASK,
    FIRST,
    HASHED,
    KEEP,
    KIND_BITS,
    LIST,
    NET_SHIFT,
    OLD,
    PIECE,
    READ,
    SELECT,
    SUM,
    TOTAL,
    UNKNOWN,
    WHICH,
    WHOLE,
    WRITE,
    Nets,
)
from qgpu.engines.native_plan import Plan
from qgpu.engines.native_rows import (
    INEXACT,
    MISSING,
    NET_MASK,
    code_of,
    looked_up,
    part_of,
    row_value,
    settled,
    sum_of_neurons,
)
from qgpu.engines.protocol import Array

TABLE, SELECTIONS, POOL = 1 << 17, 1 << 18, 1 << 19
KIND_MASK = (1 << KIND_BITS) - 1
# indexes without a sign: one that may be negative is tested at each use
AT_FIRST, AT_BASE, AT_WHICH = np.uint64(FIRST), np.uint64(BASE), np.uint64(WHICH)


class Wave(NamedTuple):
    """Sizes as in ``Nets``."""

    code: Array  # uint8 [N]
    selection: Array  # int32 [2C]: what a part selects, -1 if unknown
    partial: Array  # int8 [I]: what pieces add, as in ``piece_table``
    keep: Array  # float32 [C]
    read: Array  # float32 [R]
    reading: Array  # uint8 [C]: some of the cell's reads are not zero
    pending: Array  # uint64 [W]: items to evaluate at the next token, whatever changes
    marked: Array  # uint64 [W]
    blocked: Array  # uint64 [W]: items with a guard that leaves nothing to their other inputs
    guarded: Array  # int32 [I]: which guard that is, or -1
    watched: Array  # uint64, as fan_mask: items whose guard it is
    cone_table: Array  # uint8: as of the nets
    piece_table: Array  # int8: as of the nets
    select_table: Array  # int32: selections, -1 where not evaluated yet
    value_table: Array  # float32: what heads store, NaN where not evaluated yet
    table: Array  # uint64 [TABLE, 4]: key, key, 1 + part, selection
    selection_at: Array  # int32 [SELECTIONS + 1]; 0 selects nothing
    pool_row: Array  # uint8 [POOL]
    pool_value: Array  # float32 [POOL]
    past: Array  # uint8 [4, P]: codes of delayed inputs, as the ring
    past_kind: Array  # uint8 [4]
    levels: Array  # float32 [., 256]: as of the nets, and what was met since
    met: Array  # int32 [.]: codes in use
    energy: Array  # float64 [1]: of a residual with nothing but its anchors
    answer: Array  # int64 [1]: the best id after the last token
    count: Array  # int64 [2]


def make_wave(p: Plan, n: Nets) -> Wave:
    words, cells = len(n.rest) // 64 + 1, len(p.cell_rows)
    met = np.zeros(len(n.levels), np.int32)
    met[n.level_of] = n.span
    f32, u8, u64 = np.float32, np.uint8, np.uint64
    wave = Wave(
        np.maximum(0, -n.lo).astype(u8), np.zeros(2 * cells, np.int32), np.zeros(len(n.rest), np.int8),
        np.ones(cells, f32), np.zeros(len(p.read_dim), f32), np.zeros(cells, u8),
        np.zeros(words, u64), np.zeros(words, u64), np.zeros(words, u64),
        np.zeros(len(n.rest), np.int32), np.zeros(len(n.fan_mask), u64),
        n.cone_table.copy(), n.piece_table.copy(), np.full(n.sizes[2], -1, np.int32),
        np.full(n.sizes[3], np.nan, f32), np.zeros((TABLE, 4), u64),
        np.zeros(SELECTIONS + 1, np.int32), np.zeros(POOL, u8), np.zeros(POOL, f32),
        np.zeros((4, len(n.past_net)), u8), np.zeros(4, u8), n.levels.copy(), met,
        np.array([np.sum(p.base.astype(np.float64) ** 2)]), np.zeros(1, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip
    forget(wave, n)
    return wave


def doubt(w: Wave, n: Nets) -> None:
    """Have everything evaluated at the next token."""
    w.blocked[:] = 0
    w.watched[:] = 0
    w.guarded[:] = -1
    w.pending[:] = np.uint64(2**64 - 1)
    w.pending[-1] = np.uint64((1 << len(n.rest) % 64) - 1)


def forget(w: Wave, n: Nets) -> None:
    """Know nothing."""
    doubt(w, n)
    w.selection[:] = -1
    w.reading[:] = 1
    w.table[:, 2] = 0
    w.select_table[:] = -1
    w.selection_at[:2] = 0
    w.count[POOL_USED] = 0
    w.count[SELECTED] = 1


def touched(w: Wave, n: Nets) -> None:
    """States were changed from outside."""
    for items in (n.write_item, n.read_item):
        np.bitwise_or.at(w.pending, items >> 6, np.uint64(1) << (items & 63).astype(np.uint64))


@inlined
def find(table, key0, key1, owner):  # type: ignore[no-untyped-def]
    """The place of an entry, or -1 - the place to put it."""
    mixed = (key0 ^ (key1 * np.uint64(0xD6E8FEB86659FD93))) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed = (mixed ^ (owner * np.uint64(0xA24BAED4963EE407))) * np.uint64(0xBF58476D1CE4E5B9)
    first = np.int64(mixed >> np.uint64(40)) & np.int64(TABLE - 2)
    for at in range(first, first + 2):
        if table[at, 2] == owner and table[at, 0] == key0 and table[at, 1] == key1:
            return at
    if table[first, 2] == 0:
        return -1 - first
    return -1 - (first + np.int64((mixed >> np.uint64(20)) & np.uint64(1)))


@inlined
def key_of(key_input, first, count, size, code):  # type: ignore[no-untyped-def]
    key0, key1 = np.uint64(0), np.uint64(0)
    if size <= 64:
        for i in range(first, first + count):
            given = key_input[i]
            key0 |= np.uint64(code[given & NET_MASK]) << np.uint64(given >> 16)
    else:
        for i in range(first, first + count):
            given = key_input[i]
            place = np.uint64(given >> 16)
            if place < 64:
                key0 |= np.uint64(code[given & NET_MASK]) << place
            else:
                key1 |= np.uint64(code[given & NET_MASK]) << (place - np.uint64(64))
    return key0, key1


@compiled
def find_answer(p, n, w, m):  # type: ignore[no-untyped-def]
    x, dims, head_net, level_of, levels, code, base = m.x, p.head.dims, n.head_net, n.level_of, w.levels, w.code, p.base
    for j in range(len(dims)):
        net = head_net[j]
        x[dims[j]] = levels[level_of[net], code[net]] if net else base[dims[j]]
    m.energy[0] = w.energy[0]
    w.answer[0] = argmax(p, m, True)


@inlined
def wave(p, n, k, w, m, token):  # type: ignore[no-untyped-def]
    """Feed one token. The item at which its values had no codes, or -1: the token is done. -2: at its embedding."""
    code, pending, marked, read, levels, met, partial = w.code, w.pending, w.marked, w.read, w.levels, w.met, w.partial
    cone_table, piece_table, select_table, table = w.cone_table, w.piece_table, w.select_table, w.table
    fan_ptr, fan_word, fan_mask = n.fan_ptr, n.fan_word, n.fan_mask
    guard_ptr, guard, guard_fan = n.guard_ptr, n.guard, n.guard_fan
    blocked, guarded, watched = w.blocked, w.guarded, w.watched
    items, rest, inputs, neuron_ptr, neurons, put = n.item, n.rest, n.input, n.neuron_ptr, n.neuron, n.put
    lo, span, room, level_of = n.lo, n.span, n.room, n.level_of
    sum_read, sum_val = n.sum_read, n.sum_val
    write_item, read_item, delayed, selected = n.write_item, n.read_item, n.delayed, w.selection
    embed_net, embed_code, embed_codes, past_kind = n.embed_net, n.embed_code, p.embed_codes, w.past_kind
    neuron_rows, rptr, rval, const, row_net = p.neuron_rows, p.rows.rptr, p.rows.rval, p.rows.const, n.row_net
    slot = m.count[POSITION] & 3
    for i in range(1, 4):
        if past_kind[(slot + i) & 3] == OTHER:
            return np.int64(-2)
    for j in range(len(embed_net)):
        if embed_code[j, embed_codes[token, j]] == UNKNOWN:
            return np.int64(-2)
    for i in range(len(marked)):
        marked[i] = pending[i]
        pending[i] = np.uint64(0)
    for j in range(len(embed_net)):
        net, new = embed_net[j], embed_code[j, embed_codes[token, j]]
        if code[net] != new:
            code[net] = new
            for e in range(fan_ptr[net], fan_ptr[net + 1]):
                marked[fan_word[e]] |= (fan_mask[e] & ~blocked[fan_word[e]]) | watched[e]
    for word in range(len(marked)):
        while marked[word] != 0:
            bits = marked[word]
            lowest = bits & (~bits + np.uint64(1))
            marked[word] = bits ^ lowest
            at = np.int64(word * 64 + lowest_bit(bits))
            place_of = np.uint64(at) << np.uint64(2)
            word0 = items[place_of]
            kind = word0 & KIND_MASK
            given = np.int64(0)
            if kind <= PIECE:
                by = np.int64(guarded[np.uint64(at)])
                if by < 0 or code[guard[by] & 0xFFFF] != guard[by] >> 16:
                    if by >= 0:
                        watched[guard_fan[by]] &= ~lowest
                        blocked[word] &= ~lowest
                        guarded[np.uint64(at)] = -1
                    for by in range(guard_ptr[np.uint64(at)], guard_ptr[np.uint64(at) + np.uint64(1)]):
                        if code[guard[by] & 0xFFFF] == guard[by] >> 16:
                            watched[guard_fan[by]] |= lowest
                            blocked[word] |= lowest
                            guarded[np.uint64(at)] = by
                            break
            if kind == CONE:
                place = np.int64(items[place_of + AT_BASE]) + looked_up(inputs, items[place_of + AT_FIRST], code)
                given = np.int64(cone_table[np.uint64(place)])
                if given == UNKNOWN:
                    number, old = rest[np.uint64(at), LIST], rest[np.uint64(at), OLD]
                    y, _ = sum_of_neurons(neurons, put, neuron_ptr[number], neuron_ptr[number + 1], neuron_rows, rptr,
                                          rval, const, row_net, level_of, levels, code)  # fmt: skip
                    value = settled(levels[level_of[old], code[old]], y)
                    given = code_of(lo, span, room, level_of, levels, met, word0 >> NET_SHIFT, value)
                    if given < 0:
                        return at
                    cone_table[np.uint64(place)] = given
            elif kind == PIECE:
                place = np.int64(items[place_of + AT_BASE]) + looked_up(inputs, items[place_of + AT_FIRST], code)
                part = piece_table[np.uint64(place)]
                if part == MISSING:
                    number = rest[np.uint64(at), LIST]
                    y, exact = sum_of_neurons(neurons, put, neuron_ptr[number], neuron_ptr[number + 1], neuron_rows,
                                              rptr, rval, const, row_net, level_of, levels, code)  # fmt: skip
                    part = part_of(y, exact)
                    piece_table[np.uint64(place)] = part
                if partial[np.uint64(at)] != part or part == INEXACT:
                    partial[np.uint64(at)] = part
                    total_at = np.int64(items[place_of + AT_WHICH])
                    marked[total_at >> 6] |= np.uint64(1) << np.uint64(total_at & 63)
                continue
            elif kind == TOTAL or kind == WHOLE:
                added = np.int64(0)
                known = kind == TOTAL
                for piece in range(np.int64(items[place_of + AT_FIRST]), np.int64(items[place_of + AT_BASE])):
                    known = known and partial[piece] != INEXACT
                    added += partial[piece]
                y = F32(added)
                if not known:
                    number = rest[np.uint64(at), LIST]
                    y, _ = sum_of_neurons(neurons, put, neuron_ptr[number], neuron_ptr[number + 1], neuron_rows, rptr,
                                          rval, const, row_net, level_of, levels, code)  # fmt: skip
                old = rest[np.uint64(at), OLD]
                value = settled(levels[level_of[old], code[old]], y)
                given = code_of(lo, span, room, level_of, levels, met, word0 >> NET_SHIFT, value)
                if given < 0:
                    return at
            elif kind == SUM:
                old = rest[np.uint64(at), OLD]
                held = levels[level_of[old], code[old]]
                value = sum_value(items[place_of + AT_FIRST], items[place_of + AT_BASE], sum_read, sum_val, read, held)
                given = code_of(lo, span, room, level_of, levels, met, word0 >> NET_SHIFT, value)
                if given < 0:
                    return at
            elif kind == SELECT:
                which = np.int64(items[place_of + AT_WHICH])
                if items[place_of + AT_BASE] != HASHED:
                    place = np.int64(items[place_of + AT_BASE]) + looked_up(inputs, items[place_of + AT_FIRST], code)
                    selection = select_table[np.uint64(place)]
                    if selection < 0:
                        selection = np.int32(evaluate_selection(p, n, w, m, which))
                        select_table[np.uint64(place)] = selection
                else:
                    owner = np.uint64(which + 1)
                    first, count = 4 * np.int64(items[place_of + AT_FIRST]), np.int64(word0 >> KIND_BITS) & COUNT_MASK
                    key0, key1 = key_of(inputs, first, count, rest[np.uint64(at), OLD], code)
                    entry = find(table, key0, key1, owner)
                    if entry < 0:
                        entry = -1 - entry
                        number = evaluate_selection(p, n, w, m, which)
                        table[entry, 0], table[entry, 1], table[entry, 2] = key0, key1, owner
                        table[entry, 3] = np.uint64(number)
                    selection = np.int32(table[entry, 3])
                if selected[which] != selection:
                    selected[which] = selection
                    other = np.int64(read_item[which >> 1] if which & 1 else write_item[which >> 1])
                    marked[other >> 6] |= np.uint64(1) << np.uint64(other & 63)
                continue
            elif kind == WRITE:
                which = np.int64(items[place_of + AT_WHICH])
                if w.keep[which] != 1 or selected[2 * which] != 0:
                    changed = write_cell(p, n, k, w, m, which, slot)
                    if changed or delayed[which]:
                        pending[word] |= lowest
                continue
            elif kind == READ:
                read_cell(p, n, w, m, np.int64(items[place_of + AT_WHICH]))
                continue
            elif kind == KEEP:
                which = np.int64(items[place_of + AT_WHICH])
                row = p.cell_rows[which, 4]
                pre = row_value(rptr, rval, const, row_net, level_of, levels, code, row)
                keep = F32(exp(-p.cell_decay[which, 0] * softplus(rounded(pre, True) + p.cell_decay[which, 1])))
                if w.keep[which] != keep:
                    w.keep[which] = keep
                    other = np.int64(write_item[which])
                    marked[other >> 6] |= np.uint64(1) << np.uint64(other & 63)
                continue
            else:
                find_answer(p, n, w, m)
                continue
            net = np.uint64(word0 >> NET_SHIFT)
            if code[net] != given:
                code[net] = given
                for e in range(fan_ptr[net], fan_ptr[net + np.uint64(1)]):
                    marked[fan_word[e]] |= (fan_mask[e] & ~blocked[fan_word[e]]) | watched[e]
    past, past_net = w.past[slot], n.past_net
    for i in range(len(past_net)):
        past[i] = code[past_net[i]]
    past_kind[slot] = CODED
    m.count[POSITION] += 1
    return np.int64(-1)
