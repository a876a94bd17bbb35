"""The result buffers and the prefix code: which DATA carry a destination's values, and when they are complete.

An EXEC writes its results into deep rows; the tokens after it read them, and only the half word that the next DATA may
carry. Which lane's that is, the place after the marker and the mask tell alone, but for one case: after a first DATA
the next one is either a high half (of a long word) or a low half, so there is a word for each. What the results look
like is found once, at the EXEC, and kept as well: whether a word is *long* (more than its low half sign-extended) and
whether lanes are *mixed* (differ) is all that the prefix code asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, total
from qgpu.circuit.memory import Field
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of as any_of
from qgpu.machine.gates import equals as equals
from qgpu.machine.parts import Bits, Context, Ranks

DATA_BITS = 16


@dataclass(frozen=True, eq=False)
class Halves:
    """Which half the next DATA may carry, whatever the values are. ``low[lane]``, ``high[lane]``: at most one of each
    is 1."""

    low: Bits
    high: Bits


@dataclass(frozen=True, eq=False)
class Form:
    """Of the destination that the present token belongs to, zero if it is another: ``long``, ``mixed``. ``wide``:
    whether its values take VALW, at any token."""

    long: Expr
    mixed: Expr
    wide: Expr


def halves(b: Builder, ctx: Context) -> Halves:
    """One level."""
    at, ranks, wide = ctx.position, ctx.ranks, ctx.marker["VALW"]
    short, low, high = ~wide, [], []
    for lane, rank in enumerate(ranks.of):
        with b.scope(f"half.lane{lane}"):
            low.append(any_of(
                b, "low",
                (at[0], rank[0]),
                (short, at[1], rank[1]),
                (short, at[2], ranks.two, rank[1]),
                (short, at[2], rank[2]),
                (short, at[3], rank[3]),
                *((wide, at[2 * r], rank[r]) for r in (1, 2, 3)),
            ))  # fmt: skip
            high.append(any_of(
                b, "high",
                (at[1], rank[0]),
                (short, at[3], ranks.two, rank[1]),
                *((wide, at[2 * r + 1], rank[r]) for r in (1, 2, 3)),
            ))  # fmt: skip
    return Halves(low, high)


def result_buffer(
    b: Builder, name: str, write: Expr, words: Sequence[Word], mine: Expr, select: Halves, out: tuple[Word, Word]
) -> None:
    """Keeps four words from the token where ``write`` is 1; where ``mine`` is 1, brings the selected halves to ``out``
    (low and high, buses)."""
    low, high = out
    for pair in range(2):
        fields, into = [], {}
        for i in (2 * pair, 2 * pair + 1):
            fields.append(Field(f"low{i}", words[i][:DATA_BITS], select=select.low[i]))
            fields.append(Field(f"high{i}", words[i][DATA_BITS:], select=select.high[i]))
            into |= {f"low{i}": low, f"high{i}": high}
        b.memory(f"{name}.lanes{2 * pair}", fields, Port((), (write,)), Port((), (mine,)), into=into)


def result_form(b: Builder, name: str, write: Expr, words: Sequence[Word], mine: Expr, ranks: Ranks) -> Form:
    """The form of four words (zero in lanes that are not active) at the token where ``write`` is 1. Two levels before
    the read."""
    with b.scope(name):
        long = total(not_sign_extension(b, f"long{i}", word) for i, word in enumerate(words))
        # how many lanes are active, or 1 before any is
        lanes = (ranks.two + ranks.three * 2 + ranks.four * 3 + 1).assume(1, 4)
        terms: list[tuple[Expr, Table]] = []
        for i in range(words[0].width):
            ones = total(word[i] for word in words)
            terms.append((ones, lambda n: int(n >= 1)))
            terms.append((ones - lanes, lambda n: -int(n >= 0)))
        mixed = b.sum_of("mixed", terms, 0, words[0].width)  # bits in which the active lanes differ
        many = (ranks.three + ranks.four).assume(0, 1)
        neither = [(many - long, {1: -1}), (many - mixed, {1: -1}), (many - long - mixed, {1: 1})]
        wide = b.sum_of("wide", [(many, {1: 1}), *neither], 0, 1)
        fields = {
            "long": (b.lookup("long", long, lambda n: int(n > 0)), mine),
            "mixed": (b.lookup("differ", mixed, lambda n: int(n > 0)), mine),
            "wide": (wide, None),
        }
        kept = b.memory(
            "form", [Field(key, Word(key, (bit,)), select=select) for key, (bit, select) in fields.items()],
            Port((), (write,)), Port(()),
        )  # fmt: skip
        return Form(*(kept[key][0] for key in fields))


def not_sign_extension(b: Builder, name: str, word: Word) -> Expr:
    """1 if a 32-bit word is not its low half sign-extended: its bits 15..31 are mixed. One level, three neurons."""
    return b.lookup(name, total(word.bits[15:]), lambda n: int(0 < n < 17))
