"""ALU A, comparisons, and the late end of a block: product, addend, logic and select in one sum a bit."""

from __future__ import annotations

from collections.abc import Mapping

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant, total
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.machine.results import any_of, equals

LOGIC = {"and": (0, 0, 1), "or": (0, 1, 1), "xor": (0, 1, 0)}


def alu_a(b: Builder, name: str, a: Word, bs: Word, is_: Mapping[str, Expr]) -> Word:
    """a op bs; zero where no implemented operation is chosen. Three levels, the logic beside the sum."""
    one, zero = constant(1), constant(0)
    with b.scope(name):
        total_ = w.add_variants(
            b, "sum", [(is_["add"], a, bs, zero), (is_["sub"], a, ~bs, one), (is_["rsub"], ~a, bs, one)]
        )
        bits = []
        for i in range(a.width):
            terms: list[tuple[Expr, Table]] = [(is_["first"] + a[i], equals(2)), (is_["second"] + bs[i], equals(2))]
            for op, table in LOGIC.items():
                terms += b.gated(is_[op], a[i] + bs[i], table)
            logic = b.sum_of(f"logic{i}", terms, 0, 1)
            bits.append((total_[i] + logic).assume(0, 1))
        return Word(b.path(""), tuple(bits))


SIGNS = {"eq": (0, 1, 0), "ne": (0, -1, 1), "lt": (1, 0, 0), "le": (1, 1, 0), "gt": (-1, -1, 1), "ge": (-1, 0, 1)}
"""Condition -> factors of "less" and of "equal", and a constant."""

GROUP = 6  # bits compared by one table; their numbers' difference is exact in bfloat16


def _order(b: Builder, x: Word, y: Word, signed: Expr) -> list[tuple[Expr, Expr]]:
    """(less, equal) of groups of bits, lowest first; the last is the top bit, whose order ``signed`` turns. One
    level."""
    found = []
    width = x.width - 1
    count = -(-width // GROUP)
    for j in range(count):
        part = slice(width * j // count, width * (j + 1) // count)
        difference = x[part].value - y[part].value
        made = b.lookups(f"group{j}", difference, {"less": lambda n: int(n < 0), "same": equals(0)})
        found.append((made["less"], made["same"]))
    top = x.sign - y.sign
    less = [*b.gated(~signed, top, equals(-1)), *b.gated(signed, top, equals(1))]
    return [*found, (b.sum_of("top.less", less, 0, 1), b.lookup("top.same", top, equals(0)))]


def condition(b: Builder, name: str, x: Word, y: Word, is_: Mapping[str, Expr]) -> Expr:
    """Whether x cond y, for the condition whose bit is 1; zero if none is. Two levels.

    Every condition is a sum of "less" and "equal" with signs and a constant, and "less" is a sum of exclusive cases:
    the highest group of bits that differs decides. The condition's bits enter those cases.
    """
    signed = total(hot for cond, hot in is_.items() if cond.endswith(".s")).assume(0, 1)

    def wants(part: int, sign: int) -> Expr:
        return total(hot for cond, hot in is_.items() if SIGNS[cond.split(".")[0]][part] == sign).assume(0, 1)

    with b.scope(name):
        groups = _order(b, x, y, signed)
        terms: list[tuple[Expr, Table]] = [(wants(2, 1), {1: 1})]
        for sign in (1, -1):
            less, equal = wants(0, sign), wants(1, sign)
            for at, (below, _) in enumerate(groups):
                case = total([less, below, *(same for _, same in groups[at + 1 :])])
                terms.append((case, {len(groups) - at + 1: sign}))
            terms.append((total([equal, *(same for _, same in groups)]), {len(groups) + 1: sign}))
        return b.sum_of("holds", terms, 0, 1)


def late(
    b: Builder, name: str, m1: Word, m2: Word, c: Word, is_: Mapping[str, Expr], keep: Expr, replace: Expr
) -> Word:
    """(m1 * m2) op c where ``keep``, c where ``replace`` (they exclude each other). Seven levels.

    The addend joins the product's columns; the last level picks the sum, its complement (c - m = ~(m + ~c)), a logic
    operation with c, or c itself.
    """
    with b.scope(name):
        plus = is_["add"]
        minus = total([is_["sub"], is_["rsub"]]).assume(0, 1)
        addend = b.mux("addend", [(plus, c), (minus, ~c)])
        total_ = w.multiply(b, "product", m1, m2, 32, addend=addend, carry_in=is_["sub"])
        straight = any_of(b, "straight", *((is_[op], keep) for op in ("add", "sub", "first")))
        inverse = b.and_("inverse", is_["rsub"], keep)
        second = any_of(b, "second", (is_["second"], keep), (replace,))
        logic = {op: b.and_(op, is_[op], keep) for op in LOGIC}
        bits = []
        for i in range(32):
            s = total_[i]
            terms: list[tuple[Expr, Table]] = [
                (straight + s, equals(2)), (inverse + ~s, equals(2)), (second + c[i], equals(2))
            ]  # fmt: skip
            for op, table in LOGIC.items():
                terms += b.gated(logic[op], s + c[i], table)
            bits.append(b.sum_of(f"bit{i}", terms, 0, 1))
        return Word(b.path(""), tuple(bits))
