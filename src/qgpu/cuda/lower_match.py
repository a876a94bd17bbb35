"""Which operand goes where: fits a handful of requests into the fields of one machine block, if they do fit.

A block's fields are filled by backtracking. Every step takes the fields so far and yields all ways to go on; a step
that needs a field which already says something else yields nothing. What a block computes on the way is named in the
same table: "R", "L", "M", "D" are the nodes that ALU A, the load, unit M and ALU B give, so that requests share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from qgpu.cuda.ir import Reg
from qgpu.cuda.lower_nodes import MULTIPLIES, SHIFTS, SWAPPED, Node, small_shift
from qgpu.cuda.lower_ports import FIELD, SIDES, TAKES_L, TAKES_R, Fields, orders, put
from qgpu.cuda.lower_requests import (
    Collect,
    Gather,
    Leave,
    Memory,
    Place,
    Request,
    ToPair,
    ToPredicate,
    ToRegister,
    ToStage,
)
from qgpu.isa.subset import AFTER_PRODUCT, BOUNDS, QUICK

LIMIT = 4000
"""Steps after which a fit is given up."""


@dataclass
class Matcher:
    """``places``: where a node can be read at the block in question (leaves included). ``predicate``: the register of a
    predicate node. ``ready``: whether a predicate was written before. ``may_load``: whether a load can be done here."""

    places: Callable[[Node], Sequence[Place]]
    predicate: Callable[[Node], Reg]
    ready: Callable[[Node], bool]
    may_load: Callable[[Node], bool]
    steps: int = 0

    def fit(self, requests: Sequence[Request]) -> Fields | None:
        """Fields of a block that does all the requests."""
        self.steps = 0
        return self._fit(sorted(requests, key=_order), {})

    def _fit(self, requests: Sequence[Request], fields: Fields) -> Fields | None:
        if not requests:
            return fields
        for more in self._request(fields, requests[0]):
            self.steps += 1
            if self.steps > LIMIT:
                return None
            found = self._fit(requests[1:], more)
            if found is not None:
                return found
        return None

    def _request(self, fields: Fields, request: Request) -> Iterator[Fields]:
        match request:
            case ToRegister(node=node, register=register):
                if node.kind == "load":
                    for more in self._load(fields, node):
                        yield from put(more, d_e=register, e_sel="L")
                elif node.kind == "high":
                    for more in self._load(fields, node.args[0]):
                        yield from put(more, d_e=register, e_sel="H")
                else:
                    for more in self._r(fields, node):
                        yield from put(more, d_e=register, e_sel="R")
                for more in self._d(fields, node):
                    yield from put(more, d_b=register)
            case ToStage(node=node, stage=stage):
                source = self._load if node.kind == "load" else self._r
                for more in source(fields, node):
                    yield from put(more, stage_w="L" if node.kind == "load" else "R", stage_wi=stage)
            case ToPredicate(node=node, register=register):
                yield from self._condition(fields, node, register)
            case ToPair(node=node, low=low, high=high):
                for more in self._load(fields, node):
                    for placed in put(more, d_e=high, e_sel="H", d_b=low):
                        yield from self._d(placed, node)
            case Gather():
                yield from self._gather(fields, request)
            case Collect(op=op) if op == "ballot" and fields.get("branch") == "exit":
                return  # lanes of higher quads would miss those that have left
            case Collect(op=op, parity=parity, lane=lane, clamp=clamp):
                for more in put(fields, collect=op, collect_parity=parity):
                    if lane is None:
                        yield more
                        continue
                    for placed in put(more, imm=clamp, b_shift=0):
                        yield from self._source(placed, "b", lane)
            case Memory():
                for more in put(fields, memory=request):
                    yield from self._memory(more, request)
            case Leave(kind="exit") if fields.get("collect") == "ballot":
                return
            case Leave(kind=kind, target=target, guard=guard, negated=negated):
                for more in put(fields, leave=request, branch=kind, target=target):
                    yield from self._guarded(more, guard, negated, "g_branch")

    # ---- Operands ----

    def _source(self, fields: Fields, side: str, node: Node) -> Iterator[Fields]:
        """Fields in which operand ``side`` is the node."""
        select = FIELD.get(side, f"{side}_sel")
        if node.kind == "const" and node.value == 0:
            yield from put(fields, **{select: "zero"})
            return
        for place in self.places(node):
            for choice, port in SIDES[side].get(place.kind, ()):
                yield from put(fields, **{select: choice, port: place.content})
        if side in TAKES_R and node.kind != "load":
            for more in put(fields, **{select: "R"}):
                yield from self._r(more, node)
        if side in TAKES_L and node.kind == "load":
            for more in put(fields, **{select: "L"}):
                yield from self._load(more, node)

    def _shifted(self, fields: Fields, node: Node) -> Iterator[Fields]:
        """Fields in which ALU A's shifted second operand is the node."""
        for more in put(fields, b_shift=0):
            yield from self._source(more, "b", node)
        found = small_shift(node)
        if found is not None:
            for more in put(fields, b_shift=found[1]):
                yield from self._source(more, "b", found[0])

    def _r(self, fields: Fields, node: Node) -> Iterator[Fields]:
        """Fields in which ALU A gives the node."""
        if "R" in fields:
            if fields["R"] is node:
                yield fields
            return
        if "alu_a" in fields:
            return
        fields = {**fields, "R": node}
        if node.kind == "copy" and not self.places(node):
            yield from self._r({k: v for k, v in fields.items() if k != "R"}, node.args[0])
            return
        if node.kind == "alu":
            x, y = node.args
            for op, first, second in orders(node.name, x, y):
                for more in put(fields, alu_a=op, slow=op not in QUICK):
                    for placed in self._source(more, "a", first):
                        yield from self._shifted(placed, second)
        elif small_shift(node) is not None:
            for more in put(fields, alu_a="second"):
                yield from self._shifted(more, node)
        if node.leaf or self.places(node):
            for more in put(fields, alu_a="first"):
                yield from self._source(more, "a", node)
            for more in put(fields, alu_a="second", b_shift=0):
                yield from self._source(more, "b", node)

    def _load(self, fields: Fields, node: Node) -> Iterator[Fields]:
        """Fields in which the block's load is the node."""
        if "L" in fields:
            if fields["L"] is node:
                yield fields
            return
        if not self.may_load(node):
            return
        for more in put(fields, L=node, load=node.name, load_wide=node.value, slow=False):
            for guarded in self._guarded(more, node.args[1] if len(node.args) > 1 else None, node.negated, "g_load"):
                yield from self._r(guarded, node.args[0])

    def _m(self, fields: Fields, node: Node) -> Iterator[Fields]:
        """Fields in which unit M gives the node."""
        if "M" in fields:
            if fields["M"] is node:
                yield fields
            return
        fields = {**fields, "M": node}
        for more in put(fields, m_op="first"):
            yield from self._source(more, "m1", node)
        if node.kind != "m":
            return
        x, y, *third = node.args
        if fields.get("alu_b", "first") in BOUNDS or (
            node.name in MULTIPLIES and fields.get("alu_b", "first") not in AFTER_PRODUCT
        ):
            return
        shift = node.name in SHIFTS
        for more in put(fields, m_op=node.name):
            for first, second in ((x, y), (y, x)) if node.name in MULTIPLIES else ((x, y),):
                for placed in self._source(more, "m1", first):
                    for whole in self._source(placed, "amount" if shift else "m2", second):
                        yield from self._raw(whole, third[0]) if third else (whole,)

    def _raw(self, fields: Fields, node: Node) -> Iterator[Fields]:
        """Fields in which port C's register holds the node."""
        if node.kind == "const" and node.value == 0:
            yield from put(fields, rc=0)
        for place in self.places(node):
            if place.kind == "reg":
                yield from put(fields, rc=place.content)

    def _c(self, fields: Fields, node: Node) -> Iterator[Fields]:
        if "c" in fields:
            if fields["c"] is node:
                yield fields
            return
        yield from self._source({**fields, "c": node}, "c", node)

    def _d(self, fields: Fields, node: Node) -> Iterator[Fields]:
        """Fields in which ALU B gives the node."""
        if "D" in fields:
            if fields["D"] is node:
                yield fields
            return
        fields = {**fields, "D": node}
        if node.kind == "copy" and not self.places(node):
            # what it copies may be read from anywhere, or computed right here
            inner = node.args[0]
            yield from self._d({k: v for k, v in fields.items() if k != "D"}, inner)
            return
        for place in self.places(node):
            if place.kind == "ballot":
                yield from put(fields, alu_b="second", c_sel="V", collected=True, c=node, g_sel=0, M=None)
        for more in put(fields, alu_b="first", g_sel=0):
            yield from self._m(more, node)
        for more in put(fields, alu_b="second", g_sel=0):
            yield from self._c(more, node)
        if node.kind == "alu" and node.name == "and":
            for voted, part in (node.args, node.args[::-1]):
                if any(place.kind == "ballot" for place in self.places(voted)):
                    ballot = {"c_sel": "V", "collected": True, "c": voted, "m_op": "first"}
                    for more in put(fields, alu_b="and", g_sel=0, **ballot):
                        yield from self._m(more, part)
        if node.kind == "alu":
            for op, first, second in orders(node.name, *node.args) if node.name in QUICK else ():
                for more in put(fields, alu_b=op, g_sel=0):
                    for placed in self._m(more, first):
                        yield from self._c(placed, second)
        elif node.kind == "select":
            yes, no, predicate = node.args
            for first, second, negated in ((yes, no, node.negated), (no, yes, not node.negated)):
                yield from self._selected(fields, first, second, predicate, negated)

    def _selected(self, fields: Fields, first: Node, second: Node, predicate: Node, negated: bool) -> Iterator[Fields]:
        """first where the predicate holds, else second. ``second op something`` needs no block of its own for that."""
        for more in self._guarded(fields, predicate, negated, "g_sel"):
            for plain in put(more, alu_b="first"):
                for placed in self._m(plain, first):
                    yield from self._c(placed, second)
            if first.kind == "alu" and second in first.args and first.name in QUICK:
                for op, left, right in orders(first.name, *first.args):
                    if right is second:
                        for combined in put(more, alu_b=op):
                            for placed in self._m(combined, left):
                                yield from self._c(placed, right)

    # ---- Predicates ----

    def _guarded(self, fields: Fields, guard: Node | None, negated: bool, flag: str) -> Iterator[Fields]:
        """Fields in which the guard is this predicate and ``flag`` obeys it; no guard: the flag is off."""
        if guard is None:
            yield from put(fields, **{flag: 0})
            return
        register = self.predicate(guard)
        for more in put(fields, g_index=register, g_neg=int(negated), **{flag: 1}):
            if self.ready(guard):
                yield from put(more, **{f"old {register}": True})
            elif guard.kind in ("cmp", "range"):
                yield from self._condition(more, guard, register)

    def _condition(self, fields: Fields, node: Node, register: Reg) -> Iterator[Fields]:
        """Fields in which the block writes this predicate; its guard then reads the new one."""
        if "p_node" in fields:
            if fields["p_node"] is node and fields["p_index"] == register:
                yield fields
            return
        for named in put(fields, p_node=node, p_write=1, p_index=register, **{f"old {register}": False}):
            if node.kind == "range":
                if self.may_load(node):
                    yield from put(named, p_src="v")
            else:
                yield from self._compared(named, node, *node.args)

    def _compared(self, named: Fields, node: Node, x: Node, y: Node) -> Iterator[Fields]:
        for condition, first, second in ((node.name, x, y), (SWAPPED[node.name], y, x)):
            for more in put(named, p_src="a", cond=condition):
                for placed in self._source(more, "a", first):
                    yield from self._shifted(placed, second)
            for more in put(named, p_src="b", cond=condition, m_op="first"):
                for placed in self._m(more, first):
                    yield from self._c(placed, second)

    # ---- Memory ----

    def _memory(self, fields: Fields, request: Memory) -> Iterator[Fields]:
        old = {} if request.old is None else {"d_o": request.old, "rc": request.old}
        wide = {"store_wide": int(request.wide)}
        for more in put(fields, store=request.width, atomic=request.atomic, **old, **wide):
            for guarded in self._guarded(more, request.guard, request.negated, "g_store"):
                for upper in self._raw(guarded, request.high) if request.high is not None else (guarded,):
                    for placed in self._store_address(upper, request.address):
                        for compared in self._compare_value(placed, request.compare):
                            yield from self._d(compared, request.value)

    def _compare_value(self, fields: Fields, node: Node | None) -> Iterator[Fields]:
        """Fields in which the early result is what a compare-and-swap compares with."""
        if node is None:
            yield fields
            return
        for more in put(fields, e_sel="R"):
            yield from self._r(more, node)

    # ---- Exchange ----

    def _gather(self, fields: Fields, request: Gather) -> Iterator[Fields]:
        for more in put(fields, gather=request, branch="gather", publish_parity=request.parity):
            for voted in self._guarded(more, request.vote, request.negated, "vote"):
                for placed in self._members(voted, request.members):
                    yield from (placed,) if request.word is None else self._published(placed, request)

    def _members(self, fields: Fields, node: Node) -> Iterator[Fields]:
        for place in self.places(node):
            if place.kind == "word":
                yield from put(fields, member="Q", pq=place.content)
            elif place.kind == "reg":
                yield from put(fields, member="A", ra=place.content, publishes="D")

    def _published(self, fields: Fields, request: Gather) -> Iterator[Fields]:
        """A register's word is published as it is; what is computed, by its DATA."""
        assert request.word is not None
        if not isinstance(fields.get("d_b"), Reg):
            for place in self.places(request.word):
                if place.kind == "reg":
                    yield from put(fields, ra=place.content, d_b=0, publishes="ra")
        for more in put(fields, publishes="D"):
            for placed in self._d(more, request.word):
                yield placed if isinstance(placed.get("d_b"), Reg) else {**placed, "d_b": request.scratch}

    def _store_address(self, fields: Fields, node: Node) -> Iterator[Fields]:
        for more in put(fields, sb_sel="zero"):
            yield from self._source(more, "sa", node)
        for more in put(fields, sa_sel="zero", sb_sel="BS"):
            yield from self._shifted(more, node)
        if node.kind == "const":
            for place in self.places(node):
                if place.kind == "imm":
                    yield from put(fields, sa_sel="zero", sb_sel="I", imm=place.content)
        if node.kind == "alu" and node.name == "add":
            for base, offset in (node.args, node.args[::-1]):
                for more in self._source(fields, "sa", base):
                    for with_offset in put(more, sb_sel="BS"):
                        yield from self._shifted(with_offset, offset)
                    for place in self.places(offset) if offset.kind == "const" else ():
                        if place.kind == "imm":
                            yield from put(more, sb_sel="I", imm=place.content)


def _order(request: Request) -> int:
    """Requests with fewest ways to be done come first."""
    return [Collect, Memory, Leave, ToPair, ToStage, ToPredicate, ToRegister, Gather].index(type(request))
