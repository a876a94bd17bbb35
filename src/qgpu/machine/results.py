"""The result buffer and the prefix code: which DATA carry a destination's values, and when they are complete.

An EXEC writes its early and late results into two deep rows; the tokens after it read them out. Whether all lanes agree
and whether they fit 16 bits is counted anew at each token, so that EXEC and DATA tokens run through the same logic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of as any_of
from qgpu.machine.gates import equals as equals
from qgpu.machine.parts import Bits, Context


@dataclass(frozen=True, eq=False)
class Form:
    """``length[n]``: 1 if n DATA (1..4) say it all; ``wide``: it takes VALW; ``narrow``: every lane fits 16 bits."""

    length: Bits
    wide: Expr
    narrow: Expr


@dataclass(frozen=True, eq=False)
class HalfSelect:
    """Which half of which lane the next DATA carries: ``low[lane]`` and ``high[lane]`` whatever the values are,
    ``low_narrow[lane]`` if they are narrow, ``high_long[lane]`` if not. At most one applies."""

    low: Bits
    high: Bits
    low_narrow: Bits
    high_long: Bits


def buffer(b: Builder, name: str, write: Expr, words: Sequence[Word], active: Bits) -> list[Word]:
    """Four lanes' words, kept from the token where ``write`` is 1; inactive lanes read zero."""
    kept: list[Word] = []
    for half in range(2):
        lanes = (2 * half, 2 * half + 1)
        fields = [Field(f"lane{i}", words[i], select=active[i]) for i in lanes]
        found = b.memory(f"{name}.half{half}", fields, Port((), (write,)), Port(()))
        kept += [found[f"lane{i}"] for i in lanes]
    return kept


def not_sign_extension(b: Builder, name: str, word: Word) -> Expr:
    """1 if a 32-bit word is not its low half sign-extended: its bits 15..31 are mixed. One level, three neurons."""
    return b.lookup(name, total(word.bits[15:]), lambda n: int(0 < n < 17))


def form(b: Builder, name: str, words: Sequence[Word], ctx: Context) -> Form:
    """The shortest form of the active lanes' words (inactive ones read zero): isa.values.lane_form. Two levels."""
    ranks = ctx.ranks
    with b.scope(name):
        long = [not_sign_extension(b, f"long{i}", word) for i, word in enumerate(words)]
        lanes = ranks.two + ranks.three * 2 + ranks.four * 3 + 1
        lanes, three = lanes.assume(1, 4), ranks.three
        three_up = (three + ranks.four).assume(0, 1)
        terms = []
        for i in range(32):
            ones = total(word[i] for word in words)
            terms.append((ones, lambda n: int(n >= 1)))
            terms.append((ones - lanes, lambda n: -int(n >= 0)))
        mixed = b.sum_of("mixed", terms, 0, 32)  # bits in which the active lanes differ
        same = b.lookup("same", mixed, lambda n: int(n == 0))
        narrow = b.lookup("narrow", total(long), lambda n: int(n == 0))
        two, four = ranks.two, ranks.four
        length = [
            b.and_("length1", same, narrow),
            any_of(b, "length2", (same, ~narrow, ~two), (~same, narrow, two)),
            b.and_("length3", ~same, narrow, three),
            any_of(b, "length4", (~same, narrow, four), (~narrow, two)),
        ]
        return Form(length, b.and_("wide", ~same, ~narrow, three_up), narrow)


def half_select(b: Builder, ctx: Context) -> HalfSelect:
    """Known before any value is: from the position, the marker and the mask alone."""
    at, ranks, wide = ctx.position, ctx.ranks, ctx.marker["VALW"]
    low, high, low_narrow, high_long = [], [], [], []
    for lane in range(4):
        rank, on = ranks.of[lane], constant(1)
        with b.scope(f"half.lane{lane}"):
            low.append(any_of(
                b, "low",
                (~wide, on, at[0], rank[0]),
                (~wide, on, at[2], ranks.two, rank[1]),
                (~wide, on, at[2], ~ranks.two, rank[2]),
                (~wide, on, at[3], ~ranks.two, rank[3]),
                *((wide, on, at[2 * r], rank[r]) for r in range(4)),
            ))  # fmt: skip
            high.append(any_of(
                b, "high",
                (~wide, on, at[3], ranks.two, rank[1]),
                *((wide, on, at[2 * r + 1], rank[r]) for r in range(4)),
            ))  # fmt: skip
            low_narrow.append(any_of(b, "low.narrow", (~wide, on, at[1], rank[1])))
            high_long.append(any_of(b, "high.long", (~wide, on, at[1], rank[0])))
    return HalfSelect(low, high, low_narrow, high_long)


def halves(b: Builder, name: str, more: Expr, shape: Form, select: HalfSelect) -> list[tuple[Expr, Expr]]:
    """(low, high) of each lane: 1 if the next DATA is that half, given that a DATA of this buffer follows
    (``more``)."""
    return [
        (
            any_of(b, f"{name}.lane{i}.low", (more, select.low[i]), (more, select.low_narrow[i], shape.narrow)),
            any_of(b, f"{name}.lane{i}.high", (more, select.high[i]), (more, select.high_long[i], ~shape.narrow)),
        )
        for i in range(4)
    ]
