"""Simulated annealing of a schedule: the compiled search behind ``settle``, on plain arrays.

Cells move, alone or with others, to another stage within the slack they have. What is made small is how far the dims
alive at each stage are above a target, and how far the neurons of each layer are above what a layer has. A signal takes
a whole dim from the stage that delivers it to the MLP that may clear it; where nobody reads it for a while, it takes
``share`` of one (it waits packed, see ``pack``), and coming back costs ``copies`` neurons. Some read the packed number
itself (see ``digits``): those of one bit alone, and selections whose own output is packed from the start.

Stages are numbered as in ``plan``; arrays by stage start with the embedding, stage -1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

Array = np.ndarray[Any, Any]

INTERVAL = 4  # layers 3, 7, 11, ... have no DeltaNet
DELAYS_A_HEAD = 127
FAMILIES = 3
HARD, UNARY, SELECT = range(3)
"""How a cell reads a signal: as a bit; alone, so that the packed number does as well; as one of a few bits that must
all be 1, so that the number does if what comes out is a number too."""
SLIGHT = 0.02  # what a dim costs below the target
CROWDED = 1 / 16  # what the square of a neuron too many costs
ALONE, WITH_WORD = 0.3, 0.65  # how often a cell moves alone, or with those of its word; else with those of its inputs


class Problem(NamedTuple):
    """What stays. ``*_at``: where each item's list starts in the array of that name, and where the last one ends."""

    inputs: Array  # int32, signals by cell
    inputs_at: Array
    way: Array  # int8, as ``inputs``: how the cell reads it, see HARD
    outputs: Array  # int32, signals by cell
    outputs_at: Array
    drivers: Array  # int32, cells by signal
    drivers_at: Array
    readers: Array  # int32, cells by signal
    readers_at: Array
    selects: Array  # int32, cells that read the signal as SELECT, by signal
    selects_at: Array
    rows: Array  # int32, neurons by cell
    rows_at: Array
    family: Array  # int32 [FAMILIES, cells]: number of the cell's family
    members: Array  # int32 [FAMILIES, cells]: cells by family
    members_at: Array  # int32 [FAMILIES, cells + 1]
    kind: Array  # int8 by cell: 0 sum, 1 memory, 2 delay
    token: Array  # bool by signal: comes with the embedding
    code: Array  # bool by signal: the output head reads it
    share: Array  # float64 by signal: of a dim, while it waits; 1: it cannot be packed
    copies: Array  # float64 by signal: neurons of its coming back
    direct: Array  # bool by signal: what drives it can drive a number of several bits instead
    heads: int
    neurons: Array  # float64 by layer: how many it may have
    target: float


class State(NamedTuple):
    """What moves."""

    stage: Array  # int32 by cell
    reads: Array  # int32 [3, signals, stages]: readers there, by way
    held: Array  # int32 [layers, rows]: cells there that have the neuron
    memories: Array  # int32 by layer
    delays: Array
    load: Array  # float64 by stage, from the embedding on
    used: Array  # float64 by layer: neurons


@numba.njit(cache=True)
def _span(p, s, signal):  # type: ignore[no-untyped-def]
    """The stages of its first and of its last driver; -2 if there is none."""
    birth, ready = 1 << 20, -2
    if p.token[signal]:
        birth, ready = -1, -1
    for i in range(p.drivers_at[signal], p.drivers_at[signal + 1]):
        at = s.stage[p.drivers[i]]
        birth, ready = min(birth, at), max(ready, at)
    return birth, ready


@numba.njit(cache=True)
def _starts_packed(p, s, signal):  # type: ignore[no-untyped-def]
    """Whether nobody asks for the bit itself before it could be brought back."""
    if p.share[signal] == 1.0 or p.token[signal] or not p.direct[signal]:
        return False
    ready = _span(p, s, signal)[1]
    for at in range(ready + 1, min(ready + 3, s.reads.shape[2])):
        if s.reads[HARD, signal, at] or s.reads[SELECT, signal, at]:
            return False
    return True


@numba.njit(cache=True)
def _count(p, s, signal, sign):  # type: ignore[no-untyped-def]
    """Add what a signal takes of dims and neurons, or take it away."""
    stages = s.reads.shape[2]
    birth, ready = _span(p, s, signal)
    if ready == -2:
        return
    share = p.share[signal]
    bits = numbers = 0  # stages at which it is read as either, a bit each
    for i in range(p.selects_at[signal], p.selects_at[signal + 1]):
        cell = p.selects[i]
        at = s.stage[cell]
        if share < 1.0 and _starts_packed(p, s, p.outputs[p.outputs_at[cell]]):
            numbers |= 1 << at
        else:
            bits |= 1 << at
    end, packed, last = ready, -2, -1
    read = False
    for at in range(stages + 1):
        hard = soft = False
        if at < stages:
            hard = bool(s.reads[HARD, signal, at] > 0 or ((bits >> at) & 1) > 0)
            soft = bool(s.reads[UNARY, signal, at] > 0 or ((numbers >> at) & 1) > 0)
        else:
            hard = p.code[signal]
        if not (hard or soft):
            continue
        read = True
        done = min(at | 1, stages)
        back = at - 1 - at % 2 if hard else done
        if share < 1.0 and back > end and packed < -1 and not p.direct[signal]:
            for t in range(end, (end + 1) | 1):
                s.load[t + 1] += sign
            end = (end + 1) | 1
        if share < 1.0 and back > end:  # it waits in a number
            if packed < -1:
                packed = end
            last = max(last, back)
            if hard:
                s.used[back // 2] += sign * p.copies[signal]
        else:
            back = end
        if hard or share == 1.0:
            for t in range(back, done):
                s.load[t + 1] += sign
            end = max(end, done)
    if not read:
        for t in range(end, min(end | 1, stages)):
            s.load[t + 1] += sign
    for t in range(max(packed, -1), last):
        s.load[t + 1] += sign * share
    whole = share if packed == ready and p.direct[signal] else 1.0  # while some of what drives it is still to come
    for t in range(birth, ready):
        s.load[t + 1] += sign * whole


@numba.njit(cache=True)
def _put(p, s, cell, stage, sign):  # type: ignore[no-untyped-def]
    """Give a cell its stage (sign 1), or take it off (-1)."""
    layer = stage // 2
    s.stage[cell] = stage
    for i in range(p.inputs_at[cell], p.inputs_at[cell + 1]):
        s.reads[p.way[i], p.inputs[i], stage] += sign
    if p.kind[cell] == 1:
        s.memories[layer] += sign
    elif p.kind[cell] == 2:
        s.delays[layer] += sign
    for i in range(p.rows_at[cell], p.rows_at[cell + 1]):
        row = p.rows[i]
        before = s.held[layer, row]
        s.held[layer, row] = before + sign
        if before + sign == 0:
            s.used[layer] -= 1
        elif before == 0:
            s.used[layer] += 1


@numba.njit(cache=True)
def cost(p, s):  # type: ignore[no-untyped-def]
    """What is made small."""
    total = 0.0
    for load in s.load:
        over = load - p.target
        total += SLIGHT * load
        if over > 0:
            total += over * over
    for layer in range(s.used.shape[0]):
        over = s.used[layer] - p.neurons[layer]
        if over > 0:
            total += CROWDED * over * over
    return total


@numba.njit(cache=True)
def start(p, s):  # type: ignore[no-untyped-def]
    """Fill the counts in from the stages."""
    for cell in range(s.stage.shape[0]):
        _put(p, s, cell, s.stage[cell], 1)
    for signal in range(p.token.shape[0]):
        _count(p, s, signal, 1.0)


@numba.njit(cache=True)
def _fits(p, s, cells, count, layer):  # type: ignore[no-untyped-def]
    """Whether a layer has heads for some more memories and delays."""
    memories, delays = s.memories[layer], s.delays[layer]
    for i in range(count):
        if p.kind[cells[i]] == 1:
            memories += 1
        else:
            delays += 1
    return memories + (delays + DELAYS_A_HEAD - 1) // DELAYS_A_HEAD <= p.heads


@numba.njit(cache=True)
def _family(p, s, cell, which, cells):  # type: ignore[no-untyped-def]
    """The cells of its family that stand where it does; how many."""
    count = 0
    family = p.family[which, cell]
    for i in range(p.members_at[which, family], p.members_at[which, family + 1]):
        other = p.members[which, i]
        if s.stage[other] == s.stage[cell] and (p.kind[other] == 0) == (p.kind[cell] == 0):
            cells[count] = other
            count += 1
    return count


@numba.njit(cache=True)
def _slack(p, s, cells, count):  # type: ignore[no-untyped-def]
    """Earliest and latest stage."""
    stages = s.reads.shape[2]
    low, high = 0, stages - 1
    for i in range(count):
        cell = cells[i]
        for j in range(p.inputs_at[cell], p.inputs_at[cell + 1]):
            signal = p.inputs[j]
            for k in range(p.drivers_at[signal], p.drivers_at[signal + 1]):
                low = max(low, s.stage[p.drivers[k]] + 1)
        for j in range(p.outputs_at[cell], p.outputs_at[cell + 1]):
            signal = p.outputs[j]
            for k in range(p.readers_at[signal], p.readers_at[signal + 1]):
                high = min(high, s.stage[p.readers[k]] - 1)
    return low, high


@numba.njit(cache=True)
def _touched(p, cells, count, touched, stamp, move):  # type: ignore[no-untyped-def]
    """The signals whose dims may change when the cells move; how many."""
    found = 0
    for i in range(count):
        cell = cells[i]
        for j in range(p.inputs_at[cell], p.inputs_at[cell + 1]):
            signal = p.inputs[j]
            if stamp[signal] != move:
                stamp[signal] = move
                touched[found] = signal
                found += 1
        for j in range(p.outputs_at[cell], p.outputs_at[cell + 1]):
            signal = p.outputs[j]
            if stamp[signal] != move:
                stamp[signal] = move
                touched[found] = signal
                found += 1
    for i in range(found):  # whether they start packed decides how their drivers read
        for j in range(p.drivers_at[touched[i]], p.drivers_at[touched[i] + 1]):
            cell = p.drivers[j]
            for k in range(p.inputs_at[cell], p.inputs_at[cell + 1]):
                signal = p.inputs[k]
                if p.way[k] == SELECT and stamp[signal] != move:
                    stamp[signal] = move
                    touched[found] = signal
                    found += 1
    return found


@numba.njit(cache=True)
def anneal(p, s, moves, hot, cold, seed, best):  # type: ignore[no-untyped-def]
    """So many moves while the temperature falls from ``hot`` to ``cold``; ``best``: the best stages seen. Returns their
    cost."""
    np.random.seed(seed)
    number, signals = s.stage.shape[0], p.token.shape[0]
    cells = np.empty(number, np.int32)
    touched = np.empty(signals, np.int32)
    stamp = np.zeros(signals, np.int64)
    now = cost(p, s)
    least = now
    best[:] = s.stage
    cooling = (cold / hot) ** (1.0 / moves)
    heat = hot
    for move in range(1, moves + 1):
        heat *= cooling
        cell = np.random.randint(number)
        dice = np.random.random()
        which = 0 if dice < ALONE else (1 if dice < WITH_WORD else 2)
        count = _family(p, s, cell, which, cells)
        here = s.stage[cell]
        low, high = _slack(p, s, cells, count)
        low += (low - here) % 2
        choices = (high - low) // 2 + 1
        if choices < 2:
            continue
        if np.random.random() < 0.5:
            there = here + 2 * (np.random.randint(0, 5) - 2)
            if there < low or there > high:
                continue
        else:
            there = low + 2 * np.random.randint(choices)
        if there == here:
            continue
        if p.kind[cell] != 0 and (
            (there // 2) % INTERVAL == INTERVAL - 1 or not _fits(p, s, cells, count, there // 2)
        ):
            continue
        found = _touched(p, cells, count, touched, stamp, move)
        before = s.used[there // 2]
        for i in range(found):
            _count(p, s, touched[i], -1.0)
        for i in range(count):
            _put(p, s, cells[i], here, -1)
        for i in range(count):
            _put(p, s, cells[i], there, 1)
        for i in range(found):
            _count(p, s, touched[i], 1.0)
        then = cost(p, s)
        after = s.used[there // 2]
        crowded = after > before and after > p.neurons[there // 2]
        if crowded:
            pass
        elif then <= now or np.random.random() < np.exp((now - then) / heat):
            now = then
            if now < least - 1e-6:
                least = now
                best[:] = s.stage
            continue
        for i in range(found):
            _count(p, s, touched[i], -1.0)
        for i in range(count):
            _put(p, s, cells[i], there, -1)
        for i in range(count):
            _put(p, s, cells[i], here, 1)
        for i in range(found):
            _count(p, s, touched[i], 1.0)
    return least
