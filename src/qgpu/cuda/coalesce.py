"""Lets an operation write straight into the register its result is moved to.

``t = add r, s; ...; r = mov t`` becomes ``r = add r, s`` where the move stood, if nothing needs t before, and what
reads t afterwards reads r. Loops made of such moves lose one register and one instruction a trip.
"""

from collections import Counter
from dataclasses import replace

from qgpu.cuda.ir import BasicBlock, Compute, Function, Instruction, Operand, Reg, map_operands, reads, writes
from qgpu.cuda.values import values


def coalesce(function: Function) -> Function:
    """The function with such pairs joined, wherever the temporary lives in one block only."""
    known = values(function)
    read_in: dict[Reg, Counter[str]] = {}
    for block in function.blocks:
        for item in (*block.instructions, block.terminator):
            for register in reads(item):
                read_in.setdefault(register, Counter())[block.label] += 1
    blocks = []
    for block in function.blocks:
        local = {value for value in known if set(read_in.get(value, ())) <= {block.label}}
        blocks.append(_block(block, local))
    return replace(function, blocks=tuple(blocks))


def _block(block: BasicBlock, local: set[Reg]) -> BasicBlock:
    """local: values that are read in this block only."""
    position = 0
    while position < len(block.instructions):
        move = block.instructions[position]
        if isinstance(move, Compute) and move.op == "mov" and move.guard is None and move.sources[0] in local:
            block = _joined(block, position, move) or block
        position += 1
    return block


def _joined(block: BasicBlock, position: int, move: Compute) -> BasicBlock | None:
    """The block with the move at ``position`` joined with the operation before it, or None if that cannot be."""
    temporary, target = move.sources[0], move.dest
    items = [*block.instructions, block.terminator]
    start = next((i for i in range(position) if temporary in writes(items[i])), None)
    if start is None:
        return None
    source = items[start]
    between, after = items[start + 1 : position], items[position + 1 :]
    if not isinstance(source, Compute) or source.guard is not None:
        return None
    # Afterwards, every read of the temporary must still find the target unchanged.
    last = max((i for i, item in enumerate(after) if temporary in reads(item)), default=-1)
    if any(target in writes(item) for item in after[:last]):
        return None
    touched = any(target in (*reads(item), *writes(item)) for item in between)
    early = any(temporary in reads(item) for item in between)
    stale = any(dest in reads(source) for item in between for dest in writes(item))

    def read(operand: Operand) -> Operand:
        return target if operand == temporary else operand

    direct = replace(source, dest=target)
    rest = [map_operands(item, read) for item in after]
    if not touched:
        middle: list[Instruction] = [direct, *(map_operands(item, read) for item in between)]
    elif not early and not stale:
        middle = [*between, direct]
    else:
        return None
    everything = [*items[:start], *middle, *rest]
    # A terminator stays one: only its operands have changed.
    return replace(block, instructions=tuple(everything[:-1]), terminator=everything[-1])  # type: ignore[arg-type]
