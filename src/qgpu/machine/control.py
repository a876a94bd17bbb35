"""The next token: what follows an EXEC, its values, its memory rows, a mask, a CTA (docs/machine.md, rules 0 to 8).

Every possible next token is a condition and a 17-bit word; the conditions exclude each other, and one mux makes the
output
code of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.grid import grid
from qgpu.machine.parts import Bits, Context, Datapath
from qgpu.machine.quads import quads
from qgpu.machine.results import Form, HalfSelect, any_of, buffer, equals, form, half_select, halves
from qgpu.machine.rows import rows

Choice = tuple[Expr, Word]


def marker_word(kind: str, low: Word) -> Word:
    """The code of a marker whose fields are ``low``; the kind's first id must leave those bits zero."""
    first = tokens.BY_NAME[kind].first
    if first & (1 << low.width) - 1:
        raise ValueError(f"{kind} starts at {first}, which leaves no {low.width} bits")
    return low + Word.constant(first >> low.width, tokens.CODE_BITS - low.width)


def _plain(kind: str) -> Word:
    return Word.constant(tokens.BY_NAME[kind].first, tokens.CODE_BITS)


def _longer(b: Builder, name: str, length: Bits, at: Bits) -> tuple[Expr, Expr]:
    """(more, done) for a form of 1 to 4 DATA at DATA position 1..4: whether another follows, or this was the last."""
    done = any_of(b, f"{name}.done", *((length[n - 1], at[n]) for n in (1, 2, 3, 4)))
    more = any_of(b, f"{name}.more", *((length[n - 1], at[d]) for n in (2, 3, 4) for d in range(1, n)))
    return more, done


def control(b: Builder, ctx: Context, path: Datapath) -> Word:
    """The output code, 17 bits."""
    t, at, marker = ctx.token, ctx.position, ctx.marker
    execute, data = t.kind["EXEC"], t.kind["DATA"]
    early = buffer(b, "result.early", execute, path.early, ctx.active)
    late = buffer(b, "result.late", execute, path.late, ctx.active)
    with b.scope("form"):
        early_form, late_form = form(b, "early", early, ctx), form(b, "late", late, ctx)
        select = half_select(b, ctx)
    row = rows(b, ctx, path, late)
    place = quads(b, ctx, path)
    index = grid(b, ctx)
    with b.scope("next"):
        has_early, has_late = b.or_("has.early", ctx.rom["d_e"]), b.or_("has.late", ctx.rom["d_b"])
        # which destination the present token belongs to, and whether it is the first one
        is_early_register = w.equal(b, "register.early", ctx.register, ctx.rom["d_e"])
        named = (marker["VAL"] + marker["VALW"]).assume(0, 1)
        of_early = any_of(b, "of.early", (marker["EXEC"], has_early), (named, has_early, is_early_register))
        of_late = any_of(b, "of.late", (marker["EXEC"], ~has_early, has_late), (named, ~has_early),
                         (named, has_early, ~is_early_register))  # fmt: skip
        first = any_of(b, "of.first", (marker["VALW"], ~has_early), (marker["VALW"], has_early, is_early_register))
        runs = b.and_("exec.runs", execute, ~path.fault)
        full = b.sum_of(
            "wide.full",
            [(at[6] + ctx.ranks.three, equals(2)), (at[8] + ctx.ranks.four, equals(2))],
            0,
            1,
        )
        going = b.and_("wide.going", marker["VALW"], ~full)
        whole = b.and_("wide.whole", marker["VALW"], full)
        begins = [any_of(b, f"begins{n}", (marker["VAL"], at[0], x)) for n, x in enumerate((of_early, of_late))]
        more, done = [], []
        for name, shape, mine in (("early", early_form, of_early), ("late", late_form, of_late)):
            longer, complete = _longer(b, name, shape.length, at)
            short = b.and_(f"{name}.short", mine, data, ~marker["VALW"])
            more.append(any_of(b, f"{name}.goes.on", (runs, mine, ~shape.wide), (begins[name == "late"],), (short, longer),  # noqa: E501
                               (going, mine)))  # fmt: skip
            done.append(b.and_(f"{name}.is.done", short, complete))
        first_wide = any_of(b, "first.wide", (runs, of_early, early_form.wide), (runs, of_late, late_form.wide))
        ended = (done[0] + done[1]).assume(0, 1)
        # after the first destination come the stores, after them the second destination, after it another block
        to_stores = any_of(b, "to.stores", (runs, ~has_early, ~has_late), (ended, marker["EXEC"]), (whole, first))
        row_more, row_done = _longer(b, "row", row.length, at)
        is_row = b.and_("row.data", marker["MEM"], data)
        is_read = b.and_("read.data", marker["READ"], data)
        row_on = any_of(b, "row.goes.on", (t.kind["MEM"],), (t.kind["READ"],), (is_row, row_more), (is_read, row_more))
        row_ends = b.and_("row.is.done", is_row, row_done)
        read_ends = b.and_("read.is.done", is_read, row_done)
        store_first = b.and_("store.first", to_stores, row.any)
        some_next = sum(row.next, start=constant(0)).assume(0, 1)
        stored = any_of(b, "stored", (to_stores, ~row.any), (row_ends, ~some_next))
        second = b.and_("second", has_early, has_late)
        second_value = b.and_("second.value", stored, second)
        decides = any_of(b, "decides", (stored, ~second), (ended, marker["VAL"]), (whole, ~first))
        goes, over = b.and_("goes", decides, place.some), b.and_("over", decides, ~place.some)
        cta_more, cta_done = _longer(b, "cta", index.length, at)
        is_cta = b.and_("cta.data", marker["CTA"], data)
        starts = any_of(b, "starts", (t.kind["GO"],), (is_cta, cta_done))
        first_register = b.mux("first.register", [(has_early, ctx.rom["d_e"]), (~has_early, ctx.rom["d_b"])])
        choices: list[Choice] = [
            (b.and_("faults", execute, path.fault), marker_word("FAULT", path.fault_lane + path.fault_cause)),
            (first_wide, marker_word("VALW", first_register)),
            (b.and_("second.short", second_value, ~late_form.wide), marker_word("VAL", ctx.rom["d_b"])),
            (b.and_("second.wide", second_value, late_form.wide), marker_word("VALW", ctx.rom["d_b"])),
            *_values(b, "early", more[0], early_form, select, early),
            *_values(b, "late", more[1], late_form, select, late),
            *((c, p.zero_extend(tokens.CODE_BITS)) for c, p in _row_choices(b, at, row_on, row.data, row.long)),
            *(
                (any_of(b, f"mem{i}", (store_first, row.first[i]), (row_ends, row.next[i])),
                 marker_word("MEM", Word.constant(i, 2) + row.row[i]))
                for i in range(4)
            ),
            (b.and_("go.mask", goes, place.masks), marker_word("MASK", place.pair + place.quad)),
            (b.and_("go.exec", goes, ~place.masks), marker_word("EXEC", place.quad + place.pc)),
            (t.kind["MASK"], marker_word("EXEC", t.quad + place.leader_pc)),
            (starts, marker_word("EXEC", Word.constant(0, 13))),
            (b.and_("halts", over, index.last), _plain("HALT")),
            (read_ends, _plain("HALT")),
            (b.and_("next.cta", over, ~index.last), _plain("CTA")),
            (t.kind["CTA"], index.data[0].zero_extend(tokens.CODE_BITS)),
            *(
                (b.and_(f"cta.word{d}", is_cta, cta_more, at[d]), index.data[d].zero_extend(tokens.CODE_BITS))
                for d in (1, 2, 3)
            ),
        ]  # fmt: skip
        return b.mux("code", choices)


def _values(b: Builder, name: str, more: Expr, shape: Form, select: HalfSelect, words: Sequence[Word]) -> list[Choice]:
    chosen = halves(b, f"{name}.half", more, shape, select)
    choices: list[Choice] = []
    for (low, high), word in zip(chosen, words, strict=True):
        choices += [(low, word[0:16].zero_extend(tokens.CODE_BITS)), (high, word[16:32].zero_extend(tokens.CODE_BITS))]
    return choices


def _row_choices(b: Builder, at: Bits, on: Expr, data: Word, long: tuple[Expr, Expr]) -> list[Choice]:
    """The quarters of a row: low word's halves, then the high word's. The second DATA is the high word if both are
    short."""
    low, high = long
    return [
        (b.and_("row.word0", on, at[0]), data[0:16]),
        (any_of(b, "row.word1", (on, at[1], low), (on, at[1], ~low, high)), data[16:32]),
        (any_of(b, "row.word2", (on, at[1], ~low, ~high), (on, at[2])), data[32:48]),
        (b.and_("row.word3", on, at[3]), data[48:64]),
    ]
