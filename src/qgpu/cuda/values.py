"""Which registers are plain values: written once, unguarded, before every read. Only of these may passes reason freely.

For two values a and b where b is a copy of a, every read of b can read a: a's definition comes before b's on every way,
and by the time b is read, a has not been written again without b being written again too.
"""

from collections import Counter
from collections.abc import Mapping

from qgpu.cuda.flow import dominates, immediate_dominators
from qgpu.cuda.ir import Function, Instruction, Reg, reads, writes


def values(function: Function) -> Mapping[Reg, Instruction]:
    """The registers of a function that are values, each with the instruction that defines it.

    Unreachable blocks must have been removed.
    """
    dominators = immediate_dominators(function)
    written: Counter[Reg] = Counter()
    place: dict[Reg, tuple[str, int, Instruction]] = {}
    for block in function.blocks:
        for position, instruction in enumerate(block.instructions):
            for dest in writes(instruction):
                written[dest] += 1
                place[dest] = (block.label, position, instruction)
    unsafe = {dest for dest, count in written.items() if count > 1 or place[dest][2].guard is not None}
    for block in function.blocks:
        for position, instruction in enumerate((*block.instructions, block.terminator)):
            for source in reads(instruction):
                if source in unsafe or source not in place:
                    continue
                label, defined, _ = place[source]
                before = defined < position if label == block.label else dominates(dominators, label, block.label)
                if not before:
                    unsafe.add(source)
    return {dest: instruction for dest, (_, _, instruction) in place.items() if dest not in unsafe}
