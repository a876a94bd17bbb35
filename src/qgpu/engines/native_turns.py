"""Many tokens through the netlist, compiled, and the way from there to ``native_kernel`` and back."""

from __future__ import annotations

import numba
import numpy as np

from qgpu.engines.native_cells import CODED, OTHER, POOL_USED, SELECTED, sum_value
from qgpu.engines.native_kernel import POSITION
from qgpu.engines.native_math import F32, sources
from qgpu.engines.native_memory import ABSENT, BASELINE
from qgpu.engines.native_nets import BASE, FIRST, OLD
from qgpu.engines.native_rows import code_of
from qgpu.engines.native_wave import POOL, SELECTIONS, wave

DONE, AT_EMBEDDING, FULL = -1, -2, -3


def _make_turns(sources: str):  # type: ignore[no-untyped-def]
    @numba.njit(cache=True, nogil=True)
    def turns(p, n, v, w, m, ids, answers, written, stops, fed, count):  # type: ignore[no-untyped-def]
        """Feed ``ids`` from ``fed`` on, then go on writing after ``count``. (fed, written, how it ended, token): DONE,
        or the item at which this token needs another way."""
        _ = len(sources)
        found, token, stopped = np.int64(DONE), np.int64(0), False
        while fed < len(ids) or (count < len(written) and not stopped):
            if w.count[POOL_USED] > POOL // 2 or w.count[SELECTED] > SELECTIONS - 2000:
                found = np.int64(FULL)
                break
            reading = fed < len(ids)
            token = np.int64(ids[fed]) if reading else np.int64(w.answer[0])
            found = wave(p, n, v, w, m, token)
            if found != DONE:
                break
            if not reading:
                written[count] = token
                count += 1
                for i in range(len(stops)):
                    stopped = stopped or stops[i] == token
                continue
            if fed < len(answers):
                answers[fed] = w.answer[0]
            fed += 1
        return fed, count, found, token

    return turns


def _make_leave(sources: str):  # type: ignore[no-untyped-def]
    @numba.njit(cache=True)
    def leave(p, n, w, m, item):  # type: ignore[no-untyped-def]
        """Give the ring what codes say of the last tokens; and of this one, up to the layer of ``item``, and the
        residual behind that layer's mixer. The stage to go on with."""
        _ = len(sources)
        slot, live = m.count[POSITION] & 3, len(p.dims)
        layers = np.int64(0)
        if item >= 0:
            while n.item_ptr[layers + 1] <= item:
                layers += 1
            layers += 1
        code, levels, level_of, past_net = w.code, w.levels, n.level_of, n.past_net
        for t in range(4):
            if t != slot and w.past_kind[t] == OTHER:
                continue
            for layer in range(p.layers):
                m.ring_kind[layer, t] = BASELINE if w.past_kind[t] == CODED or t == slot else ABSENT
                m.ring_rho[layer, t] = F32(1)
            for i in range(len(n.past_net)):
                layer, dim = n.past_key[i] // live, n.past_key[i] % live
                if t != slot:
                    m.ring[layer, t, dim] = levels[level_of[past_net[i]], w.past[t, i]]
                elif layer < layers:
                    m.ring[layer, t, dim] = levels[level_of[past_net[i]], code[past_net[i]]]
        if item < 0:
            return 0
        stage = 2 * layers - 1
        for d in range(live):
            net = n.at[stage - 1, d]
            m.x[d] = levels[level_of[net], code[net]] if net else p.base[d]
        for d in range(n.sum_layer[layers - 1], n.sum_layer[layers]):
            at = n.sum_item[d]
            held = levels[level_of[n.rest[at, OLD]], code[n.rest[at, OLD]]]
            first, last = n.item[4 * at + FIRST], n.item[4 * at + BASE]
            m.y[n.sum_dim[d]] = sum_value(first, last, n.sum_read, n.sum_val, w.read, held)
        for d in range(n.sum_layer[layers - 1], n.sum_layer[layers]):
            m.x[n.sum_dim[d]] = m.y[n.sum_dim[d]]
            m.y[n.sum_dim[d]] = 0
        return stage

    return leave


def _make_come_back(sources: str):  # type: ignore[no-untyped-def]
    @numba.njit(cache=True)
    def come_back(p, n, w, m):  # type: ignore[no-untyped-def]
        """Codes of the token that was fed on the other way."""
        _ = len(sources)
        slot, live = (m.count[POSITION] - 1) & 3, len(p.dims)
        w.past_kind[slot] = CODED
        for i in range(len(n.past_net)):
            layer, dim = n.past_key[i] // live, n.past_key[i] % live
            given = -1
            if m.ring_kind[layer, slot] == BASELINE and m.ring_rho[layer, slot] == 1:
                given = code_of(
                    n.lo, n.span, n.room, n.level_of, w.levels, w.met, n.past_net[i], m.ring[layer, slot, dim]
                )
            if given < 0:
                w.past_kind[slot] = OTHER
                break
            w.past[slot, i] = given

    return come_back


_SOURCES = sources()
turns, leave, come_back = _make_turns(_SOURCES), _make_leave(_SOURCES), _make_come_back(_SOURCES)
