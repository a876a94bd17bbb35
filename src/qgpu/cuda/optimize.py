"""The passes over the IR in their order, and the tidy names at the end."""

from collections import Counter
from dataclasses import replace

from qgpu.cuda.address import fold_addresses
from qgpu.cuda.bounds import use_bounds
from qgpu.cuda.coalesce import coalesce
from qgpu.cuda.dead import remove_dead
from qgpu.cuda.flow import reverse_postorder
from qgpu.cuda.ir import (
    Atomic,
    Barrier,
    BasicBlock,
    Compute,
    Function,
    Instruction,
    Load,
    Operand,
    Reg,
    Type,
    WarpOp,
    map_operands,
    reads,
    writes,
)
from qgpu.cuda.narrow import narrow
from qgpu.cuda.propagate import propagate
from qgpu.cuda.rotate import rotate_loops
from qgpu.cuda.simplify import retarget, simplify_flow
from qgpu.cuda.spaces import resolve_spaces
from qgpu.cuda.verify import verify

ROUNDS = 8


def optimize(function: Function) -> Function:
    """A function with the same effects, fewer instructions, and tidy names; the result is verified."""
    function = rotate_loops(simplify_flow(narrow(function)))
    for _ in range(ROUNDS):
        before = function
        function = remove_dead(propagate(function))
        function = simplify_flow(remove_dead(use_bounds(fold_addresses(coalesce(function)))))
        if function == before:
            break
    return verify(with_tidy_names(resolve_spaces(function)))


_LETTERS = {Type.PRED: "p", Type.B16: "h", Type.B32: "r", Type.B64: "d"}


def with_tidy_names(function: Function) -> Function:
    """Registers named r1, r2, ... (p for predicates, h for 16 bits, d for 64) in order of first mention in reverse
    postorder, blocks b0, b1, ... in their layout."""
    names: dict[Reg, Reg] = {}
    counts: Counter[Type] = Counter()
    blocks = {block.label: block for block in function.blocks}
    for label in reverse_postorder(function):
        block = blocks[label]
        for item in (*block.instructions, block.terminator):
            for register in (*reads(item), *writes(item)):
                if register not in names:
                    counts[register.type] += 1
                    names[register] = Reg(f"{_LETTERS[register.type]}{counts[register.type]}", register.type)
    labels = {block.label: f"b{position}" for position, block in enumerate(function.blocks)}

    def read(operand: Operand) -> Operand:
        return names[operand] if isinstance(operand, Reg) else operand

    def renamed(item: Instruction) -> Instruction:
        item = map_operands(item, read)
        match item:
            case Load(dests=dests):
                return replace(item, dests=tuple(names[dest] for dest in dests))
            case WarpOp(dests=old):
                return replace(item, dests=tuple(None if dest is None else names[dest] for dest in old))
            case Compute(dest=dest):
                return replace(item, dest=names[dest])
            case Atomic(dest=dest) | Barrier(dest=dest) if dest is not None:
                return replace(item, dest=names[dest])
        return item

    return replace(
        function,
        blocks=tuple(
            BasicBlock(
                labels[block.label],
                tuple(map(renamed, block.instructions)),
                retarget(map_operands(block.terminator, read), labels),  # type: ignore[arg-type]
            )
            for block in function.blocks
        ),
    )
