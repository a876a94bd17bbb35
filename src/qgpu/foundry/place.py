"""Fourth stage: which residual dim holds which signal, and which MLP clears it.

Signals take *slots*; a slot is a residual dim once the hidden size is known. A slot is free again from the MLP that
last needs its signal: that MLP (or a later one) subtracts what stands there, and the next occupant may be written by
the very same MLP, or by any later stage. Slots that nobody has used are taken first, then those that held the
smallest values (a clear leaves a rounding of what it takes), then those that have been free longest; a clear goes to
the emptiest MLP that may do it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from .lower import LoweredSum
from .netlist import SumCell
from .numbers import anchors_for
from .schedule import Schedule

HIDDEN_STEP = 64


@dataclass(frozen=True, eq=False)
class Placement:
    """``slot``: by signal, None if it is never delivered. ``cleared``: the largest magnitude of the signal that was
    cleared for it, 0 if it is the first in its slot. ``clears``: by layer, the signals that its MLP takes off their
    slots. ``slots``: how many."""

    schedule: Schedule
    slot: tuple[int | None, ...]
    cleared: tuple[int, ...]
    clears: Mapping[int, tuple[int, ...]]
    slots: int


def place(plan: Schedule) -> Placement:
    """Slots by live range: as many as are ever alive at once."""
    neurons = rows_a_layer(plan)
    births: dict[int, list[int]] = {}
    for signal, birth in enumerate(plan.birth):
        if birth is not None:
            births.setdefault(birth, []).append(signal)
    slot: list[int | None] = [None] * len(plan.birth)
    cleared = [0] * len(plan.birth)
    netlist = plan.lowered.netlist
    size = [max(abs(lo), abs(hi)) for lo, hi in zip(netlist.lo, netlist.hi, strict=True)]
    clears: dict[int, list[int]] = {}
    busy: list[tuple[int, int]] = []  # (death, signal)
    free: dict[int, list[tuple[int, int, int]]] = {}  # by size: (death, slot, signal that stands there)
    used = 0
    for stage in sorted(births):
        while busy and busy[0][0] <= stage:
            death, signal = heapq.heappop(busy)
            held = slot[signal]
            assert held is not None
            heapq.heappush(free.setdefault(size[signal], []), (death, held, signal))
        for signal in births[stage]:
            last = stage if stage % 2 else stage - 1
            # bits after bits, numbers after numbers: a clear leaves a rounding of what it takes; a number is cleared
            # twice, in two MLPs, or a new slot is opened
            kinds = sorted(free, reverse=size[signal] > 1)
            kind = next((k for k in kinds if k <= 1 or free[k][0][0] // 2 < last // 2), None)
            if used < plan.peak or kind is None:
                slot[signal] = used
                used += 1
            else:
                death, taken, old = heapq.heappop(free[kind])
                if not free[kind]:
                    del free[kind]
                layers = sorted(range(death // 2, last // 2 + 1), key=lambda at: neurons[at])
                # what is left of a number is cleared once more, where there is a second MLP to do it
                times = 2 if size[old] > 1 and len(layers) > 1 else 1
                for layer in layers[:times]:
                    neurons[layer] += 1
                    clears.setdefault(layer, []).append(old)
                slot[signal] = taken
                cleared[signal] = size[old] if times == 1 else 1
            heapq.heappush(busy, (plan.death[signal], signal))
    return Placement(
        schedule=plan,
        slot=tuple(slot),
        cleared=tuple(cleared),
        clears={layer: tuple(signals) for layer, signals in clears.items()},
        slots=used,
    )


def sums_a_layer(plan: Schedule) -> list[list[LoweredSum]]:
    """The sums of each layer's MLP."""
    layers: list[list[LoweredSum]] = [[] for _ in range(plan.layers)]
    for number, cell in enumerate(plan.lowered.netlist.cells):
        if isinstance(cell, SumCell):
            layers[plan.stage[number] // 2].append(plan.lowered.sums[number])
    return layers


def rows_a_layer(plan: Schedule) -> list[int]:
    """Neurons of each layer's MLP, clears not counted."""
    return [len({row for lowered in sums for row, _ in lowered.uses}) for sums in sums_a_layer(plan)]


def smallest_hidden(slots: int, text_dims: int) -> int:
    """The smallest multiple of 64 that holds text, anchors and slots."""
    hidden = -(-(slots + text_dims + 1) // HIDDEN_STEP) * HIDDEN_STEP
    while slots + text_dims + len(anchors_for(hidden)) > hidden:
        hidden += HIDDEN_STEP
    return hidden


def slots_within(hidden: int, text_dims: int) -> int:
    """How many slots a hidden size of at most ``hidden`` holds."""
    sizes = [hidden, *range(HIDDEN_STEP, hidden + 1, HIDDEN_STEP)]
    fitting: list[int] = [size - text_dims - len(anchors_for(size)) for size in sizes]
    return max(0, *fitting)
