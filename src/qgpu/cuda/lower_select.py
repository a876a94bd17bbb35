"""Cuts a region into machine blocks: few blocks, and above all few values that have to be written to registers.

Goals are done one after the other. One that fits no block as it is gets some of its operands computed before, into a
stage register where that is possible (it costs no token), else into a register; a small best-first search finds which.
Every request goes to the first block that can take it, so that blocks fill up with work that is independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from qgpu.cuda.ir import Reg
from qgpu.cuda.lower_nodes import Node, small_shift
from qgpu.cuda.lower_place import Cut, Placer
from qgpu.cuda.lower_reads import BLOCK_COST, by_order, by_size, roots, roots_written, value_cost
from qgpu.cuda.lower_requests import Leave, Memory, Request, ToPair, ToPredicate, ToRegister, ToStage
from qgpu.cuda.lower_work import Goal
from qgpu.isa.tokens import BLOCKS

EXPANDED = 32
"""States of a search that are looked at in all, and ``PATIENCE`` of them after a way has been found."""
PATIENCE = 3
LARGE = 12
"""Values to be computed for one request, above which some of them are computed by themselves."""
LEFT_COST = 0.75
"""Guess of what a node still costs that is not yet there."""


REACH = 3
"""Operations on a collected value that one block may hold."""


class CannotSelect(Exception):
    """A goal that fits no block, whatever is computed before it: a fault in the compiler."""


class TooLong(Exception):
    """A region that alone takes more blocks than the machine has."""


@dataclass
class Selector(Placer):
    """``stages``: whether stage registers may be used. ``forced``: values to be written to registers as soon as a goal
    needs them. ``reach``: how far what is collected may be computed with in the block that collects it. ``careful``:
    whatever is loaded goes to a register first."""

    stages: bool = True
    forced: frozenset[Node] = frozenset()
    reach: int = REACH
    careful: bool = False

    @cached_property
    def users(self) -> Counter[Node]:
        """How many other nodes and goals read a node."""
        count = Counter(node for goal in self.work.everything() for node in set(roots(goal.request)))
        count.update(arg for node in self.reached for arg in set(node.args))
        return count

    # ---- The whole region ----

    def run(self) -> Cut:
        work = self.work
        cut = Cut()
        waiting = list(work.writes)
        if work.collect is not None:
            cut, done = self.collected(self.append(cut, work.collect.request))
            waiting = [goal for goal in waiting if goal not in done]
        early = self.loads_before_stores()
        for position, goal in enumerate(work.goals):
            for node in early.get(position, ()):
                cut = self.hold(cut, node)
            request = goal.request
            if isinstance(request, Memory) and request.old is not None and request.value.name == "own":
                cut = self.plan(cut, ToRegister(request.value, request.old))
            cut = self.plan(self.prepare(cut, request), request, goal)
        while waiting:
            cut, goal = self.next_write(cut, waiting)
            waiting = [other for other in waiting if other is not goal]
            cut = self.plan(self.prepare(cut, goal.request), goal.request, goal)
        if work.end is not None:
            cut = self.plan(self.prepare(cut, work.end.request), work.end.request, work.end)
        if work.tail:
            cut = self.append(cut, Leave("bra", work.tail))
        return self.without_unread(cut)

    def collected(self, cut: Cut) -> tuple[Cut, list[Goal]]:
        """What the first block collects, kept: with as much as can be computed of it in the same block. Also the goals
        that are done by that."""
        done: list[Goal] = []
        for kind in ("range", "v"):
            node = next((node for node in self.reached if node.kind == kind), None)
            if node is None:
                continue
            ways = [(cut, way, goal) for way in self.chain(node)[::-1] for goal in (*self.work.writes, None)]
            found, goal = next(found for found in (self.first_block(*way) for way in ways) if found is not None)
            cut, done = found, [*done, *([goal] if goal else [])]
        return cut, done

    def first_block(self, cut: Cut, node: Node, goal: Goal | None) -> tuple[Cut, Goal | None] | None:
        """The cut with a value computed and kept in the first block, as a goal wants it or in a register of its own."""
        if goal is None:
            own = ToPredicate(node, self.predicate(node)) if node.test else ToRegister(node, self.register(node))
            found = self.at(cut, own, 0, None)
        elif goal.request.node is not node or self.takes_away(cut, goal):  # type: ignore[union-attr]
            return None
        else:
            found = self.at(cut, goal.request, 0, goal)
        return None if found is None else (found, goal)

    def chain(self, node: Node) -> list[Node]:
        """A value, what alone is computed of it, and so on."""
        found = [node]
        while node.kind == "v" and len(found) <= self.reach and self.users[found[-1]] == 1:
            above = [other for other in self.reached if found[-1] in other.args]
            if not above:
                break
            found += above
        return found

    def takes_away(self, cut: Cut, goal: Goal) -> bool:
        """Whether a register write would take an old value away from something else that is to be done."""
        target, known = goal.request.register, {goal.request.node}  # type: ignore[union-attr]
        others = [other for other in self.work.everything() if other is not goal]
        return any(self.reads_leaf(cut, other.request, target, known) for other in others)

    def loads_before_stores(self) -> dict[int, list[Node]]:
        """Loads to be done before a store because what comes after it reads them: position of the goal -> loads."""
        found: dict[int, list[Node]] = {}
        everything = self.work.everything()
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
        for node in sorted(self.needed(cut, request), key=by_size):
            if node.kind == "load" and node.name == "b64":
                if node not in roots_written(request):
                    cut = self.hold(cut, node)
            elif node in self.forced and node not in cut.registers and node not in roots_written(request):
                cut = self.plan(cut, ToRegister(node, self.register(node)))
            elif node.kind == "load" and (self.users[node] > 1 or self.careful) and node not in roots_written(request):
                cut = self.hold(cut, node)
        return cut

    def hold(self, cut: Cut, node: Node) -> Cut:
        """A value computed and kept."""
        if node in cut.registers or node in cut.stages:
            return cut
        if node.kind == "load" and node.name == "b64":
            low = self.register(node)
            return self.plan(cut, ToPair(node, low, Reg(f"{low.name}h", low.type)))
        if self.can_stage(node) and node not in self.forced:
            found = self.planned(cut, ToStage(node, self.stage(node)))
            if found is not None:
                return found
        return self.plan(cut, ToRegister(node, self.register(node)))

    def can_stage(self, node: Node) -> bool:
        """Whether a value can be and is of use in a stage register: addresses and shifted operands read none."""
        made = node.kind in ("load", "alu", "reg", "made") or small_shift(node) is not None
        return self.stages and made and node not in self.addresses

    @cached_property
    def addresses(self) -> frozenset[Node]:
        found = [node.args[0] for node in self.reached if node.kind == "load"]
        found += [goal.request.address for goal in self.work.goals if isinstance(goal.request, Memory)]
        return frozenset(found).union(*(node.args for node in found))

    def next_write(self, cut: Cut, waiting: Sequence[Goal]) -> tuple[Cut, Goal]:
        """A register write that takes no old value away from what is still to do; else one old value is copied."""
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
            for node in sorted(self.tree(other.request), key=by_order)
            if node.register == target and node.leaf
        )
        # A predicate cannot be copied; what is made of it can be computed before.
        users = [node for other in (*waiting, *end) for node in self.tree(other.request) if leaf in node.args]
        for node in sorted({leaf} if leaf.kind == "reg" else set(users), key=by_order):
            if not node.test:
                cut = self.hold(cut, node)
        return cut, goal

    def reads_leaf(self, cut: Cut, request: Request, register: Reg, known: set[Node]) -> bool:
        waiting = [node for node in roots(request)]
        seen: set[Node] = set()
        while waiting:
            node = waiting.pop()
            there = node in cut.registers or node in cut.stages or node in cut.predicates
            if there or node in seen or node in known:
                continue
            seen.add(node)
            if node.leaf and node.register == register:
                return True
            waiting += node.args
        return False

    # ---- One goal ----

    def plan(self, cut: Cut, request: Request, goal: Goal | None = None) -> Cut:
        """The cut with the request done, operands computed before as needed, at the least cost found."""
        if len(cut.requests) > BLOCKS:
            raise TooLong
        found = self.planned(cut, request, goal)
        if found is None:
            raise CannotSelect(f"{request} fits no machine block in {self.work.region.label}")
        return found

    def planned(self, cut: Cut, request: Request, goal: Goal | None = None) -> Cut | None:
        while True:
            if self.effort.spent:
                return self.attempt(cut, request, goal) or self.one_by_one(cut, request, goal)
            small = len(self.needed(cut, request)) <= LARGE
            found = self.search(cut, request, goal) if small else None
            part = None if found is not None else self.part(cut, request)
            if part is None:
                return found or self.one_by_one(cut, request, goal)
            cut = self.hold(cut, part)

    def one_by_one(self, cut: Cut, request: Request, goal: Goal | None) -> Cut | None:
        """The same with every operand in a register of its own: there is a block for every operation on registers."""
        mine = {*roots_written(request)}
        for node in sorted(self.needed(cut, request) - mine, key=by_size):
            for leaf in node.args:
                cut = self.in_register(cut, leaf)
            cut = self.in_register(cut, node)
        for leaf in (*(set(roots(request)) - mine), *(leaf for node in mine for leaf in node.args)):
            cut = self.in_register(cut, leaf)
        return self.attempt(cut, request, goal)

    def part(self, cut: Cut, request: Request) -> Node | None:
        """What to compute by itself where a request needs very much: about half of it."""
        everything = self.needed(cut, request) - {*roots_written(request)}
        sizes = {node: len(self.needed_below(cut, (node,))) for node in everything if not node.test}
        small = [node for node in sizes if 1 < sizes[node] <= max(LARGE // 2, len(everything) * 2 // 3)]
        return max(small, key=lambda node: (sizes[node], -node.order), default=None)

    def in_register(self, cut: Cut, node: Node) -> Cut:
        """A value in a register, a predicate written; from registers alone."""
        if node.kind in ("preg", "reg", "made") or node in cut.registers or node in cut.predicates:
            return cut
        request = ToPredicate(node, self.predicate(node)) if node.test else ToRegister(node, self.register(node))
        found = self.attempt(cut, request, None)
        if found is None:
            raise CannotSelect(f"{node} fits no machine block in {self.work.region.label}")
        return found

    def search(self, cut: Cut, request: Request, goal: Goal | None) -> Cut | None:
        """The cheapest way found to do a request by computing some of its operands before: best first, for a while."""
        best: Cut | None = None
        states = [(0.0, 0, cut)]
        seen = {cut.requests}
        expanded = 0
        while states and expanded < EXPANDED and not self.effort.spent:
            _, _, state = heappop(states)
            if best is not None and state.cost >= best.cost:
                continue
            expanded += 1
            done = self.attempt(state, request, goal)
            if done is not None and (best is None or done.cost < best.cost):
                best, expanded = done, max(expanded, EXPANDED - PATIENCE)
            if done is not None and done.cost - state.cost <= BLOCK_COST + value_cost(request):
                continue
            for node in self.candidates(state, request):
                for before in self.ways(state, node):
                    more = self.attempt(state, before, None)
                    if more is None or more.requests in seen or (best is not None and more.cost >= best.cost):
                        continue
                    seen.add(more.requests)
                    heappush(states, (more.cost + LEFT_COST * len(self.needed(more, request)), len(seen), more))
        return best

    def needed(self, cut: Cut, request: Request) -> set[Node]:
        """Nodes of a request's tree that are not there yet, leaves left out."""
        return self.needed_below(cut, roots(request))

    def needed_below(self, cut: Cut, nodes: Sequence[Node]) -> set[Node]:
        found: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node in found or node.leaf or node in cut.registers or node in cut.stages:
                continue
            if node.test and node in cut.predicates:
                continue
            found.add(node)
            waiting += node.args
        return found

    def candidates(self, cut: Cut, request: Request) -> list[Node]:
        """What may be computed before a request, small things first."""
        found = {node for node in self.needed(cut, request) if node not in roots_written(request)}
        return sorted(found.union(self.stuck(cut, request)), key=by_size)

    def stuck(self, cut: Cut, request: Request) -> Iterator[Node]:
        """Values in stage registers that may be needed in registers."""
        for node in self.tree(request):
            if node in cut.stages and node not in cut.registers:
                yield node

    def ways(self, cut: Cut, node: Node) -> Iterator[Request]:
        if node.test:
            if node not in cut.predicates:
                yield ToPredicate(node, self.predicate(node))
            return
        if node not in cut.stages and self.can_stage(node):
            yield ToStage(node, self.stage(node))
        if node not in cut.registers:
            yield ToRegister(node, self.register(node))
