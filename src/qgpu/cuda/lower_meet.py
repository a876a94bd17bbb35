"""Exchanges of one warp that stand at several places of a program and may be the same exchange of different lanes.

CUDA lets lanes meet at different instructions, as long as these are of one kind and name the same members:
``if (lane < 16) { ...; __syncwarp(); } else { ...; __syncwarp(); }``. The machine's gathers are of a block. So such
places go through one block that has the exchange: each lane says in a register where it came from, and goes back there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from qgpu.cuda.flow import EXIT, dominates, immediate_dominators, immediate_postdominators, loops
from qgpu.cuda.ir import (
    BasicBlock,
    Compute,
    Const,
    Function,
    Instruction,
    Jump,
    Load,
    Operand,
    Reg,
    Special,
    Switch,
    Terminator,
    Type,
    WarpOp,
    operands,
    reads,
    successors,
    writes,
)
from qgpu.cuda.lower_emit import HELPER, word
from qgpu.cuda.ops import WARP_OPS, typed

Place = tuple[str, int]
"""A block's label, and the position in it."""


def one_place_for_each(function: Function) -> Function:
    """The function with one block for all exchanges that lanes may meet at from different places."""
    for number, group in enumerate(_groups(function)):
        function = _merged(function, group, number)
    return function


# ---- Which places ----


def _groups(function: Function) -> list[list[Place]]:
    """Places that may be one exchange, all that hang together in one group."""
    kinds: dict[object, list[Place]] = {}
    for block in function.blocks:
        for position, item in enumerate(block.instructions):
            if isinstance(item, WarpOp) and item.op != "activemask":
                kinds.setdefault((item.op, item.type), []).append((block.label, position))
    if all(len(places) < 2 for places in kinds.values()):
        return []
    sides = _Sides(function)
    items = {
        place: function.block(place[0]).instructions[place[1]] for places in kinds.values() for place in places
    }
    found: list[list[Place]] = []
    for places in kinds.values():
        groups: list[list[Place]] = []
        for place in places:
            met = [
                group
                for group in groups
                if any(_same_members(items[place], items[other]) and sides.meet(items[place], place[0], other[0])
                       for other in group)
            ]  # fmt: skip
            groups = [group for group in groups if group not in met] + [[*sum(met, []), place]]
        found += [group for group in groups if len(group) > 1]
    return found


def _same_members(first: Instruction, second: Instruction) -> bool:
    a, b = operands(first)[-1], operands(second)[-1]
    return not (isinstance(a, Const) and isinstance(b, Const)) or a == b


class _Sides:
    """Where lanes of a warp may part, and what they may come to while they are apart.

    ``varying``: registers that may differ among lanes. ``pairs``: what lanes that part at a branch come to before they
    are together again. ``apart``: blocks that lanes of a warp may run at different times or not equally often.
    """

    def __init__(self, function: Function) -> None:
        self.dominators = immediate_dominators(function)
        self.after = immediate_postdominators(function)
        self.following = {block.label: successors(block) for block in function.blocks}
        self.varying = _varying_itself(function)
        self.pairs: list[tuple[set[str], set[str]]] = []
        self.apart: frozenset[str] = frozenset()
        while True:
            before = len(self.varying)
            self._part(function)
            self._spread(function)
            if len(self.varying) == before:
                break
        self.around: dict[str, set[str]] = {}
        for loop in loops(function):
            leaves = any(
                self._varies(function.block(label).terminator) and not loop.blocks.issuperset(self.following[label])
                for label in loop.blocks
            )
            for label in loop.blocks if leaves else ():
                self.around.setdefault(label, set()).add(loop.header)

    def _varies(self, end: Terminator) -> bool:
        return any(register in self.varying for register in reads(end))

    def _part(self, function: Function) -> None:
        """Sets ``pairs`` and ``apart``. Lanes that part for good, up to the end, do not see each other again."""
        self.pairs = []
        for block in function.blocks:
            if self._varies(block.terminator):
                stop = self.after.get(block.label, EXIT)
                reached = [_reached(target, stop, self.following) for target in successors(block)]
                self.pairs += [(a, b) for k, a in enumerate(reached) for b in reached[k + 1 :]]
                if stop != EXIT or any(a & b for k, a in enumerate(reached) for b in reached[k + 1 :]):
                    self.apart = self.apart.union(*reached)

    def _spread(self, function: Function) -> None:
        """Completes ``varying``: what is made of such registers, or made in several places by lanes that are apart."""
        made = Counter(r for block in function.blocks for item in block.instructions for r in writes(item))
        changed = True
        while changed:
            changed = False
            for block in function.blocks:
                for item in block.instructions:
                    for register in writes(item):
                        if register not in self.varying and (
                            (made[register] > 1 and block.label in self.apart)
                            or any(source in self.varying for source in reads(item))
                        ):
                            self.varying.add(register)
                            changed = True

    def meet(self, item: Instruction, first: str, second: str) -> bool:
        """Whether a lane may be in one block while another of its warp is in the other, and both be at one exchange.

        Warp barriers have no operands, so that code pairs them by their number alone: there, all that is not passed by
        the same lanes one after the other may meet.
        """
        if any((first in a and second in b) or (first in b and second in a) for a, b in self.pairs):
            return True
        barrier = isinstance(item, WarpOp) and item.op == "syncwarp"
        return barrier and not {first, second}.isdisjoint(self.apart) and not self.in_line(first, second)

    def in_line(self, first: str, second: str) -> bool:
        """Whether who passes one block passes the other, as often."""
        if self.around.get(first, set()) != self.around.get(second, set()):
            return False
        return any(
            dominates(self.dominators, a, b) and (a == b or dominates(self.after, b, a))
            for a, b in ((first, second), (second, first))
        )


def _reached(start: str, stop: str, following: Mapping[str, tuple[str, ...]]) -> set[str]:
    """The blocks that are reached from one without passing another."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        label = waiting.pop()
        if label != stop and label not in found:
            found.add(label)
            waiting += following[label]
    return found


def _varying_itself(function: Function) -> set[Reg]:
    """Registers that an instruction writes whose result may differ among lanes, whatever its registers hold."""
    return {
        register
        for block in function.blocks
        for item in block.instructions
        if not isinstance(item, Compute | Load)
        or (isinstance(item, Load) and item.space != "const")
        or any(isinstance(source, Special) and source.name.startswith(("tid.", "lane")) for source in operands(item))
        for register in writes(item)
    }


# ---- One block for them ----


@dataclass(frozen=True)
class _Meeting:
    """The block where a group meets, and the registers that lanes bring there and take away."""

    label: str
    back: Reg
    item: WarpOp


def _merged(function: Function, group: list[Place], number: int) -> Function:
    """The function with a group's places going through one block."""
    items = [function.block(label).instructions[position] for label, position in group]
    operations = [item for item in items if isinstance(item, WarpOp)]
    meeting = _meeting(operations, number)
    labels = {place: f"{place[0]}{HELPER}met{number}.{place[1]}" for place in group}
    blocks: list[BasicBlock] = []
    for block in function.blocks:
        places = [place for place in group if place[0] == block.label]
        blocks += _cut(block, places, meeting, group, labels)
    rests = tuple(labels[place] for place in group)
    blocks.append(BasicBlock(meeting.label, (meeting.item,), Switch(meeting.back, rests, origin=items[0].origin)))
    return replace(function, blocks=tuple(blocks))


def _meeting(items: list[WarpOp], number: int) -> _Meeting:
    """Sources that are the same constant at all places stay that; the others come in registers."""
    name = f"{HELPER}meet{number}"
    first, row = items[0], WARP_OPS[items[0].op]
    sources: list[Operand] = []
    for position, letter in enumerate(row.sources):
        given = {item.sources[position] for item in items}
        same = next(iter(given)) if len(given) == 1 else None
        kept = same if isinstance(same, Const) else Reg(f"{name}.s{position}", typed(letter, first.type) or first.type)
        sources.append(kept)
    dests = tuple(
        Reg(f"{name}.d{position}", typed(letter, first.type) or first.type)
        if any(position < len(item.dests) and item.dests[position] is not None for item in items)
        else None
        for position, letter in enumerate(row.results)
    )
    while dests and dests[-1] is None and len(dests) > 1:
        dests = dests[:-1]
    made = replace(first, dests=dests, sources=tuple(sources), guard=None)
    return _Meeting(name, Reg(f"{name}.back", Type.B32), made)


def _cut(
    block: BasicBlock, places: list[Place], meeting: _Meeting, group: list[Place], labels: Mapping[Place, str]
) -> Iterator[BasicBlock]:
    """A block taken apart at its places."""
    label, start = block.label, 0
    before: tuple[Instruction, ...] = ()
    for place in sorted(places, key=lambda place: place[1]):
        item = block.instructions[place[1]]
        assert isinstance(item, WarpOp)
        brought = [
            Compute("mov", kept.type, kept, (source,), origin=item.origin)
            for kept, source in zip(meeting.item.sources, item.sources, strict=True)
            if isinstance(kept, Reg)
        ]
        index = word(group.index(place))
        brought.append(Compute("mov", Type.B32, meeting.back, (index,), origin=item.origin))
        here = (*before, *block.instructions[start : place[1]], *brought)
        yield BasicBlock(label, here, Jump(meeting.label, origin=item.origin))
        before = tuple(
            Compute("mov", dest.type, dest, (kept,), origin=item.origin)
            for dest, kept in zip(item.dests, meeting.item.dests, strict=False)
            if dest is not None and kept is not None
        )
        label, start = labels[place], place[1] + 1
    yield BasicBlock(label, (*before, *block.instructions[start:]), block.terminator)
