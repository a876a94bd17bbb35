"""PTX instructions on bytes, bit fields and packed numbers that the IR says in several steps."""

from collections.abc import Callable

from qgpu.cuda import ptx
from qgpu.cuda.ir import Const, Operand, Reg, Type
from qgpu.cuda.translate_compute import Handler, only_type, sign, types_of
from qgpu.cuda.translation import Refused, Translation, operand_count, register_type


def _word(value: int) -> Const:
    return Const(value & Type.B32.mask, Type.B32)


def _words(t: Translation, operands: tuple[ptx.Operand, ...]) -> list[Operand]:
    return [t.source(operand, Type.B32) for operand in operands]


# ---- Permutes ----

PERMUTES: dict[str, tuple[str, str, str, str]] = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}
"""For each mode of prmt and each value of the low two bits of c: the bytes taken, highest first."""


def _permute(mode: str) -> Handler:
    table = sum(int(row, 16) << (16 * number) for number, row in enumerate(PERMUTES[mode]))

    def handle(t: Translation, instruction: ptx.Instruction) -> None:
        dest, *rest = operand_count(instruction, 4)
        a, b, c = _words(t, tuple(rest))
        bit = t.compute("shl", Type.B32, t.compute("and", Type.B32, c, _word(1)), _word(4))
        upper = t.compute("ne", Type.B32, t.compute("and", Type.B32, c, _word(2)), _word(0), result=Type.PRED)
        half = t.compute("select", Type.B32, _word(table >> 32), _word(table), upper)
        selector = t.compute("shr.u", Type.B32, half, bit)
        t.compute("permute", Type.B32, a, b, selector, dest=t.dest(dest, Type.B32))

    return handle


# ---- Bit fields ----


def _bounded(t: Translation, mode: str, value: Operand) -> Reg:
    """A position or length as bmsk and szext read it."""
    if mode == "clamp":
        return t.compute("min.u", Type.B32, value, _word(32))
    return t.compute("and", Type.B32, value, _word(31))


def _mask(t: Translation, instruction: ptx.Instruction) -> None:
    """``bmsk.mode.b32 d, a, b``: b ones from bit a on."""
    dest, *rest = operand_count(instruction, 3)
    start, length = (_bounded(t, instruction.modifiers[0], value) for value in _words(t, tuple(rest)))
    t.compute("insert", Type.B32, _word(-1), _word(0), start, length, dest=t.dest(dest, Type.B32))


def _extend(t: Translation, instruction: ptx.Instruction) -> None:
    """``szext.mode.type d, a, b``: the low b bits of a, extended."""
    name = only_type(instruction)
    if name not in ("u32", "s32"):
        raise Refused(f"not for the type .{name}")
    dest, *rest = operand_count(instruction, 3)
    value, length = _words(t, tuple(rest))
    bits = _bounded(t, instruction.modifiers[0], length)
    t.compute(f"extract.{sign(name)}", Type.B32, value, _word(0), bits, dest=t.dest(dest, Type.B32))


def _is_zero(t: Translation, instruction: ptx.Instruction) -> None:
    """``cnot``: 1 where the operand is 0."""
    type_ = register_type(only_type(instruction))
    dest, source = operand_count(instruction, 2)
    zero = t.compute("eq", type_, t.source(source, type_), Const(0, type_), result=Type.PRED)
    t.compute("select", type_, Const(1, type_), Const(0, type_), zero, dest=t.dest(dest, type_))


def _nth_one(t: Translation, instruction: ptx.Instruction) -> None:
    """``fns.b32 d, mask, base, offset``: the place of the offset-th one of the mask from bit base on, or all ones.

    Downwards is upwards in the mask turned around. The place is found by halves: those that hold too few ones are
    passed over, so that lanes with other masks take no other path.
    """
    dest, *rest = operand_count(instruction, 4)
    mask, base, offset = _words(t, tuple(rest))

    def compare(op: str, first: Operand, second: Operand) -> Reg:
        return t.compute(op, Type.B32, first, second, result=Type.PRED)

    down = compare("lt.s", offset, _word(0))
    mask = t.compute("select", Type.B32, t.compute("reverse", Type.B32, mask), mask, down)
    start = t.compute("select", Type.B32, t.compute("sub", Type.B32, _word(31), base), base, down)
    # An offset of 0 asks for the one at base itself.
    length = t.compute("select", Type.B32, _word(1), _word(32), compare("eq", offset, _word(0)))
    ones = t.compute("extract.u", Type.B32, mask, start, length)
    size = t.compute("max.u", Type.B32, t.compute("abs", Type.B32, offset), _word(1))
    left = t.compute("sub", Type.B32, size, _word(1))
    found = compare("lt.u", left, t.compute("popc", Type.B32, ones))
    place: Operand = start
    for half in (16, 8, 4, 2, 1):
        low = t.compute("popc", Type.B32, t.compute("and", Type.B32, ones, _word((1 << half) - 1)))
        beyond = compare("ge.u", left, low)
        count, step = (t.compute("select", Type.B32, value, _word(0), beyond) for value in (low, _word(half)))
        left = t.compute("sub", Type.B32, left, count)
        ones = t.compute("shr.u", Type.B32, ones, step)
        place = t.compute("add", Type.B32, place, step)
    place = t.compute("select", Type.B32, t.compute("sub", Type.B32, _word(31), place), place, down)
    t.compute("select", Type.B32, place, _word(-1), found, dest=t.dest(dest, Type.B32))


# ---- Products of parts ----


def _mul24(t: Translation, instruction: ptx.Instruction) -> None:
    """``mul24`` and ``mad24``: 24-bit factors; .lo is the low word of the 48-bit product, .hi its bits 16 to 47."""
    name = only_type(instruction)
    if name not in ("u32", "s32"):
        raise Refused(f"not for the type .{name}")
    dest, *factors = operand_count(instruction, 4 if instruction.opcode == "mad24" else 3)
    field = _word(0), _word(24)
    cut = [t.compute(f"extract.{sign(name)}", Type.B32, factor, *field) for factor in _words(t, tuple(factors[:2]))]
    product = t.compute("mul", Type.B32, *cut)
    if instruction.modifiers[0] == "hi":
        high = t.compute(f"mulhi.{sign(name)}", Type.B32, *cut)
        product = t.compute("funnel.r.wrap", Type.B32, product, high, _word(16))
    _plus(t, product, factors[2:], dest)


def _plus(t: Translation, value: Operand, more: list[ptx.Operand], dest: ptx.Operand) -> None:
    if more:
        t.compute("add", Type.B32, value, t.source(more[0], Type.B32), dest=t.dest(dest, Type.B32))
    else:
        t.compute("mov", Type.B32, value, dest=t.dest(dest, Type.B32))


def _dot(t: Translation, instruction: ptx.Instruction) -> None:
    """``dp4a.atype.btype d, a, b, c`` and ``dp2a.part.atype.btype``: c plus the products of the parts of a and b."""
    types = types_of(instruction)
    if len(types) != 2 or not set(types) <= {"u32", "s32"}:
        raise Refused("the types must be .u32 or .s32")
    dest, *rest = operand_count(instruction, 4)
    a, b, total = _words(t, tuple(rest))
    four = instruction.opcode == "dp4a"
    width, start = (8, 0) if four else (16, 16 if instruction.modifiers[0] == "hi" else 0)
    for part in range(4 if four else 2):
        first = t.compute(f"extract.{sign(types[0])}", Type.B32, a, _word(width * part), _word(width))
        second = t.compute(f"extract.{sign(types[1])}", Type.B32, b, _word(start + 8 * part), _word(8))
        total = t.compute("add", Type.B32, total, t.compute("mul", Type.B32, first, second))
    t.compute("mov", Type.B32, total, dest=t.dest(dest, Type.B32))


def _packed(t: Translation, instruction: ptx.Instruction) -> None:
    """``vabsdiff4.dtype.atype.btype[.sat][.add] d, a, b, c`` and its kin: on two halves or four bytes, each for itself.

    With .add, d is c plus the sum of the results.
    """
    name, width = instruction.opcode[1:-1], 32 // int(instruction.opcode[-1])
    types = types_of(instruction)
    rest = [modifier for modifier in instruction.modifiers if modifier not in types]
    if len(types) != 3 or not set(types) <= {"u32", "s32"} or not set(rest) <= {"sat", "add"}:
        raise Refused("this form of the instruction is not there")
    dest, *operands = operand_count(instruction, 4)
    a, b, c = _words(t, tuple(operands))
    total: Operand = c if "add" in rest else _word(0)
    for place in range(0, 32, width):
        x, y = (
            t.compute(f"extract.{sign(type_)}", Type.B32, value, _word(place), _word(width))
            for value, type_ in ((a, types[1]), (b, types[2]))
        )
        part = _PACKED[name](t, x, y)
        signed = types[0] == "s32"
        if "sat" in rest:
            least, most = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
            part = t.compute("max.s", Type.B32, t.compute("min.s", Type.B32, part, _word(most)), _word(least))
        if "add" in rest:
            part = t.compute(f"extract.{'s' if signed else 'u'}", Type.B32, part, _word(0), _word(width))
            total = t.compute("add", Type.B32, total, part)
        else:
            total = t.compute("insert", Type.B32, part, total, _word(place), _word(width))
    t.compute("mov", Type.B32, total, dest=t.dest(dest, Type.B32))


def _difference(t: Translation, x: Operand, y: Operand) -> Reg:
    return t.compute("abs", Type.B32, t.compute("sub", Type.B32, x, y))


def _average(t: Translation, x: Operand, y: Operand) -> Reg:
    """(x + y) / 2, halves away from zero."""
    total = t.compute("add", Type.B32, x, y)
    positive = t.compute("ge.s", Type.B32, total, _word(0), result=Type.PRED)
    up = t.compute("select", Type.B32, _word(1), _word(0), positive)
    return t.compute("shr.s", Type.B32, t.compute("add", Type.B32, total, up), _word(1))


# The parts are extended to 32 bits, so that signed comparison is right for unsigned parts as well.
_PACKED: dict[str, Callable[[Translation, Operand, Operand], Reg]] = {
    "add": lambda t, x, y: t.compute("add", Type.B32, x, y),
    "sub": lambda t, x, y: t.compute("sub", Type.B32, x, y),
    "min": lambda t, x, y: t.compute("min.s", Type.B32, x, y),
    "max": lambda t, x, y: t.compute("max.s", Type.B32, x, y),
    "absdiff": _difference,
    "avrg": _average,
}


def _sad(t: Translation, instruction: ptx.Instruction) -> None:
    name = only_type(instruction)
    type_ = register_type(name)
    dest, *rest = operand_count(instruction, 4)
    a, b, c = (t.source(operand, type_) for operand in rest)
    larger = t.compute(f"max.{sign(name)}", type_, a, b)
    smaller = t.compute(f"min.{sign(name)}", type_, a, b)
    t.compute("add", type_, t.compute("sub", type_, larger, smaller), c, dest=t.dest(dest, type_))


HANDLERS: dict[str, Handler] = {
    **{f"prmt.{mode}": _permute(mode) for mode in PERMUTES},
    **{f"bmsk.{mode}": _mask for mode in ("clamp", "wrap")},
    **{f"szext.{mode}": _extend for mode in ("clamp", "wrap")},
    "cnot": _is_zero,
    **{f"{opcode}.{part}": _mul24 for opcode in ("mul24", "mad24") for part in ("lo", "hi")},
    **dict.fromkeys(("dp4a", "dp2a.lo", "dp2a.hi"), _dot),
    "sad": _sad,
    "fns": _nth_one,
}
"""By opcode and modifiers."""

BY_OPCODE: dict[str, Handler] = {f"v{name}{parts}": _packed for name in _PACKED for parts in (2, 4)}
"""By opcode alone."""
