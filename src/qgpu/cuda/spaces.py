"""Finds the memory that generic accesses go to, where that can be known: from the variable or parameter they start at.

A register may hold a pointer into some spaces. Sums keep the space of the pointer in them; loaded numbers could be any
pointer, unless they are added to one whose space is known.
"""

from collections.abc import Callable
from dataclasses import replace

from qgpu.cuda.ir import (
    Atomic,
    Compute,
    Function,
    Instruction,
    Load,
    Operand,
    Param,
    Reg,
    Store,
    VariableAddress,
    operands,
    writes,
)

UNKNOWN = "unknown"
_SUMS = frozenset({"add", "sub"})
_CHOICES = frozenset({"mov", "select", "and", "or", "zext32", "sext32", "pack", "min.u", "max.u", "min.s", "max.s"})


def resolve_spaces(function: Function) -> Function:
    """The function with generic accesses made global, shared, local or constant ones where only one is possible."""
    items = [item for block in function.blocks for item in block.instructions]
    if not any(isinstance(item, Load | Store | Atomic) and item.space == "generic" for item in items):
        return function
    spaces = {variable.name: variable.space for variable in function.variables}
    # Without ".ptr", an 8-byte parameter may be a pointer or a number; only global memory can be passed from outside.
    pointers = {p.offset for p in function.parameters if p.pointer or p.size == 8}
    held: dict[Reg, frozenset[str]] = {}

    def of(operand: Operand) -> frozenset[str]:
        match operand:
            case VariableAddress(name=name):
                return frozenset({spaces[name]})
            case Param(offset=offset) if offset in pointers:
                return frozenset({"global"})
            case Reg():
                return held.get(operand, frozenset())
        return frozenset()

    def summed(terms: tuple[Operand, ...]) -> frozenset[str]:
        everything = frozenset().union(*map(of, terms))
        return everything - {UNKNOWN} or everything

    changed = True
    while changed:
        changed = False
        for item in items:
            result = _of_results(item, of, summed)
            for dest in writes(item):
                joined = held.get(dest, frozenset()) | result
                if joined != held.get(dest, frozenset()):
                    held[dest] = joined
                    changed = True

    def resolved(item: Instruction) -> Instruction:
        if isinstance(item, Load | Store | Atomic) and item.space == "generic":
            address = item.address
            found = summed((address.base,) if address.index is None else (address.base, address.index))
            if len(found) == 1 and UNKNOWN not in found:
                return replace(item, space=next(iter(found)))
        return item

    return replace(
        function,
        blocks=tuple(replace(b, instructions=tuple(map(resolved, b.instructions))) for b in function.blocks),
    )


def _of_results(
    item: Instruction,
    of: Callable[[Operand], frozenset[str]],
    summed: Callable[[tuple[Operand, ...]], frozenset[str]],
) -> frozenset[str]:
    match item:
        case Compute(op=op, sources=sources) if op in _SUMS:
            return summed(sources)
        case Compute(op=op, sources=sources) if op in _CHOICES:
            return frozenset().union(*map(of, sources))
        case Compute():
            return frozenset()
    return frozenset({UNKNOWN}) if operands(item) else frozenset()
