"""PTX arithmetic with carries between instructions (CC.CF), and arithmetic that saturates, to IR.

The carry flag is a register like any other, 0 or 1; after a subtraction it holds the borrow.
"""

from qgpu.cuda import ptx
from qgpu.cuda.ir import Const, Operand, Reg, Type
from qgpu.cuda.translate_compute import Handler, only_type, sign
from qgpu.cuda.translation import FLOATING, Refused, Translation, operand_count

_TYPES = frozenset("u32 s32 b32 u64 s64 b64".split())


def _flag(type_: Type) -> Reg:
    """CC.CF as a number of ``type_``; one register for each width, since chains do not mix widths."""
    return Reg(f"cc.{int(type_)}", type_)


def _type(instruction: ptx.Instruction) -> tuple[str, Type]:
    name = only_type(instruction)
    if name not in _TYPES:
        raise Refused(FLOATING if name[0] == "f" else f"not for the type .{name}")
    return name, Type(ptx.TYPE_BYTES[name] * 8)


def _number(t: Translation, type_: Type, holds: Reg) -> Reg:
    return t.compute("select", type_, Const(1, type_), Const(0, type_), holds)


def _add(t: Translation, type_: Type, a: Operand, b: Operand, dest: Reg, *, take: bool, give: bool) -> None:
    """dest = a + b, + CC.CF if ``take``; CC.CF is the carry out if ``give``."""
    total: Operand = t.compute("add", type_, a, b)
    carry: Operand | None = _carry(t, type_, a, b, total) if give else None
    if take:
        more = t.compute("add", type_, total, _flag(type_))
        if carry is not None:
            carry = t.compute("or", type_, carry, _carry(t, type_, total, _flag(type_), more))
        total = more
    _write(t, type_, total, dest, carry)


def _carry(t: Translation, type_: Type, a: Operand, b: Operand, total: Operand) -> Reg:
    """The carry of a + b = total, as a number."""
    if type_ is Type.B32:
        return t.compute("carry", type_, a, b)
    return _number(t, type_, t.compute("lt.u", type_, total, a, result=Type.PRED))


def _write(t: Translation, type_: Type, value: Operand, dest: Reg, carry: Operand | None) -> None:
    # The carry is made before the result is written, since the result may be one of the operands.
    t.compute("mov", type_, value, dest=dest)
    if carry is not None:
        t.compute("mov", type_, carry, dest=_flag(type_))


def _sum(*, take: bool, give: bool) -> Handler:
    def handle(t: Translation, instruction: ptx.Instruction) -> None:
        _, type_ = _type(instruction)
        dest, a, b = operand_count(instruction, 3)
        _add(t, type_, t.source(a, type_), t.source(b, type_), t.dest(dest, type_), take=take, give=give)

    return handle


def _difference(*, take: bool, give: bool) -> Handler:
    def handle(t: Translation, instruction: ptx.Instruction) -> None:
        _, type_ = _type(instruction)
        dest, *rest = operand_count(instruction, 3)
        a, b = (t.source(operand, type_) for operand in rest)
        total: Operand = t.compute("sub", type_, a, b)
        borrow: Operand | None = _number(t, type_, t.compute("lt.u", type_, a, b, result=Type.PRED)) if give else None
        if take:
            less = t.compute("sub", type_, total, _flag(type_))
            if borrow is not None:
                second = _number(t, type_, t.compute("lt.u", type_, total, _flag(type_), result=Type.PRED))
                borrow = t.compute("or", type_, borrow, second)
            total = less
        _write(t, type_, total, t.dest(dest, type_), borrow)

    return handle


def _product(*, high: bool, take: bool, give: bool) -> Handler:
    def handle(t: Translation, instruction: ptx.Instruction) -> None:
        name, type_ = _type(instruction)
        dest, *rest = operand_count(instruction, 4)
        a, b, c = (t.source(operand, type_) for operand in rest)
        product = t.compute(f"mulhi.{sign(name)}" if high else "mul", type_, a, b)
        _add(t, type_, product, c, t.dest(dest, type_), take=take, give=give)

    return handle


# ---- Saturation: of .s32 only, as in PTX ----


def _clamped(t: Translation, wide: Operand, dest: Reg) -> None:
    """A 64-bit number cut to the range of .s32."""
    least, most = Const(-(1 << 31) & Type.B64.mask, Type.B64), Const((1 << 31) - 1, Type.B64)
    low = t.compute("max.s", Type.B64, t.compute("min.s", Type.B64, wide, most), least)
    t.compute("zext32", Type.B32, low, dest=dest)


def _saturating(op: str) -> Handler:
    def handle(t: Translation, instruction: ptx.Instruction) -> None:
        if only_type(instruction) != "s32":
            raise Refused(FLOATING if only_type(instruction)[0] == "f" else ".sat is there for .s32 only")
        dest, *rest = operand_count(instruction, 3)
        a, b = (t.compute("sext32", Type.B64, t.source(operand, Type.B32)) for operand in rest)
        _clamped(t, t.compute(op, Type.B64, a, b), t.dest(dest, Type.B32))

    return handle


def _saturating_product(t: Translation, instruction: ptx.Instruction) -> None:
    """``mad.hi.sat.s32``: the high word of the product plus c."""
    if only_type(instruction) != "s32":
        raise Refused(".sat is there for .s32 only")
    dest, *rest = operand_count(instruction, 4)
    a, b, c = (t.source(operand, Type.B32) for operand in rest)
    high = t.compute("sext32", Type.B64, t.compute("mulhi.s", Type.B32, a, b))
    wide = t.compute("add", Type.B64, high, t.compute("sext32", Type.B64, c))
    _clamped(t, wide, t.dest(dest, Type.B32))


HANDLERS: dict[str, Handler] = {
    "add.cc": _sum(take=False, give=True),
    "addc": _sum(take=True, give=False),
    "addc.cc": _sum(take=True, give=True),
    "sub.cc": _difference(take=False, give=True),
    "subc": _difference(take=True, give=False),
    "subc.cc": _difference(take=True, give=True),
    **{
        f"{opcode}.{part}{suffix}": _product(high=part == "hi", take=opcode == "madc", give=bool(suffix))
        for opcode in ("mad", "madc")
        for part in ("lo", "hi")
        for suffix in ("", ".cc")
        if opcode == "madc" or suffix
    },
    "add.sat": _saturating("add"),
    "sub.sat": _saturating("sub"),
    "mad.hi.sat": _saturating_product,
}
"""By opcode and modifiers."""
