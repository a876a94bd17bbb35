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
    """a op bs; zero where no implemented operation is chosen. Three levels; the sum and the logic stand side by side."""
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


def condition(b: Builder, name: str, x: Word, y: Word, is_: Mapping[str, Expr], signed: Expr) -> Expr:
    """Whether x cond y, for the block's condition field. Three levels."""
    with b.scope(name):
        found = w.compare(b, "order", x, y, signed)
        pick = {
            "eq": found.eq, "ne": found.ne, "lt": found.lt, "le": found.le, "gt": found.gt, "ge": found.ge,
        }  # fmt: skip
        return any_of(b, "holds", *((is_[cond], pick[cond.split(".")[0]]) for cond in is_))


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
