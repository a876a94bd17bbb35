"""The operations of the IR, one row each: what they take, what they give, and their meaning on integers.

The rows are what the verifier checks against, what constant folding computes with, and what the reference evaluator
runs. Where PTX leaves a result open (division by zero), the row says what this machine does.
"""

from collections.abc import Callable
from dataclasses import dataclass

from qgpu.cuda.ir import Type

_Pair = Callable[[int, int], int]

Evaluate = Callable[..., int]
"""(bits, *source values) -> result; unsigned in; what comes out is cut to the width of the result by the caller."""


@dataclass(frozen=True)
class Op:
    """sources and result: a letter for each, "t" the instruction's type, "w" b32, "p" a predicate, "d" twice the type,
    "*" any type. commutative: the first two sources may change places."""

    sources: str
    result: str
    evaluate: Evaluate
    commutative: bool = False

    def source_type(self, position: int, type_: Type) -> Type | None:
        """The type source number ``position`` must have in an instruction of ``type_``; None: any."""
        return typed(self.sources[position], type_)

    def result_type(self, type_: Type) -> Type | None:
        """The type of the result in an instruction of ``type_``; None: any."""
        return typed(self.result, type_)


def typed(letter: str, type_: Type) -> Type | None:
    """What a letter of a row means in an instruction of ``type_``; None: any type."""
    if letter == "d":
        return Type(type_ * 2)
    return {"t": type_, "w": Type.B32, "p": Type.PRED, "*": None}[letter]


def signed(value: int, bits: int) -> int:
    """The low ``bits`` of a value read as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _signed_pair(operation: Callable[[int, int], int]) -> Evaluate:
    return lambda bits, a, b: operation(signed(a, bits), signed(b, bits))


def _unsigned_pair(operation: Callable[[int, int], int]) -> Evaluate:
    return lambda _, a, b: operation(a, b)


def _divide(a: int, b: int) -> int:
    """Towards zero. By zero: all ones. The smallest number by -1 wraps, since the caller cuts the result."""
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    """Sign of the dividend. By zero: the dividend."""
    return a if b == 0 else a - b * _divide(a, b)


def _shift_right_signed(bits: int, value: int, count: int) -> int:
    return signed(value, bits) >> min(count, bits)


def _reverse(bits: int, value: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _find(bits: int, value: int) -> int:
    """Position of the highest one bit, all ones if there is none."""
    return value.bit_length() - 1


def _find_signed(bits: int, value: int) -> int:
    return _find(bits, ~value & ((1 << bits) - 1) if value >> (bits - 1) else value)


def _shift_amount(find: Evaluate) -> Evaluate:
    """How far left to shift to bring the bit that is found to the top; all ones if there is none."""
    return lambda bits, value: -1 if find(bits, value) < 0 else bits - 1 - find(bits, value)


def _extract(bits: int, value: int, position: int, length: int) -> int:
    position, length = position & 0xFF, length & 0xFF
    return (value >> position) & ((1 << length) - 1) if length else 0


def _extract_signed(bits: int, value: int, position: int, length: int) -> int:
    position, length = position & 0xFF, length & 0xFF
    if length == 0:
        return 0
    # A field that reaches over the top is filled with the sign of the whole value.
    return signed(signed(value, bits) >> min(position, bits), min(length, bits))


def _insert(bits: int, field: int, into: int, position: int, length: int) -> int:
    position, length = position & 0xFF, length & 0xFF
    mask = ((1 << length) - 1) << position
    return (into & ~mask) | ((field << position) & mask)


def _permute(bits: int, low: int, high: int, selector: int) -> int:
    """Each nibble of the selector picks one of eight bytes; its top bit spreads the sign of that byte instead."""
    pool, result = high << 32 | low, 0
    for position in range(4):
        choice = selector >> (4 * position) & 15
        byte = pool >> (8 * (choice & 7)) & 0xFF
        if choice & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << (8 * position)
    return result


def _funnel(left: bool, clamp: bool) -> Evaluate:
    def evaluate(bits: int, low: int, high: int, count: int) -> int:
        count = min(count, bits) if clamp else count % bits
        pool = high << bits | low
        return (pool << count) >> bits if left else pool >> count

    return evaluate


def _three_input_logic(bits: int, a: int, b: int, c: int, table: int) -> int:
    result = 0
    for position in range(bits):
        row = (a >> position & 1) << 2 | (b >> position & 1) << 1 | (c >> position & 1)
        result |= (table >> row & 1) << position
    return result


def _compare(suffix: str, pair: Callable[[Callable[[int, int], int]], Evaluate]) -> dict[str, Op]:
    return {
        f"lt{suffix}": Op("tt", "p", pair(lambda a, b: a < b)),
        f"le{suffix}": Op("tt", "p", pair(lambda a, b: a <= b)),
        f"gt{suffix}": Op("tt", "p", pair(lambda a, b: a > b)),
        f"ge{suffix}": Op("tt", "p", pair(lambda a, b: a >= b)),
    }


def _by_sign(name: str, sources: str, result: str, operation: _Pair, commutes: bool = False) -> dict[str, "Op"]:
    return {
        f"{name}.s": Op(sources, result, _signed_pair(operation), commutes),
        f"{name}.u": Op(sources, result, _unsigned_pair(operation), commutes),
    }


COMPARISONS: dict[str, Op] = {
    "eq": Op("tt", "p", _unsigned_pair(lambda a, b: a == b), True),
    "ne": Op("tt", "p", _unsigned_pair(lambda a, b: a != b), True),
    **_compare(".s", _signed_pair),
    **_compare(".u", _unsigned_pair),
}
"""Give a predicate; the suffix says how the operands are read."""

OPPOSITE: dict[str, str] = {
    first + suffix: second + suffix
    for a, b, suffixes in (("eq", "ne", ("",)), ("lt", "ge", (".s", ".u")), ("le", "gt", (".s", ".u")))
    for first, second in ((a, b), (b, a))
    for suffix in suffixes
}
"""The comparison that is true exactly where this one is false."""

EXTENSIONS: dict[str, Op] = {
    **{f"sext{n}": Op("*", "t", lambda bits, a, n=n: signed(a, n)) for n in (8, 16, 32)},
    **{f"zext{n}": Op("*", "t", lambda bits, a, n=n: a & ((1 << n) - 1)) for n in (8, 16, 32)},
}
"""The low 8, 16 or 32 bits of a source of any type, extended (or, if the result is narrower, cut) to the type."""

OPS: dict[str, Op] = {
    "mov": Op("t", "t", lambda _, a: a),
    "add": Op("tt", "t", _unsigned_pair(lambda a, b: a + b), True),
    "sub": Op("tt", "t", _unsigned_pair(lambda a, b: a - b)),
    "carry": Op("tt", "t", lambda bits, a, b: (a + b) >> bits, True),
    "mul": Op("tt", "t", _unsigned_pair(lambda a, b: a * b), True),
    "mulhi.s": Op("tt", "t", lambda bits, a, b: (signed(a, bits) * signed(b, bits)) >> bits, True),
    "mulhi.u": Op("tt", "t", lambda bits, a, b: (a * b) >> bits, True),
    **_by_sign("mulwide", "tt", "d", lambda a, b: a * b, True),
    **_by_sign("div", "tt", "t", _divide),
    **_by_sign("rem", "tt", "t", _remainder),
    **_by_sign("min", "tt", "t", min, True),
    **_by_sign("max", "tt", "t", max, True),
    "neg": Op("t", "t", lambda _, a: -a),
    "abs": Op("t", "t", lambda bits, a: abs(signed(a, bits))),
    "and": Op("tt", "t", _unsigned_pair(lambda a, b: a & b), True),
    "or": Op("tt", "t", _unsigned_pair(lambda a, b: a | b), True),
    "xor": Op("tt", "t", _unsigned_pair(lambda a, b: a ^ b), True),
    "not": Op("t", "t", lambda _, a: ~a),
    "logic3": Op("tttw", "t", _three_input_logic),
    "shl": Op("tw", "t", lambda bits, a, n: a << min(n, bits)),
    "shr.s": Op("tw", "t", _shift_right_signed),
    "shr.u": Op("tw", "t", lambda bits, a, n: a >> min(n, bits)),
    "funnel.l.wrap": Op("ttw", "t", _funnel(True, False)),
    "funnel.l.clamp": Op("ttw", "t", _funnel(True, True)),
    "funnel.r.wrap": Op("ttw", "t", _funnel(False, False)),
    "funnel.r.clamp": Op("ttw", "t", _funnel(False, True)),
    **COMPARISONS,
    "select": Op("ttp", "t", lambda _, a, b, p: a if p else b),
    "popc": Op("t", "w", lambda _, a: a.bit_count()),
    "clz": Op("t", "w", lambda bits, a: bits - a.bit_length()),
    "reverse": Op("t", "t", _reverse),
    "find.u": Op("t", "w", _find),
    "find.s": Op("t", "w", _find_signed),
    "findshift.u": Op("t", "w", _shift_amount(_find)),
    "findshift.s": Op("t", "w", _shift_amount(_find_signed)),
    "extract.u": Op("tww", "t", _extract),
    "extract.s": Op("tww", "t", _extract_signed),
    "insert": Op("ttww", "t", _insert),
    "permute": Op("ttw", "t", _permute),
    **EXTENSIONS,
    "pack": Op("tt", "d", lambda bits, low, high: high << bits | low),
    "high": Op("d", "t", lambda bits, a: a >> bits),
}

ATOMICS: dict[str, Evaluate] = {
    "add": lambda _, old, a: old + a,
    "exch": lambda _, old, a: a,
    "and": lambda _, old, a: old & a,
    "or": lambda _, old, a: old | a,
    "xor": lambda _, old, a: old ^ a,
    "min.s": lambda bits, old, a: min(signed(old, bits), signed(a, bits)),
    "min.u": lambda _, old, a: min(old, a),
    "max.s": lambda bits, old, a: max(signed(old, bits), signed(a, bits)),
    "max.u": lambda _, old, a: max(old, a),
    "inc": lambda _, old, a: 0 if old >= a else old + 1,
    "dec": lambda _, old, a: a if old == 0 or old > a else old - 1,
    "cas": lambda _, old, compare, new: new if old == compare else old,
}
"""(bits, old value, *sources) -> new value."""


@dataclass(frozen=True)
class WarpRow:
    """sources and results as in `Op`; the member mask is always the last source. A second result may be left out."""

    sources: str
    results: str


WARP_OPS: dict[str, WarpRow] = {
    # value, lane or distance, clamp and segment mask as PTX encodes them, members -> value, in range
    **{f"shuffle.{mode}": WarpRow("wwww", "wp") for mode in ("idx", "up", "down", "bfly")},
    **{f"vote.{mode}": WarpRow("pw", "p") for mode in ("all", "any", "uni")},
    "vote.ballot": WarpRow("pw", "w"),
    "match.any": WarpRow("tw", "w"),
    "match.all": WarpRow("tw", "wp"),
    **{f"reduce.{op}": WarpRow("ww", "w") for op in ("add", "min.s", "min.u", "max.s", "max.u", "and", "or", "xor")},
    "activemask": WarpRow("", "w"),
    "syncwarp": WarpRow("w", ""),
}

SPECIALS = frozenset(
    [f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
    + ["laneid", "warpid", "nwarpid"]
    + [f"lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")]
)
"""Special registers that do not change while a thread runs."""


def evaluate(op: str, type_: Type, result: Type, *sources: int) -> int:
    """The result of an operation, cut to ``result`` bits. Raises KeyError for an unknown operation."""
    return int(OPS[op].evaluate(int(type_), *sources)) & result.mask
