"""What a person wants to know of a cast: sizes by layer, what lives where by name, and the certificate in short."""

from __future__ import annotations

from dataclasses import dataclass

from .emit import neurons_a_layer
from .netlist import DelayCell, MemoryCell, outputs
from .network import Network
from .place import Placement
from .plan import DELAYS_A_HEAD


@dataclass(frozen=True)
class LayerReport:
    """One layer. ``alive``: signals that cross from it to the next; ``heads``: memories, then heads of delays;
    ``memories``: names; ``delivered``: signals that its DeltaNet and its MLP bring."""

    layer: int
    heads: int
    neurons: int
    clears: int
    alive: int
    memories: tuple[str, ...]
    delivered: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """A whole cast. ``peak``: most signals alive at once; ``nonzeros``: of all sparse matrices."""

    circuit: str
    hidden: int
    intermediate: int
    peak: int
    nonzeros: int
    margin: float
    weakest: str
    gap: float
    steps: int
    sums: int
    layers: tuple[LayerReport, ...]

    def table(self) -> str:
        """A text table, a line a layer."""
        lines = [
            f"{self.circuit}: {len(self.layers)} layers, hidden {self.hidden} ({self.peak} signals at most), "
            f"intermediate {self.intermediate}, {self.nonzeros} non-zeros",
            f"smallest margin {self.margin:.3f} (float32): {self.weakest}",
            f"logit gap {self.gap:.1f} (float32); {self.steps} of {self.sums} sums have steps",
            "layer  heads  neurons  clears  alive  memories",
        ]
        for layer in self.layers:
            names = ", ".join(layer.memories)
            lines.append(
                f"{layer.layer:5d}  {layer.heads:5d}  {layer.neurons:7d}  {layer.clears:6d}  {layer.alive:5d}  "
                f"{names if len(names) <= 80 else names[:77] + '...'}"
            )
        return "\n".join(lines)


def report_on(placement: Placement, network: Network) -> Report:
    """Collects the numbers."""
    plan = placement.schedule
    netlist = plan.lowered.netlist
    neurons = neurons_a_layer(placement)
    memories: list[list[str]] = [[] for _ in range(plan.layers)]
    delays = [0] * plan.layers
    delivered: list[list[str]] = [[] for _ in range(plan.layers)]
    for cell, stage in zip(netlist.cells, plan.stage, strict=True):
        if isinstance(cell, MemoryCell):
            memories[stage // 2].append(cell.name)
        delays[stage // 2] += isinstance(cell, DelayCell)
        delivered[stage // 2] += [netlist.names[signal] for signal in outputs(cell)]
    change = [0] * (plan.layers + 2)
    for birth, death in zip(plan.birth, plan.death, strict=True):
        if birth is not None:
            change[max(birth, 0) // 2] += 1
            change[min(death // 2, plan.layers)] -= 1
    layers = []
    alive = 0
    for layer in range(plan.layers):
        alive += change[layer]
        layers.append(
            LayerReport(
                layer=layer,
                heads=len(memories[layer]) + -(-delays[layer] // DELAYS_A_HEAD),
                neurons=neurons[layer],
                clears=len(placement.clears.get(layer, ())),
                alive=alive,
                memories=tuple(memories[layer]),
                delivered=tuple(delivered[layer]),
            )
        )
    certificate = network.certificate
    return Report(
        circuit=netlist.name,
        hidden=network.shape.hidden,
        intermediate=network.shape.intermediate,
        peak=plan.peak,
        nonzeros=sum(len(matrix.values) for matrix in network.sparse.values()),
        margin=certificate["min_margin_float32"],
        weakest=certificate["weakest"],
        gap=certificate["min_gap_float32"],
        steps=certificate["sums_in_steps"],
        sums=certificate["sums"],
        layers=tuple(layers),
    )
