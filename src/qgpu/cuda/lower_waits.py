"""Loops in which threads wait for what others do: their back-edges yield, so that the others get on.

A loop waits if a branch in it hangs on something that others may change meanwhile: a volatile load, the old value of an
atomic, or, where there are fences, any load. Loops that merely use atomics do not wait, and their lanes stay together.
"""

from __future__ import annotations

from qgpu.cuda.flow import loops
from qgpu.cuda.ir import (
    Atomic,
    BasicBlock,
    Branch,
    Fence,
    Function,
    Instruction,
    Load,
    Reg,
    Store,
    Switch,
    reads,
    writes,
)


def waiting_latches(function: Function) -> frozenset[str]:
    """The blocks that jump back in loops in which threads may wait for others."""
    blocks = {block.label: block for block in function.blocks}
    found: set[str] = set()
    for loop in loops(function):
        if _waits([blocks[label] for label in loop.blocks]):
            found.update(loop.latches)
    return frozenset(found)


def _waits(blocks: list[BasicBlock]) -> bool:
    items = [item for block in blocks for item in block.instructions]
    fenced = any(isinstance(item, Fence) for item in items)
    moving: set[Reg] = set()  # registers that hang on what others may change
    stored = False  # such a value went to memory, from where any load may bring it back
    changed = True
    while changed:
        changed = False
        for item in items:
            if not _moves(item, fenced or stored) and moving.isdisjoint(reads(item)):
                continue
            if isinstance(item, Store | Atomic) and not moving.isdisjoint(reads(item)) and not stored:
                stored = changed = True
            if not moving.issuperset(writes(item)):
                moving.update(writes(item))
                changed = True
    ends = [block.terminator for block in blocks if isinstance(block.terminator, Branch | Switch)]
    return any(not moving.isdisjoint(reads(end)) for end in ends)


def _moves(item: Instruction, any_load: bool) -> bool:
    return (isinstance(item, Load) and (item.volatile or any_load)) or (
        isinstance(item, Atomic) and item.dest is not None
    )
