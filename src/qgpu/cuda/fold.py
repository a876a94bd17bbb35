"""What one operation can be written as more simply: constants computed, identities removed, chains shortened.

Nothing here changes a result for any input; division by zero folds to what the operation's row says.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from qgpu.cuda.ir import Compute, Const, Instruction, Operand, Reg, Type, VariableAddress
from qgpu.cuda.ops import OPPOSITE, OPS, evaluate

Definitions = Mapping[Reg, Instruction]


def fold(item: Compute, known: Definitions) -> Compute | Operand:
    """A simpler instruction with the same result, or the operand that the result equals, or ``item`` itself.

    known: the definitions of registers that are values (see `values`).
    """
    for _ in range(8):  # each rule shortens a chain; what stands deeper is another instruction's business
        result = _once(item, known)
        if result is item or not isinstance(result, Compute):
            return result
        item = result
    return item


def _once(item: Compute, known: Definitions) -> Compute | Operand:
    constants = [source.value for source in item.sources if isinstance(source, Const)]
    if len(constants) == len(item.sources):
        return Const(evaluate(item.op, item.type, item.dest.type, *constants), item.dest.type)
    if item.op == "mov":
        return item.sources[0]
    if OPS[item.op].commutative and isinstance(item.sources[0], Const):
        return replace(item, sources=(item.sources[1], item.sources[0], *item.sources[2:]))
    rule = _RULES.get(item.op)
    return item if rule is None else rule(item, known)


def _constant(operand: Operand) -> int | None:
    return operand.value if isinstance(operand, Const) else None


def _definition(operand: Operand, known: Definitions, op: str) -> Compute | None:
    """The instruction that defines an operand, if it is this operation."""
    found = known.get(operand) if isinstance(operand, Reg) else None
    return found if isinstance(found, Compute) and found.op == op else None


def _stable(operand: Operand, known: Definitions) -> bool:
    """Whether an operand means the same wherever it may be read: everything but registers written more than once."""
    return not isinstance(operand, Reg) or operand in known


def _const(value: int, type_: Type) -> Const:
    return Const(value & type_.mask, type_)


def _add(item: Compute, known: Definitions) -> Compute | Operand:
    a, b = item.sources
    constant = _constant(b)
    if constant is None:
        if isinstance(a, VariableAddress) or not isinstance(b, VariableAddress):
            return item
        return replace(item, sources=(b, a))
    if constant == 0:
        return a
    if isinstance(a, VariableAddress):
        offset = constant - (1 << item.type) if constant >> (item.type - 1) else constant
        return VariableAddress(a.name, a.offset + offset, a.type)
    inner = _definition(a, known, "add")
    if inner is not None and inner.type is item.type and isinstance(inner.sources[1], Const):
        if _stable(inner.sources[0], known):
            total = inner.sources[1].value + constant
            return replace(item, sources=(inner.sources[0], _const(total, item.type)))
    return item


def _sub(item: Compute, known: Definitions) -> Compute | Operand:
    a, b = item.sources
    if a == b:
        return Const(0, item.type)
    constant = _constant(b)
    if constant is not None:
        return replace(item, op="add", sources=(a, _const(-constant, item.type)))
    return replace(item, op="neg", sources=(b,)) if _constant(a) == 0 else item


def _mul(item: Compute, known: Definitions) -> Compute | Operand:
    constant = _constant(item.sources[1])
    if constant in (0, 1):
        return item.sources[0] if constant else Const(0, item.type)
    if constant is not None and constant & (constant - 1) == 0:
        return replace(item, op="shl", sources=(item.sources[0], Const(constant.bit_length() - 1, Type.B32)))
    return item


def _logic(absorbing: Callable[[Type], int], neutral: Callable[[Type], int], same: bool) -> "_Rule":
    def rule(item: Compute, known: Definitions) -> Compute | Operand:
        a, b = item.sources
        constant = _constant(b)
        if constant == neutral(item.type):
            return a
        if constant == absorbing(item.type) or (a == b and not same):
            return Const(absorbing(item.type), item.type)
        return a if a == b else item

    return rule


def _xor(item: Compute, known: Definitions) -> Compute | Operand:
    a, b = item.sources
    constant = _constant(b)
    if constant == 0:
        return a
    if a == b:
        return Const(0, item.type)
    return replace(item, op="not", sources=(a,)) if constant == item.type.mask else item


def _not(item: Compute, known: Definitions) -> Compute | Operand:
    inner = known.get(item.sources[0]) if isinstance(item.sources[0], Reg) else None
    if not isinstance(inner, Compute) or not all(_stable(source, known) for source in inner.sources):
        return item
    if inner.op == "not":
        return inner.sources[0]
    if inner.op in OPPOSITE:
        return replace(inner, op=OPPOSITE[inner.op], dest=item.dest, origin=item.origin, guard=item.guard)
    return item


def _shift(item: Compute, known: Definitions) -> Compute | Operand:
    value, count = item.sources
    amount = _constant(count)
    if amount is None:
        return Const(0, item.type) if _constant(value) == 0 else item
    if amount == 0:
        return value
    if amount >= item.type and item.op != "shr.s":
        return Const(0, item.type)
    inner = _definition(value, known, item.op)
    if inner is not None and inner.type is item.type and isinstance(inner.sources[1], Const):
        if _stable(inner.sources[0], known):
            total = min(amount, item.type) + min(inner.sources[1].value, item.type)
            return replace(item, sources=(inner.sources[0], Const(total, Type.B32)))
    return item


def _select(item: Compute, known: Definitions) -> Compute | Operand:
    a, b, predicate = item.sources
    constant = _constant(predicate)
    if constant is not None or a == b:
        return a if constant or a == b else b
    inverted = _definition(predicate, known, "not")
    if inverted is not None and _stable(inverted.sources[0], known):
        return replace(item, sources=(b, a, inverted.sources[0]))
    return item


def _is_equal(item: Compute, known: Definitions) -> Compute | Operand:
    """eq and ne; what compares a choice between two constants is that choice's predicate, or its opposite."""
    a, b = item.sources
    constant = _constant(b)
    choice = _definition(a, known, "select")
    if constant is None or choice is None or not _stable(choice.sources[2], known):
        return item
    options = [_constant(option) for option in choice.sources[:2]]
    if None in options:
        return item
    holds = [(option == constant) == (item.op == "eq") for option in options]
    if holds[0] == holds[1]:
        return Const(int(holds[0]), Type.PRED)
    predicate = choice.sources[2]
    return predicate if holds[0] else replace(item, op="not", type=Type.PRED, sources=(predicate,))


def _extend(item: Compute, known: Definitions) -> Compute | Operand:
    source = item.sources[0]
    bits = int(item.op[4:])
    if source.type is item.type and bits == item.type:
        return source
    if item.type <= bits < source.type and isinstance(source, VariableAddress):
        return replace(source, type=item.type)
    inner = known.get(source) if isinstance(source, Reg) else None
    if not isinstance(inner, Compute) or not all(_stable(operand, known) for operand in inner.sources):
        return item
    if inner.op == "pack" and bits == inner.type and item.type is inner.type:
        return inner.sources[0]
    if inner.op[:4] in ("sext", "zext"):
        inner_bits = int(inner.op[4:])
        origin = inner.sources[0]
        if bits <= inner_bits or item.type <= inner_bits:  # only bits that the inner one passes on as they are count
            return replace(item, sources=(origin,))
        if inner.op[0] == "z" or item.op[0] == "s":  # the inner extension decides all bits that this one would
            return replace(item, op=inner.op, sources=(origin,))
    return item


def _high(item: Compute, known: Definitions) -> Compute | Operand:
    pack = _definition(item.sources[0], known, "pack")
    if pack is not None and pack.type is item.type and _stable(pack.sources[1], known):
        return pack.sources[1]
    extended = _definition(item.sources[0], known, f"zext{int(item.type)}")
    return item if extended is None else Const(0, item.type)


def _pack(item: Compute, known: Definitions) -> Compute | Operand:
    low = _definition(item.sources[0], known, f"zext{int(item.type)}")
    high = _definition(item.sources[1], known, "high")
    if low is not None and high is not None and low.sources == high.sources and _stable(low.sources[0], known):
        if low.sources[0].type is item.dest.type:
            return low.sources[0]
    return item


def _same_sources(item: Compute, known: Definitions) -> Compute | Operand:
    return item.sources[0] if item.sources[0] == item.sources[1] else item


_Rule = Callable[[Compute, Definitions], Compute | Operand]

_RULES: dict[str, _Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "and": _logic(lambda type_: 0, lambda type_: type_.mask, True),
    "or": _logic(lambda type_: type_.mask, lambda type_: 0, True),
    "xor": _xor,
    "not": _not,
    **dict.fromkeys(("shl", "shr.u", "shr.s"), _shift),
    "select": _select,
    **dict.fromkeys(("eq", "ne"), _is_equal),
    **dict.fromkeys([f"{sign}ext{bits}" for sign in "sz" for bits in (8, 16, 32)], _extend),
    "high": _high,
    "pack": _pack,
    **dict.fromkeys(("min.s", "min.u", "max.s", "max.u"), _same_sources),
}
