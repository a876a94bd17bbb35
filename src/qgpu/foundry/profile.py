"""Where a circuit's layers and dims go: a table by layer, and its critical path. For those who write circuits.

``python -m qgpu.foundry.profile qgpu.machine.machine:machine_circuit`` schedules what that function builds (no weights
are written) and prints, for each layer, its heads, its neurons, the signals alive after its DeltaNet and after its MLP,
and the largest groups of those, by name. Names are grouped with their numbers left out: ``alu.lane*.sum (128)``.
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit.ir import Circuit

from .cast import Options
from .lower import lower
from .netlist import DelayCell, LayerCell, MemoryCell, Netlist, SumCell, inputs, outputs, prune
from .place import rows_a_layer, slots_within
from .plan import DELAYS_A_HEAD, Room
from .schedule import Schedule
from .settle import schedule
from .stock import has_deltanet
from .validate import validate


@dataclass(frozen=True)
class LayerProfile:
    """One layer: heads and neurons used; signals alive after its DeltaNet and after its MLP; the groups of whichever is
    more, largest first."""

    layer: int
    heads: int
    neurons: int
    after_heads: int
    after_mlp: int
    groups: tuple[tuple[str, int], ...]

    def line(self, groups: int) -> str:
        """One line of the table, with so many groups."""
        listed = ", ".join(f"{name} ({count})" for name, count in self.groups[:groups])
        sizes = f"{self.layer:5d}  {self.heads:5d}  {self.neurons:7d}  {self.after_heads:11d}  {self.after_mlp:9d}"
        return f"{sizes}  {listed}"


@dataclass(frozen=True)
class Profile:
    """``path``: (stage, cell) of a longest chain, first cell first; a stage is twice its layer, plus 1 for the MLP, and
    counts from what the cells need alone, without limits of heads and neurons."""

    circuit: str
    peak: int
    layers: tuple[LayerProfile, ...]
    path: tuple[tuple[int, str], ...]

    def table(self, groups: int = 6) -> str:
        """A line a layer."""
        head = f"{self.circuit}: {len(self.layers)} layers, {self.peak} signals at most"
        title = "layer  heads  neurons  after heads  after MLP  largest groups of signals"
        return "\n".join([head, title, *(layer.line(groups) for layer in self.layers)])

    def critical(self) -> str:
        """A line for each cell on the critical path."""
        lines = [f"critical path: {(self.path[-1][0] if self.path else -1) // 2 + 1} layers"]
        lines += [f"{stage // 2:5d}  {'MLP ' if stage % 2 else 'head'}  {name}" for stage, name in self.path]
        return "\n".join(lines)


def profile(circuit: Circuit, options: Options | None = None, depth: int | None = None) -> Profile:
    """Schedules a circuit and looks at it. ``depth``: how many parts of a name tell its group, None: all."""
    options = options or Options()
    netlist = prune(validate(circuit))
    room = Room(options.heads, options.intermediate or options.max_intermediate, options.max_layers)
    target = slots_within(options.max_hidden, options.text_dims) if options.max_hidden else None
    return profile_of(schedule(lower(netlist), room, target), depth)


def profile_of(plan: Schedule, depth: int | None = None) -> Profile:
    """The profile of a schedule."""
    netlist = plan.lowered.netlist
    memories, delays = [0] * plan.layers, [0] * plan.layers
    for cell, stage in zip(netlist.cells, plan.stage, strict=True):
        memories[stage // 2] += isinstance(cell, MemoryCell)
        delays[stage // 2] += isinstance(cell, DelayCell)
    neurons = rows_a_layer(plan)
    alive = [_alive(plan, stage) for stage in range(2 * plan.layers)]
    layers = []
    for layer in range(plan.layers):
        heads, mlp = alive[2 * layer], alive[2 * layer + 1]
        names = Counter(group_of(netlist.names[signal], depth) for signal in max(heads, mlp, key=len))
        layers.append(
            LayerProfile(
                layer,
                memories[layer] - (-delays[layer] // DELAYS_A_HEAD),
                neurons[layer],
                len(heads),
                len(mlp),
                tuple(names.most_common()),
            )
        )
    return Profile(netlist.name, plan.peak, tuple(layers), critical_path(netlist))


def _alive(plan: Schedule, stage: int) -> list[int]:
    """Signals that have a dim after a stage."""
    spans = enumerate(zip(plan.birth, plan.death, strict=True))
    return [signal for signal, (birth, death) in spans if birth is not None and birth <= stage < death]


def group_of(name: str, depth: int | None = None) -> str:
    """A name with its numbers left out: ``alu.lane2.sum.bit17`` belongs to ``alu.lane*.sum``."""
    parts = re.sub(r"\.bit\d+", "", name).split(".")[:depth]
    return re.sub(r"\d+", "*", ".".join(parts))


def critical_path(netlist: Netlist) -> tuple[tuple[int, str], ...]:
    """A longest chain of cells, each at the earliest stage it can have if heads and neurons do not run out."""
    ready: dict[int, tuple[int, int]] = {}  # signal -> stage, cell that is last to drive it
    before: list[int | None] = []
    stages: list[int] = []
    for number, cell in enumerate(netlist.cells):
        after, source = max((ready[s] for s in inputs(cell) if s in ready), default=(-1, -1))
        stage = after + 1
        if isinstance(cell, SumCell):
            stage += 1 - stage % 2
        else:
            stage += stage % 2
            stage += 0 if has_deltanet(stage // 2) else 2
        stages.append(stage)
        before.append(source if source >= 0 else None)
        for out in outputs(cell):
            ready[out] = max(ready.get(out, (-1, -1)), (stage, number))
    at: int | None = max(range(len(stages)), key=lambda number: stages[number], default=None)
    path: list[tuple[int, str]] = []
    while at is not None:
        path.append((stages[at], cell_name(netlist.cells[at], netlist.names)))
        at = before[at]
    return tuple(reversed(path))


def cell_name(cell: LayerCell, names: Sequence[str]) -> str:
    """What to call a cell."""
    return f"memory {cell.name}" if isinstance(cell, MemoryCell) else names[cell.out]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m qgpu.foundry.profile", description=__doc__)
    parser.add_argument("circuit", help="module:function that returns a Circuit")
    parser.add_argument("--groups", type=int, default=6, help="groups of signals to list for each layer")
    parser.add_argument("--depth", type=int, default=None, help="parts of a name that tell its group")
    parser.add_argument("--heads", type=int, default=Options.heads)
    parser.add_argument("--dims", type=int, default=None, help="residual dims that packing is to reach")
    parser.add_argument("--neurons", type=int, default=Options.max_intermediate)
    given = parser.parse_args()
    module, _, function = given.circuit.partition(":")
    circuit = getattr(importlib.import_module(module), function)()
    options = Options(heads=given.heads, max_intermediate=given.neurons, max_hidden=given.dims)
    found = profile(circuit, options, given.depth)
    print(found.table(given.groups))
    print(found.critical())


if __name__ == "__main__":
    main()
