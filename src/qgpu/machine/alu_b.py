"""Unit M and ALU B of a lane: six levels from their operands to the late result.

    1  partial products, or the coarse shift, into columns
    2  counts to radix-4 digits; the fine shift; ALU B's second operand joins the columns, itself or complemented
    3  columns to radix-8 digits with one carry to come; logic, of columns that hold two bits
    4  low or high half; the complement, for c - M = ~(M + ~c); c instead, for second, min, max and a false guard
    5  carries
    6  bits

So everything is a sum of columns: a product's, or the two bits of a shift (``first`` is one by 0) and of c. In a column
of two bits, AND is the 2, OR what is not 0, XOR the 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr
from qgpu.circuit.word import Word
from qgpu.machine import alu_shift
from qgpu.machine.alu_order import Order
from qgpu.machine.alu_product import columns_of, correction, counted, partial_products, spread_counts
from qgpu.machine.alu_shift import Amount
from qgpu.machine.alu_terms import (
    DIGITS,
    Term,
    Values,
    at_least,
    bit,
    carries,
    conj,
    digits,
    equals,
    gate,
    identity,
    line,
    top,
)

HIGH = ("mulhi.s", "mulhi.u")
LOW = ("first", "mul.lo", "shl", "shr.s", "shr.u", "shf.l.wrap", "shf.l.clamp", "shf.r.wrap", "shf.r.clamp")
ARITHMETIC = ("add", "sub", "first", "min.s", "max.s", "min.u", "max.u")
"""ALU B's operations that take a half as it is (min and max: where it is not c); for rsub it is complemented."""

LOGIC = ("and", "or", "xor", "andn", "orn")
PLUS = ("add", "and", "or", "xor")
MINUS = ("sub", "rsub", "andn", "orn")
BOUNDS = ("min.s", "max.s", "min.u", "max.u")


def lines(b: Builder, rom: Mapping[str, Word]) -> dict[str, Expr]:
    """What the six levels need to know of a block, all lanes alike. One level."""
    kinds: dict[str, dict[str, tuple[str, ...]]] = {
        "signed": {"m_op": ("mulhi.s",)},
        "low": {"m_op": LOW, "alu_b": ARITHMETIC},
        "low.inverse": {"m_op": LOW, "alu_b": ("rsub",)},
        "high": {"m_op": HIGH, "alu_b": ARITHMETIC},
        "high.inverse": {"m_op": HIGH, "alu_b": ("rsub",)},
        "logic": {"alu_b": LOGIC},
        "any": {"alu_b": ("or", "xor", "orn")},
        "both": {"alu_b": ("and", "andn")},
        "differ": {"alu_b": ("xor",)},
        "second": {"alu_b": ("second",)},
        "min": {"alu_b": ("min.s", "min.u")},
        "max": {"alu_b": ("max.s", "max.u")},
        "bound.signed": {"alu_b": ("min.s", "max.s")},
    }
    for half, ops in (("low", LOW), ("high", HIGH)):
        kinds[f"plus.{half}"] = {"alu_b": PLUS, "m_op": ops}
        kinds[f"minus.{half}"] = {"alu_b": MINUS, "m_op": ops}
        kinds[f"one.{half}"] = {"alu_b": ("sub",), "m_op": ops}
    with b.scope("late"):
        return {name: line(b, rom, name, case) for name, case in kinds.items()} | alu_shift.unit_lines(b, rom)


@dataclass(frozen=True, eq=False)
class Digits:
    """After level 3. ``low``, ``high``: of the sum's two halves, up to 14 each; ``logic``: of a logic operation's
    result; ``c``: of the second operand."""

    low: list[Expr]
    high: list[Expr]
    logic: list[Expr]
    c: list[Expr]


def late(
    b: Builder, name: str, m1: Word, m2: Word, c: Word, high: Word, k: Amount, is_: Mapping[str, Expr], replace: Expr
) -> Word:
    """alu_b(m_op(m1, m2), c), or c where ``replace`` (see ``choice``), which may come three levels later. Six levels.

    ``m2``: zero unless unit M multiplies. ``high``: third operand of the funnel shifts. ``k``: see ``alu_shift``.
    """
    with b.scope(name):
        columns = _columns(b, m1, m2, high, k, is_)
        half = _joined(b, columns, c, k, is_)
        found = _digits(b, half, c, is_)
        chosen, generate, propagate, low_chain = _chosen(b, found, is_, replace)
        return _sum(b, chosen, generate, propagate, low_chain, is_, replace)


def _columns(b: Builder, m1: Word, m2: Word, high: Word, k: Amount, is_: Mapping[str, Expr]) -> list[Expr]:
    """Level 1."""
    terms = partial_products(m1, m2, is_["signed"])
    bounds = []
    for column, part in enumerate(terms):
        largest = sum(max(1, table(arg.hi)) for arg, table in part if table(arg.hi) > 0)  # type: ignore[operator]
        bounds.append((0 if column < 32 else -2, max(largest, 1)))
    # the next ones have too many products to bear one more error
    buses = [b.bus(f"column{j}", *bounds[j]) for j in range(31)]
    for j, part in enumerate(alu_shift.coarse(b, m1, high, k, is_, buses)):
        terms[j] += part
    return columns_of(b, "column", terms, bounds, buses)


def _joined(b: Builder, columns: list[Expr], c: Word, k: Amount, is_: Mapping[str, Expr]) -> list[Expr]:
    """Level 2: columns that hold at most 9 each; those of a shift at most 2."""
    counts = []
    for column, count in enumerate(columns):
        most = count.hi + (1 if column in (0, 32) else 0)
        one = is_["one.low"] if column == 0 else is_["one.high"] if column == 32 else None
        whole = count + correction(column, is_["signed"]) + (one if one is not None else 0)
        counts.append(whole.assume(0, most + (3 if column == 33 else 2 if column > 31 else 0)))
    terms = spread_counts(counts)
    bounds = [(0, sum(max(table(n) for n in range(arg.lo, arg.hi + 1)) for arg, table in part)) for part in terms]  # type: ignore[operator]
    for i, part in enumerate(alu_shift.fine(columns, k)):
        terms[i] += part
    for i, x in enumerate(c):
        for half, at in (("low", i), ("high", 32 + i)):
            terms[at] += [conj(x, is_[f"plus.{half}"]), conj(~x, is_[f"minus.{half}"])]
    return columns_of(b, "joined", terms, [(low, most + 1) for low, most in bounds])


def _digits(b: Builder, columns: list[Expr], c: Word, is_: Mapping[str, Expr]) -> Digits:
    """Level 3. A digit is what its columns leave and the carry of the digit below; the top digit of the low half has
    two bits only, so a part of the carry below passes it by."""
    terms: dict[str, list[Term]] = {f"{half}{j}": [] for half in ("low", "high") for j in range(DIGITS)}
    logic = []
    last = DIGITS - 1
    for half, start in (("low", 0), ("high", 32)):
        for j in range(DIGITS):
            own = columns[start + 3 * j : min(start + 3 * j + 3, start + 32)]
            number, kept = counted(own), top(j)
            targets: dict[str, Values] = {f"{half}{j}": lambda n, kept=kept: n & kept}  # type: ignore[misc]
            if j < last:
                targets[f"{half}{j + 1}"] = lambda n: n >> 3
            if half == "low" and j == last - 1:
                targets |= {f"low{last}": lambda n: n >> 3 & 3, "high0": lambda n: n >> 5}
            elif half == "low" and j == last:
                targets["high0"] = lambda n: n >> 2
            for target, table in targets.items():
                terms[target].append((number, table))
            if half == "low":
                logic.append(b.sum_of(f"logic{j}", _logic(own, is_), 0, kept))
    made = b.sums(terms, {key: (0, 14) for key in terms})
    second = [b.buffer(f"c{j}", x) for j, x in enumerate(digits(c))]
    low, high = ([made[f"{half}{j}"] for j in range(DIGITS)] for half in ("low", "high"))
    return Digits(low, high, logic, second)


def _logic(columns: list[Expr], is_: Mapping[str, Expr]) -> list[Term]:
    """A digit of a logic operation, of columns that hold two bits each (others may hold more, and nothing comes of
    it)."""
    terms = []
    for i, column in enumerate(columns):
        for name, least, factor in (("any", 1, 1), ("both", 2, 1), ("differ", 2, -1)):
            arg, table = gate(column, at_least(least), is_[name], weight=factor << i)
            terms.append((arg.assume(arg.lo, 2), table))
    return terms


def _chosen(
    b: Builder, found: Digits, is_: Mapping[str, Expr], replace: Expr
) -> tuple[list[Expr], list[Expr], list[Expr], tuple[list[Expr], list[Expr]]]:
    """Level 4: digits of the half that is wanted, complemented (15 less the digit) or replaced by c; generate and
    propagate of that half, and of the low half for itself."""
    halves = ((found.low, is_["low"], is_["low.inverse"]), (found.high, is_["high"], is_["high.inverse"]))
    chosen, generate, propagate = [], [], []
    for j in range(DIGITS):
        terms = [gate(found.c[j], identity, replace), gate(found.logic[j], identity, is_["logic"], ~replace)]
        for source, plain, inverse in halves:
            terms.append(gate(source[j], identity, plain, ~replace))
            terms += [gate(14 - source[j], identity, inverse, ~replace), conj(inverse, ~replace)]
        chosen.append(b.sum_of(f"digit{j}", terms, 0, 15))
        if j < DIGITS - 1:
            pairs = {key: [gate(source[j], table, (plain + inverse).assume(0, 1)) for source, plain, inverse in halves]
                     for key, table in ((f"generate{j}", at_least(8)), (f"propagate{j}", equals(7)))}  # fmt: skip
            made = b.sums(pairs, dict.fromkeys(pairs, (0, 1)))
            generate.append(made[f"generate{j}"])
            propagate.append(made[f"propagate{j}"])
    low_generate, low_propagate = [], []
    for j, source in enumerate(found.low):
        made = b.lookups(f"low{j}", source, {"generate": at_least(top(j) + 1), "propagate": equals(top(j))})
        low_generate.append(made["generate"])
        low_propagate.append(made["propagate"])
    return chosen, generate, propagate, (low_generate, low_propagate)


def _sum(
    b: Builder, chosen: list[Expr], generate: list[Expr], propagate: list[Expr], low: tuple[list[Expr], list[Expr]],
    is_: Mapping[str, Expr], replace: Expr,
) -> Word:  # fmt: skip
    """Levels 5 and 6. A carry counts down where the digits are complemented."""
    bits: list[Expr] = []
    for j in range(DIGITS):
        terms: list[Term] = []
        for sign, way in ((1, ""), (-1, ".inverse")):
            either = (is_[f"low{way}"] + is_[f"high{way}"]).assume(0, 1)
            terms += carries(generate[:j], propagate[:j], either, ~replace, weight=sign)
            terms += carries(low[0], [*low[1], *propagate[:j]], is_[f"high{way}"], ~replace, weight=sign)
        carry = b.sum_of(f"carry{j}", terms, -1, 1)
        number = (chosen[j] + carry).assume(0, 15)
        tables = {f"bit{3 * j + i}": [(number, bit(i))] for i in range(top(j).bit_length())}
        bits += b.sums(tables, dict.fromkeys(tables, (0, 1))).values()
    return Word(b.path("")[:-1], tuple(bits))



def choice(b: Builder, name: str, relation: Order, is_: Mapping[str, Expr]) -> Expr:
    """1 where ALU B takes its second operand whatever the guard is. One level after ``order(m1, c)``."""
    signed = is_["bound.signed"]
    terms = [*relation.greater(is_["min"], signed=signed), *relation.less(is_["max"], signed=signed)]
    return b.sum_of(name, [*terms, conj(is_["second"])], 0, 1)
