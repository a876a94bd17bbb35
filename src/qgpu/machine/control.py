"""The next token: what follows an EXEC, its values, its memory rows, a mask, a CTA (docs/machine.md, rules 0 to 8).

Every possible next token is a condition and a 17-bit word; the conditions exclude each other, and one mux makes the
output code of them. Where the token stands is known early (``Phase``); the late parts of the machine, joined in one
more level, say which condition holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant, total
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.gates import any_of
from qgpu.machine.grid import Grid, grid
from qgpu.machine.parts import Context, Datapath
from qgpu.machine.phase import Phase, places
from qgpu.machine.quads import Quads, quads
from qgpu.machine.results import DATA_BITS, Form, halves, result_buffer, result_form
from qgpu.machine.rows import Rows, rows

Choice = tuple[Expr | Sequence[Expr], Word]


def marker_word(kind: str, low: Word) -> Word:
    """The code of a marker whose fields are ``low``; the kind's first id must leave those bits zero."""
    first = tokens.BY_NAME[kind].first
    if first & (1 << low.width) - 1:
        raise ValueError(f"{kind} starts at {first}, which leaves no {low.width} bits")
    return low + Word.constant(first >> low.width, tokens.CODE_BITS - low.width)


def plain(kind: str) -> Word:
    return Word.constant(tokens.BY_NAME[kind].first, tokens.CODE_BITS)


def values_word(register: Word, wide: Expr) -> Word:
    """VALW of a register if ``wide``, else VAL."""
    registers = tokens.BY_NAME["VAL"].fields[0][1]
    assert tokens.BY_NAME["VALW"].first == tokens.BY_NAME["VAL"].first | registers
    first = tokens.BY_NAME["VAL"].first // (2 * registers)
    return register + Word("wide", (wide,)) + Word.constant(first, tokens.CODE_BITS - register.width - 1)


@dataclass(frozen=True, eq=False)
class Ends:
    """What the present token completes: ``to_stores``: the first destination (or an EXEC without one). What follows if
    no memory row does, at most one of: ``second`` and ``old``, further destinations; ``decides``, the next quad, CTA or
    end."""

    to_stores: Expr
    second: Expr
    old: Expr
    decides: Expr


def control(b: Builder, ctx: Context, path: Datapath) -> Word:
    """The output code, 17 bits."""
    execute = ctx.token.kind["EXEC"]
    here = places(b, ctx)
    index = grid(b, ctx)
    with b.scope("result"):
        select = halves(b, ctx)
        # the DATA that may come next, of each destination: two words where the values decide between two halves
        out = {
            name: (b.bus_word(f"{name}.out.low", DATA_BITS), b.bus_word(f"{name}.out.high", DATA_BITS))
            for name in ("early", "late", "old")
        }
        forms = []
        for name, words, mine in (("early", path.early, here.of_early), ("late", path.late, here.of_late)):
            result_buffer(b, name, execute, words, mine, select, out[name])
            forms.append(result_form(b, name, execute, words, mine, ctx.ranks))
        row = rows(b, ctx, path, here.of_old, select, out["old"])
        forms.append(row.old)
        # zero but for the destination that the token belongs to
        long, mixed = (total(bits).assume(0, 1) for bits in zip(*((f.long, f.mixed) for f in forms), strict=True))
        shape = Form(long, mixed, forms[1].wide)
    place = quads(b, ctx, path)
    with b.scope("next"):
        phase = here.phase
        ends = _ends(b, phase, path, shape, row)
        choices = [
            *_values(b, phase, path, shape, out.values()),
            (index.goes_on, b.mux("cta", index.choices).zero_extend(tokens.CODE_BITS)),
            *_further(ctx, path, ends, shape, row.old),
            *_rows(ctx, ends, row),
            *_places(ctx, ends, place, index),
        ]
        return b.mux("code", choices)


def _ends(b: Builder, phase: Phase, path: Datapath, shape: Form, row: Rows) -> Ends:
    """Flat sums of products: what follows is told by the phase, by whether the DATA was the last of its form, and by
    whether memory rows follow. One level."""
    runs, long, mixed = ~path.fault, shape.long, shape.mixed
    last = ((phase.first_data, ~mixed, ~long), (phase.second_of_two, ~long), (phase.second_of_more, long),
            (phase.surely_last,))  # fmt: skip
    ready, more = row.ends, row.more
    return Ends(
        any_of(b, "to.stores", (phase.bare, runs), *((phase.first, *case) for case in last)),
        any_of(
            b, "to.second", *((phase.first_of_two, *case, ~more) for case in last),
            (phase.row_before_second, ready, ~more),
        ),
        any_of(
            b, "to.old", *((phase.second_before_old, *case, more) for case in last),
            (phase.row_before_old, ready, ~more),
        ),
        any_of(
            b, "decides",
            (phase.bare, runs, ~more),
            *((phase.first_alone, *case, ~more) for case in last),
            (phase.row_alone, ready, ~more),
            *((phase.second_before_old, *case, ~more) for case in last),
            *((phase.further, *case) for case in last),
            (phase.bar,),
        ),
    )  # fmt: skip


def _values(
    b: Builder, phase: Phase, path: Datapath, shape: Form, out: Iterable[tuple[Word, Word]]
) -> list[Choice]:
    """DATA that carry values, and the VALW that begins them. At an EXEC a value's first half is always a low one.
    ``out``: of each destination the low and the high half that may come next, zero but for the token's own."""
    runs, long, mixed = ~path.fault, shape.long, shape.mixed
    takes_wide = (phase.begins_many, runs, long, mixed)
    begins = b.sum_of("value.begins", [
        (phase.begins + runs, {2: 1}),
        (sum(takes_wide, constant(0)), {4: -1}),
        (phase.surely_low, lambda n: n),
        (phase.first_data + mixed - long, {2: 1}),
        (phase.second_of_two + long, {2: 1}),
        (phase.second_of_more - long, {1: 1}),
    ], 0, 1)  # fmt: skip
    goes_high = any_of(b, "value.high", (phase.surely_high,), (phase.first_data, long))
    first_wide = b.and_("first.wide", *takes_wide)
    halves_out = [choice for low, high in out for choice in ((begins, low), (goes_high, high))]
    return [
        *((condition, word.zero_extend(tokens.CODE_BITS)) for condition, word in halves_out),
        (first_wide, values_word(phase.first_register, constant(1))),
    ]


def _further(ctx: Context, path: Datapath, ends: Ends, shape: Form, old: Form) -> list[Choice]:
    return [
        ((ctx.token.kind["EXEC"], path.fault), marker_word("FAULT", path.fault_lane + path.fault_cause)),
        (ends.second, values_word(ctx.rom["d_b"], shape.wide)),
        (ends.old, values_word(ctx.rom["d_o"], old.wide)),
    ]


def _rows(ctx: Context, ends: Ends, row: Rows) -> list[Choice]:
    """MEM markers, their rows' DATA, and READ's."""
    found: list[Choice] = [
        (here, row.data[DATA_BITS * n : DATA_BITS * (n + 1)].zero_extend(tokens.CODE_BITS))
        for n, here in enumerate(row.quarter)
    ]
    memory = marker_word("MEM", row.lane + row.row)
    found += [((ends.to_stores, row.more), memory), ((row.ends, ctx.marker["MEM"], row.more), memory)]
    return [*found, ((row.ends, ctx.marker["READ"]), plain("HALT"))]


def _places(ctx: Context, ends: Ends, place: Quads, index: Grid) -> list[Choice]:
    """EXEC and MASK, and what ends a CTA or the launch."""
    t, goes = ctx.token, ends.decides
    return [
        *(((goes, fires, go.masks), marker_word("MASK", go.pair + go.quad)) for fires, go in place.goes),
        *(((goes, fires, ~go.masks), marker_word("EXEC", go.quad + go.pc)) for fires, go in place.goes),
        (t.kind["MASK"], marker_word("EXEC", t.quad + place.leader_pc)),
        (index.starts, marker_word("EXEC", Word.constant(0, 13))),
        ((goes, place.over, index.last), plain("HALT")),
        ((goes, place.over, ~index.last), plain("CTA")),
        ((goes, place.barrier), plain("BAR")),
        ((goes, place.deadlock), marker_word("FAULT", Word.constant(4 * tokens.CAUSES.index("deadlock"), 6))),
    ]
