"""PTX instructions as text again, for messages."""

from qgpu.cuda.ptx import (
    FloatImmediate,
    Group,
    Immediate,
    Instruction,
    Memory,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)


def _offset(value: int) -> str:
    return f"{value:+d}" if value else ""


def _listed(operands: tuple[Operand, ...]) -> str:
    return ", ".join(map(_operand, operands))


def _operand(operand: Operand) -> str:
    match operand:
        case Register(name=name):
            return name.split("@")[0]
        case SpecialRegister(name=name):
            return name if name == "WARP_SZ" else f"%{name}"
        case Immediate(value=value):
            return str(value)
        case FloatImmediate(text=text):
            return text
        case Symbol(name=name, offset=offset):
            return name.split("@")[0] + _offset(offset)
        case Negated(register=register):
            return f"!{_operand(register)}"
        case Memory(base=None, offset=offset):
            return f"[{offset}]"
        case Memory(base=base, offset=offset, extra=extra) if base is not None:
            return "[" + ", ".join([_operand(base) + _offset(offset), *map(_operand, extra)]) + "]"
        case Vector(elements=elements):
            return f"{{{_listed(elements)}}}"
        case Group(elements=elements):
            return f"({_listed(elements)})"
        case Pair(first=first, second=second):
            return f"{_operand(first)}|{_operand(second)}"
        case Sink():
            return "_"
    raise TypeError(f"no text for {operand!r}")


def text_of(instruction: Instruction) -> str:
    """An instruction as PTX, its guard in front."""
    guard = ""
    if instruction.guard is not None:
        guard = f"@{'!' if instruction.guard.negated else ''}{_operand(instruction.guard.register)} "
    return f"{guard}{instruction.name} {_listed(instruction.operands)}".rstrip()
