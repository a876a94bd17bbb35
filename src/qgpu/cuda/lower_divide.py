"""Division, which the machine has not: by the reciprocal of the divisor for words, bit by bit for 64 bits.

The reciprocal costs most, and hangs on the divisor alone: where that is a parameter, lanes share what is computed.
By zero, quotients are all ones and remainders the dividend.
"""

from __future__ import annotations

from collections.abc import Iterable

from qgpu.cuda.ir import Branch, Compute, Const, Function, Instruction, Jump, Operand, Reg, Type, writes
from qgpu.cuda.lower_emit import ONE, ONES, ZERO, Emitter, rewrite, word

START = word(0x80000000)
"""Shifted right by the place of the divisor's highest one: from half of the reciprocal up to all of it."""
STEPS = 5
"""Each squares the error of the reciprocal: 1/2, 1/4, 1/16, 2^-8, 2^-16, 2^-32."""
KINDS = frozenset({"div.s", "div.u", "rem.s", "rem.u"})


# ---- Words ----


def divide_words(function: Function) -> Function:
    """The function without divisions of 16 and 32 bits."""

    def change(e: Emitter, item: Instruction) -> bool:
        if not isinstance(item, Compute) or item.op not in KINDS or item.type is Type.B64:
            return False
        kind, sign = item.op.split(".")
        sources = item.sources
        if item.type is Type.B16:
            sources = tuple(e.op(f"{'s' if sign == 's' else 'z'}ext16", source, type=Type.B32) for source in sources)
        result = (_signed if sign == "s" else _unsigned)(e, *sources, kind)
        op, type_ = ("mov", Type.B32) if item.type is Type.B32 else ("zext16", Type.B16)
        e.emit(Compute(op, type_, item.dest, (result,), guard=item.guard))
        return True

    return rewrite(function, change)


def _reciprocal(e: Emitter, d: Operand) -> Operand:
    """The largest z with d z < 2^32; 0 for d = 0."""
    z = e.op("shr.u", START, e.op("find.u", d))

    def rest() -> Operand:
        return e.op("neg", e.op("mul", d, z))  # 2^32 - d z

    for _ in range(STEPS):
        z = e.op("add", e.op("mulhi.u", z, rest()), z)
    return e.choose(e.op("gt.u", rest(), d), e.op("add", z, ONE), z)


def _unsigned(e: Emitter, n: Operand, d: Operand, kind: str) -> Operand:
    """n divided by d: with z the estimate of the quotient is right or one too low."""
    estimate = e.op("mulhi.u", n, _reciprocal(e, d))
    rest = e.op("sub", n, e.op("mul", estimate, d))
    low = e.op("ge.u", rest, d)
    if kind == "rem":
        return e.choose(low, e.op("sub", rest, d), rest)
    if not isinstance(d, Const):  # by zero the estimate is 0, and always too low
        estimate = e.op("add", estimate, e.choose(e.op("eq", d, ZERO), word(-2), ZERO))
    elif d.value == 0:
        return ONES
    return e.choose(low, e.op("add", estimate, ONE), estimate)


def _signed(e: Emitter, n: Operand, d: Operand, kind: str) -> Operand:
    result = _unsigned(e, e.op("abs", n), e.op("abs", d), kind)
    opposite = e.op("lt.s", e.op("xor", n, d) if kind == "div" else n, ZERO)
    result = e.choose(opposite, e.op("neg", result), result)
    if kind == "rem":
        return result
    return e.choose(e.op("eq", d, ZERO), ONES, result)


# ---- 64 bits ----


def divide_wide(function: Function) -> Function:
    """The function without divisions of 64 bits. Those whose words fit 32 bits are done as such."""
    known: dict[tuple[str, tuple[Operand, ...]], tuple[Reg, Reg]] = {}
    last: list[str] = [""]

    def change(e: Emitter, item: Instruction) -> bool:
        if e.label != last[0]:
            known.clear()
        last[0] = e.label
        found = isinstance(item, Compute) and item.op in KINDS and item.type is Type.B64
        if found:
            assert isinstance(item, Compute)
            kind, sign = item.op.split(".")
            key = sign, item.sources
            if key not in known:
                known[key] = _wide(e, *item.sources, signed=sign == "s")
                last[0] = e.label
            e.emit(Compute("mov", Type.B64, item.dest, (known[key][kind == "rem"],), guard=item.guard))
        _forget(known, writes(item))
        return found

    return rewrite(function, change)


def _forget(known: dict[tuple[str, tuple[Operand, ...]], tuple[Reg, Reg]], written: Iterable[Reg]) -> None:
    for key in [key for key in known if not set(key[1]).isdisjoint(written)]:
        del known[key]


def _wide(e: Emitter, n: Operand, d: Operand, signed: bool) -> tuple[Reg, Reg]:
    """Registers with quotient and remainder of 64 bits."""
    quotient, rest = e.fresh(Type.B64), e.fresh(Type.B64)

    def op(name: str, *sources: Operand) -> Operand:
        return e.op(name, *sources, type=Type.B64)

    zero, one, ones = (Const(value & Type.B64.mask, Type.B64) for value in (0, 1, -1))
    dividend, divisor = (op("abs", x) if signed else x for x in (n, d))
    words, bits, loop, join = (e.fresh_label(what) for what in ("words", "bits", "loop", "divided"))
    high = e.op("or", *(e.op("high", x, type=Type.B32) for x in (dividend, divisor)))
    fits = e.op("eq", high, ZERO)
    assert isinstance(fits, Reg)
    e.close(Branch(fits, False, words, bits), words)
    low = [e.op("zext32", x, type=Type.B32, dest=e.fresh()) for x in (dividend, divisor)]
    for name, dest in (("div.u", quotient), ("rem.u", rest)):
        result = e.fresh()
        e.emit(Compute(name, Type.B32, result, tuple(low)))
        e.emit(Compute("zext32", Type.B64, dest, (result,)))
    e.close(Jump(join), bits)
    # The divisor is shifted up to the dividend's highest one, then down again bit by bit.
    count, part, left = e.fresh(), e.fresh(Type.B64), e.fresh(Type.PRED)
    lengths = [e.op("clz", x, type=Type.B64) for x in (divisor, dividend)]
    distance = e.op("max.s", e.op("sub", *lengths), ZERO)
    e.let(count, e.op("min.s", distance, word(63)))
    e.let(part, op("shl", divisor, count))
    e.let(quotient, zero)
    e.let(rest, dividend)
    e.close(Jump(loop), loop)
    fits_in = e.op("ge.u", rest, part, type=Type.B64)
    e.let(rest, e.choose(fits_in, op("sub", rest, part), rest))
    e.let(quotient, op("or", op("shl", quotient, ONE), e.choose(fits_in, one, zero)))
    e.let(part, op("shr.u", part, ONE))
    e.emit(Compute("add", Type.B32, count, (count, ONES)))
    e.emit(Compute("ge.s", Type.B32, left, (count, ZERO)))
    e.close(Branch(left, False, loop, join), join)
    if signed:
        for dest, sign in ((quotient, op("xor", n, d)), (rest, n)):
            negative = e.op("lt.s", sign, zero, type=Type.B64)
            e.let(dest, e.choose(negative, op("neg", dest), dest))
    by_zero = e.op("eq", d, zero, type=Type.B64)
    e.let(quotient, e.choose(by_zero, ones, quotient))
    return quotient, rest
