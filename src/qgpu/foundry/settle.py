"""Few live dims: cells move within the slack they have, by simulated annealing.

This page makes arrays of a plan for the search in ``anneal``. What moves together: the sums of a digit, of a word, or
of all that read the same signals (a decoder); memories that share what they drive (banks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .digits import COPY, SELECT, Digits, digit_of, digits_of, no_digits
from .lower import Lowered
from .netlist import DelayCell, MemoryCell, SumCell
from .pack import directable, pack
from .plan import Plan, Room
from .schedule import Schedule, early, finished, resumed

if TYPE_CHECKING:  # it loads numba
    from .anneal import Problem, State

MOVES_A_CELL = 150
HOT, COLD = 3e-3, 2e-5  # temperatures, of the square of the fullest stage
FILLING = 1.04  # numbers are not always full
RESERVE = 0.07  # of a layer's neurons, for clears and for packing
SEED = 1

Array = np.ndarray[Any, Any]


def schedule(lowered: Lowered, room: Room, target: int | None = None, effort: float = 1.0) -> Schedule:
    """Stages for all cells, in as few layers as there is room for, with few live dims. ``target``: where there are
    more, signals wait packed, so that as few as can be are above it; None: no packing. ``effort``: a factor on the
    number of moves tried. Raises FoundryError naming the fullest layer if ``room`` does not do."""
    # crowded layers are filled as others are at first, or there might be more layers: the search takes the excess out
    freely = early(lowered, replace(room, crowded=()))
    plan = resumed(lowered, room, freely.layers, freely.stage)
    first = list(plan.stage)
    settle(plan, no_digits(plan), 0, effort / 4)
    if any(len(rows) > plan.neurons_of(layer) for layer, rows in enumerate(plan.layer_rows)):
        plan = early(lowered, room)
        first = list(plan.stage)
        settle(plan, no_digits(plan), 0, effort / 4)
    done = finished(plan)
    if target is None or done.peak <= target:
        return done
    plan.move_all(first)
    digits = digits_of(plan)
    settle(plan, digits, target, effort)
    packed = pack(plan, digits)
    return packed if packed.peak < done.peak else done


def settle(plan: Plan, digits: Digits, target: int, effort: float = 1.0) -> None:
    """Moves the plan's cells so that as few dims above ``target`` as can be are needed."""
    from .anneal import anneal

    if not plan.cells:
        return
    problem = problem_of(plan, digits, target)
    state = state_of(plan, problem)
    best = state.stage.copy()
    moves = max(1, int(effort * MOVES_A_CELL * len(plan.cells)))
    scale = max(1.0, float(state.load.max())) ** 2
    anneal(problem, state, moves, HOT * scale, COLD * scale, SEED, best)
    plan.move_all(best.tolist())


def problem_of(plan: Plan, digits: Digits, target: int) -> Problem:
    """What the search is given."""
    from .anneal import Problem

    netlist = plan.lowered.netlist
    signals = range(len(netlist.names))
    ways = digits.ways
    selects: list[list[int]] = [[] for _ in signals]
    for cell, way in enumerate(ways):
        for signal, how in way.items():
            if how == SELECT:
                selects[signal].append(cell)
    share = np.array([digits.share(signal) for signal in signals])
    inputs, inputs_at = _lists(plan.inputs)
    outputs, outputs_at = _lists(plan.outputs)
    drivers, drivers_at = _lists(plan.drivers)
    readers, readers_at = _lists([list(dict.fromkeys(cells)) for cells in plan.readers])
    selecting, selects_at = _lists(selects)
    rows, rows_at = _lists([tuple(dict.fromkeys(cells)) for cells in plan.rows])
    family = _families(plan)
    count = family.shape[1]
    members = np.argsort(family, axis=1, kind="stable").astype(np.int32)
    members_at = np.zeros((len(family), count + 1), np.int32)
    for which, numbers in enumerate(family):
        members_at[which, 1:] = np.cumsum(np.bincount(numbers, minlength=count))
    return Problem(
        inputs, inputs_at,
        np.array([way.get(s, 0) for way, ins in zip(ways, plan.inputs, strict=True) for s in ins], np.int8),
        outputs, outputs_at, drivers, drivers_at, readers, readers_at, selecting, selects_at, rows, rows_at,
        family, members, members_at,
        np.array([_kind(cell) for cell in plan.cells], np.int8),
        np.array([signal in plan.token_signals for signal in signals]),
        np.array([signal in plan.code_signals for signal in signals]),
        np.where(share < 1, FILLING * share, 1.0),
        COPY * np.array(digits.size),
        np.array([directable(plan, signal) for signal in signals]),
        plan.room.heads,
        np.array([(1 - RESERVE) * plan.neurons_of(layer) for layer in range(plan.layers)]),
        float(target),
    )  # fmt: skip


def state_of(plan: Plan, problem: Problem) -> State:
    """The plan's stages, counted."""
    from .anneal import State, start

    layers, signals = plan.layers, len(plan.readers)
    state = State(
        np.array(plan.stage, np.int32),
        np.zeros((3, signals, 2 * layers), np.int32),
        np.zeros((layers, len(plan.lowered.rows)), np.int32),
        np.zeros(layers, np.int32),
        np.zeros(layers, np.int32),
        np.zeros(2 * layers + 1),
        np.zeros(layers),
    )
    start(problem, state)
    return state


def _lists(items: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    at = np.zeros(len(items) + 1, np.int32)
    at[1:] = np.cumsum([len(item) for item in items])
    return np.array([number for item in items for number in item], np.int32), at


def _kind(cell: object) -> int:
    return next(number for number, kind in enumerate((SumCell, MemoryCell, DelayCell)) if isinstance(cell, kind))


def _families(plan: Plan) -> Array:
    """int32 [3, cells]: by digit, by word, by inputs; cells of other kinds each alone, but for banks."""
    netlist = plan.lowered.netlist
    known: tuple[dict[object, int], ...] = ({}, {}, {})
    family = np.zeros((len(known), len(plan.cells)), np.int32)
    for number, cell in enumerate(plan.cells):
        keys: tuple[object, ...] = (number, number, number)
        if isinstance(cell, SumCell):
            place = digit_of(netlist.names[cell.out])
            keys = (place[0], place[0][0], plan.inputs[number]) if place else (number, number, plan.inputs[number])
        elif isinstance(cell, MemoryCell) and plan.outputs[number]:
            keys = (number, ("banks", plan.outputs[number][0]), number)
        for which, key in enumerate(keys):
            family[which, number] = known[which].setdefault((type(cell), key), len(known[which]))
    return family
