"""64-bit values as pairs of 32-bit registers: every 64-bit operation written out in 32-bit ones.

A pair's low word keeps the register's name. Comparisons give one predicate, so that what hangs on it need not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from qgpu.cuda.ir import (
    Atomic,
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
from qgpu.cuda.lower_emit import HELPER, ONE, ONES, ZERO, Emitter, rewrite, word
from qgpu.cuda.ops import COMPARISONS

Pair = tuple[Operand, Operand]
"""Low and high word."""
THIRTY_TWO = word(32)


def halves(operand: Operand) -> Pair:
    """The two words of a 64-bit operand."""
    match operand:
        case Reg(name=name):
            return Reg(name, Type.B32), Reg(f"{name}{HELPER}h", Type.B32)
        case Const(value=value):
            return word(value), word(value >> 32)
        case Param(offset=offset):
            return Param(offset, Type.B32), Param(offset + 4, Type.B32)
        case VariableAddress():
            return replace(operand, type=Type.B32), ZERO
    raise TypeError(f"{operand} is no 64-bit operand")


def split_wide(function: Function) -> Function:
    """The function without 64-bit values; only atomics without result take one, packed just before them."""
    return rewrite(function, _change)


def _change(e: Emitter, item: Instruction) -> bool:
    if not any(o.type is Type.B64 for o in (*operands(item), *writes(item))):
        return False
    match item:
        case Compute():
            _compute(e, item)
        case Load(dests=dests, width=8):
            words = tuple(half for dest in dests for half in halves(dest))
            e.emit(replace(item, dests=words, width=4, signed=False))
        case Load(dests=dests):
            for position, dest in enumerate(dests):
                low, high = halves(dest)
                address = replace(item.address, offset=item.address.offset + position * item.width)
                e.emit(replace(item, dests=(low,), address=address))
                sign = e.op("shr.s", low, word(31)) if item.signed else ZERO
                e.emit(Compute("mov", Type.B32, high, (sign,), guard=item.guard))
        case Store(values=values, width=8):
            e.emit(replace(item, values=tuple(half for value in values for half in halves(value)), width=4))
        case Store():
            e.emit(map_operands(item, _low))
        case Atomic(sources=sources, dest=None):
            packed = tuple(_packed(e, source) for source in sources)
            e.emit(replace(item, sources=packed))
        case _:
            raise TypeError(f"{item} takes a 64-bit value that it should not see here")
    return True


def _low(operand: Operand) -> Operand:
    return halves(operand)[0] if operand.type is Type.B64 else operand


def _packed(e: Emitter, source: Operand) -> Operand:
    pair = e.fresh(Type.B64)
    e.emit(Compute("pack", Type.B32, pair, halves(source)))
    return pair


def _compute(e: Emitter, item: Compute) -> None:
    sources = [halves(s) if s.type is Type.B64 else s for s in item.sources]
    if item.dest.type is Type.B64:
        low, high = _ROWS[item.op](e, item, *sources)
        if high == halves(item.dest)[0]:  # it is written before the high word is
            kept = e.fresh()
            e.let(kept, high)
            high = kept
        for dest, value in zip(halves(item.dest), (low, high), strict=True):
            assert isinstance(dest, Reg)
            e.emit(Compute("mov", Type.B32, dest, (value,), guard=item.guard))
    else:
        value = _SINGLE[item.op](e, item, *sources)
        e.emit(Compute("mov", item.dest.type, item.dest, (value,), guard=item.guard))


# ---- Sums ----


def add(e: Emitter, a: Pair, b: Pair) -> Pair:
    low = e.op("add", a[0], b[0])
    return low, e.op("add", e.op("add", a[1], b[1]), e.op("carry", a[0], b[0]))


def sub(e: Emitter, a: Pair, b: Pair) -> Pair:
    if isinstance(b[0], Const) and isinstance(b[1], Const):
        value = -(b[1].value << 32 | b[0].value)
        return add(e, a, (word(value), word(value >> 32)))
    borrow = e.op("lt.u", a[0], b[0])
    high = e.op("sub", a[1], b[1])
    return e.op("sub", a[0], b[0]), e.choose(borrow, e.op("add", high, ONES), high)


def negate(e: Emitter, a: Pair) -> Pair:
    return sub(e, (ZERO, ZERO), a)


def absolute(e: Emitter, a: Pair) -> Pair:
    return choose(e, e.op("lt.s", a[1], ZERO), negate(e, a), a)


def choose(e: Emitter, predicate: Operand, yes: Pair, no: Pair) -> Pair:
    return e.choose(predicate, yes[0], no[0]), e.choose(predicate, yes[1], no[1])


# ---- Products ----


def product(e: Emitter, a: Operand, b: Operand) -> Pair:
    """The whole product of two unsigned words."""
    return e.op("mul", a, b), e.op("mulhi.u", a, b)


def multiply(e: Emitter, a: Pair, b: Pair) -> Pair:
    low, high = product(e, a[0], b[0])
    for x, y in ((a[0], b[1]), (a[1], b[0])):
        high = e.op("add", e.op("mul", x, y), high)
    return low, high


def high_product(e: Emitter, a: Pair, b: Pair) -> Pair:
    """The upper 64 bits of the unsigned product: (2^32 a1 + a0) (2^32 b1 + b0)."""
    first = e.op("mulhi.u", a[0], b[0])
    middle = add(e, product(e, a[1], b[0]), (first, ZERO))  # fits: (2^32 - 1)^2 + 2^32 - 1 < 2^64
    other = add(e, product(e, a[0], b[1]), (middle[0], ZERO))
    return add(e, add(e, product(e, a[1], b[1]), (middle[1], ZERO)), (other[1], ZERO))


def signed_high_product(e: Emitter, a: Pair, b: Pair) -> Pair:
    result = high_product(e, a, b)
    for x, y in ((a, b), (b, a)):
        negative = e.op("shr.s", x[1], word(31))
        result = sub(e, result, (e.op("and", y[0], negative), e.op("and", y[1], negative)))
    return result


# ---- Shifts ----


def shift_left(e: Emitter, a: Pair, count: Operand) -> Pair:
    if isinstance(count, Const):
        n = min(count.value, 64)
        if n >= 32:
            return ZERO, e.op("shl", a[0], word(n - 32)) if n < 64 else ZERO
        return e.op("shl", a[0], count), e.op("funnel.l.wrap", a[0], a[1], count) if n else a[1]
    crossed = e.op("shl", a[0], e.op("sub", count, THIRTY_TWO))
    high = e.choose(_small(e, count), e.op("funnel.l.wrap", a[0], a[1], count), crossed)
    return e.op("shl", a[0], count), high


def shift_right(e: Emitter, a: Pair, count: Operand, signed: bool) -> Pair:
    op = "shr.s" if signed else "shr.u"
    if isinstance(count, Const):
        n = min(count.value, 64)
        if n >= 32:
            rest = e.op("shr.s", a[1], word(31)) if signed else ZERO
            return (e.op(op, a[1], word(n - 32)), rest) if n < 64 else (rest, rest)
        return e.op("funnel.r.wrap", a[0], a[1], count) if n else a[0], e.op(op, a[1], count)
    crossed = e.op(op, a[1], e.op("sub", count, THIRTY_TWO))
    low = e.choose(_small(e, count), e.op("funnel.r.wrap", a[0], a[1], count), crossed)
    return low, e.op(op, a[1], count)


def _small(e: Emitter, count: Operand) -> Operand:
    return e.op("lt.u", count, THIRTY_TWO)


# ---- Comparisons ----


def compare(e: Emitter, op: str, a: Pair, b: Pair) -> Operand:
    """A predicate. Where the high words alone decide, only they are looked at."""
    relation, _, sign = op.partition(".")
    if relation in ("eq", "ne"):
        return e.op(relation, e.op("or", e.op("xor", a[0], b[0]), e.op("xor", a[1], b[1])), ZERO)
    if b == (ZERO, ZERO) and sign == "s" and relation in ("lt", "ge"):
        return e.op(op, a[1], ZERO)
    strict = {"le": "lt", "ge": "gt"}.get(relation, relation)
    equal = e.op("eq", a[1], b[1])
    above = e.op(f"{strict}.{sign}", a[1], b[1])
    return predicate(e, "or", above, predicate(e, "and", equal, e.op(f"{relation}.u", a[0], b[0])))


def predicate(e: Emitter, op: str, a: Operand, b: Operand) -> Operand:
    for known, other in ((a, b), (b, a)):
        if isinstance(known, Const):
            return (other if known.value else known) if op == "and" else (known if known.value else other)
    return e.op(op, a, b, type=Type.PRED)


def bound(e: Emitter, op: str, a: Pair, b: Pair) -> Pair:
    kind, _, sign = op.partition(".")
    return choose(e, compare(e, f"{'lt' if kind == 'min' else 'gt'}.{sign}", a, b), a, b)


# ---- Bits ----


def _find(e: Emitter, a: Pair) -> Operand:
    """The place of the highest one, all ones if there is none."""
    high = e.op("add", e.op("find.u", a[1]), THIRTY_TWO)
    return e.choose(e.op("ne", a[1], ZERO), high, e.op("find.u", a[0]))


def _find_signed(e: Emitter, a: Pair) -> Operand:
    sign = e.op("shr.s", a[1], word(31))
    return _find(e, (e.op("xor", a[0], sign), e.op("xor", a[1], sign)))


def _from_top(e: Emitter, place: Operand) -> Operand:
    """How far left a bit at ``place`` is to be shifted to come to the top; all ones stay."""
    return e.choose(e.op("eq", place, ONES), ONES, e.op("sub", word(63), place))


def _leading_zeros(e: Emitter, a: Pair) -> Operand:
    low = e.op("add", e.op("clz", a[0]), THIRTY_TWO)
    return e.choose(e.op("ne", a[1], ZERO), e.op("clz", a[1]), low)


def _extract(e: Emitter, a: Pair, position: Operand, length: Operand, signed: bool) -> Pair:
    position, length = (e.op("and", x, word(255)) for x in (position, length))
    moved = shift_right(e, a, position, signed)
    rest = e.op("max.s", e.op("sub", word(64), length), ZERO)
    field = shift_right(e, shift_left(e, moved, rest), rest, signed)
    return choose(e, e.op("eq", length, ZERO), (ZERO, ZERO), field)


def _insert(e: Emitter, field: Pair, into: Pair, position: Operand, length: Operand) -> Pair:
    position, length = (e.op("and", x, word(255)) for x in (position, length))
    ones = shift_left(e, (ONE, ZERO), length)
    mask = shift_left(e, sub(e, ones, (ONE, ZERO)), position)
    moved = shift_left(e, field, position)
    parts = []
    for half in range(2):
        changed = e.op("and", e.op("xor", moved[half], into[half]), mask[half])
        parts.append(e.op("xor", changed, into[half]))
    return parts[0], parts[1]


def _extended(e: Emitter, item: Compute, source: object) -> Pair:
    """sextN or zextN to 64 bits, of a source of any width."""
    low: Operand = source[0] if isinstance(source, tuple) else source  # type: ignore[assignment]
    bits = int(item.op[4:])
    if not (bits == 32 and low.type is Type.B32):
        low = e.op(item.op, low, type=Type.B32)
    elif low.type is not Type.B32:
        low = e.op("zext16", low, type=Type.B32)
    return low, e.op("shr.s", low, word(31)) if item.op.startswith("s") else ZERO


def _cut(e: Emitter, item: Compute, source: object) -> Operand:
    """sextN or zextN of a 64-bit source to less."""
    assert isinstance(source, tuple)
    low: Operand = source[0]
    if item.op[4:] == "32" and item.dest.type is Type.B32:
        return low
    result = e.fresh(item.dest.type)
    e.emit(Compute(item.op, item.type, result, (low,)))
    return result


def _both(op: str) -> Callable[..., Pair]:
    """The same to low and high words."""

    def build(e: Emitter, item: Compute, *sources: Pair | Operand) -> Pair:
        def half(number: int) -> Operand:
            return e.op(op, *(s[number] if isinstance(s, tuple) else s for s in sources))

        return half(0), half(1)

    return build


_EXTENSIONS = [f"{sign}ext{bits}" for sign in "sz" for bits in (8, 16, 32)]

_ROWS: Mapping[str, Callable[..., Pair]] = {
    **{op: _both(op) for op in ("mov", "and", "or", "xor", "not", "logic3", "select")},
    "add": lambda e, i, a, b: add(e, a, b),
    "sub": lambda e, i, a, b: sub(e, a, b),
    "neg": lambda e, i, a: negate(e, a),
    "abs": lambda e, i, a: absolute(e, a),
    "mul": lambda e, i, a, b: multiply(e, a, b),
    "mulhi.u": lambda e, i, a, b: high_product(e, a, b),
    "mulhi.s": lambda e, i, a, b: signed_high_product(e, a, b),
    **{f"mulwide.{s}": lambda e, i, a, b, s=s: (e.op("mul", a, b), e.op(f"mulhi.{s}", a, b)) for s in "su"},
    **{f"{kind}.{s}": lambda e, i, a, b: bound(e, i.op, a, b) for kind in ("min", "max") for s in "su"},
    "shl": lambda e, i, a, n: shift_left(e, a, n),
    "shr.u": lambda e, i, a, n: shift_right(e, a, n, False),
    "shr.s": lambda e, i, a, n: shift_right(e, a, n, True),
    "reverse": lambda e, i, a: (e.op("reverse", a[1]), e.op("reverse", a[0])),
    "extract.u": lambda e, i, a, p, n: _extract(e, a, p, n, False),
    "extract.s": lambda e, i, a, p, n: _extract(e, a, p, n, True),
    "insert": lambda e, i, a, into, p, n: _insert(e, a, into, p, n),
    "pack": lambda e, i, low, high: (low, high),
    **{op: _extended for op in _EXTENSIONS},
}
"""Operations that give a pair."""

_SINGLE: Mapping[str, Callable[..., Operand]] = {
    **{op: lambda e, i, a, b: compare(e, i.op, a, b) for op in COMPARISONS},
    "popc": lambda e, i, a: e.op("add", e.op("popc", a[0]), e.op("popc", a[1])),
    "clz": lambda e, i, a: _leading_zeros(e, a),
    "find.u": lambda e, i, a: _find(e, a),
    "find.s": lambda e, i, a: _find_signed(e, a),
    "findshift.u": lambda e, i, a: _from_top(e, _find(e, a)),
    "findshift.s": lambda e, i, a: _from_top(e, _find_signed(e, a)),
    "high": lambda e, i, a: a[1],
    **{op: _cut for op in _EXTENSIONS},
}
"""Operations on pairs that give one word or a predicate."""
