"""What a region of straight code has to get done: its graph of values, and its goals in the order they must happen.

A goal is a request to a machine block: a store, a thread's end, a register that is read elsewhere, the branch at the
end. Values are no goals; they are computed where a goal needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu.cuda.ir import (
    Atomic,
    Barrier,
    Branch,
    Compute,
    Const,
    Exit,
    Fence,
    Instruction,
    Jump,
    Load,
    Reg,
    Store,
    Trap,
    Type,
    WarpOp,
    writes,
)
from qgpu.cuda.lower_guards import SafeLoad
from qgpu.cuda.lower_nodes import Node
from qgpu.cuda.lower_operands import Operands, Truth
from qgpu.cuda.lower_regions import SideExit
from qgpu.cuda.lower_requests import Collect, Gather, Leave, Memory, Request, ToPair, ToPredicate, ToRegister
from qgpu.cuda.lower_rules import Rules
from qgpu.cuda.lower_work import Goal, Work
from qgpu.cuda.ops import COMPARISONS
from qgpu.cuda.translation import Refused

ALL_LANES = 0xFFFFFFFF
_WORD = 4
_LOADS = {(1, False): "u8", (1, True): "s8", (2, False): "u16", (2, True): "s16", (4, False): "b32", (4, True): "b32"}


@dataclass
class Builder(Operands):
    """Makes the goals of a region."""

    def build(self) -> Work:
        region = self.work.region
        if region.collect is not None:
            try:
                self.collect(region.collect)
            except Refused as refused:
                self.refuse(region.collect, str(refused))
        last_exit = max((i for i, item in enumerate(region.items) if isinstance(item, SideExit)), default=-1)
        for position, item in enumerate(region.items):
            try:
                if position == last_exit and self.predicated:
                    assert isinstance(item, SideExit)
                    node, negated = self.truth(item.predicate)
                    self.guard_all = node, not negated ^ item.negated
                else:
                    self.item(position, item)
            except Refused as refused:
                self.refuse(item, str(refused))
        try:
            self.live_out()
            self.finish(region.end, len(region.items))
        except Refused as refused:
            self.refuse(region.end, str(refused))
        return self.work

    # ---- Instructions ----

    def item(self, position: int, item: Instruction) -> None:
        match item:
            case Compute(op="pack", dest=dest, sources=(low, high)) if dest.type is Type.B64 and self.wide:
                self.pairs[dest] = self.operand(low), self.operand(high)
            case Compute(dest=dest) if dest.type is Type.PRED:
                self.set_truth(position, item, dest, self.predicate(item))
            case Compute(op="select", sources=(a, b, choice)):
                node = self.graph.select(self.operand(a), self.operand(b), *self.truth(choice))
                self.set_value(position, item, item.dest, node)
            case Compute(sources=sources):
                node = Rules(self.graph, self.table).compute(item, [self.operand(source) for source in sources])
                self.set_value(position, item, item.dest, node)
            case Load():
                self.load(position, item)
            case Store():
                self.store(position, item)
            case Atomic():
                self.atomic(position, item)
            case SideExit(predicate=predicate, negated=negated):
                node, opposite = self.truth(predicate)
                self.add_effect(position, Leave("exit", guard=node, negated=opposite ^ negated))
            case Fence():
                pass
            case WarpOp(op="activemask", dests=(dest,)) if "activemask" in self.table["x"]:
                assert dest is not None
                self.kept(position, item, dest, self.graph.special("x", "activemask"))
            case _:
                raise Refused("this instruction is not there yet")

    def set_value(self, position: int, item: Instruction, dest: Reg, node: Node) -> None:
        self.work.made.setdefault(node, []).append(position)
        if item.guard is not None:
            guard, negated = self.truth(item.guard.register)
            node = self.graph.select(node, self.operand(dest), guard, negated ^ item.guard.negated)
        self.values[dest] = node

    def set_truth(self, position: int, item: Instruction, dest: Reg, truth: Truth) -> None:
        self.work.made.setdefault(truth[0], []).append(position)
        if item.guard is not None:
            guard, negated = self.truth(item.guard.register)
            old = self.number(self.truth(dest))
            truth = self.test(self.graph.select(self.number(truth), old, guard, negated ^ item.guard.negated))
        self.truths[dest] = truth

    def predicate(self, item: Compute) -> Truth:
        sources = item.sources
        if item.op in COMPARISONS and item.type is not Type.PRED:
            a, b = (self.operand(source) for source in sources)
            return Rules(self.graph, self.table).condition(item.op, int(item.type), a, b), False
        truths = [self.truth(source) for source in sources]
        match item.op:
            case "mov":
                return truths[0]
            case "not":
                return truths[0][0], not truths[0][1]
            case "and" | "or" | "xor" | "eq" | "ne":
                first, second = map(self.number, truths)
                if item.op in ("eq", "ne"):
                    return self.graph.compare(item.op, first, second), False
                return self.test(self.graph.alu(item.op, first, second))
            case "select":
                return self.test(self.graph.select(self.number(truths[0]), self.number(truths[1]), *truths[2]))
        raise Refused("this operation on predicates is not there yet")

    def load(self, position: int, item: Load) -> None:
        guard, negated = self.guard(item) or (None, False)
        if len(item.dests) > 1:
            if item.width != _WORD or "b64" not in self.table["load"]:
                raise Refused("loads of more than 32 bits are not there yet: use int arrays")
            for number in range(0, len(item.dests), 2):
                where = self.address(item.address, number * item.width)
                node = self.graph.load("b64", where, guard, negated, wide=number == 0 and len(item.dests) == 4)
                self.work.epoch[node] = self.work.effects
                words = node, self.graph.high(node)
                if item.volatile:
                    self.work.copies += 1
                    spare = [Reg(f".volatile{self.work.copies}{name}", Type.B32) for name in ("", "h")]
                    self.add_effect(position, ToPair(node, *spare))
                for dest, word in zip(item.dests[number : number + 2], words, strict=True):
                    self.set_value(
                        position, replace(item, guard=None) if isinstance(item, SafeLoad) else item, dest, word
                    )
            return
        kind = _LOADS.get((item.width, item.signed))
        if kind is None or kind not in self.table["load"]:
            raise Refused(f"loads of {8 * item.width} bits are not there yet: use int arrays")
        (dest,) = item.dests
        node = self.graph.load(kind, self.address(item.address), guard, negated)
        self.work.epoch[node] = self.work.effects
        if item.volatile:
            self.work.copies += 1
            self.add_effect(position, ToRegister(node, Reg(f".volatile{self.work.copies}", Type.B32)))
        cut = Rules(self.graph, self.table).cut(node, int(dest.type)) if item.signed else node
        self.set_value(position, replace(item, guard=None) if isinstance(item, SafeLoad) else item, dest, cut)
        if cut is not node:
            self.work.made.setdefault(node, []).append(position)

    def store(self, position: int, item: Store) -> None:
        count = len(item.values)
        kind = f"b{8 * item.width}" if count == 1 else "b64"
        if kind not in self.table["store"] or (count > 1 and item.width != _WORD):
            raise Refused(f"stores of {8 * item.width * count} bits are not there yet: use int arrays")
        if count == 1:
            self.effect(position, item, Memory(self.address(item.address), self.operand(item.values[0]), kind))
            return
        for number in range(0, count, 2):
            low, high = map(self.operand, item.values[number : number + 2])
            where = self.address(item.address, number * item.width)
            wide = number == 0 and count == 4
            self.effect(position, item, Memory(where, low, kind, high=self.graph.as_register(high), wide=wide))

    def atomic(self, position: int, item: Atomic) -> None:
        kind = f"b{8 * item.width}"
        if kind not in self.table["store"]:
            raise Refused(f"atomics of {8 * item.width} bits are not there yet: use int")
        if item.op not in self.table["atomic"]:
            raise Refused(f"atomic {item.op} is not there yet: only atomicAdd is")
        if item.dest is not None and not self.old_values:
            raise Refused("the old value of an atomic is not there yet: use atomicAdd without its result")
        where = self.address(item.address)
        if item.width == 2 * _WORD:
            (source,) = item.sources
            assert isinstance(source, Reg)
            low, high = self.pairs[source]
            self.effect(position, item, Memory(where, low, kind, item.op, high=self.graph.as_register(high)))
            return
        *compared, value = map(self.operand, item.sources)
        compare = compared[0] if compared else None
        old = None
        if item.dest is not None:
            self.work.copies += 1
            old = Reg(f"{self.work.region.label}.old{self.work.copies}", Type.B32)
            # Three registers are too many beside the old value's: one of them comes in that.
            if compare is not None and not {compare.kind, value.kind} & {"const", "word"}:
                value = self.graph.own_copy(value)
        self.effect(position, item, Memory(where, value, kind, item.op, old=old, compare=compare))
        if old is not None and item.dest is not None:
            self.set_value(position, item, item.dest, self.graph.made(old))

    def kept(self, position: int, item: Instruction, dest: Reg, node: Node) -> None:
        """A value that means something else later: it is put into a register here."""
        self.work.copies += 1
        register = Reg(f"{self.work.region.label}.kept{self.work.copies}", Type.B32)
        self.add_effect(position, ToRegister(self.graph.own_copy(node), register))
        self.set_value(position, item, dest, self.graph.made(register))

    # ---- Exchange ----

    def collect(self, item: WarpOp) -> None:
        """What the first block collects, and where the results are."""
        kind, _, mode = item.op.partition(".")
        op = {"shuffle": f"shfl.{mode}", "vote": "ballot", "syncwarp": "sync"}.get(kind, "")
        if op not in self.table["collect"]:
            raise Refused(f"{kind} across a warp is not there yet")
        parity = self.work.region.parity
        if kind != "shuffle":
            request = Collect(op, parity)
        else:
            lane, clamp = self.operand(item.sources[1]), item.sources[2]
            assert isinstance(clamp, Const)
            request = Collect(op, parity, lane, clamp.value & 0x1F1F)
        self.work.collect = Goal(request)
        if item.dests:
            dest, *more = item.dests
            if dest is not None:
                self.values[dest] = self.graph.collected(op)
            for known in more:
                if known is not None:
                    self.truths[known] = self.graph.in_range(), False

    def gather(self, item: WarpOp) -> Gather:
        """The exchange at the region's end."""
        kind, *_ = item.op.split(".")
        if "gather" not in self.table["branch"]:
            raise Refused(f"{kind} across a warp is not there yet")
        members = self.operand(item.sources[-1])
        if members.kind in ("x", "y"):
            members = self.graph.as_register(members)
        self.work.some_lanes = members.kind != "const" or members.value != ALL_LANES
        self.work.copies += 1
        scratch = Reg(f"{self.work.region.label}.word{self.work.copies}", Type.B32)
        parity = self.work.region.parity ^ 1
        if kind == "shuffle":
            return Gather(members, parity, scratch, self.operand(item.sources[0]))
        if kind == "vote":
            return Gather(members, parity, scratch, None, *self.truth(item.sources[0]))
        return Gather(members, parity, scratch)

    def effect(self, position: int, item: Instruction, request: Memory) -> None:
        guard, negated = self.guard(item) or (None, False)
        self.add_effect(position, replace(request, guard=guard, negated=negated))

    def add_effect(self, position: int, request: Request) -> None:
        self.work.goals.append(Goal(request, self.work.effects, (position,)))
        self.work.effects += 1

    # ---- The end ----

    def live_out(self) -> None:
        made_by = {dest: position for position, item in enumerate(self.work.region.items) for dest in writes(item)}
        for register in sorted(self.work.region.live, key=lambda r: r.name):
            position = (made_by[register],) if register in made_by else ()
            if register.type is Type.PRED:
                truth = self.truths.get(register)
                if truth is None or (truth[0].register == register and not truth[1]):
                    continue
                node = truth[0]
                if truth[1]:
                    node = self.graph.invert(node)[0] if node.kind == "cmp" else node
                if not node.test or (truth[1] and node is truth[0]):
                    node = self.test(self.number(truth))[0]
                self.work.writes.append(Goal(ToPredicate(node, register), None, position))
            else:
                found = self.values.get(register)
                if found is not None and found.register != register:
                    counts = position if found.leaf else ()
                    self.work.writes.append(Goal(ToRegister(found, register), None, counts))

    def finish(self, end: Instruction, position: int) -> None:
        region, work = self.work.region, self.work
        leave: Leave | Gather | None = None
        match end:
            case Jump(target=target):
                leave = None if target == region.following else Leave("bra", target)
            case Branch(predicate=predicate, negated=negated, then=then, otherwise=otherwise):
                node, opposite = self.unwritten(self.truth(predicate))
                negated ^= opposite
                if then == region.following or (otherwise in self.exits and otherwise != region.following):
                    then, otherwise, negated = otherwise, then, not negated
                kind = "exit" if then in self.exits and otherwise not in self.exits else "bra"
                leave = Leave(kind, "" if kind == "exit" else then, node, negated)
                work.tail = "" if otherwise == region.following else otherwise
            case Exit():
                leave = Leave("exit")
            case Trap() if "trap" in self.table["branch"]:
                leave = Leave("trap")
            case Barrier(op="sync") if "bar" in self.table["branch"]:
                leave = Leave("bar")
            case WarpOp():
                leave = self.gather(end)
                if leave.vote is not None:
                    vote, negated = self.unwritten((leave.vote, leave.negated))
                    leave = replace(leave, vote=vote, negated=negated)
            case Barrier():
                raise Refused("barriers are not there yet: let one launch end where all threads must meet")
            case _:
                raise Refused("this instruction is not there yet")
        work.two_guards |= isinstance(leave, Gather) and self.guard_all is not None
        counted = () if leave is None else (position,)
        if leave is not None:
            work.end = Goal(leave, None, counted)

    def unwritten(self, truth: Truth) -> Truth:
        """A predicate for the region's end: it must not be in a register that is written before."""
        if any(goal.request.register == truth[0].register for goal in self.work.writes):  # type: ignore[union-attr]
            return self.test(self.number(truth))
        return truth
