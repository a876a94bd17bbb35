"""Regions: straight code with one way in, which is cut into machine blocks as a whole.

A region is one basic block or several that follow one another: a thread that only ends on the way leaves nothing
behind, so what comes after its branch belongs to the same region.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgpu.cuda.flow import liveness, loops, predecessors
from qgpu.cuda.ir import (
    Atomic,
    Barrier,
    BasicBlock,
    Branch,
    Exit,
    Fence,
    Function,
    Instruction,
    Jump,
    Load,
    Reg,
    Terminator,
    Type,
    reads,
    successors,
    writes,
)
from qgpu.cuda.simplify import remove_unreachable


@dataclass(frozen=True)
class SideExit(Instruction):
    """The thread ends here where the predicate is true (false, if negated)."""

    predicate: Reg = Reg("", Type.PRED)
    negated: bool = False


@dataclass(frozen=True)
class Region:
    """Straight code with one way in: basic blocks that follow one another, threads ending on the way.

    ``end``: its terminator, or the Barrier it stops at. ``following``: the region behind it in the layout.
    ``live``: the registers whose values are read after it. ``yields``: it ends a loop in which threads may wait for
    others.
    """

    label: str
    items: tuple[Instruction, ...]
    end: Terminator | Barrier
    live: frozenset[Reg] = frozenset()
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
    return () if isinstance(region.end, Barrier) else successors(BasicBlock("", (), region.end))


def regions_of(function: Function, yields: bool) -> list[Region]:
    """The regions of a function whose blocks are in layout order, split at barriers.

    yields: whether loops that wait for other threads may give way to them.
    """
    live = liveness(function)
    waits: set[str] = set()
    for loop in loops(function):
        if yields and any(_waits(item) for label in loop.blocks for item in function.block(label).instructions):
            waits.update(loop.latches)
    parts: list[Region] = []
    for labels, items, end in _merge_exits(function):
        after = frozenset().union(*(live.at_start[target] for target in successors(BasicBlock("", (), end))))
        waiting = not waits.isdisjoint(labels)
        parts += [Region(*piece, yields=waiting) for piece in _split(labels[0], items, end, after)]
    following = [*(part.label for part in parts[1:]), ""]
    return [replace(part, following=label) for part, label in zip(parts, following, strict=True)]


def _waits(item: Instruction) -> bool:
    """Whether a loop with this may wait for what other threads do."""
    return isinstance(item, Fence) or (isinstance(item, Load) and item.volatile) or (
        isinstance(item, Atomic) and item.dest is not None
    )  # fmt: skip


def _split(
    label: str, items: tuple[Instruction, ...], end: Terminator, after: frozenset[Reg]
) -> list[tuple[str, tuple[Instruction, ...], Terminator | Barrier, frozenset[Reg]]]:
    """The pieces of a region between barriers, each with what is live after it."""
    pieces: list[tuple[str, tuple[Instruction, ...], Terminator | Barrier, frozenset[Reg]]] = []
    live, stop = set(after), len(items)
    last: Terminator | Barrier = end
    for position in range(len(items), -1, -1):
        item = items[position] if position < len(items) else end
        if isinstance(item, Barrier):
            pieces.append((f"{label}.after{position}", items[position + 1 : stop], last, after))
            after, last, stop = frozenset(live), item, position
            continue
        live.difference_update(writes(item))
        live.update(reads(item))
        if isinstance(item, SideExit):
            live.add(item.predicate)
    pieces.append((label, items[:stop], last, after))
    return pieces[::-1]
