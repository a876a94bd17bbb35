"""Regions: straight code with one way in, which is cut into machine blocks as a whole.

A region is one basic block or several that follow one another: a thread that only ends on the way leaves nothing
behind, so what comes after its branch belongs to the same region.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu.cuda.flow import liveness, predecessors
from qgpu.cuda.ir import (
    Barrier,
    BasicBlock,
    Branch,
    Exit,
    Function,
    Instruction,
    Jump,
    Operand,
    Reg,
    Terminator,
    Type,
    WarpOp,
    reads,
    successors,
    writes,
)
from qgpu.cuda.lower_waits import waiting_latches
from qgpu.cuda.simplify import remove_unreachable

Stop = Terminator | Barrier | WarpOp
"""What a region may end with."""


def meets(item: Instruction) -> bool:
    """Whether lanes wait for one another here."""
    return isinstance(item, Barrier) or (isinstance(item, WarpOp) and item.op != "activemask")


@dataclass(frozen=True)
class SideExit(Instruction):
    """The thread ends here where the predicate is true (false, if negated)."""

    predicate: Reg = Reg("", Type.PRED)
    negated: bool = False


@dataclass(frozen=True)
class Region:
    """Straight code with one way in: basic blocks that follow one another, threads ending on the way.

    ``end``: its terminator, or the Barrier or exchange it stops at. ``following``: the region behind it in the layout.
    ``live``: the registers whose values are read after it. ``yields``: it ends a loop in which threads may wait for
    others. ``collect``: the exchange that its first block ends. ``parity``: of the exchange buffer that this one uses;
    the one at its end uses the other.
    """

    label: str
    items: tuple[Instruction, ...]
    end: Stop
    live: frozenset[Reg] = frozenset()
    collect: WarpOp | None = None
    parity: int = 1
    following: str = ""
    yields: bool = False


def exits_at_once(block: BasicBlock) -> bool:
    return not block.instructions and isinstance(block.terminator, Exit)


def _merge_exits(function: Function) -> list[tuple[list[str], tuple[Instruction, ...], Terminator]]:
    """Blocks in layout order; branches to blocks that only exit are side exits where the rest has one way in."""
    function = remove_unreachable(function)
    blocks = {block.label: block for block in function.blocks}
    exits = {label for label, block in blocks.items() if exits_at_once(block)}
    coming = predecessors(function)
    taken: set[str] = set()
    made: list[tuple[list[str], tuple[Instruction, ...], Terminator]] = []
    for block in function.blocks:
        if block.label in taken:
            continue
        labels = [block.label]
        items: list[Instruction] = list(block.instructions)
        end = block.terminator
        while True:
            if isinstance(end, Jump) and end.target in exits:
                end = Exit(origin=end.origin)
            if not isinstance(end, Branch) or (end.then in exits) == (end.otherwise in exits):
                break
            leaves = end.then in exits
            rest = end.otherwise if leaves else end.then
            if len(coming[rest]) != 1 or rest == block.label or rest in taken:
                break
            items.append(SideExit(origin=end.origin, predicate=end.predicate, negated=end.negated == leaves))
            taken.add(rest)
            labels.append(rest)
            items += blocks[rest].instructions
            end = blocks[rest].terminator
        made.append((labels, tuple(items), end))
    reached = {function.blocks[0].label}
    for _, _, end in made:
        reached.update(successors(BasicBlock("", (), end)))
    return [part for part in made if part[0][0] in reached]


def targets_of(region: Region) -> tuple[str, ...]:
    """The labels that the end of a region names."""
    return () if isinstance(region.end, Barrier | WarpOp) else successors(BasicBlock("", (), region.end))


def regions_of(function: Function, yields: bool) -> list[Region]:
    """The regions of a function whose blocks are in layout order, split at barriers and exchanges.

    yields: whether loops that wait for other threads may give way to them.
    """
    live = liveness(function)
    waits = waiting_latches(function) if yields else frozenset()
    parts: list[Region] = []
    for labels, items, end in _merge_exits(function):
        after = frozenset().union(*(live.at_start[target] for target in successors(BasicBlock("", (), end))))
        waiting = not waits.isdisjoint(labels)
        parts += [Region(*piece, yields=waiting) for piece in _split(labels[0], items, end, after)]
    following = [*(part.label for part in parts[1:]), ""]
    return [replace(part, following=label) for part, label in zip(parts, following, strict=True)]


Piece = tuple[str, tuple[Instruction, ...], Stop, frozenset[Reg], WarpOp | None, int]
"""The first fields of a Region."""


def _split(label: str, items: tuple[Instruction, ...], end: Terminator, after: frozenset[Reg]) -> list[Piece]:
    """The pieces of a region between the places where lanes meet, each with what is live after it."""
    pieces: list[Piece] = []
    live, stop = set(after), len(items)
    last: Stop = end
    parity = sum(isinstance(item, WarpOp) for item in items) % 2
    for position in range(len(items), -1, -1):
        item = items[position] if position < len(items) else end
        if meets(item):
            assert isinstance(item, Barrier | WarpOp)
            collect = item if isinstance(item, WarpOp) else None
            pieces.append((f"{label}.after{position}", items[position + 1 : stop], last, after, collect, parity))
            live.difference_update(writes(item))
            if collect is not None:
                parity ^= 1
                live.update(source for source in lane_of(collect) if isinstance(source, Reg))
            after, last, stop = frozenset(live), item, position
            live.update(reads(item))
            continue
        live.difference_update(writes(item))
        live.update(reads(item))
        if isinstance(item, SideExit):
            live.add(item.predicate)
    pieces.append((label, items[:stop], last, after, None, parity))
    return pieces[::-1]


def lane_of(item: WarpOp) -> tuple[Operand, ...]:
    """What the collecting block of an exchange still reads: what a shuffle's source lane is made of."""
    return (item.sources[1],) if item.op.startswith("shuffle") else ()
