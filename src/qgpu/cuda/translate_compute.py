"""PTX arithmetic, logic, comparison, conversion and moves to IR: tables from the PTX spelling to what is emitted.

The key of a row is the opcode with its modifiers, its type left out: "mul.wide", "shf.l.wrap", "add".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qgpu.cuda import ptx
from qgpu.cuda.ir import Const, Operand, Reg, Type
from qgpu.cuda.ops import OPS
from qgpu.cuda.translation import FLOATING, Refused, Translation, is_type, operand_count, register_type

Handler = Callable[[Translation, ptx.Instruction], None]

_INTEGERS = frozenset("s16 u16 s32 u32 s64 u64".split())
_BITS = frozenset("b16 b32 b64".split())
_WORDS = frozenset("b32 b64".split())
_LOGIC = _BITS | {"pred"}


@dataclass(frozen=True)
class Row:
    """PTX spelled so is the IR operation ``op``, sources in the same order; "{s}" is the sign the type tells."""

    op: str
    types: frozenset[str]


ROWS: dict[str, Row] = {
    "add": Row("add", _INTEGERS),
    "sub": Row("sub", _INTEGERS),
    "mul.lo": Row("mul", _INTEGERS),
    "mul.hi": Row("mulhi.{s}", _INTEGERS),
    "div": Row("div.{s}", _INTEGERS),
    "rem": Row("rem.{s}", _INTEGERS),
    "min": Row("min.{s}", _INTEGERS),
    "max": Row("max.{s}", _INTEGERS),
    "neg": Row("neg", _INTEGERS),
    "abs": Row("abs", _INTEGERS),
    "and": Row("and", _LOGIC),
    "or": Row("or", _LOGIC),
    "xor": Row("xor", _LOGIC),
    "not": Row("not", _LOGIC),
    "lop3": Row("logic3", frozenset({"b32"})),
    "shl": Row("shl", _BITS),
    "shr": Row("shr.{s}", _BITS | _INTEGERS),
    "shf.l.wrap": Row("funnel.l.wrap", frozenset({"b32"})),
    "shf.l.clamp": Row("funnel.l.clamp", frozenset({"b32"})),
    "shf.r.wrap": Row("funnel.r.wrap", frozenset({"b32"})),
    "shf.r.clamp": Row("funnel.r.clamp", frozenset({"b32"})),
    "popc": Row("popc", _WORDS),
    "clz": Row("clz", _WORDS),
    "brev": Row("reverse", _WORDS),
    "bfind": Row("find.{s}", _INTEGERS),
    "bfind.shiftamt": Row("findshift.{s}", _INTEGERS),
    "bfe": Row("extract.{s}", _INTEGERS),
    "bfi": Row("insert", _WORDS),
    "prmt": Row("permute", frozenset({"b32"})),
    "selp": Row("select", _BITS | _INTEGERS | {"f32", "f64"}),
}


def key_of(instruction: ptx.Instruction) -> str:
    """The opcode with its modifiers, types left out; ``shared::cta`` is plain ``shared`` here."""
    names = (name.split("::")[0] for name in instruction.modifiers if not is_type(name))
    return ".".join((instruction.opcode, *names))


def types_of(instruction: ptx.Instruction) -> tuple[str, ...]:
    """The types among an instruction's modifiers."""
    return tuple(name for name in instruction.modifiers if is_type(name))


def only_type(instruction: ptx.Instruction) -> str:
    """The one type of an instruction."""
    types = types_of(instruction)
    if len(types) != 1:
        raise Refused(f"{len(types)} types, expected one")
    return types[0]


def sign(type_name: str) -> str:
    """ "s" for signed types, "u" for all others."""
    return "s" if type_name.startswith("s") else "u"


def _by_row(row: Row) -> Handler:
    def handle(t: Translation, instruction: ptx.Instruction) -> None:
        name = only_type(instruction)
        if name not in row.types:
            raise Refused(FLOATING if name[0] == "f" or name.startswith("bf") else f"not for the type .{name}")
        op = OPS[row.op.format(s=sign(name))]
        type_ = Type(ptx.TYPE_BYTES[name] * 8) if name != "pred" else Type.PRED
        dest, *sources = operand_count(instruction, 1 + len(op.sources))
        operands = tuple(
            t.source(source, op.source_type(position, type_) or type_) for position, source in enumerate(sources)
        )
        result = op.result_type(type_) or type_
        t.compute(row.op.format(s=sign(name)), type_, *operands, dest=t.dest(dest, result))

    return handle


# ---- Multiplication that widens, and multiply-add: made of a product and a sum. ----


def _wide_product(t: Translation, name: str, a: ptx.Operand, b: ptx.Operand, dest: Reg | None = None) -> Reg:
    """The whole product of two 16-bit or 32-bit numbers, at twice the width."""
    narrow = register_type(name)
    if narrow is Type.B64:
        raise Refused("there is no product of 128 bits")
    first, second = t.source(a, narrow), t.source(b, narrow)
    if narrow is Type.B32:
        return t.compute(f"mulwide.{sign(name)}", narrow, first, second, dest=dest, result=Type.B64)
    extend = f"{sign(name)}ext16".replace("uext", "zext")
    wide = [t.compute(extend, Type.B32, source) for source in (first, second)]
    return t.compute("mul", Type.B32, *wide, dest=dest)


def _mul_wide(t: Translation, instruction: ptx.Instruction) -> None:
    name = only_type(instruction)
    dest, a, b = operand_count(instruction, 3)
    _wide_product(t, name, a, b, t.dest(dest, Type(ptx.TYPE_BYTES[name] * 16)))


def _mad(t: Translation, instruction: ptx.Instruction) -> None:
    name = only_type(instruction)
    type_ = register_type(name)
    dest, a, b, c = operand_count(instruction, 4)
    part = instruction.modifiers[0]
    if part == "wide":
        product = _wide_product(t, name, a, b)
    else:
        op = "mul" if part == "lo" else f"mulhi.{sign(name)}"
        product = t.compute(op, type_, t.source(a, type_), t.source(b, type_))
    t.compute("add", product.type, product, t.source(c, product.type), dest=t.dest(dest, product.type))


# ---- Comparison ----

_RELATIONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _comparison(relation: str, name: str) -> str:
    """The IR comparison for a PTX relation at a type; lo, ls, hi and hs are unsigned whatever the type."""
    if relation in _RELATIONS:
        return f"{_RELATIONS[relation]}.u"
    if relation in ("eq", "ne"):
        return relation
    if relation in ("lt", "le", "gt", "ge") and name[0] in "su":
        return f"{relation}.{sign(name)}"
    raise Refused(FLOATING if name[0] == "f" else f"the comparison .{relation} is not there for the type .{name}")


def _compare(t: Translation, relation: str, name: str, a: ptx.Operand, b: ptx.Operand, dest: Reg | None) -> Reg:
    type_ = register_type(name)
    return t.compute(
        _comparison(relation, name), type_, t.source(a, type_), t.source(b, type_), dest=dest, result=Type.PRED
    )


def _setp(t: Translation, instruction: ptx.Instruction) -> None:
    """``setp.relation[.and|.or|.xor].type p[|q], a, b[, c]``: p = (a relation b) op c, q = (not that) op c."""
    name = only_type(instruction)
    relation, *combine = (modifier for modifier in instruction.modifiers if not is_type(modifier))
    result, a, b, *third = operand_count(instruction, 4 if combine else 3)
    if not combine and not isinstance(result, ptx.Pair):
        _compare(t, relation, name, a, b, t.dest(result, Type.PRED))
        return
    results = (result.first, result.second) if isinstance(result, ptx.Pair) else (result,)
    with_this: Operand | None = t.source(third[0], Type.PRED) if combine else None
    compared = _compare(t, relation, name, a, b, None)
    for destination in results:
        dest = t.dest(destination, Type.PRED)
        if combine and with_this is not None:
            t.compute(_combination(combine), Type.PRED, compared, with_this, dest=dest)
        else:
            t.compute("mov", Type.PRED, compared, dest=dest)
        if len(results) > 1 and destination is results[0]:
            compared = t.compute("not", Type.PRED, compared)


def _set(t: Translation, instruction: ptx.Instruction) -> None:
    """``set.relation[.and|.or|.xor].dtype.type d, a, b[, c]``: all ones where it holds."""
    relation, *combine = (modifier for modifier in instruction.modifiers if not is_type(modifier))
    types = types_of(instruction)
    if len(types) != 2 or types[0] not in ("u32", "s32"):
        raise Refused("set is there with an integer result of 32 bits only")
    dest, a, b, *third = operand_count(instruction, 4 if combine else 3)
    holds = _compare(t, relation, types[1], a, b, None)
    if combine:
        holds = t.compute(_combination(combine), Type.PRED, holds, t.source(third[0], Type.PRED))
    ones, zero = Const(Type.B32.mask, Type.B32), Const(0, Type.B32)
    t.compute("select", Type.B32, ones, zero, holds, dest=t.dest(dest, Type.B32))


def _combination(modifiers: Sequence[str]) -> str:
    if len(modifiers) != 1 or modifiers[0] not in ("and", "or", "xor"):
        raise Refused(f"the modifiers .{'.'.join(modifiers)} are not there")
    return modifiers[0]


def _slct(t: Translation, instruction: ptx.Instruction) -> None:
    """``slct.type.s32 d, a, b, c``: a where c >= 0, else b."""
    types = types_of(instruction)
    if len(types) != 2 or types[1] != "s32":
        raise Refused(FLOATING)
    type_ = register_type(types[0])
    dest, a, b, c = operand_count(instruction, 4)
    holds = t.compute("ge.s", Type.B32, t.source(c, Type.B32), Const(0, Type.B32), result=Type.PRED)
    t.compute("select", type_, t.source(a, type_), t.source(b, type_), holds, dest=t.dest(dest, type_))


# ---- Moves and conversions ----


def _mov(t: Translation, instruction: ptx.Instruction) -> None:
    name = only_type(instruction)
    type_ = register_type(name) if name[0] != "f" else Type(ptx.TYPE_BYTES[name] * 8)
    dest, source = operand_count(instruction, 2)
    if isinstance(dest, ptx.Vector):
        _unpack(t, type_, dest.elements, t.source(source, type_))
    elif isinstance(source, ptx.Vector):
        _pack(t, type_, source.elements, t.dest(dest, type_))
    else:
        t.compute("mov", type_, t.source(source, type_), dest=t.dest(dest, type_))


def _parts(type_: Type, elements: tuple[ptx.Operand, ...]) -> tuple[int, Type]:
    """How many bits each of the elements has that make up a number of ``type_``, and the type that holds them."""
    bits = int(type_) // len(elements) if elements else 0
    if len(elements) not in (2, 4) or bits not in (8, 16, 32):
        raise Refused("packing is there for two or four parts of 8, 16 or 32 bits")
    return bits, Type(max(bits, 16))


def _unpack(t: Translation, type_: Type, elements: tuple[ptx.Operand, ...], source: Operand) -> None:
    bits, held = _parts(type_, elements)
    # All parts are taken before one is written: the source may be one of the results.
    parts = []
    for number in range(len(elements)):
        if len(elements) == 2 and bits > 8:
            part = t.compute("high", held, source) if number else t.compute(f"zext{bits}", held, source)
        else:
            count = Const(bits * number, Type.B32)
            part = t.compute(f"zext{bits}", held, t.compute("shr.u", type_, source, count))
        parts.append(part)
    for element, part in zip(elements, parts, strict=True):
        t.compute("mov", held, part, dest=t.dest(element, held))


def _pack(t: Translation, type_: Type, elements: tuple[ptx.Operand, ...], dest: Reg) -> None:
    bits, held = _parts(type_, elements)
    parts = [t.source(element, held) for element in elements]
    if len(parts) == 2 and bits > 8:
        t.compute("pack", held, *parts, dest=dest)
        return
    total: Operand = Const(0, type_)
    for number, part in enumerate(parts):
        wide = t.compute(f"zext{bits}", type_, part)
        total = t.compute("or", type_, total, t.compute("shl", type_, wide, Const(bits * number, Type.B32)))
    t.compute("mov", type_, total, dest=dest)


def _cvta(t: Translation, instruction: ptx.Instruction) -> None:
    """All spaces lie in one flat address space, so that conversion between them changes nothing."""
    type_ = register_type(only_type(instruction))
    dest, source = operand_count(instruction, 2)
    t.compute("mov", type_, t.source(source, type_), dest=t.dest(dest, type_))


def _cvt(t: Translation, instruction: ptx.Instruction) -> None:
    types = types_of(instruction)
    others = [modifier for modifier in instruction.modifiers if not is_type(modifier)]
    if any(name[0] == "f" or name.startswith(("bf", "tf")) for name in types):
        raise Refused(FLOATING)
    if others not in ([], ["sat"]) or len(types) != 2:
        raise Refused(f"the conversion modifiers .{'.'.join(others)} are not there")
    dest_operand, source_operand = operand_count(instruction, 2)
    to_bits, from_bits = (ptx.TYPE_BYTES[name] * 8 for name in types)
    held_to, held_from = Type(max(to_bits, 16)), Type(max(from_bits, 16))
    # A register may be wider than the type: then the low bits count, and the result is extended to fill it.
    source = t.source(source_operand, held_from, wider=True)
    dest = t.dest(dest_operand, t.register(dest_operand).type if isinstance(dest_operand, ptx.Register) else held_to)
    if others:
        source = _saturated(t, types, source)
        from_bits = int(source.type)
        types = (types[0], f"{types[1][0]}{from_bits}")
    narrower = min(to_bits, from_bits)
    name = types[0] if to_bits <= from_bits else types[1]
    if narrower == 64:
        t.compute("mov", Type.B64, source, dest=dest)
    elif to_bits > from_bits and dest.type > to_bits:
        middle = t.compute(_extension(name, narrower), held_to, source)
        t.compute(_extension(types[0], to_bits), dest.type, middle, dest=dest)
    else:
        t.compute(_extension(name, narrower), dest.type, source, dest=dest)


def _saturated(t: Translation, types: Sequence[str], source: Operand) -> Operand:
    """The source brought into the range of the type it is converted to."""
    (to_sign, to_bits), (from_sign, from_bits) = ((sign(name), ptx.TYPE_BYTES[name] * 8) for name in types)
    type_ = Type(max(from_bits, 16)) if from_bits != 8 else Type.B16
    value: Operand = source
    if from_bits < source.type:
        value = t.compute(_extension(types[1], from_bits), type_, source)
    least = -(1 << to_bits - 1) if to_sign == "s" else 0
    most = (1 << to_bits - (to_sign == "s")) - 1
    if from_sign == "s" and least > -(1 << int(type_) - 1):
        value = t.compute("max.s", type_, value, Const(least & type_.mask, type_))
    if most < (1 << int(type_) - (from_sign == "s")) - 1:
        value = t.compute(f"min.{from_sign}", type_, value, Const(most, type_))
    return value


def _extension(type_name: str, bits: int) -> str:
    return f"{'sext' if type_name[0] == 's' else 'zext'}{bits}"


_SPECIAL: dict[str, Handler] = {
    "mul.wide": _mul_wide,
    **dict.fromkeys(("mad.lo", "mad.hi", "mad.wide"), _mad),
    "slct": _slct,
    "mov": _mov,
    **dict.fromkeys(
        [f"cvta{to}.{space}" for to in ("", ".to") for space in ("global", "shared", "local", "const", "param")], _cvta
    ),
}

HANDLERS: dict[str, Handler] = {**{key: _by_row(row) for key, row in ROWS.items()}, **_SPECIAL}
"""By opcode and modifiers."""

BY_OPCODE: dict[str, Handler] = {"setp": _setp, "set": _set, "cvt": _cvt}
"""By opcode alone: these read their modifiers themselves."""
