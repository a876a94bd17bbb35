"""Control flow as the machine has it: branches on one comparison, no tables, blocks in an order that lets lanes meet.

The machine runs the lanes at the lowest block number first. Lanes that part meet again if the block where their ways
join has a higher number than every block on those ways, and a loop's blocks stand together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from qgpu.cuda.flow import loops, predecessors, reverse_postorder
from qgpu.cuda.ir import (
    BasicBlock,
    Branch,
    Compute,
    Const,
    Function,
    Jump,
    Reg,
    Switch,
    Type,
    reads,
    successors,
    writes,
)
from qgpu.cuda.simplify import remove_unreachable


def plain_branches(function: Function) -> Function:
    """The function without Switch, and with branches on "a and b" or "a or b" taken apart into two branches."""
    blocks: list[BasicBlock] = []
    for block in function.blocks:
        blocks += _without_switch(block)
    function = replace(function, blocks=tuple(blocks))
    while True:
        read = Counter(r for b in function.blocks for item in (*b.instructions, b.terminator) for r in reads(item))
        blocks, changed = [], False
        for block in function.blocks:
            parts = _short_circuit(block, read)
            changed |= len(parts) > 1
            blocks += parts
        function = replace(function, blocks=tuple(blocks))
        if not changed:
            return remove_unreachable(function)


def _without_switch(block: BasicBlock) -> list[BasicBlock]:
    end = block.terminator
    if not isinstance(end, Switch):
        return [block]
    made: list[BasicBlock] = []
    label, instructions = block.label, block.instructions
    for number, target in enumerate(end.targets[:-1]):
        predicate = Reg(f"{block.label}.is{number}", Type.PRED)
        test = Compute("eq", Type.B32, predicate, (end.index, Const(number, Type.B32)), origin=end.origin)
        rest = f"{block.label}.not{number}"
        branch = Branch(predicate, False, target, rest, origin=end.origin)
        made.append(BasicBlock(label, (*instructions, test), branch))
        label, instructions = rest, ()
    return [*made, BasicBlock(label, instructions, Jump(end.targets[-1], origin=end.origin))]


def _short_circuit(block: BasicBlock, read: Counter[Reg]) -> list[BasicBlock]:
    """One block, or two where the branch hangs on a predicate that only it reads and that two others make."""
    end = block.terminator
    if not isinstance(end, Branch) or read[end.predicate] != 1:
        return [block]
    position = max((i for i, item in enumerate(block.instructions) if end.predicate in writes(item)), default=None)
    if position is None:
        return [block]
    maker, after = block.instructions[position], block.instructions[position + 1 :]
    if not isinstance(maker, Compute) or maker.guard is not None or maker.type is not Type.PRED:
        return [block]
    if any(source in writes(item) for item in after for source in maker.sources):
        return [block]
    instructions = block.instructions[:position] + after
    then, otherwise = (end.otherwise, end.then) if end.negated else (end.then, end.otherwise)
    if maker.op == "not" and isinstance(maker.sources[0], Reg):
        branch = Branch(maker.sources[0], not end.negated, end.then, end.otherwise, origin=end.origin)
        read[maker.sources[0]] += 0
        return _short_circuit(BasicBlock(block.label, instructions, branch), read)
    if maker.op not in ("and", "or") or not all(isinstance(source, Reg) for source in maker.sources):
        return [block]
    first, second = maker.sources
    assert isinstance(first, Reg) and isinstance(second, Reg)
    rest = f"{block.label}.{end.predicate.name}"  # a block may be taken apart several times, a predicate only once
    ways = (rest, otherwise) if maker.op == "and" else (then, rest)
    return [
        BasicBlock(block.label, instructions, Branch(first, False, *ways, origin=end.origin)),
        BasicBlock(rest, (), Branch(second, False, then, otherwise, origin=end.origin)),
    ]


def layout(function: Function) -> Function:
    """The function with its blocks in an order of execution in which lanes meet again as early as they can.

    A block comes after all that lead to it, back-edges apart; a loop's blocks stand together; among what is left, the
    block that the last one goes on to comes first.
    """
    function = remove_unreachable(function)
    order = {label: position for position, label in enumerate(reverse_postorder(function))}
    inside: dict[str, list[str]] = {label: [] for label in order}  # the loops around a block, outermost first
    back = set()
    for loop in loops(function):
        back |= {(latch, loop.header) for latch in loop.latches}
        for label in loop.blocks:
            inside[label].append(loop.header)
    waits = {
        label: {source for source in sources if source in order and (source, label) not in back}
        for label, sources in predecessors(function).items()
        if label in order
    }
    blocks = {block.label: block for block in function.blocks}
    placed: list[str] = []
    while waits:
        ready = [label for label, sources in waits.items() if not sources]
        if not ready:  # an irreducible loop: any order is right, though lanes may meet late
            ready = [min(waits, key=order.__getitem__)]
        last = placed[-1] if placed else None
        around = inside[last] if last else []
        following = successors(blocks[last]) if last else ()

        chosen = min(
            ready,
            key=lambda label: (-_common(around, inside[label]), label not in following, order[label]),  # noqa: B023
        )
        placed.append(chosen)
        del waits[chosen]
        for sources in waits.values():
            sources.discard(chosen)
    return replace(function, blocks=tuple(blocks[label] for label in placed))


def _common(first: list[str], second: list[str]) -> int:
    return sum(a == b for a, b in zip(first, second, strict=False))
