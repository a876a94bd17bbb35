"""A region ready to be cut into blocks: its graph of values and its goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from qgpu.cuda.lower_nodes import Graph, Node
from qgpu.cuda.lower_regions import Region
from qgpu.cuda.lower_requests import Request


@dataclass(frozen=True)
class Goal:
    """``effect``: its number among what must stay in order (stores, atomics, volatile loads, threads' ends), or None.
    ``instructions``: what of the region's items it stands for."""

    request: Request
    effect: int | None = None
    instructions: tuple[int, ...] = ()


@dataclass
class Work:
    """A region ready to be cut into blocks.

    ``epoch``: for every load the number of effects before it. ``made``: node -> items that compute it.
    ``tail``: where an extra jump behind the last block goes; "" for none. ``two_guards``: of one memory access.
    ``collect``: what the first block collects. ``some_lanes``: the gather at the end may be of some lanes only.
    """

    region: Region
    graph: Graph
    goals: list[Goal] = field(default_factory=list)
    writes: list[Goal] = field(default_factory=list)
    end: Goal | None = None
    collect: Goal | None = None
    some_lanes: bool = False
    tail: str = ""
    epoch: dict[Node, int] = field(default_factory=dict)
    made: dict[Node, list[int]] = field(default_factory=dict)
    effects: int = 0
    copies: int = 0
    two_guards: bool = False
    fits: dict[object, Mapping[str, object] | None] = field(default_factory=dict)

    def everything(self) -> list[Goal]:
        ends = [goal for goal in (self.collect, self.end) if goal is not None]
        return [*ends[: self.collect is not None], *self.goals, *self.writes, *ends[self.collect is not None :]]
