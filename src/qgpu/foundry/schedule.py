"""Third stage: which layer computes what.

Sums go to MLPs, memories and delays to DeltaNets (see ``plan`` for stages). First few layers: list scheduling, the
cells with the longest way still to go first, each as early as heads and neurons allow. Then few live dims: see
``settle``.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from .errors import FoundryError
from .lower import Lowered
from .netlist import SumCell
from .plan import Plan, Room
from .stock import FULL_ATTENTION_INTERVAL


@dataclass(frozen=True, eq=False)
class Schedule:
    """``stage``: by cell number. ``layers``: a multiple of four. ``birth``, ``death``: by signal; birth is the stage
    that delivers it (-1: the embedding, None: never), death the MLP stage from which on its dim can be another's."""

    lowered: Lowered
    stage: tuple[int, ...]
    layers: int
    birth: tuple[int | None, ...]
    death: tuple[int, ...]
    peak: int


def fullest(plan: Schedule) -> tuple[int, int]:
    """Most signals alive at once, and the layer after one of whose stages that is."""
    change = [0] * (2 * plan.layers + 4)
    for birth, death in zip(plan.birth, plan.death, strict=True):
        if birth is not None:
            change[birth + 1] += 1
            change[death + 1] -= 1
    alive = list(accumulate(change))
    most = max(alive)
    return most, max(0, alive.index(most) - 1) // 2


def early(lowered: Lowered, room: Room) -> Plan:
    """All cells as early as heads and neurons allow, the longest way first, in as few layers as that takes."""
    plan = Plan(lowered, room)
    _as_early_as_possible(plan)
    return plan


def resumed(lowered: Lowered, room: Room, layers: int, stages: Sequence[int]) -> Plan:
    """A plan whose cells have the stages given."""
    plan = Plan(lowered, room)
    plan.layers = layers
    plan.grow(layers - 1)
    plan.move_all(stages)
    return plan


def finished(plan: Plan) -> Schedule:
    """The plan as it stands."""
    signals = range(len(plan.drivers))
    return Schedule(
        lowered=plan.lowered,
        stage=tuple(plan.stage),
        layers=plan.layers,
        birth=tuple(plan.birth(signal) for signal in signals),
        death=tuple(plan.death(signal) for signal in signals),
        peak=max(plan.occupancy(), default=0),
    )


def _ways(plan: Plan) -> list[int]:
    """Longest way from each cell to the end, in stages."""
    way = [0] * len(plan.cells)
    for number in range(len(plan.cells) - 1, -1, -1):
        from_mlp = isinstance(plan.cells[number], SumCell)
        for signal in plan.outputs[number]:
            for reader in plan.readers[signal]:
                same = isinstance(plan.cells[reader], SumCell) == from_mlp
                way[number] = max(way[number], way[reader] + (2 if same else 1))
    return way


def _as_early_as_possible(plan: Plan) -> None:
    """List scheduling, the longest way first."""
    way = _ways(plan)
    numbers = range(len(plan.cells))
    waiting = [len({d for s in plan.inputs[n] for d in plan.drivers[s]}) for n in numbers]
    after = [-1] * len(plan.cells)
    followers = [{reader for signal in plan.outputs[n] for reader in plan.readers[signal]} for n in numbers]
    arriving: dict[int, list[int]] = {}
    for number, count in enumerate(waiting):
        if not count:
            arriving.setdefault(plan.first_stage(number, -1), []).append(number)
    left = len(plan.cells)
    queues: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    stage = 0
    while left:
        if stage // 2 >= plan.room.max_layers:
            raise _too_small(plan)
        queue = queues[stage % 2]
        for number in arriving.pop(stage, ()):
            heapq.heappush(queue, (-way[number], number))
        held_back: list[tuple[int, int]] = []
        while queue and len(held_back) < 64:
            item = heapq.heappop(queue)
            number = item[1]
            if not plan.fits((number,), stage):
                held_back.append(item)
                continue
            plan.put(number, stage)
            left -= 1
            for follower in followers[number]:
                waiting[follower] -= 1
                after[follower] = max(after[follower], stage)
                if not waiting[follower]:
                    arriving.setdefault(plan.first_stage(follower, after[follower]), []).append(follower)
        for item in held_back:
            heapq.heappush(queue, item)
        stage += 1
    used = max(plan.stage, default=1) // 2 + 1
    plan.layers = -(-used // FULL_ATTENTION_INTERVAL) * FULL_ATTENTION_INTERVAL
    plan.grow(plan.layers - 1)


def _too_small(plan: Plan) -> FoundryError:
    rows = plan.layer_rows
    full = max(range(len(rows)), key=lambda layer: len(rows[layer]) / plan.neurons_of(layer))
    return FoundryError(
        plan.lowered.netlist.name,
        "scheduling",
        [
            f"more than {plan.room.max_layers} layers of {plan.room.heads} heads and {plan.room.neurons} neurons "
            f"would be needed; the fullest is layer {full} with {len(rows[full])} neurons and "
            f"{plan.heads_used(full)} heads"
        ],
    )
