"""What a branch has proved: where x is known to be at least c, max(x, c) is x.

Compilers write the trip count of ``for (i = 0; i < n; i++)`` as max(n, 0), and test that it is not 0 before the loop.
"""

from collections.abc import Mapping
from dataclasses import replace

from qgpu.cuda.flow import dominates, immediate_dominators, predecessors
from qgpu.cuda.ir import BasicBlock, Branch, Compute, Const, Function, Instruction, Operand, Reg, Type, map_operands
from qgpu.cuda.ops import OPPOSITE, signed
from qgpu.cuda.values import values


def use_bounds(function: Function) -> Function:
    """The function with a maximum replaced by its operand where a branch on the way there makes it that."""
    known = values(function)
    maxima = {
        register: item
        for register, item in known.items()
        if isinstance(item, Compute) and item.op == "max.s" and isinstance(item.sources[1], Const)
        and not (isinstance(item.sources[0], Reg) and item.sources[0] not in known)
    }  # fmt: skip
    if not maxima:
        return function
    dominators = immediate_dominators(function)
    coming = predecessors(function)
    blocks = {block.label: block for block in function.blocks}
    proved: dict[str, list[tuple[Operand, int]]] = {}
    for label, sources in coming.items():
        # What holds at the first entry of a loop holds for ever, since both sides of it are values.
        entries = [source for source in sources if not dominates(dominators, label, source)]
        proved[label] = _facts(blocks[entries[0]], label, known) if len(entries) == 1 else []

    def at_least(label: str, operand: Operand, bound: int) -> bool:
        while True:
            if any(other == operand and least >= bound for other, least in proved[label]):
                return True
            if label not in dominators:
                return False
            label = dominators[label]

    def rewritten(block: BasicBlock) -> BasicBlock:
        def change(operand: Operand) -> Operand:
            item = maxima.get(operand) if isinstance(operand, Reg) else None
            if item is None:
                return operand
            x, c = item.sources
            assert isinstance(c, Const)
            return x if at_least(block.label, x, signed(c.value, c.type)) else operand

        instructions = tuple(_test(map_operands(item, change), maxima) for item in block.instructions)
        return replace(block, instructions=instructions)

    return replace(function, blocks=tuple(map(rewritten, function.blocks)))


def _test(item: Instruction, maxima: Mapping[Reg, Compute]) -> Instruction:
    """max(x, c) != c says x > c."""
    if not isinstance(item, Compute) or item.op not in ("eq", "ne") or item.sources[0] not in maxima:
        return item
    x, c = maxima[item.sources[0]].sources  # type: ignore[index]
    return replace(item, op="gt.s" if item.op == "ne" else "le.s", sources=(x, c)) if item.sources[1] == c else item


def _facts(source: BasicBlock, target: str, known: Mapping[Reg, Instruction]) -> list[tuple[Operand, int]]:
    """(x, c) where x >= c, as signed numbers, whenever ``source`` goes on to ``target``."""
    end = source.terminator
    if not isinstance(end, Branch) or end.then == end.otherwise:
        return []
    test = known.get(end.predicate)
    if not isinstance(test, Compute) or test.type is Type.PRED or test.op not in OPPOSITE:
        return []
    holds = (target == end.then) != end.negated
    op = test.op if holds else OPPOSITE[test.op]
    x, c = test.sources
    if not isinstance(c, Const) or (isinstance(x, Reg) and x not in known):
        return []
    number = signed(c.value, c.type)
    return {"gt.s": [(x, number + 1)], "ge.s": [(x, number)], "eq": [(x, number)]}.get(op, [])
