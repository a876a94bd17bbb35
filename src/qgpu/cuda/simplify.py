"""Passes over the control flow alone: unreachable blocks, jumps to jumps, and straight lines of blocks joined."""

from dataclasses import replace

from qgpu.cuda.flow import predecessors, reverse_postorder
from qgpu.cuda.ir import BasicBlock, Branch, Const, Exit, Function, Jump, Switch, Terminator, successors


def remove_unreachable(function: Function) -> Function:
    """Without the blocks that no way from the entry leads to."""
    reached = set(reverse_postorder(function))
    return replace(function, blocks=tuple(block for block in function.blocks if block.label in reached))


def retarget(terminator: Terminator, targets: dict[str, str]) -> Terminator:
    """The terminator with targets renamed; a branch whose two ways are one becomes a jump."""
    match terminator:
        case Jump(target=target):
            return replace(terminator, target=targets.get(target, target))
        case Branch(then=then, otherwise=otherwise):
            then, otherwise = targets.get(then, then), targets.get(otherwise, otherwise)
            if then == otherwise:
                return Jump(then, origin=terminator.origin)
            return replace(terminator, then=then, otherwise=otherwise)
        case Switch(index=index, targets=old):
            new = tuple(targets.get(target, target) for target in old)
            if isinstance(index, Const) and index.value < len(new):
                return Jump(new[index.value], origin=terminator.origin)
            return replace(terminator, targets=new)
    return terminator


def thread_jumps(function: Function) -> Function:
    """Edges to a block that only jumps on lead where that block leads; a jump to a bare exit is an exit."""
    empty = {
        block.label: block.terminator.target
        for block in function.blocks[1:]
        if not block.instructions and isinstance(block.terminator, Jump)
    }
    targets: dict[str, str] = {}
    for label in empty:
        end = label
        passed = {end}
        while end in empty and empty[end] not in passed:
            end = empty[end]
            passed.add(end)
        targets[label] = end
    exits = {block.label: block.terminator for block in function.blocks if not block.instructions}

    def threaded(terminator: Terminator) -> Terminator:
        terminator = retarget(terminator, targets)
        ending = exits.get(terminator.target) if isinstance(terminator, Jump) else None
        return ending if isinstance(ending, Exit) else terminator

    blocks = tuple(replace(block, terminator=threaded(block.terminator)) for block in function.blocks)
    return remove_unreachable(replace(function, blocks=blocks))


def join_lines(function: Function) -> Function:
    """A block whose only way on is a jump to a block with no other way in is joined with it."""
    coming = predecessors(function)
    blocks = {block.label: block for block in function.blocks}
    for block in function.blocks:
        label = block.label
        if label not in blocks:
            continue
        while isinstance(blocks[label].terminator, Jump):
            head = blocks[label]
            target = successors(head)[0]
            if target == label or len(coming[target]) != 1:
                break
            tail = blocks.pop(target)
            blocks[label] = BasicBlock(label, head.instructions + tail.instructions, tail.terminator)
    return replace(function, blocks=tuple(blocks.values()))


def simplify_flow(function: Function) -> Function:
    """All of the above."""
    return join_lines(thread_jumps(remove_unreachable(function)))
