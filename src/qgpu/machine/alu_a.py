"""ALU A: every operation of one lane in three levels from its operands.

    1  groups of the adder; who is less; which byte goes where; bits that differ from the sign
    2  carries; which operand min and max take
    3  sum bits, and beside them everything that is no sum, as one sum of exclusive cases a bit

bfe, place and sad are not here: the compiler writes them in shifts, masks, min and max.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant, total
from qgpu.circuit.word import Word
from qgpu.machine.alu_order import Order
from qgpu.machine.alu_terms import Term, at_least, bit, carries, conj, equals, gate, line, literals

LINES: Final[Mapping[str, tuple[str, ...]]] = {
    "add": ("add",), "sub": ("sub",), "rsub": ("rsub",), "addc": ("addc",),
    "and": ("and",), "or": ("or",), "xor": ("xor",), "andn": ("andn",), "orn": ("orn",),
    "first": ("first",), "second": ("second",), "min": ("min.s", "min.u"), "max": ("max.s", "max.u"),
    "bound.signed": ("min.s", "max.s"), "popc": ("popc",), "brev": ("brev",), "cnot": ("cnot",), "slct": ("slct",),
    "clz": ("clz",), "bfind": ("bfind.s", "bfind.u"), "find.plain": ("clz", "bfind.u"), "find.signed": ("bfind.s",),
    "prmt": ("prmt",), "byte": ("byte.s", "byte.u"), "byte.s": ("byte.s",), "half": ("half.s", "half.u"),
    "half.s": ("half.s",),
}  # fmt: skip
"""Line -> operations for which it is 1."""

ABSENT: Final = frozenset({"sad.s", "sad.u", "bfe.s", "bfe.u", "place"})
GROUP = 4


def lines(b: Builder, rom: Mapping[str, Word], execute: Expr) -> dict[str, Expr]:
    """What ALU A needs to know of a block, the same for all lanes; all zero where ``execute`` is 0. One level."""
    found = {}
    for name, ops in LINES.items():
        raw = line(b, rom, f"alu.a.{name}", {"alu_a": ops})
        found[name] = raw
    return found if execute.const == 1 and not execute.terms else {
        name: b.and_(f"alu.a.{name}.now", bit_, execute) for name, bit_ in found.items()
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Bytes:
    """``take[i][k]``: byte i of the result is byte k; ``sign[i][k]``: it is eight times byte k's sign."""

    take: list[list[Expr]]
    sign: list[list[Expr]]


def alu_a(b: Builder, name: str, a: Word, bs: Word, relation: Order, is_: Mapping[str, Expr]) -> Word:
    """a op bs; zero where no line is 1. ``relation``: the order of a and bs (a level). Three levels in all."""
    one, zero = constant(1), constant(0)
    with b.scope(name):
        sums = w.add_variants(
            b, "sum", [(is_["add"], a, bs, zero), (is_["sub"], a, ~bs, one), (is_["rsub"], ~a, bs, one)]
        )
        signed = is_["bound.signed"]
        first = [conj(is_["first"]), *relation.less(is_["min"], signed=signed), *relation.equal(is_["min"]),
                 *relation.greater(is_["max"], signed=signed), *relation.equal(is_["max"])]  # fmt: skip
        second = [conj(is_["second"]), *relation.greater(is_["min"], signed=signed),
                  *relation.less(is_["max"], signed=signed)]  # fmt: skip
        takes = b.sum_of("takes.first", first, 0, 1), b.sum_of("takes.second", second, 0, 1)
        carry = _carry(b, a, bs, is_["addc"])
        differs = _differs(b, a, is_)
        moved = _bytes(b, bs, is_)
        count = [b.sum_of(f"popc{i}", [gate(total(a), bit(i), is_["popc"])], 0, 1) for i in range(6)]
        bits = []
        for i in range(32):
            terms = [conj(takes[0], a[i]), conj(takes[1], bs[i]), *_logic(a[i], bs[i], is_)]
            terms += [conj(is_["brev"], a[31 - i]), conj(is_["slct"], a[i], ~bs.sign)]
            byte, place = divmod(i, 8)
            for k in range(4):
                terms.append(conj(moved.take[byte][k], a[8 * k + place]))
                terms.append(conj(moved.sign[byte][k], a[8 * k + 7]))
            terms += _found(differs, i, is_)
            if i < 6:
                terms.append(conj(count[i]))
            if i == 0:
                terms += [conj(is_["cnot"], *(~x for x in a)), conj(carry)]
            other = b.sum_of(f"other{i}", terms, 0, 1)
            bits.append((sums[i] + other).assume(0, 1))
        return Word(b.path(""), tuple(bits))


def _logic(x: Expr, y: Expr, is_: Mapping[str, Expr]) -> list[Term]:
    return [
        conj(is_["and"], x, y), conj(is_["andn"], x, ~y), gate(x + y, at_least(1), is_["or"]),
        gate(x + ~y, at_least(1), is_["orn"]), gate(x + y, equals(1), is_["xor"]),
    ]  # fmt: skip


def _carry(b: Builder, a: Word, bs: Word, here: Expr) -> Expr:
    """The carry of a + bs where ``here`` is 1. Two levels."""
    generate, propagate = [], []
    for j in range(0, 32, GROUP):
        count = a[j : j + GROUP].value + bs[j : j + GROUP].value
        generate.append(b.sum_of(f"carry.generate{j}", [gate(count, at_least(1 << GROUP), here)], 0, 1))
        propagate.append(b.sum_of(f"carry.propagate{j}", [gate(count, equals((1 << GROUP) - 1), here)], 0, 1))
    return b.sum_of("carry", carries(generate, propagate), 0, 1)


def _differs(b: Builder, a: Word, is_: Mapping[str, Expr]) -> list[Expr]:
    """Bits among which the highest is looked for: a's own, or for bfind.s those that differ from the sign. One
    level."""
    plain, signed = is_["find.plain"], is_["find.signed"]
    return [
        b.sum_of(f"find{i}", [conj(plain, x), conj(signed, x, ~a.sign), conj(signed, ~x, a.sign)], 0, 1)
        for i, x in enumerate(a)
    ]


def _found(differs: list[Expr], i: int, is_: Mapping[str, Expr]) -> list[Term]:
    """Terms of bit i of clz and bfind."""
    none = [~x for x in differs]
    terms = [conj(is_["bfind"], *none)]
    if i == 5:
        terms.append(conj(is_["clz"], *none))
    for at, x in enumerate(differs):
        alone = [x, *(~y for y in differs[at + 1 :])]
        if at >> i & 1:
            terms.append(conj(is_["bfind"], *alone))
        if 31 - at >> i & 1:
            terms.append(conj(is_["clz"], *alone))
    return terms


def _bytes(b: Builder, bs: Word, is_: Mapping[str, Expr]) -> _Bytes:
    """Where the bytes of prmt, byte and half come from. One level."""
    take: list[list[Expr]] = []
    sign: list[list[Expr]] = []
    for i in range(4):
        take.append([])
        sign.append([])
        nibble = bs[4 * i : 4 * i + 2]
        fills = bs[4 * i + 3]
        for k in range(4):
            byte, half = literals(bs[0:2], k), literals(bs[0:1], k // 2)
            plain = [conj(is_["prmt"], *literals(nibble, k), ~fills)]
            signs = [conj(is_["prmt"], *literals(nibble, k), fills)]
            if i == 0:
                plain.append(conj(is_["byte"], *byte))
            else:
                signs.append(conj(is_["byte.s"], *byte))
            if i < 2 and k % 2 == i:
                plain.append(conj(is_["half"], *half))
            elif i > 1 and k % 2:
                signs.append(conj(is_["half.s"], *half))
            take[i].append(b.sum_of(f"take{i}{k}", plain, 0, 1))
            sign[i].append(b.sum_of(f"sign{i}{k}", signs, 0, 1))
    return _Bytes(take, sign)
