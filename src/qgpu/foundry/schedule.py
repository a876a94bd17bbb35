"""Third stage: which layer computes what.

A layer is two *stages*: its DeltaNet (stage 2 l; absent in every fourth layer) and its MLP (stage 2 l + 1). A cell
reads what stood before its stage and delivers at it. Sums go to MLPs, memories and delays to DeltaNets.

First few layers: list scheduling, the cells with the longest way still to go first, each as early as heads and
neurons allow. Then few live dims: cells move within the slack they have. What moves together is a *cluster*, the
cells of one stage that read exactly the same signals (a decoder, the bits of one sum): alone, none of them would gain
by moving. A move costs the stages that its inputs have to stay alive for, and gains those that its outputs are not;
stages near the peak weigh more, and the sweeps are repeated with new weights. The best schedule seen is kept.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from .errors import FoundryError
from .lower import Lowered
from .netlist import DelayCell, SumCell, inputs, outputs
from .stock import FULL_ATTENTION_INTERVAL, has_deltanet

DELAYS_A_HEAD = 127  # the last value dim is the pad
SWEEPS = 8


@dataclass(frozen=True)
class Room:
    """What a layer may hold: heads of its DeltaNet, neurons of its MLP (``crowded`` layers: fewer, by layer)."""

    heads: int
    neurons: int
    max_layers: int
    crowded: tuple[tuple[int, int], ...] = ()


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


def schedule(lowered: Lowered, room: Room) -> Schedule:
    """Stages for all cells. Raises FoundryError naming the fullest layer if ``room`` does not do."""
    plan = _Plan(lowered, room)
    plan.as_early_as_possible()
    plan.spread()
    return plan.result()


class _Plan:
    """A schedule under construction: stage of each cell, and what each layer holds."""

    def __init__(self, lowered: Lowered, room: Room) -> None:
        self.lowered = lowered
        self.room = room
        self.fewer = dict(room.crowded)
        netlist = lowered.netlist
        self.cells = netlist.cells
        self.inputs = [tuple(inputs(cell)) for cell in self.cells]
        self.outputs = [outputs(cell) for cell in self.cells]
        self.rows = [
            tuple(row for row, _ in lowered.sums[n].uses) if isinstance(cell, SumCell) else ()
            for n, cell in enumerate(self.cells)
        ]
        count = len(netlist.names)
        self.drivers: list[list[int]] = [[] for _ in range(count)]
        self.readers: list[list[int]] = [[] for _ in range(count)]
        self.read_at: list[Counter[int]] = [Counter() for _ in range(count)]  # by signal: stage -> readers there
        for number in range(len(self.cells)):
            for signal in self.outputs[number]:
                self.drivers[signal].append(number)
            for signal in self.inputs[number]:
                self.readers[signal].append(number)
        self.token_signals = {signal for signal, _ in netlist.tokens}
        self.code_signals = {signal for bit in netlist.code for signal, _ in bit.terms}
        self.stage = [-1] * len(self.cells)
        self.layer_rows: list[Counter[int]] = []
        self.memories: list[int] = []
        self.delays: list[int] = []

    # room

    def _grow(self, layer: int) -> None:
        while len(self.layer_rows) <= layer:
            self.layer_rows.append(Counter())
            self.memories.append(0)
            self.delays.append(0)

    def neurons_of(self, layer: int) -> int:
        return min(self.room.neurons, self.fewer.get(layer, self.room.neurons))

    def heads_used(self, layer: int) -> int:
        return self.memories[layer] + -(-self.delays[layer] // DELAYS_A_HEAD)

    def _fits(self, cells: Sequence[int], stage: int) -> bool:
        layer = stage // 2
        self._grow(layer)
        if stage % 2:
            held = self.layer_rows[layer]
            fresh = {row for number in cells for row in self.rows[number] if row not in held}
            return len(held) + len(fresh) <= self.neurons_of(layer)
        delays = sum(isinstance(self.cells[number], DelayCell) for number in cells)
        heads = self.memories[layer] + len(cells) - delays + -(-(self.delays[layer] + delays) // DELAYS_A_HEAD)
        return has_deltanet(layer) and heads <= self.room.heads

    def _put(self, number: int, stage: int) -> None:
        layer = stage // 2
        self._grow(layer)
        self.stage[number] = stage
        for signal in self.inputs[number]:
            self.read_at[signal][stage] += 1
        if stage % 2:
            self.layer_rows[layer].update(self.rows[number])
        elif isinstance(self.cells[number], DelayCell):
            self.delays[layer] += 1
        else:
            self.memories[layer] += 1

    def _take(self, number: int) -> None:
        stage = self.stage[number]
        layer = stage // 2
        for signal in self.inputs[number]:
            self._forget(self.read_at[signal], stage)
        if stage % 2:
            held = self.layer_rows[layer]
            for row in self.rows[number]:
                self._forget(held, row)
        elif isinstance(self.cells[number], DelayCell):
            self.delays[layer] -= 1
        else:
            self.memories[layer] -= 1

    @staticmethod
    def _forget(counter: Counter[int], key: int) -> None:
        counter[key] -= 1
        if not counter[key]:
            del counter[key]

    # few layers

    def _ways(self) -> list[int]:
        """Longest way from each cell to the end, in stages."""
        way = [0] * len(self.cells)
        for number in range(len(self.cells) - 1, -1, -1):
            from_mlp = isinstance(self.cells[number], SumCell)
            for signal in self.outputs[number]:
                for reader in self.readers[signal]:
                    same = isinstance(self.cells[reader], SumCell) == from_mlp
                    way[number] = max(way[number], way[reader] + (2 if same else 1))
        return way

    def _first_stage(self, number: int, after: int) -> int:
        """The first stage of the right kind that follows ``after``."""
        stage = after + 1
        if isinstance(self.cells[number], SumCell):
            return stage if stage % 2 else stage + 1
        stage += stage % 2
        return stage if has_deltanet(stage // 2) else stage + 2

    def as_early_as_possible(self) -> None:
        """List scheduling, the longest way first."""
        way = self._ways()
        waiting = [len({d for s in self.inputs[n] for d in self.drivers[s]}) for n in range(len(self.cells))]
        after = [-1] * len(self.cells)
        followers: list[set[int]] = [
            {reader for signal in self.outputs[n] for reader in self.readers[signal]} for n in range(len(self.cells))
        ]
        arriving: dict[int, list[int]] = {}
        for number, count in enumerate(waiting):
            if not count:
                arriving.setdefault(self._first_stage(number, -1), []).append(number)
        left = len(self.cells)
        queues: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        stage = 0
        while left:
            if stage // 2 >= self.room.max_layers:
                raise self._too_small()
            queue = queues[stage % 2]
            for number in arriving.pop(stage, ()):
                heapq.heappush(queue, (-way[number], number))
            held_back: list[tuple[int, int]] = []
            while queue and len(held_back) < 64:
                item = heapq.heappop(queue)
                number = item[1]
                if not self._fits((number,), stage):
                    held_back.append(item)
                    continue
                self._put(number, stage)
                left -= 1
                for follower in followers[number]:
                    waiting[follower] -= 1
                    after[follower] = max(after[follower], stage)
                    if not waiting[follower]:
                        arriving.setdefault(self._first_stage(follower, after[follower]), []).append(follower)
            for item in held_back:
                heapq.heappush(queue, item)
            stage += 1
        used = max(self.stage, default=1) // 2 + 1
        self.layers = -(-used // FULL_ATTENTION_INTERVAL) * FULL_ATTENTION_INTERVAL
        self._grow(self.layers - 1)

    def _too_small(self) -> FoundryError:
        full = max(range(len(self.layer_rows)), key=lambda layer: len(self.layer_rows[layer]) / self.neurons_of(layer))
        return FoundryError(
            self.lowered.netlist.name,
            "scheduling",
            [
                f"more than {self.room.max_layers} layers of {self.room.heads} heads and {self.room.neurons} neurons "
                f"would be needed; the fullest is layer {full} with {len(self.layer_rows[full])} neurons and "
                f"{self.heads_used(full)} heads"
            ],
        )

    # few live dims

    def _birth(self, signal: int) -> int | None:
        if signal in self.token_signals:
            return -1
        return min((self.stage[d] for d in self.drivers[signal]), default=None)

    def _death(self, signal: int) -> int:
        if signal in self.code_signals:
            return 2 * self.layers + 1
        return max(self.read_at[signal], default=self._birth(signal) or 0) | 1

    def occupancy(self) -> list[int]:
        """Signals alive after each stage, from the embedding (index 0) on."""
        change = [0] * (2 * self.layers + 4)
        for signal in range(len(self.drivers)):
            birth = self._birth(signal)
            if birth is not None:
                change[birth + 1] += 1
                change[self._death(signal) + 1] -= 1
        alive, total = [], 0
        for step in change[: 2 * self.layers + 1]:
            total += step
            alive.append(total)
        return alive

    def spread(self) -> None:
        """Sweeps of moves, down and up, against the peak."""
        best, best_stages = max(self.occupancy(), default=0), list(self.stage)
        for sweep in range(SWEEPS):
            alive = self.occupancy()
            peak = max(alive, default=1) or 1
            power = 2 * sweep
            total, weight = 0.0, [0.0]
            for count in alive:
                total += (count / peak) ** power + 1e-3
                weight.append(total)
            weight += [total] * 4
            moved = self._sweep(weight, down=sweep % 2 == 0)
            now = max(self.occupancy(), default=0)
            if now < best:
                best, best_stages = now, list(self.stage)
            if not moved and sweep > 1:
                break
        for number, stage in enumerate(best_stages):
            if stage != self.stage[number]:
                self._take(number)
                self._put(number, stage)

    def _sweep(self, weight: Sequence[float], down: bool) -> int:
        clusters: dict[tuple[int, tuple[int, ...] | int], list[int]] = {}
        for number, stage in enumerate(self.stage):
            key = self.inputs[number] if isinstance(self.cells[number], SumCell) else number
            clusters.setdefault((stage, key), []).append(number)
        order = sorted(clusters.values(), key=lambda cells: self.stage[cells[0]], reverse=down)
        return sum(self._move(cells, weight) for cells in order)

    def _move(self, cells: Sequence[int], weight: Sequence[float]) -> bool:
        """Move a cluster to the best stage within its slack, if that is better than where it is."""
        here = self.stage[cells[0]]
        ins = self.inputs[cells[0]]
        outs = tuple(dict.fromkeys(signal for number in cells for signal in self.outputs[number]))
        ready = max((self.stage[d] for s in ins for d in self.drivers[s]), default=-1)
        earliest = self._first_stage(cells[0], ready)
        latest = 2 * self.layers - 1
        for signal in outs:
            latest = min(latest, min(self.read_at[signal], default=2 * self.layers) - 1)
        if earliest == here and latest < here + 2:
            return False
        own = set(cells)
        others = [
            2 * self.layers
            if s in self.code_signals
            else max(
                (at for at, count in self.read_at[s].items() if at != here or count > len(cells)),
                default=self._birth(s) or 0,
            )
            for s in ins
        ]
        births = [min((self.stage[d] for d in self.drivers[s] if d not in own), default=1 << 30) for s in outs]

        def cost(stage: int) -> float:
            total = sum(weight[(max(other, stage) | 1) + 1] for other in others)
            return total - sum(weight[min(birth, stage) + 1] for birth in births)

        best, best_cost = here, cost(here) - 1e-9
        for stage in range(earliest, latest + 1, 2):
            if stage == here or (stage % 2 == 0 and not has_deltanet(stage // 2)):
                continue
            found = cost(stage)
            if found < best_cost and self._fits(cells, stage):
                best, best_cost = stage, found
        if best == here:
            return False
        for number in cells:
            self._take(number)
            self._put(number, best)
        return True

    def result(self) -> Schedule:
        signals = range(len(self.drivers))
        return Schedule(
            lowered=self.lowered,
            stage=tuple(self.stage),
            layers=self.layers,
            birth=tuple(self._birth(signal) for signal in signals),
            death=tuple(self._death(signal) for signal in signals),
            peak=max(self.occupancy(), default=0),
        )
