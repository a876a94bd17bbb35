"""Instructions of a basic block in an order that keeps few values alive: what frees registers comes first.

Effects, loads, and whatever lanes meet at stay in their order; what only computes moves between them.
"""

from __future__ import annotations

from dataclasses import replace

from qgpu.cuda.flow import liveness
from qgpu.cuda.ir import BasicBlock, Compute, Function, Instruction, Reg, Type, reads, writes


def few_alive(function: Function) -> Function:
    """The function with the blocks reordered in which that needs fewer registers at once."""
    live = liveness(function)
    return replace(function, blocks=tuple(_ordered(block, live.at_end[block.label]) for block in function.blocks))


def most_alive(block: BasicBlock, after: frozenset[Reg]) -> int:
    """The most words alive behind an instruction of the block."""
    now, most = set(after), 0
    for item in (block.terminator, *reversed(block.instructions)):
        most = max(most, sum(register.type is not Type.PRED for register in now.union(writes(item))))
        now.difference_update(writes(item))
        now.update(reads(item))
    return most


def _ordered(block: BasicBlock, after: frozenset[Reg]) -> BasicBlock:
    items = block.instructions
    needs = _needs(items)
    last = {*after, *reads(block.terminator)}
    left = list(range(len(items)))
    readers: dict[Reg, int] = {}
    for item in items:
        for register in set(reads(item)):
            readers[register] = readers.get(register, 0) + 1
    done: set[int] = set()
    order: list[Instruction] = []
    while left:
        ready = [position for position in left if needs[position] <= done]
        chosen = min(ready, key=lambda position: (_growth(items[position], readers, last), position))
        left.remove(chosen)
        done.add(chosen)
        order.append(items[chosen])
        for register in set(reads(items[chosen])):
            readers[register] -= 1
    changed = replace(block, instructions=tuple(order))
    return changed if most_alive(changed, after) < most_alive(block, after) else block


def _growth(item: Instruction, readers: dict[Reg, int], last: set[Reg]) -> int:
    """How many more words are alive behind an instruction than before it."""
    written = {register for register in writes(item) if register.type is not Type.PRED}
    ended = {
        register
        for register in reads(item)
        if register.type is not Type.PRED and readers[register] == 1 and register not in last
    }
    return len(written - set(reads(item))) - len(ended - written)


def _needs(items: tuple[Instruction, ...]) -> list[set[int]]:
    """For every instruction, those that must stand before it."""
    found: list[set[int]] = []
    written: dict[Reg, int] = {}
    read: dict[Reg, set[int]] = {}
    fixed: int | None = None
    for position, item in enumerate(items):
        before = {written[register] for register in reads(item) if register in written}
        for register in writes(item):
            before |= read.get(register, set())
            if register in written:
                before.add(written[register])
        if not isinstance(item, Compute):
            if fixed is not None:
                before.add(fixed)
            fixed = position
        found.append(before - {position})
        for register in reads(item):
            read.setdefault(register, set()).add(position)
        for register in writes(item):
            written[register], read[register] = position, set()
    return found
