"""Small branches made into straight code: what only some lanes do is guarded, and a value of two sides is selected.

Lanes that part cost a MASK each time, an EXEC a side and the values they bring along in registers; a guard costs
nothing. Both rewritings here are offered, and taken where they make a kernel cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from qgpu.cuda.flow import liveness, predecessors
from qgpu.cuda.ir import (
    Atomic,
    BasicBlock,
    Branch,
    Compute,
    Exit,
    Function,
    Guard,
    Instruction,
    Jump,
    Load,
    Reg,
    Store,
    Type,
    map_operands,
    writes,
)
from qgpu.cuda.simplify import simplify_flow

MAXIMUM_SIDE = 8
"""Instructions of a side."""
MAXIMUM_TAIL = 4
"""Instructions of a last block that is put at the end of each way to it."""


@dataclass(frozen=True)
class SafeLoad(Load):
    """A load whose guard only keeps it from faulting: where that is false, its result is anything."""


def conversions(function: Function) -> Iterator[Function]:
    """The function with one branch, or one way to its end, rewritten; each in its turn."""
    for block in function.blocks:
        for found in (_converted(function, block), _with_own_tails(function, block)):
            if found is not None:
                yield found


# ---- Branches ----


def _converted(function: Function, block: BasicBlock) -> Function | None:
    """The function with the branch at the end of a block gone, if its sides allow that."""
    end = block.terminator
    if not isinstance(end, Branch) or end.then == end.otherwise:
        return None
    coming = predecessors(function)
    blocks = {other.label: other for other in function.blocks}
    sides = [_side(blocks[target], coming[target], block.label) for target in (end.then, end.otherwise)]
    after = [
        target if side is None else _after(side)
        for side, target in zip(sides, (end.then, end.otherwise), strict=True)
    ]  # fmt: skip
    if after[0] != after[1] or (sides[0] is None and sides[1] is None):
        return None
    live = frozenset() if after[0] is None else liveness(function).at_start[after[0]]
    items = list(block.instructions)
    chosen: dict[Reg, list[Reg]] = {}
    for number, side in enumerate(sides):
        if side is None:
            continue
        negated = end.negated ^ (number == 1)
        converted = _guarded(side, Guard(end.predicate, negated), f"{block.label}.{number}")
        if converted is None:
            return None
        more, results = converted
        items += more
        for register, result in results.items():
            if register in live:
                if register.type is Type.PRED:
                    return None
                chosen.setdefault(register, [register, register])[number] = result
    if any(end.predicate in writes(item) for item in items[len(block.instructions) :]):
        return None
    for register, (then, otherwise) in chosen.items():
        first, second = (otherwise, then) if end.negated else (then, otherwise)
        items.append(
            Compute("select", register.type, register, (first, second, end.predicate), origin=end.origin)
        )  # fmt: skip
    rest: Exit | Jump = Exit(origin=end.origin) if after[0] is None else Jump(after[0], origin=end.origin)
    changed = BasicBlock(block.label, tuple(items), rest)
    return simplify_flow(_with(function, changed))


def _side(block: BasicBlock, coming: Sequence[str], source: str) -> BasicBlock | None:
    """The block, if it is a side of the branch at the end of ``source``, and one that can be converted."""
    small = len(block.instructions) <= MAXIMUM_SIDE and isinstance(block.terminator, Jump | Exit)
    return block if coming == [source] and small and all(map(_plain, block.instructions)) else None


def _plain(item: Instruction) -> bool:
    if item.guard is not None:
        return False
    match item:
        case Load(volatile=volatile) | Store(volatile=volatile):
            return not volatile
        case Atomic(dest=dest):
            return dest is None
    return isinstance(item, Compute)


def _after(side: BasicBlock) -> str | None:
    """Where a side goes on; None where threads end."""
    return side.terminator.target if isinstance(side.terminator, Jump) else None


def _guarded(side: BasicBlock, guard: Guard, suffix: str) -> tuple[list[Instruction], dict[Reg, Reg]] | None:
    """The side's instructions under a guard, results in registers of their own; and where each register's result is."""
    names: dict[Reg, Reg] = {}
    made: list[Instruction] = []
    for item in side.instructions:
        item = map_operands(item, lambda operand: names.get(operand, operand) if isinstance(operand, Reg) else operand)
        for dest in writes(item):
            if dest == guard.register:
                return None
            names[dest] = Reg(f"{dest.name}.{suffix}", dest.type)
        match item:
            case Compute(dest=dest):
                made.append(replace(item, dest=names[dest]))
            case Load(dests=dests):
                renamed = tuple(names[dest] for dest in dests)
                made.append(
                    SafeLoad(
                        renamed,
                        item.space,
                        item.address,
                        item.width,
                        item.signed,
                        guard=guard,
                        origin=item.origin,
                    )
                )
            case _:
                made.append(replace(item, guard=guard))
    return made, names


# ---- Last blocks ----


def _with_own_tails(function: Function, tail: BasicBlock) -> Function | None:
    """The function with a short last block put at the end of every block that jumps to it."""
    if not isinstance(tail.terminator, Exit) or not 0 < len(tail.instructions) <= MAXIMUM_TAIL:
        return None
    blocks = {block.label: block for block in function.blocks}
    sources = [blocks[label] for label in predecessors(function)[tail.label]]
    if len(sources) < 2 or not all(isinstance(source.terminator, Jump) for source in sources):
        return None
    changed = [
        BasicBlock(source.label, source.instructions + tail.instructions, tail.terminator) for source in sources
    ]  # fmt: skip
    return simplify_flow(_with(function, *changed))


def _with(function: Function, *changed: BasicBlock) -> Function:
    new = {block.label: block for block in changed}
    return replace(function, blocks=tuple(new.get(block.label, block) for block in function.blocks))
