"""Removes what nobody reads: computations and loads without readers, and results of atomics and exchanges."""

from dataclasses import replace

from qgpu.cuda.flow import liveness
from qgpu.cuda.ir import Atomic, BasicBlock, Function, Instruction, Reg, WarpOp, has_effect, reads, writes


def remove_dead(function: Function) -> Function:
    """The function without instructions whose only effect is on registers that are never read afterwards."""
    live_out = liveness(function).at_end
    return replace(function, blocks=tuple(_block(block, set(live_out[block.label])) for block in function.blocks))


def _block(block: BasicBlock, live: set[Reg]) -> BasicBlock:
    live.update(reads(block.terminator))
    kept: list[Instruction] = []
    for item in reversed(block.instructions):
        results = writes(item)
        if not has_effect(item) and live.isdisjoint(results):
            continue
        item = _without_results(item, live)
        kept.append(item)
        live.difference_update(results)
        live.update(reads(item))
    return replace(block, instructions=tuple(reversed(kept)))


def _without_results(item: Instruction, live: set[Reg]) -> Instruction:
    match item:
        case Atomic(dest=dest) if dest is not None and dest not in live:
            return replace(item, dest=None)
        case WarpOp(dests=(first, second)) if second is not None and second not in live:
            return replace(item, dests=(first,))
    return item
