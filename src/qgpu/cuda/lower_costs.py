"""Guesses that choices are made by: which values all lanes share, and how often each part of a kernel runs."""

from __future__ import annotations

from collections.abc import Mapping

from qgpu.cuda.flow import immediate_dominators, immediate_postdominators, loops
from qgpu.cuda.ir import Branch, Compute, Function, Instruction, Load, Operand, Reg, Special, operands, writes

TRIPS = 8.0
"""Of a loop."""
SIDE, UNIFORM_SIDE = 0.8, 0.5
"""How often a side of a branch runs, where lanes differ and where all go one way."""
MASKS = 2.0
"""Tokens that lanes cost which part and meet again."""


def uniform_registers(function: Function) -> frozenset[Reg]:
    """Registers that hold the same in all lanes, as a guess: that lanes may have gone other ways is not looked at."""
    uniform = {register for block in function.blocks for item in block.instructions for register in writes(item)}
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            for item in block.instructions:
                if uniform.isdisjoint(writes(item)):
                    continue
                if not isinstance(item, Compute | Load) or any(_varies(source, uniform) for source in _sources(item)):
                    uniform.difference_update(writes(item))
                    changed = True
    return frozenset(uniform)


def _sources(item: Instruction) -> tuple[Operand, ...]:
    return (*operands(item), *((item.guard.register,) if item.guard else ()))


def _varies(operand: Operand, uniform: set[Reg]) -> bool:
    if isinstance(operand, Special):
        return operand.name.startswith(("tid.", "lane"))
    return isinstance(operand, Reg) and operand not in uniform


def weights(function: Function, uniform: frozenset[Reg]) -> Mapping[str, float]:
    """How often each block runs, for one run of the kernel."""
    dominators, after = immediate_dominators(function), immediate_postdominators(function)
    headers = {loop.header for loop in loops(function)}
    blocks = {block.label: block for block in function.blocks}
    found: dict[str, float] = {function.blocks[0].label: 1.0}

    def weight(label: str) -> float:
        if label not in found:
            above = dominators[label]
            end = blocks[above].terminator
            found[label] = weight(above)
            if isinstance(end, Branch) and after.get(above) != label:
                found[label] *= UNIFORM_SIDE if end.predicate in uniform else SIDE
            if label in headers:
                found[label] *= TRIPS
        return found[label]

    for label in dominators:
        weight(label)
    return found


def parting(function: Function, uniform: frozenset[Reg], weight: Mapping[str, float]) -> float:
    """Tokens that branches cost at which lanes part, those apart that only end threads or close loops."""
    total = 0.0
    ends = {block.label for block in function.blocks if not block.instructions and not _goes_on(block.terminator)}
    order = {block.label: position for position, block in enumerate(function.blocks)}
    for block in function.blocks:
        end = block.terminator
        if isinstance(end, Branch) and end.predicate not in uniform:
            targets = {end.then, end.otherwise}
            if targets.isdisjoint(ends) and all(order[target] > order[block.label] for target in targets):
                total += weight[block.label] * MASKS
    return total


def _goes_on(item: Instruction) -> bool:
    return hasattr(item, "target") or hasattr(item, "then")
