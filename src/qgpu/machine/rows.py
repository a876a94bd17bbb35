"""Memory rows on their way out: what a MEM's row becomes, which of its DATA comes next, and where the next MEM goes.

The row is put together from bytes of stores and bytes that stay (``stores``), goes through the read-modify-write unit
(``atomics``), and is read out a quarter at a time. All but the row itself is known long before it, so that one level
says from the row what follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.isa import encoding
from qgpu.machine.address import ADDRESS_BITS
from qgpu.machine.atomics import modified
from qgpu.machine.olds import old_values, swap_hit
from qgpu.machine.operands import decoded
from qgpu.machine.parts import Bits, Context, Datapath
from qgpu.machine.results import Form, Halves
from qgpu.machine.stores import BYTES, keep, old_row, placed, row_of_next, turn

Conjunctions = list[tuple[Expr, dict[int, int]]]
QUARTER = 16


@dataclass(frozen=True, eq=False)
class Rows:
    """``more``: a further MEM follows: after a MEM and its DATA one above its lane, else the block's first one;
    ``lane`` (2) and ``row`` (11) are its fields. ``data`` (64): the present MEM's or READ's row as it will be.
    ``quarter[n]``: the next DATA is its bits 16n..16n + 15; ``ends``: the present DATA was its last. ``old``: the form
    of the old values."""

    more: Expr
    lane: Word
    row: Word
    data: Word
    quarter: Bits
    ends: Expr
    old: Form


def rows(
    b: Builder, ctx: Context, path: Datapath, is_old: Expr, halves: Halves, out: tuple[Word, Word]
) -> Rows:  # fmt: skip
    """``is_old``: the token belongs to the old value's destination; there, the selected halves are added to ``out``
    (low and high, buses)."""
    kind, marker, rom = ctx.token.kind, ctx.marker, ctx.rom
    execute, names = kind["EXEC"], (kind["MEM"] + kind["READ"]).assume(0, 1)
    with b.scope("rows"):
        choices = decoded(b, ctx, "store")
        size = {n: choices[name] for name, n in BYTES.items()}
        address = [a[:ADDRESS_BITS] for a in path.store_address]
        kept = keep(b, execute, size, rom["atomic"], address, path.store_lane)
        now = turn(b, kept, marker["MEM"], ctx.sub)
        row = b.bus_word("row", 64)
        old = old_values(b, execute, names, kept, now, path.c, path.row, ctx.active, ctx.ranks, is_old, halves,
                         out, row[32:])  # fmt: skip
        placed(b, execute, kept, now, path.late, row)
        before = old_row(b, names, now, path.row, row)
        hit = swap_hit(b, execute, names, kept, now, path.early, path.b, path.row)
        ops = encoding.CHOICES["atomic"]
        is_ = dict(zip(ops, w.decode(b, "is", kept.atomic, len(ops)), strict=True))
        data = modified(b, is_, hit, now.changed, before, row)
        quarter, ends = _next(b, ctx, data)
        return Rows(total(now.next).assume(0, 1), w.encode("next.lane", now.next),
                    row_of_next(b, execute, now, address), data, quarter, ends, old)  # fmt: skip


def _next(b: Builder, ctx: Context, data: Word) -> tuple[list[Expr], Expr]:
    """The quarters that may come next, and whether the row is complete (isa.values.row_form). One level."""
    runs = (ctx.marker["MEM"] + ctx.marker["READ"]).assume(0, 1)
    at = [b.and_(f"at{d}", runs, ctx.position[d]) for d in range(5)]
    low, high = (total(data.bits[k + QUARTER - 1 : k + 32]) for k in (0, 32))
    every = total(data.bits[32:])
    ends = (0, QUARTER + 1)  # how many of a word's upper 17 bits are 1, if it is its low half sign-extended

    def short(d: Expr, sign: int, *counts: Expr) -> Conjunctions:
        """``sign`` where ``d`` and all words with these counts are short, else 0."""
        cases = [d]
        for count in counts:
            cases = [case - count if end == 0 else case + count - end for case in cases for end in ends]
        return [(case, {1: sign}) for case in cases]

    def zero(d: Expr, sign: int) -> Conjunctions:
        """``sign`` where ``d``, the low word is short and the high word is zero."""
        return [(case - every, {1: sign}) for case, _ in short(d, 1, low)]

    def always(d: Expr) -> Conjunctions:
        return [(d, {1: 1})]

    with b.scope("next"):
        word1 = [*always(at[1]), *short(at[1], -1, low, high)]
        word2 = [*short(at[1], 1, low, high), *zero(at[1], -1), *always(at[2]), *short(at[2], -1, low, high)]
        word3 = [*always(at[3]), *short(at[3], -1, high)]
        found = [b.sum_of(f"word{n}", terms, 0, 1) for n, terms in ((1, word1), (2, word2), (3, word3))]
        done = [*zero(at[1], 1), *short(at[2], 1, low, high), *short(at[3], 1, high), *always(at[4])]
        return [at[0], *found], b.sum_of("ends", done, 0, 1)
