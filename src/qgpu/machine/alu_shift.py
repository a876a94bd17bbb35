"""The funnel shifter beside the product: the low word of (H:Lo) >> k, k in 0..32, in two levels.

Everything that is no product is such a shift, ``first`` among them (k = 0):

    first, shr.u, shr.s, shf.r   Lo = m1, H = nothing, nothing, the sign, the third operand; k = the amount
    shl                          Lo = 0, H = m1; k = 32 - amount
    shf.l                        Lo = m1, H = the third operand; k = 32 - amount

The first level shifts by multiples of 4, the second by 0 to 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.machine.alu_terms import Term, conj, identity, line, literals

FINE = 4
FINE_BITS = FINE.bit_length() - 1
STEPS = 32 // FINE
COARSE = 32 + FINE - 1
"""Bits between the two levels."""

PRODUCTS = ("mul.lo", "mulhi.s", "mulhi.u")
FUNNEL = ("shf.r.wrap", "shf.r.clamp", "shf.l.wrap", "shf.l.clamp")


@dataclass(frozen=True, eq=False)
class Amount:
    """k of one lane, one-hot: ``coarse[q]``: k div 4 is q, 0..8; ``fine[f]``: k mod 4 is f, 1..3; ``odd``: k is no
    multiple of 4. All zero where unit M multiplies."""

    coarse: Sequence[Expr]
    fine: Mapping[int, Expr]
    odd: Expr


def amount_lines(b: Builder, rom: Mapping[str, Word]) -> dict[str, Expr]:
    """What ``amount`` needs to know of a block. One level."""
    kinds = {
        "right.clamp": ("shr.u", "shr.s", "shf.r.clamp"), "right.wrap": ("shf.r.wrap",),
        "left.clamp": ("shl", "shf.l.clamp"), "left.wrap": ("shf.l.wrap",), "first": ("first",),
    }  # fmt: skip
    with b.scope("amount"):
        return {key: line(b, rom, key, {"m_op": ops}) for key, ops in kinds.items()}


def amount(b: Builder, name: str, word: Word, is_: Mapping[str, Expr]) -> Amount:
    """k of one lane from its shift amount n (32 bits): n or 32 - n; 0 for ``first``. Two levels, about 50 neurons."""
    with b.scope(name):
        low, high = word[0:FINE_BITS], word[FINE_BITS:5]
        small = [~x for x in word.bits[5:]]
        even = b.nor("even", low)
        right, left = (
            b.sum_of(f"{way}.within", [conj(is_[f"{way}.wrap"]), conj(is_[f"{way}.clamp"], *small)], 0, 1)
            for way in ("right", "left")
        )
        beyond = {  # an amount of 32 or more that counts as 32
            way: (is_[f"{way}.wrap"] + is_[f"{way}.clamp"] - within).assume(0, 1)
            for way, within in (("right", right), ("left", left))
        }
        fine = {
            f: b.sum_of(f"fine{f}", [conj(*literals(low, f), right), conj(*literals(low, FINE - f), left)], 0, 1)
            for f in range(1, FINE)
        }
        coarse = []
        for q in range(STEPS + 1):
            terms = [conj(*literals(high, q), right)] if q < STEPS else [conj(beyond["right"])]
            terms += [conj(*literals(high, STEPS - 1 - q), ~even, left)] if q < STEPS else []
            if q > 0:
                terms.append(conj(*literals(high, STEPS - q), even, left))
            else:
                terms += [conj(is_["first"]), conj(beyond["left"])]
            coarse.append(b.sum_of(f"coarse{q}", terms, 0, 1))
        odd = b.sum_of("odd", [conj(~even, right), conj(~even, left)], 0, 1)
        return Amount(coarse, fine, odd)


def unit_lines(b: Builder, rom: Mapping[str, Word]) -> dict[str, Expr]:
    """What the shifter needs to know of a block. One level."""
    kinds = {"shl": ("shl",), "shf": FUNNEL, "shr.s": ("shr.s",)}
    with b.scope("shift"):
        return {f"shift.{key}": line(b, rom, key, {"m_op": ops}) for key, ops in kinds.items()}


def coarse(
    b: Builder, m1: Word, high: Word, k: Amount, is_: Mapping[str, Expr], into: Sequence[Expr]
) -> list[list[Term]]:
    """Terms of the bits after the first level, none where the unit does not shift; about 340 neurons. ``high`` is moved
    a level before, where there is room, straight onto the buses of the first columns, ``into``."""
    found: list[list[Term]] = []
    for j in range(COARSE):
        terms: list[Term] = []
        above: list[Term] = []
        for q, here in enumerate(k.coarse):
            place = j + FINE * q
            if place < 32:
                terms.append(conj(m1[place], ~is_["shift.shl"], here))
            elif place < 64:
                terms.append(conj(m1[place - 32], is_["shift.shl"], here))
                above.append(conj(high[place - 32], is_["shift.shf"], here))
        if j < len(into):
            b.sum_of(f"funnel{j}", above, 0, 1, into[j])
        else:
            terms.append((b.sum_of(f"funnel{j}", above, 0, 1), identity))
        reach = max(0, -(-(32 - j) // FINE))  # the least k div 4 that brings the sign here
        terms.append(conj(m1.sign, is_["shift.shr.s"], *([total(k.coarse[reach:]).assume(0, 1)] if reach else [])))
        found.append(terms)
    return found


def fine(columns: list[Expr], k: Amount) -> list[list[Term]]:
    """Terms that turn columns which hold the coarse bits into the result's 32 bits: what stands there already goes off
    where k is no multiple of 4. 128 neurons. Where the unit shifts, a column is a bit; else it may hold anything."""

    def moved(column: Expr, here: Expr, weight: int) -> Term:
        span = column.hi + 1
        return column + here * span - span, lambda n: weight * max(n, 0)

    return [
        [moved(columns[i], k.odd, -1), *(moved(columns[i + f], here, 1) for f, here in k.fine.items())]
        for i in range(32)
    ]
