"""The funnel shifter beside the product: the low word of (H:Lo) >> k, k in 0..32, in two levels.

Everything that is no product is such a shift, ``first`` among them (k = 0):

    first, shr.u, shr.s, shf.r   Lo = m1, H = nothing, nothing, the sign, the third operand; k = the amount
    shl                          Lo = 0, H = m1; k = 32 - amount
    shf.l                        Lo = m1, H = the third operand; k = 32 - amount

The first level shifts by multiples of 8, the second by 0 to 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.machine.alu_terms import Term, at_least, conj, gate, line

FINE = 8
COARSE = 32 + FINE - 1
"""Bits between the two levels."""

_RIGHT = ("shr.u", "shr.s", "shf.r.wrap", "shf.r.clamp")
_LEFT = ("shl", "shf.l.wrap", "shf.l.clamp")
_CLAMP = ("shr.u", "shr.s", "shf.r.clamp", "shl", "shf.l.clamp")
FUNNEL = ("shf.r.wrap", "shf.r.clamp", "shf.l.wrap", "shf.l.clamp")


@dataclass(frozen=True, eq=False)
class Amount:
    """k of one lane: ``bits`` (6), and ``odd``: 1 if k is no multiple of 8."""

    bits: Word
    odd: Expr

    def coarse(self, value: int) -> tuple[Expr, ...]:
        """Literals of "k div 8 is value"."""
        return _literals(self.bits[3:6], value)

    def fine(self, value: int) -> tuple[Expr, ...]:
        """Literals of "k mod 8 is value"."""
        return _literals(self.bits[0:3], value)


def _literals(word: Word, value: int) -> tuple[Expr, ...]:
    return tuple(x if value >> i & 1 else ~x for i, x in enumerate(word))


def amount_lines(b: Builder, rom: Mapping[str, Word]) -> dict[str, Expr]:
    """What ``amount`` needs to know of a block. One level."""
    kinds = {"right": _RIGHT, "left": _LEFT, "clamp": _CLAMP}
    with b.scope("amount"):
        return {key: line(b, rom, key, {"m_op": ops}) for key, ops in kinds.items()}


def amount(b: Builder, name: str, word: Word, is_: Mapping[str, Expr]) -> Amount:
    """k of one lane from its shift amount (32 bits), whatever the operation; 0 where it is no shift. Two levels."""
    with b.scope(name):
        low = word[0:5]
        over = (is_["clamp"] - b.and_("within", *(~x for x in word.bits[5:]), is_["clamp"])).assume(0, 1)
        right, left = (is_["right"], ~over), (is_["left"], ~over)
        bits = []
        for i, x in enumerate(low):
            # 32 - n has this bit where n has it and nothing below, or not and something below
            differs = gate(total(low.bits[:i]) + x * (i + 1), lambda n, i=i: int(1 <= n <= i + 1), *left)  # type: ignore[misc]
            bits.append(b.sum_of(f"bit{i}", [conj(x, *right), differs], 0, 1))
        whole = [conj(is_["right"], over), conj(*(~x for x in low), *left)]
        bits.append(b.sum_of("bit5", whole, 0, 1))
        rest = total(low.bits[0:3])
        odd = b.sum_of("odd", [gate(rest, at_least(1), *right), gate(rest, at_least(1), *left)], 0, 1)
        return Amount(Word(b.path("k"), tuple(bits)), odd)


def unit_lines(b: Builder, rom: Mapping[str, Word]) -> dict[str, Expr]:
    """What the shifter needs to know of a block. One level."""
    kinds = {
        "low": ("first", "shr.u", "shr.s", *FUNNEL), "shl": ("shl",), "shf": FUNNEL, "shr.s": ("shr.s",),
        "shifts": ("first", *_RIGHT, *_LEFT),
    }  # fmt: skip
    with b.scope("shift"):
        return {f"shift.{key}": line(b, rom, key, {"m_op": ops}) for key, ops in kinds.items()}


def coarse(m1: Word, high: Word, k: Amount, is_: Mapping[str, Expr]) -> list[list[Term]]:
    """Terms of the bits after the first level, none where the unit does not shift; about 330 neurons."""
    found: list[list[Term]] = []
    for j in range(COARSE):
        terms: list[Term] = []
        for q in range(5):
            place = j + FINE * q
            if place < 32:
                terms.append(conj(m1[place], is_["shift.low"], *k.coarse(q)))
            elif place < 64:
                terms.append(conj(m1[place - 32], is_["shift.shl"], *k.coarse(q)))
                terms.append(conj(high[place - 32], is_["shift.shf"], *k.coarse(q)))
        reach = max(0, -(-(32 - j) // FINE))  # the least k div 8 that brings the sign here
        terms.append(_filled(k, reach, m1.sign, is_["shift.shr.s"]))
        found.append(terms)
    return found


def _filled(k: Amount, reach: int, *literals: Expr) -> Term:
    """1 where k div 8 (0..4) is at least ``reach``, and all literals are 1."""
    one, two, four = k.bits[3:6]
    if reach == 0:
        return conj(*literals)
    if reach == 4:
        return conj(four, *literals)
    if reach == 3:
        return gate(one + two + four * 2, at_least(2), *literals)
    return gate((two + four + (one if reach == 1 else 0)).assume(0, 3), at_least(1), *literals)


def fine(columns: list[Expr], k: Amount, shifts: Expr) -> list[list[Term]]:
    """Terms that turn columns which hold the coarse bits into the result's 32 bits: what stands there already goes off
    where k is no multiple of 8. 256 neurons. Where ``shifts`` is 0, columns may hold anything and nothing comes of it;
    where it is 1 they hold bits, so the other literals need weigh no more than two.
    """

    def moved(column: Expr, *literals: Expr, weight: int) -> Term:
        span = column.hi + 1
        arg = column + shifts * span - span + total(literals) * 2 - 2 * len(literals)
        return arg, lambda n: weight * max(n, 0)

    found: list[list[Term]] = []
    for i in range(32):
        terms = [moved(columns[i], k.odd, weight=-1)]
        terms += [moved(columns[i + f], *k.fine(f), weight=1) for f in range(1, FINE)]
        found.append(terms)
    return found
