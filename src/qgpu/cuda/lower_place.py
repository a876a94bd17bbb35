"""Requests put into machine blocks: which block can take one, and what is where once it has been put there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from qgpu.cuda.ir import Reg, Type
from qgpu.cuda.lower_match import Matcher
from qgpu.cuda.lower_nodes import Node
from qgpu.cuda.lower_ports import Fields
from qgpu.cuda.lower_reads import (
    BLOCK_COST,
    LANE_COST,
    SECOND_COST,
    by_order,
    has_room,
    read_places,
    reads_register,
    roots,
    value_cost,
)
from qgpu.cuda.lower_requests import (
    Gather,
    Leave,
    Memory,
    Place,
    Request,
    Stage,
    ToPair,
    ToPredicate,
    ToRegister,
    ToStage,
    Word,
)
from qgpu.cuda.lower_work import Goal, Work
from qgpu.isa.tokens import STAGE_REGISTERS

_NEVER = 1 << 30


@dataclass(frozen=True)
class Cut:
    """Blocks so far, and where each value is.

    ``fields[i]``: block i as the matcher filled it. ``registers``, ``stages``, ``predicates``, ``loaded``: node -> the
    block that writes it there or loads it. ``overwritten``: registers live at the start that get a new value, and the
    block that does it. ``made``: registers that an effect has written, and its block. ``effects``: the block of each
    effect done. ``exit``: the last block where threads end on the way. ``cost``: in tokens.
    """

    requests: tuple[tuple[Request, ...], ...] = ()
    fields: tuple[Fields, ...] = ()
    registers: dict[Node, tuple[Reg, int]] = field(default_factory=dict)
    stages: dict[Node, tuple[Stage, int]] = field(default_factory=dict)
    predicates: dict[Node, int] = field(default_factory=dict)
    loaded: dict[Node, int] = field(default_factory=dict)
    overwritten: dict[Reg, int] = field(default_factory=dict)
    made: dict[Reg, int] = field(default_factory=dict)
    effects: tuple[int, ...] = ()
    exit: int = -1
    cost: float = 0.0


@dataclass
class Effort:
    """How many places for requests may still be looked at for the sake of fewer tokens; counted, not timed, so that
    the same kernel always gives the same program. Once spent, values go to registers one by one."""

    left: int = 25_000

    @property
    def spent(self) -> bool:
        return self.left <= 0


@dataclass
class Placer:
    """``prefix``: of the names of registers made here. ``tight``: values are computed as late as possible, so that few
    of them wait in registers."""

    work: Work
    prefix: str
    tight: bool = False
    trees: dict[Request, frozenset[Node]] = field(default_factory=dict)
    nodes: dict[tuple[Request, ...], frozenset[Node]] = field(default_factory=dict)
    names: dict[Node, Reg] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)

    @cached_property
    def reached(self) -> tuple[Node, ...]:
        """All nodes that goals depend on, in order of making."""
        found = frozenset().union(*(self.tree(goal.request) for goal in self.work.everything()))
        return tuple(sorted(found, key=by_order))

    def tree(self, request: Request) -> frozenset[Node]:
        """All nodes a request depends on."""
        if request not in self.trees:
            found: set[Node] = set()
            waiting = list(roots(request))
            while waiting:
                node = waiting.pop()
                if node not in found:
                    found.add(node)
                    waiting += node.args
            self.trees[request] = frozenset(found)
        return self.trees[request]

    def attempt(self, cut: Cut, request: Request, goal: Goal | None) -> Cut | None:
        """The cut with the request in the first block that takes it, a new one if need be; None if it does not fit."""
        first, last = 0, len(cut.requests)
        effect = goal.effect if goal is not None else None
        if effect is not None:
            first = max(cut.effects, default=0)
            if not isinstance(request, Leave):
                first = max(first, cut.exit + 1)
            if isinstance(request, Memory):  # what was to be loaded before it has been
                first = max([first, *(block for node, block in cut.loaded.items() if self.work.epoch[node] <= effect)])
        if goal is not None and goal is self.work.end:
            first = max(last - 1, 0)
        if isinstance(request, ToRegister | ToPredicate) and goal is not None:
            first = max(first, self.last_read(cut, request.register))
        for index in range(max(first, last - 1) if self.tight or self.effort.spent else first, last + 1):
            done = self.at(cut, request, index, goal)
            if done is not None:
                return done
        return None

    def last_read(self, cut: Cut, register: Reg) -> int:
        """The last block that reads what a register held at the start."""
        return max((i for i, fields in enumerate(cut.fields) if reads_register(fields, register)), default=0)

    def append(self, cut: Cut, request: Request) -> Cut:
        done = self.at(cut, request, len(cut.requests), None)
        assert done is not None
        return done

    def at(self, cut: Cut, request: Request, index: int, goal: Goal | None) -> Cut | None:
        """The cut with the request in block ``index``, or None."""
        self.effort.left -= 1
        there = cut.requests[index] if index < len(cut.requests) else ()
        if not has_room(there, request) or self.rivals(cut, there, request):
            return None
        requests = (*there, request)
        fields = self.fit(cut, requests, index)
        if fields is None:
            return None
        done = self.noted(cut, requests, fields, request, index, goal)
        staged = any(isinstance(fields.get(port), Stage) for port in ("stage_wi", "stage_1", "stage_2"))
        return None if staged and stage_numbers(done) is None else done

    def rivals(self, cut: Cut, there: Sequence[Request], request: Request) -> bool:
        """Whether ALU A would have to give two values: seen at once, where the matcher would try everything."""
        mine = self.through_r(cut, request)
        return mine is not None and any(self.through_r(cut, other) not in (None, mine) for other in there)

    def through_r(self, cut: Cut, request: Request) -> Node | None:
        """The value that a request needs ALU A to give, if it is sure to."""
        if isinstance(request, ToPair):
            return request.node.args[0] if request.node not in cut.registers else None
        if isinstance(request, ToStage | ToRegister):
            if request.node.kind == "load" and request.node not in cut.stages and request.node not in cut.registers:
                return request.node.args[0]
            if isinstance(request, ToStage) and request.node.kind != "load":
                return request.node
        return None

    def fit(self, cut: Cut, requests: tuple[Request, ...], index: int) -> Fields | None:
        """The matcher's answer, remembered by all that it depends on."""
        nodes = self.below(requests)
        key = (
            requests,
            tuple((node, found[0]) for node, found in cut.registers.items() if found[1] < index and node in nodes),
            tuple(node for node, found in cut.stages.items() if found[1] < index and node in nodes),
            tuple(node for node, block in cut.predicates.items() if block < index and node in nodes),
            tuple((node, block == index) for node, block in cut.loaded.items() if node in nodes),
            tuple(register for register, block in cut.overwritten.items() if block < index),
            tuple(register for register, block in cut.made.items() if block < index),
            index == 0 and self.work.collect is not None,
            tuple((block > index) - (block < index) for block in cut.effects),
        )
        memory = self.work.fits
        if key not in memory:
            matcher = Matcher(
                lambda node: self.places(cut, node, index),
                self.predicate,
                lambda node: self.ready(cut, node, index),
                lambda node: self.may_load(cut, node, index),
            )
            memory[key] = matcher.fit(requests)
        return memory[key]

    def below(self, requests: tuple[Request, ...]) -> frozenset[Node]:
        """All nodes that some requests depend on."""
        if requests not in self.nodes:
            self.nodes[requests] = frozenset().union(*map(self.tree, requests))
        return self.nodes[requests]

    def places(self, cut: Cut, node: Node, index: int) -> list[Place]:
        """Where block ``index`` can read a value."""
        found: list[Place] = []
        match node.kind:
            case "const":
                signed = node.value - (1 << 32) if node.value >> 31 else node.value
                if -0x8000 <= signed <= 0x7FFF:
                    found.append(Place("imm", signed))
                found.append(Place("word", Word(constant=node.value)))
            case "word":
                found.append(Place("word", Word(node.value)))
            case "x" | "y":
                found.append(Place(node.kind, node.name))
            case "reg":
                if cut.overwritten.get(node.register, _NEVER) >= index:  # type: ignore[arg-type]
                    found.append(Place("reg", node.register))
            case "made":
                if cut.made.get(node.register, _NEVER) < index:  # type: ignore[arg-type]
                    found.append(Place("reg", node.register))
            case "v":
                if index == 0:
                    found.append(Place("ballot" if node.name == "ballot" else "shuffled", True))
        register = cut.registers.get(node)
        if register is not None and register[1] < index:
            found.append(Place("reg", register[0]))
        stage = cut.stages.get(node)
        if stage is not None and stage[1] < index:
            found.append(Place("stage", stage[0]))
        return found

    def ready(self, cut: Cut, node: Node, index: int) -> bool:
        """Whether block ``index`` finds a predicate written."""
        if node.register is not None:
            return cut.overwritten.get(node.register, _NEVER) >= index
        return cut.predicates.get(node, _NEVER) < index

    def may_load(self, cut: Cut, node: Node, index: int) -> bool:
        """Whether a load can stand in a block: behind the stores and ends of threads before it, not behind those after
        it, and only once. What is collected can be only in the first block."""
        if node.kind == "range":
            return index == 0
        if node in cut.loaded:
            return cut.loaded[node] == index
        epoch = self.work.epoch[node]
        before = max(cut.effects[:epoch], default=-1)
        after = min(
            (block for number, block in enumerate(cut.effects) if number >= epoch and self.is_store(number)),
            default=_NEVER,
        )
        return before < index <= after

    def is_store(self, effect: int) -> bool:
        return isinstance(self.work.goals[effect].request, Memory)

    def noted(
        self, cut: Cut, requests: tuple[Request, ...], fields: Fields, request: Request, index: int, goal: Goal | None
    ) -> Cut:
        """The cut after a request has been placed."""
        new = index == len(cut.requests)
        written = fields.get("p_node")
        if isinstance(written, Node) and not any(isinstance(r, ToPredicate) and r.node is written for r in requests):
            requests = (*requests, ToPredicate(written, self.predicate(written)))
        changed: dict[str, object] = {
            "requests": (*cut.requests[:index], requests, *cut.requests[index + 1 :]),
            "fields": (*cut.fields[:index], fields, *cut.fields[index + 1 :]),
            "cost": cut.cost + (BLOCK_COST if new else 0),
        }
        named = isinstance(written, Node) and fields["p_index"] == self.predicate(written)
        if isinstance(written, Node) and named and cut.predicates.get(written, _NEVER) > index:
            changed["predicates"] = {**cut.predicates, written: index}
        load = fields.get("L")
        if isinstance(load, Node) and load not in cut.loaded:
            changed["loaded"] = {**cut.loaded, load: index}
        match request:
            case ToRegister(node=node, register=register):
                if node not in cut.registers or cut.registers[node][1] > index:
                    changed["registers"] = {**cut.registers, node: (register, index)}
                second = any(isinstance(other, ToRegister) for other in requests if other is not request)
                changed["cost"] = float(changed["cost"]) + value_cost(request) + SECOND_COST * second  # type: ignore[arg-type]
                if goal is not None:
                    changed["overwritten"] = {**cut.overwritten, register: index}
                if goal is not None and goal.effect is not None:
                    changed["made"] = {**cut.made, register: index}
            case ToPair(node=node, low=low, high=high):
                words = {node: (low, index), self.work.graph.high(node): (high, index)}
                changed["registers"] = {**cut.registers, **words}
                changed["cost"] = float(changed["cost"]) + value_cost(request)  # type: ignore[arg-type]
            case Memory(old=Reg() as old):
                changed["made"] = {**cut.made, old: index}
                changed["cost"] = float(changed["cost"]) + LANE_COST + SECOND_COST  # type: ignore[arg-type]
            case Gather(scratch=scratch) if fields.get("d_b") == scratch:
                changed["cost"] = float(changed["cost"]) + LANE_COST  # type: ignore[arg-type]
            case ToStage(node=node, stage=stage):
                changed["stages"] = {**cut.stages, node: (stage, index)}
            case ToPredicate(register=register) if goal is not None:
                changed["overwritten"] = {**cut.overwritten, register: index}
        if goal is not None and goal.effect is not None:
            changed["effects"] = (*cut.effects, index)
            if isinstance(request, Leave):
                changed["exit"] = index
        return replace(cut, **changed)  # type: ignore[arg-type]

    def without_unread(self, cut: Cut) -> Cut:
        """The cut without values that were computed before a request and then not read."""
        while True:
            read = {content for fields in cut.fields for content in read_places(fields)}
            place = next(
                (
                    (index, request)
                    for index, requests in enumerate(cut.requests)
                    for request in requests
                    if (isinstance(request, ToStage) and request.stage not in read)
                    or (isinstance(request, ToRegister) and request.register not in read and self.is_own(request))
                ),
                None,
            )
            if place is None:
                return cut
            index, request = place
            requests = tuple(other for other in cut.requests[index] if other is not request)
            less = replace(
                cut,
                requests=(*cut.requests[:index], requests, *cut.requests[index + 1 :]),
                registers={node: found for node, found in cut.registers.items() if found[0] != request.register}
                if isinstance(request, ToRegister)
                else cut.registers,
                stages={node: found for node, found in cut.stages.items() if found[0] != request.stage}
                if isinstance(request, ToStage)
                else cut.stages,
                cost=cut.cost - value_cost(request),
            )
            fields = self.fit(less, requests, index)
            assert fields is not None  # one request less fits, too
            less = replace(less, fields=(*cut.fields[:index], fields, *cut.fields[index + 1 :]))
            if stage_numbers(less) is None:
                return cut
            cut = less

    def is_own(self, request: ToRegister) -> bool:
        """Whether a register was made here, and nothing after the region reads it."""
        return request.register.name.startswith(self.prefix) and request.register not in self.work.region.live

    # ---- Names ----

    def register(self, node: Node) -> Reg:
        return Reg(f"{self.prefix}{node.order}", Type.B32)

    def stage(self, node: Node) -> Stage:
        return Stage(node.order)

    def predicate(self, node: Node) -> Reg:
        """The register of a predicate: the one it is to be in at the end, if nothing reads the old content of that."""
        if node.register is not None:
            return node.register
        if node not in self.names:
            targets = [
                goal.request.register
                for goal in self.work.writes
                if isinstance(goal.request, ToPredicate) and goal.request.node is node
            ]
            read = {other.register for other in self.reached if other.kind == "preg"}
            free = [register for register in targets if register not in read]
            self.names[node] = free[0] if free else Reg(f"{self.prefix}p{node.order}", Type.PRED)
        return self.names[node]


def stage_numbers(cut: Cut) -> dict[Stage, int] | None:
    """A number for every stage register, or None if four do not suffice."""
    spans: dict[Stage, list[int]] = {}
    for index, fields in enumerate(cut.fields):
        for port in ("stage_wi", "stage_1", "stage_2"):
            stage = fields.get(port)
            if isinstance(stage, Stage):
                spans.setdefault(stage, []).append(index)
    numbers: dict[Stage, int] = {}
    for stage, span in sorted(spans.items(), key=lambda item: min(item[1])):
        # A block that writes a stage register reads the new value from it, so that not even the last read may overlap.
        busy = {numbers[other] for other in numbers if max(spans[other]) >= min(span)}
        free = [number for number in range(STAGE_REGISTERS) if number not in busy]
        if not free:
            return None
        numbers[stage] = free[0]
    return numbers
