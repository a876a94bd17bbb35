"""A schedule under construction: the stage of each cell, what each layer holds, and which signals are alive when.

A layer is two *stages*: its DeltaNet (stage 2 l; absent in every fourth layer) and its MLP (stage 2 l + 1). A cell
reads what stood before its stage and delivers at it. A signal has *events*: it is ready (its last driver's stage; -1
for the embedding), and it is read, by cells and at the very end by the output head.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from .lower import Lowered
from .netlist import DelayCell, SumCell, inputs, outputs
from .stock import has_deltanet

DELAYS_A_HEAD = 127  # the last value dim is the pad


@dataclass(frozen=True)
class Room:
    """What a layer may hold: heads of its DeltaNet, neurons of its MLP (``crowded`` layers: fewer, by layer)."""

    heads: int
    neurons: int
    max_layers: int
    crowded: tuple[tuple[int, int], ...] = ()


class Plan:
    """Stages of all cells of a netlist (-1: none yet); ``layers``: how many there are, once that is known."""

    def __init__(self, lowered: Lowered, room: Room) -> None:
        self.lowered = lowered
        self.room = room
        self.fewer = dict(room.crowded)
        netlist = lowered.netlist
        self.cells = netlist.cells
        self.layers = 0
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

    def grow(self, layer: int) -> None:
        """Make sure that there is such a layer."""
        while len(self.layer_rows) <= layer:
            self.layer_rows.append(Counter())
            self.memories.append(0)
            self.delays.append(0)

    def neurons_of(self, layer: int) -> int:
        """How many neurons the layer may have."""
        return min(self.room.neurons, self.fewer.get(layer, self.room.neurons))

    def heads_used(self, layer: int) -> int:
        """How many heads the layer has."""
        return self.memories[layer] + -(-self.delays[layer] // DELAYS_A_HEAD)

    def fits(self, cells: Sequence[int], stage: int) -> bool:
        """Whether a stage has room for some more cells, all sums or none."""
        layer = stage // 2
        self.grow(layer)
        if stage % 2:
            held = self.layer_rows[layer]
            fresh = {row for number in cells for row in self.rows[number] if row not in held}
            return len(held) + len(fresh) <= self.neurons_of(layer)
        delays = sum(isinstance(self.cells[number], DelayCell) for number in cells)
        heads = self.memories[layer] + len(cells) - delays + -(-(self.delays[layer] + delays) // DELAYS_A_HEAD)
        return has_deltanet(layer) and heads <= self.room.heads

    def put(self, number: int, stage: int) -> None:
        """Give a cell its stage."""
        layer = stage // 2
        self.grow(layer)
        self.stage[number] = stage
        for signal in self.inputs[number]:
            self.read_at[signal][stage] += 1
        if stage % 2:
            self.layer_rows[layer].update(self.rows[number])
        elif isinstance(self.cells[number], DelayCell):
            self.delays[layer] += 1
        else:
            self.memories[layer] += 1

    def take(self, number: int) -> None:
        """Take a cell off its stage."""
        stage = self.stage[number]
        layer = stage // 2
        for signal in self.inputs[number]:
            _forget(self.read_at[signal], stage)
        if stage % 2:
            held = self.layer_rows[layer]
            for row in self.rows[number]:
                _forget(held, row)
        elif isinstance(self.cells[number], DelayCell):
            self.delays[layer] -= 1
        else:
            self.memories[layer] -= 1

    def move_all(self, stages: Sequence[int]) -> None:
        """Give every cell the stage listed for it."""
        for number, stage in enumerate(stages):
            if stage != self.stage[number]:
                if self.stage[number] >= 0:
                    self.take(number)
                self.put(number, stage)

    def first_stage(self, number: int, after: int) -> int:
        """The first stage of the right kind for a cell that follows ``after``."""
        stage = after + 1
        if isinstance(self.cells[number], SumCell):
            return stage if stage % 2 else stage + 1
        stage += stage % 2
        return stage if has_deltanet(stage // 2) else stage + 2

    # what is alive when

    def birth(self, signal: int) -> int | None:
        """The stage that first drives a signal; None if nothing does."""
        if signal in self.token_signals:
            return -1
        return min((self.stage[d] for d in self.drivers[signal]), default=None)

    def ready(self, signal: int) -> int:
        """The stage that last drives a signal."""
        return max((self.stage[d] for d in self.drivers[signal]), default=-1)

    def death(self, signal: int) -> int:
        """The MLP stage from which on its dim can be another's."""
        if signal in self.code_signals:
            return 2 * self.layers + 1
        return max(self.read_at[signal], default=self.birth(signal) or 0) | 1

    def occupancy(self) -> list[int]:
        """Signals alive after each stage, from the embedding (index 0) on."""
        change = [0] * (2 * self.layers + 4)
        for signal in range(len(self.drivers)):
            birth = self.birth(signal)
            if birth is not None:
                change[birth + 1] += 1
                change[self.death(signal) + 1] -= 1
        return list(accumulate(change[: 2 * self.layers + 1]))


def _forget(counter: Counter[int], key: int) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
