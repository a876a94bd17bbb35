"""Copies, constants and equal expressions carried forward to where they are read, and operations folded on the way.

One walk in reverse postorder, so that the definition of a value is seen before its reads. Values are replaced
everywhere, other registers only in the rest of their block while neither side has been written again.
"""

from dataclasses import dataclass, field, replace

from qgpu.cuda.flow import dominates, immediate_dominators, reverse_postorder
from qgpu.cuda.fold import fold
from qgpu.cuda.ir import (
    BasicBlock,
    Branch,
    Compute,
    Const,
    Function,
    Guard,
    Instruction,
    Jump,
    Operand,
    Reg,
    Switch,
    Terminator,
    Type,
    map_operands,
    writes,
)
from qgpu.cuda.values import values


@dataclass
class _Walk:
    known: dict[Reg, Instruction]
    """values and their definitions, as rewritten so far"""
    replacements: dict[Reg, Operand] = field(default_factory=dict)
    """values that equal an operand"""
    local: dict[Reg, Operand] = field(default_factory=dict)
    """other registers that equal an operand for now"""
    expressions: dict[object, tuple[Reg, str]] = field(default_factory=dict)
    """operations on values already computed, and the block where"""

    def now(self, operand: Operand) -> Operand:
        """What to read in place of an operand."""
        if not isinstance(operand, Reg):
            return operand
        found = self.replacements.get(operand) or self.local.get(operand)
        return operand if found is None else found

    def forget(self, register: Reg) -> None:
        """A register that is no value has been written: nothing equals its old content any more."""
        self.local.pop(register, None)
        for copy in [copy for copy, source in self.local.items() if source == register]:
            del self.local[copy]


def propagate(function: Function) -> Function:
    """The function with reads replaced and operations folded; the moves left over are for `dead` to remove."""
    dominators = immediate_dominators(function)
    walk = _Walk(dict(values(function)))
    blocks = {block.label: block for block in function.blocks}
    for label in reverse_postorder(function):
        block = blocks[label]
        walk.local.clear()
        instructions: list[Instruction] = []
        for item in block.instructions:
            instructions += _instruction(walk, item, label, dominators)
        blocks[label] = BasicBlock(label, tuple(instructions), _terminator(walk, block.terminator))
    return replace(function, blocks=tuple(blocks[block.label] for block in function.blocks))


def _instruction(walk: _Walk, item: Instruction, label: str, dominators: dict[str, str]) -> list[Instruction]:
    guard = _guard(walk, item.guard)
    if isinstance(guard, bool):
        return []
    item = map_operands(replace(item, guard=guard), walk.now)
    if not isinstance(item, Compute):
        for dest in writes(item):
            if dest in walk.known:
                walk.known[dest] = item
            else:
                walk.forget(dest)
        return [item]
    result = fold(item, walk.known)
    is_value = item.dest in walk.known
    if isinstance(result, Compute):
        item = result
        if is_value:
            walk.known[item.dest] = item
            equal = _seen_before(walk, item, label, dominators)
            if equal is not None:
                walk.replacements[item.dest] = equal
        else:
            walk.forget(item.dest)
        return [item]
    move = replace(item, op="mov", type=item.dest.type, sources=(result,))
    steady = not isinstance(result, Reg) or result in walk.known
    if is_value:
        walk.known[item.dest] = move
        if steady:
            walk.replacements[item.dest] = result
        else:
            walk.local[item.dest] = result
    else:
        if result == item.dest:
            return []  # a register moved onto itself
        walk.forget(item.dest)
        if item.guard is None:
            walk.local[item.dest] = result
    return [move]


def _seen_before(walk: _Walk, item: Compute, label: str, dominators: dict[str, str]) -> Reg | None:
    """The value that holds the same expression already, if it is computed on every way here."""
    if any(isinstance(source, Reg) and source not in walk.known for source in item.sources):
        return None
    key = (item.op, item.type, item.dest.type, item.sources)
    found = walk.expressions.get(key)
    if found is not None and dominates(dominators, found[1], label):
        return found[0]
    walk.expressions[key] = (item.dest, label)
    return None


def _inverted(walk: _Walk, predicate: Reg) -> Reg | None:
    """The value that a predicate is the opposite of, if it is defined so."""
    definition = walk.known.get(predicate)
    if isinstance(definition, Compute) and definition.op == "not":
        source = definition.sources[0]
        if isinstance(source, Reg) and source in walk.known:
            return source
    return None


def _guard(walk: _Walk, guard: Guard | None) -> Guard | None | bool:
    """The guard as it reads now: None if it is always true, False if it is never."""
    if guard is None:
        return None
    predicate = walk.now(guard.register)
    if isinstance(predicate, Const):
        return None if bool(predicate.value) != guard.negated else False
    assert isinstance(predicate, Reg)
    opposite = _inverted(walk, predicate)
    return Guard(predicate, guard.negated) if opposite is None else Guard(opposite, not guard.negated)


def _terminator(walk: _Walk, terminator: Terminator) -> Terminator:
    match terminator:
        case Branch(predicate=register, negated=negated, then=then, otherwise=otherwise):
            predicate = walk.now(register)
            if isinstance(predicate, Const):
                return Jump(then if bool(predicate.value) != negated else otherwise, origin=terminator.origin)
            assert isinstance(predicate, Reg) and predicate.type is Type.PRED
            opposite = _inverted(walk, predicate)
            if negated != (opposite is not None):
                then, otherwise = otherwise, then
            return replace(terminator, predicate=opposite or predicate, negated=False, then=then, otherwise=otherwise)
        case Switch(index=index):
            return replace(terminator, index=walk.now(index))
    return terminator
