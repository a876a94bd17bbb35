"""64-bit registers of which only the low word is ever needed become 32-bit ones: above all, addresses in 64-bit PTX.

The low word of a sum, difference, product, left shift or bitwise operation depends on the low words of its operands
only. So a register is needed whole only where something else reads it, and narrowing the rest changes no result.
"""

from dataclasses import replace

from qgpu.cuda.ir import (
    BasicBlock,
    Compute,
    Const,
    Function,
    Instruction,
    Load,
    Operand,
    Param,
    Reg,
    Store,
    Type,
    VariableAddress,
    map_operands,
    operands,
    writes,
)

_LOW_FROM_LOW = frozenset({"mov", "add", "sub", "mul", "and", "or", "xor", "not", "neg", "select", "shl"})
_ANY = frozenset({"zext8", "zext16", "zext32", "sext8", "sext16", "sext32"})
_MADE = frozenset({"mulwide.s", "mulwide.u", "pack"}) | _LOW_FROM_LOW | _ANY


def narrow(function: Function) -> Function:
    """The function with such registers narrowed to 32 bits; their names stay."""
    wide = _needed_whole(function)
    blocks = []
    for block in function.blocks:
        instructions: list[Instruction] = []
        for item in block.instructions:
            instructions += _narrowed(item, wide)
        blocks.append(BasicBlock(block.label, tuple(instructions), block.terminator))
    return replace(function, blocks=tuple(blocks))


def _needed_whole(function: Function) -> set[Reg]:
    """The 64-bit registers whose high word is needed, or whose definition does not work on 32 bits."""
    wide: set[Reg] = set()
    passing: dict[Reg, list[Reg]] = {}  # result -> operands needed whole if it is
    items = [item for block in function.blocks for item in block.instructions]
    for item in items:
        results = [dest for dest in writes(item) if dest.type is Type.B64]
        sources = [source for source in operands(item) if isinstance(source, Reg) and source.type is Type.B64]
        match item:
            case Compute(op=op, type=Type.B64, dest=dest) if op in _LOW_FROM_LOW and dest.type is Type.B64:
                passing.setdefault(dest, []).extend(sources)
            case Compute(op=op) if op in _ANY:  # reads at most the low word
                pass
            case Compute(op=op) if op in _MADE:
                pass
            case Store(width=width) if width <= 4:
                pass
            case Load(dests=(_,), volatile=False):
                pass
            case _:
                wide.update(sources)
                wide.update(results)
    waiting = list(wide)
    while waiting:
        for source in passing.get(waiting.pop(), ()):
            if source not in wide:
                wide.add(source)
                waiting.append(source)
    return wide


def _low(operand: Operand) -> Operand:
    """The low word of an operand that is not a register needed whole."""
    match operand:
        case Reg(name=name):
            return Reg(name, Type.B32)
        case Const(value=value):
            return Const(value & Type.B32.mask, Type.B32)
        case Param(offset=offset):
            return Param(offset, Type.B32)
        case VariableAddress():
            return replace(operand, type=Type.B32)
    return operand


def _narrowed(item: Instruction, wide: set[Reg]) -> list[Instruction]:
    results = writes(item)
    slim = [dest for dest in results if dest.type is Type.B64 and dest not in wide]

    def change(operand: Operand) -> Operand:
        slim = isinstance(operand, Reg) and operand.type is Type.B64 and operand not in wide
        return _low(operand) if slim else operand

    if not slim:
        return [map_operands(item, change)]
    dest = Reg(slim[0].name, Type.B32)
    match item:
        case Load(width=8):
            return [replace(item, dests=(dest,), width=4, signed=False)]
        case Load():
            return [replace(item, dests=(dest,))]
        case Compute(op="pack", sources=(low, _)):
            return [replace(item, op="mov", type=Type.B32, dest=dest, sources=(low,))]
        case Compute(op="mulwide.s" | "mulwide.u"):
            return [replace(item, op="mul", type=Type.B32, dest=dest)]
        case Compute(op=op, sources=sources) if op in _ANY:
            return [replace(item, type=Type.B32, dest=dest, sources=tuple(map(change, sources)))]
        case Compute():
            before: list[Instruction] = []
            low_words = []
            for position, source in enumerate(item.sources):
                if source.type is not Type.B64:
                    low_words.append(source)
                elif isinstance(source, Reg) and source in wide:
                    cut = Reg(f"{dest.name}'{position}", Type.B32)
                    before.append(Compute("zext32", Type.B32, cut, (source,), origin=item.origin))
                    low_words.append(cut)
                else:
                    low_words.append(_low(source))
            return [*before, replace(item, type=Type.B32, dest=dest, sources=tuple(low_words))]
    raise AssertionError(f"{item} gives a 64-bit result that cannot be narrowed")
