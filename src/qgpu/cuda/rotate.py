"""Turns loops that test at their top into loops that test at their bottom, so that a trip is one block less.

The header's test is copied to the end of each latch; the header itself stays in front of the loop and tests the first
time. Exchanges and barriers are never copied: lanes meet at one place in the code.
"""

from dataclasses import replace

from qgpu.cuda.flow import Loop, loops
from qgpu.cuda.ir import (
    Atomic,
    Barrier,
    BasicBlock,
    Branch,
    Compute,
    Function,
    Instruction,
    Jump,
    Load,
    Operand,
    Reg,
    Store,
    WarpOp,
    map_operands,
    operands,
    reads,
    writes,
)

MAXIMUM_COPIED = 8
"""Instructions of a header; longer ones are left where they are."""


def rotate_loops(function: Function) -> Function:
    """The function with every suitable loop rotated, the innermost first."""
    for loop in reversed(loops(function)):
        function = _rotated(function, loop)
    return function


def _rotated(function: Function, loop: Loop) -> Function:
    header = function.block(loop.header)
    test = header.terminator
    if not isinstance(test, Branch) or len(header.instructions) > MAXIMUM_COPIED:
        return function
    inside = [target in loop.blocks for target in (test.then, test.otherwise)]
    if inside[0] == inside[1] or loop.blocks == {loop.header}:
        return function
    if any(isinstance(item, Barrier | WarpOp | Store | Atomic) for item in header.instructions):
        return function
    latches = [function.block(label) for label in loop.latches]
    if not all(isinstance(latch.terminator, Jump) for latch in latches):
        return function
    outside = {
        register
        for block in function.blocks
        if block is not header
        for item in (*block.instructions, block.terminator)
        for register in (*reads(item), *writes(item))
    }
    blocks = {block.label: block for block in function.blocks}
    for number, latch in enumerate(latches):
        copied, terminator = _copied(header, outside, f"'{number}")
        blocks[latch.label] = BasicBlock(latch.label, latch.instructions + copied, terminator)
    return replace(function, blocks=tuple(blocks[block.label] for block in function.blocks))


def _copied(header: BasicBlock, outside: set[Reg], suffix: str) -> tuple[tuple[Instruction, ...], Branch]:
    """The header's contents with names of their own for registers that nothing else reads."""
    names = {
        dest: Reg(dest.name + suffix, dest.type)
        for item in header.instructions
        for dest in writes(item)
        if dest not in outside
    }
    # What is read before it is written carries a value around the loop and must keep its name.
    written: set[Reg] = set()
    for item in (*header.instructions, header.terminator):
        for source in (*operands(item), *((item.guard.register,) if item.guard else ())):
            if isinstance(source, Reg) and source not in written:
                names.pop(source, None)
        if item.guard is None:
            written.update(writes(item))

    def read(operand: Operand) -> Operand:
        return names.get(operand, operand) if isinstance(operand, Reg) else operand

    copies: list[Instruction] = []
    for item in header.instructions:
        item = map_operands(item, read)
        match item:
            case Compute(dest=dest):
                item = replace(item, dest=names.get(dest, dest))
            case Load(dests=dests):
                item = replace(item, dests=tuple(names.get(dest, dest) for dest in dests))
        copies.append(item)
    terminator = map_operands(header.terminator, read)
    assert isinstance(terminator, Branch)
    return tuple(copies), terminator
