"""The next token: what follows an EXEC, its values, its memory rows, a mask, a CTA (docs/machine.md, rules 0 to 8).

Every possible next token is a condition and a 17-bit word; the conditions exclude each other, and one mux makes the
output code of them. Where the token stands is known early (``Phase``); the late parts of the machine, joined in one
more level, say which condition holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.gates import any_of
from qgpu.machine.grid import Grid, grid
from qgpu.machine.parts import Context, Datapath
from qgpu.machine.phase import Phase, places
from qgpu.machine.quads import Quads, quads
from qgpu.machine.results import DATA_BITS, Form, buffer, halves, result_buffer, result_form
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
    """What the present token completes: ``to_stores``: the first destination (or an EXEC without one); ``row``: a
    memory row. What follows if no memory row does, at most one of: ``second`` and ``old``, further destinations;
    ``decides``, the next quad, CTA or end."""

    to_stores: Expr
    row: Expr
    second: Expr
    old: Expr
    decides: Expr


def control(b: Builder, ctx: Context, path: Datapath) -> Word:
    """The output code, 17 bits."""
    execute = ctx.token.kind["EXEC"]
    here = places(b, ctx)
    index = grid(b, ctx)
    # the DATA that may come next: two words where the values decide between two halves
    low, high = b.bus_word("out.low", DATA_BITS), b.bus_word("out.high", DATA_BITS)
    b.mux("out.cta", index.choices, into=low)
    with b.scope("result"):
        select = halves(b, ctx)
        forms = []
        for name, words, mine in (("early", path.early, here.of_early), ("late", path.late, here.of_late)):
            result_buffer(b, name, execute, words, mine, select, low, high)
            forms.append(result_form(b, name, execute, words, mine, ctx.ranks))
        # zero but for the destination that the token belongs to
        long, mixed = ((p + q).assume(0, 1) for p, q in zip(*((f.long, f.mixed) for f in forms), strict=True))
        shape = Form(long, mixed, forms[1].wide)
    row = rows(b, ctx, path, buffer(b, "result.stored", execute, path.late, ctx.active))
    place = quads(b, ctx, path)
    with b.scope("next"):
        phase = here.phase
        ends = _ends(b, phase, path, shape, row)
        choices = [
            *_values(b, ctx, phase, path, shape, low, high, index),
            *_further(ctx, path, ends, shape),
            *_rows(b, ctx, ends, row),
            *_places(ctx, ends, place, index),
        ]
        return b.mux("code", choices)


def _ends(b: Builder, phase: Phase, path: Datapath, shape: Form, row: Rows) -> Ends:
    """Flat sums of products: what follows is told by the phase, by whether the DATA was the last of its form, and by
    whether memory rows follow. One level, and one before for a row's end."""
    runs, long, mixed = ~path.fault, shape.long, shape.mixed
    last = ((phase.first_data, ~mixed, ~long), (phase.second_of_two, ~long), (phase.second_of_more, long),
            (phase.surely_last,))  # fmt: skip
    row_done = any_of(b, "row.done", *((row.length[n], phase.at[n + 1]) for n in range(4)))
    more = sum(row.next, constant(0)).assume(0, 1)
    to_stores = any_of(b, "to.stores", (phase.bare, runs), *((phase.first, *case) for case in last))
    alone, followed = phase.row_alone, phase.row_before_second
    return Ends(
        to_stores,
        b.and_("row.ends", phase.row, row_done),
        any_of(b, "to.second", *((phase.first_of_two, *case, ~row.any) for case in last), (followed, row_done, ~more)),
        constant(0),
        any_of(
            b, "decides",
            (phase.bare, runs, ~row.any),
            *((phase.first_alone, *case, ~row.any) for case in last),
            (alone, row_done, ~more),
            *((phase.further, *case) for case in last),
            (phase.bar,),
        ),
    )  # fmt: skip


def _values(
    b: Builder, ctx: Context, phase: Phase, path: Datapath, shape: Form, low: Word, high: Word, index: Grid
) -> list[Choice]:
    """DATA that carry values, and the VALW that begins them. At an EXEC a value's first half is always a low one."""
    runs, long, mixed = ~path.fault, shape.long, shape.mixed
    takes_wide = (phase.begins_many, runs, long, mixed)
    begins = b.sum_of("value.begins", [
        (phase.begins + runs, {2: 1}),
        (sum(takes_wide, constant(0)), {4: -1}),
        (phase.surely_low + index.goes_on, lambda n: n),
        (phase.first_data + mixed - long, {2: 1}),
        (phase.second_of_two + long, {2: 1}),
        (phase.second_of_more - long, {1: 1}),
    ], 0, 1)  # fmt: skip
    goes_high = any_of(b, "value.high", (phase.surely_high,), (phase.first_data, long))
    first_wide = b.and_("first.wide", *takes_wide)
    return [
        (begins, low.zero_extend(tokens.CODE_BITS)),
        (goes_high, high.zero_extend(tokens.CODE_BITS)),
        (first_wide, values_word(phase.first_register, constant(1))),
    ]


def _further(ctx: Context, path: Datapath, ends: Ends, shape: Form) -> list[Choice]:
    return [
        ((ctx.token.kind["EXEC"], path.fault), marker_word("FAULT", path.fault_lane + path.fault_cause)),
        (ends.second, values_word(ctx.rom["d_b"], shape.wide)),
    ]


def _rows(b: Builder, ctx: Context, ends: Ends, row: Rows) -> list[Choice]:
    """MEM markers, their rows' DATA, and READ's."""
    at, marker, data = ctx.position, ctx.marker, ctx.token.kind["DATA"]
    running = any_of(b, "row.longer", *((row.length[n], at[d]) for n in (1, 2, 3) for d in range(1, n + 1)))
    on = any_of(b, "row.on", (ctx.token.kind["MEM"],), (ctx.token.kind["READ"],),
                *((marker[kind], data, running) for kind in ("MEM", "READ")))  # fmt: skip
    low, high = row.long
    quarters = [
        (b.and_("row.word0", on, at[0]), row.data[0:16]),
        (any_of(b, "row.word1", (on, at[1], low), (on, at[1], ~low, high)), row.data[16:32]),
        (any_of(b, "row.word2", (on, at[1], ~low, ~high), (on, at[2])), row.data[32:48]),
        (b.and_("row.word3", on, at[3]), row.data[48:64]),
    ]
    done = any_of(b, "read.done", *((marker["READ"], row.length[n], at[n + 1]) for n in range(4)))
    found: list[Choice] = [(condition, word.zero_extend(tokens.CODE_BITS)) for condition, word in quarters]
    for i in range(4):
        word = marker_word("MEM", Word.constant(i, 2) + row.row[i])
        found += [((ends.to_stores, row.first[i]), word), ((ends.row, row.next[i]), word)]
    return [*found, (done, plain("HALT"))]


def _places(ctx: Context, ends: Ends, place: Quads, index: Grid) -> list[Choice]:
    """EXEC and MASK, and what ends a CTA or the launch."""
    t, goes = ctx.token, ends.decides
    return [
        ((goes, place.some, place.masks), marker_word("MASK", place.pair + place.quad)),
        ((goes, place.some, ~place.masks), marker_word("EXEC", place.quad + place.pc)),
        (t.kind["MASK"], marker_word("EXEC", t.quad + place.leader_pc)),
        (index.starts, marker_word("EXEC", Word.constant(0, 13))),
        ((goes, place.over, index.last), plain("HALT")),
        ((goes, place.over, ~index.last), plain("CTA")),
        ((goes, place.barrier), plain("BAR")),
        ((goes, place.deadlock), marker_word("FAULT", Word.constant(4 * tokens.CAUSES.index("deadlock"), 6))),
    ]
