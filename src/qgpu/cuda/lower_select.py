"""Cuts a region into machine blocks: few blocks, and above all few values that have to be written to registers.

Goals are done one after the other. One that fits no block as it is gets some of its operands computed before, into a stage
register where that is possible (it costs no token), else into a register; a small beam search finds which. Every request
goes to the first block that can take it, so that blocks fill up with work that is independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from qgpu.cuda.ir import Reg, Type
from qgpu.cuda.lower_match import (
    Fields,
    Leave,
    Matcher,
    Memory,
    Place,
    Request,
    Stage,
    ToPredicate,
    ToRegister,
    ToStage,
    Word,
)
from qgpu.cuda.lower_nodes import Node, small_shift
from qgpu.cuda.lower_region import Goal, Work
from qgpu.isa.tokens import STAGE_REGISTERS

BEAM = 4
LEVELS = 24
UNIFORM_COST, LANE_COST, SECOND_COST, BLOCK_COST = 1.25, 4.5, 1.0, 1.0
"""Tokens that a write to a register takes, as a guess: one value for all lanes, one a lane; a second one's marker; EXEC."""
LEFT_COST = 1.0
"""Guess of what a node still costs that is not yet there."""
_NEVER = 1 << 30


class CannotSelect(Exception):
    """A goal that fits no block, whatever is computed before it."""


@dataclass(frozen=True)
class Cut:
    """Blocks so far, and where each value is. ``number``: places of values by the block they are written in.

    ``fields[i]``: block i as the matcher filled it. ``effects``: block of each effect done. ``barrier``: no effect and no
    load may stand in a block up to this one, since threads end there. ``overwritten``: registers live at the start that got a new value, and where.
    """

    requests: tuple[tuple[Request, ...], ...] = ()
    fields: tuple[Fields, ...] = ()
    registers: dict[Node, tuple[Reg, int]] = field(default_factory=dict)
    stages: dict[Node, tuple[Stage, int]] = field(default_factory=dict)
    predicates: dict[Node, int] = field(default_factory=dict)
    loaded: dict[Node, int] = field(default_factory=dict)
    overwritten: dict[Reg, int] = field(default_factory=dict)
    effects: tuple[int, ...] = ()
    exit: int = -1
    cost: float = 0.0


@dataclass
class Selector:
    """``stages``: whether stage registers may be used. ``forced``: values to be written to registers as soon as a goal
    needs them."""

    work: Work
    prefix: str
    stages: bool = True
    forced: frozenset[Node] = frozenset()
    trees: dict[Request, frozenset[Node]] = field(default_factory=dict)
    changing: dict[Request, tuple[Node, ...]] = field(default_factory=dict)
    names: dict[Node, Reg] = field(default_factory=dict)

    @cached_property
    def reached(self) -> tuple[Node, ...]:
        """All nodes that goals depend on, in order of making."""
        found = frozenset().union(*(self.tree(goal.request) for goal in self.requests()))
        return tuple(sorted(found, key=_order))

    @cached_property
    def users(self) -> Counter[Node]:
        """How many other nodes and goals read a node."""
        count = Counter(node for goal in self.requests() for node in set(roots(goal.request)))
        count.update(arg for node in self.reached for arg in set(node.args))
        return count

    # ---- The whole region ----

    def run(self) -> Cut:
        work = self.work
        cut = Cut()
        early = self.loads_before_stores()
        for position, goal in enumerate(work.goals):
            for node in early.get(position, ()):
                cut = self.hold(cut, node)
            cut = self.plan(self.prepare(cut, goal.request), goal.request, goal)
        waiting = list(work.writes)
        while waiting:
            cut, goal = self.next_write(cut, waiting)
            waiting = [other for other in waiting if other is not goal]
            cut = self.plan(self.prepare(cut, goal.request), goal.request, goal)
        if work.end is not None:
            cut = self.plan(self.prepare(cut, work.end.request), work.end.request, work.end)
        if work.tail:
            cut = self.append(cut, Leave("bra", work.tail))
        return cut

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

    def requests(self) -> list[Goal]:
        return [*self.work.goals, *self.work.writes, *([self.work.end] if self.work.end else [])]

    def loads_before_stores(self) -> dict[int, list[Node]]:
        """Loads to be done before a store because what comes after it reads them: position of the goal -> loads."""
        found: dict[int, list[Node]] = {}
        everything = self.requests()
        held: set[Node] = set()
        for position, goal in enumerate(self.work.goals):
            if not isinstance(goal.request, Memory):
                continue
            assert goal.effect is not None
            later = frozenset().union(*(self.tree(other.request) for other in everything[position + 1 :]))
            for node in sorted(later & set(self.work.epoch), key=lambda n: n.number):
                if self.work.epoch[node] <= goal.effect and node not in held:
                    held.add(node)
                    found.setdefault(position, []).append(node)
        return found

    def prepare(self, cut: Cut, request: Request) -> Cut:
        """What a goal needs computed before: loads that several read, and values forced into registers."""
        for node in sorted(self.needed(cut, request), key=_size):
            if node in self.forced and node not in cut.registers and node not in roots_written(request):
                cut = self.plan(cut, ToRegister(node, self.register(node)))
            elif node.kind == "load" and self.users[node] > 1 and node not in roots_written(request):
                cut = self.hold(cut, node)
        return cut

    def hold(self, cut: Cut, node: Node) -> Cut:
        """A load done and kept."""
        if node in cut.registers or node in cut.stages:
            return cut
        if self.stages and node not in self.forced and not self.is_address(node):
            return self.plan(cut, ToStage(node, self.stage(node)))
        return self.plan(cut, ToRegister(node, self.register(node)))

    def is_address(self, node: Node) -> bool:
        """Whether a value is read where only registers can stand: by an address or a shifted operand."""
        for other in self.reached:
            if other.kind == "load" and (node is other.args[0] or node in other.args[0].args):
                return True
        addresses = [goal.request.address for goal in self.work.goals if isinstance(goal.request, Memory)]
        return any(node is address or node in address.args for address in addresses)

    def next_write(self, cut: Cut, waiting: Sequence[Goal]) -> tuple[Cut, Goal]:
        """A register write that takes no old value away from what is still to do; if there is none, a value is copied."""
        end = [self.work.end] if self.work.end else []
        for goal in waiting:
            others = [other for other in (*waiting, *end) if other is not goal]
            target = goal.request.register  # type: ignore[union-attr]
            value = goal.request.node  # type: ignore[union-attr]
            known = {value}
            if not any(self.reads_leaf(cut, other.request, target, known) for other in others):
                return cut, goal
        goal = waiting[0]
        target = goal.request.register  # type: ignore[union-attr]
        leaf = next(
            node
            for other in (*waiting, *end)
            for node in sorted(self.tree(other.request), key=_order)
            if node.register == target and node.leaf
        )
        if leaf.kind == "preg":
            raise CannotSelect(f"predicates change places in {self.work.region.label}")
        return self.plan(cut, ToRegister(leaf, self.register(leaf))), goal

    def reads_leaf(self, cut: Cut, request: Request, register: Reg, known: set[Node]) -> bool:
        waiting = [node for node in roots(request)]
        seen: set[Node] = set()
        while waiting:
            node = waiting.pop()
            if node in seen or node in known or node in cut.registers or node in cut.predicates:
                continue
            seen.add(node)
            if node.leaf and node.register == register:
                return True
            waiting += node.args
        return False

    # ---- One goal ----

    def plan(self, cut: Cut, request: Request, goal: Goal | None = None) -> Cut:
        """The cut with the request done, operands computed before as needed, at the least cost found."""
        found = self.search(cut, request, goal)
        if found is not None:
            return found
        # One by one always works: every operation has a block that takes its operands from registers.
        for node in sorted(self.needed(cut, request) - {*roots_written(request)}, key=_size):
            for leaf in node.args:
                cut = self.in_register(cut, leaf)
            cut = self.in_register(cut, node)
        for leaf in roots(request):
            if leaf not in roots_written(request):
                cut = self.in_register(cut, leaf)
        for leaf in (leaf for node in roots_written(request) for leaf in node.args):
            cut = self.in_register(cut, leaf)
        found = self.attempt(cut, request, goal)
        if found is None:
            raise CannotSelect(f"{request} fits no machine block in {self.work.region.label}")
        return found

    def in_register(self, cut: Cut, node: Node) -> Cut:
        if node.kind in ("cmp", "preg", "reg") or node in cut.registers:
            return cut
        found = self.attempt(cut, ToRegister(node, self.register(node)), None)
        if found is None:
            raise CannotSelect(f"{node} fits no machine block in {self.work.region.label}")
        return found

    def search(self, cut: Cut, request: Request, goal: Goal | None) -> Cut | None:
        """The cheapest way found to do a request by computing some of its operands before."""
        states = [cut]
        best: Cut | None = None
        for _ in range(LEVELS):
            following: list[Cut] = []
            for state in states:
                done = self.attempt(state, request, goal)
                if done is not None and (best is None or done.cost < best.cost):
                    best = done
                if done is not None and done.cost - state.cost <= BLOCK_COST + _value_cost(request):
                    continue
                for node in self.candidates(state, request):
                    for before in self.ways(state, node):
                        more = self.attempt(state, before, None)
                        if more is not None and (best is None or more.cost < best.cost):
                            following.append(more)
            if not following:
                break
            left = {id(state): len(self.needed(state, request)) for state in following}
            following.sort(key=lambda state: state.cost + LEFT_COST * left[id(state)])
            states = []
            for state in following:
                if len(states) < BEAM and not any(state.requests == other.requests for other in states):
                    states.append(state)
        return best

    def needed(self, cut: Cut, request: Request) -> set[Node]:
        """Nodes of a request's tree that are not there yet, leaves left out."""
        found: set[Node] = set()
        waiting = list(roots(request))
        while waiting:
            node = waiting.pop()
            if node in found or node.leaf or node in cut.registers or node in cut.stages:
                continue
            if node.kind == "cmp" and node in cut.predicates:
                continue
            found.add(node)
            waiting += node.args
        return found

    def candidates(self, cut: Cut, request: Request) -> list[Node]:
        """What may be computed before a request, small things first."""
        found = {node for node in self.needed(cut, request) if node not in roots_written(request)}
        return sorted(found.union(self.stuck(cut, request)), key=_size)

    def stuck(self, cut: Cut, request: Request) -> Iterator[Node]:
        """Values in stage registers that may be needed in registers."""
        for node in self.tree(request):
            if node in cut.stages and node not in cut.registers:
                yield node

    def ways(self, cut: Cut, node: Node) -> Iterator[Request]:
        if node.kind == "cmp":
            if node not in cut.predicates:
                yield ToPredicate(node, self.predicate(node))
            return
        if self.stages and node not in cut.stages and (node.kind in ("load", "alu") or small_shift(node)):
            yield ToStage(node, self.stage(node))
        if node not in cut.registers:
            yield ToRegister(node, self.register(node))

    # ---- Placing a request ----

    def attempt(self, cut: Cut, request: Request, goal: Goal | None) -> Cut | None:
        """The cut with the request in the first block that takes it, a new one if need be; None if it does not fit."""
        first, last = 0, len(cut.requests)
        effect = goal.effect if goal is not None else None
        if effect is not None:
            first = max(cut.effects, default=0)
            if not isinstance(request, Leave):
                first = max(first, cut.exit + 1)
        if goal is not None and goal is self.work.end:
            first = max(last - 1, 0)
        if isinstance(request, ToRegister | ToPredicate) and goal is not None:
            first = max(first, self.last_read(cut, request.register))
        for index in range(first, last + 1):
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
        there = cut.requests[index] if index < len(cut.requests) else ()
        if not _room(there, request):
            return None
        requests = (*there, request)
        fields = self.fit(cut, requests, index)
        if fields is None:
            return None
        return self.noted(cut, requests, fields, request, index, goal)

    def fit(self, cut: Cut, requests: tuple[Request, ...], index: int) -> Fields | None:
        """The matcher's answer, remembered by all that it depends on."""
        key = (requests, tuple(self.status(cut, node, index) for r in requests for node in self.ordered_tree(r)))
        memory = self.work.fits
        if key not in memory:
            matcher = Matcher(
                lambda node: self.places(cut, node, index),
                self.predicate,
                lambda node: self.ready(cut, node, index),
                lambda node: self.may_load(cut, node, index),
            )
            memory[key] = matcher.fit(requests)
        return memory[key]  # type: ignore[return-value]

    def ordered_tree(self, request: Request) -> tuple[Node, ...]:
        """The nodes below a request, always in the same order."""
        if request not in self.changing:
            self.changing[request] = tuple(sorted(self.tree(request), key=_order))
        return self.changing[request]

    def status(self, cut: Cut, node: Node, index: int) -> object:
        """What a block at ``index`` finds of a node."""
        if node.kind in ("cmp", "preg"):
            return self.ready(cut, node, index)
        register, stage = cut.registers.get(node), cut.stages.get(node)
        there = register[0] if register is not None and register[1] < index else None
        staged = stage is not None and stage[1] < index
        if node.kind == "reg":
            return there, staged, cut.overwritten.get(node.register, _NEVER) >= index  # type: ignore[arg-type]
        return there, staged, node.kind == "load" and self.may_load(cut, node, index)

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
        it, and only once."""
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
                changed["cost"] = float(changed["cost"]) + _value_cost(request) + SECOND_COST * second  # type: ignore[arg-type]
                if goal is not None:
                    changed["overwritten"] = {**cut.overwritten, register: index}
            case ToStage(node=node, stage=stage):
                changed["stages"] = {**cut.stages, node: (stage, index)}
            case ToPredicate(register=register) if goal is not None:
                changed["overwritten"] = {**cut.overwritten, register: index}
        if goal is not None and goal.effect is not None:
            changed["effects"] = (*cut.effects, index)
            if isinstance(request, Leave):
                changed["exit"] = index
        return replace(cut, **changed)  # type: ignore[arg-type]

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


def roots(request: Request) -> tuple[Node, ...]:
    """The nodes a request names."""
    match request:
        case Memory(address=address, value=value, guard=guard):
            return (address, value) if guard is None else (address, value, guard)
        case Leave(guard=guard):
            return () if guard is None else (guard,)
    return (request.node,)


def roots_written(request: Request) -> tuple[Node, ...]:
    """The node a request itself writes somewhere."""
    return (request.node,) if isinstance(request, ToRegister | ToStage | ToPredicate) else ()


def reads_register(fields: Fields, register: Reg) -> bool:
    return register in read_registers(fields)


def read_registers(fields: Fields) -> set[Reg]:
    """The registers and predicates that a block reads."""
    found = {content for port in ("ra", "rb", "rc", "g_index") if isinstance(content := fields.get(port), Reg)}
    # A predicate written by the block itself is not read from before.
    if fields.get("p_write") and fields.get("p_index") == fields.get("g_index"):
        found.discard(fields["p_index"])  # type: ignore[arg-type]
    return found


def written_registers(fields: Fields) -> set[Reg]:
    found = {content for port in ("d_e", "d_b", "d_o") if isinstance(content := fields.get(port), Reg)}
    if fields.get("p_write"):
        found.add(fields["p_index"])  # type: ignore[arg-type]
    return found


def _room(there: Sequence[Request], request: Request) -> bool:
    """Whether a block with these requests may have room for one more of this kind."""
    count = sum(type(other) is type(request) for other in there)
    return count < (2 if isinstance(request, ToRegister) else 1) and request not in there


def _value_cost(request: Request) -> float:
    if not isinstance(request, ToRegister):
        return 0.0
    return UNIFORM_COST if request.node.uniform else LANE_COST


def _size(node: Node) -> tuple[int, int]:
    return node.size, node.order


def _order(node: Node) -> int:
    return node.order


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
