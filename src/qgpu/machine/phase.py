"""Where the present token stands among what an EXEC writes: all that is known of the next token before values are."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of
from qgpu.machine.parts import Bits, Context


@dataclass(frozen=True, eq=False)
class Phase:
    """Bits, 1 at these tokens:

    ``begins``: an EXEC that has a destination; ``begins_many``: one of three or four lanes, whose values may need VALW;
    ``bare``: an EXEC without a destination. ``surely_low``, ``surely_high``: a low or high half follows, whatever the
    values are. ``first_data``, ``second_of_two``, ``second_of_more``: first and second DATA of a destination in a short
    form, for a mask of two lanes and for others; ``surely_last``: the last DATA, whatever the values are.
    ``first``: a DATA of the first destination, ``first_alone`` if there is no second one, else ``first_of_two``;
    ``further``: a DATA of the last destination that the block can have, but not its first; ``second_before_old``: of
    the second one, if an old value may follow. At MEM and its DATA: ``row_alone`` if no destination follows the rows,
    ``row_before_second``, ``row_before_old`` if one does. ``bar``: BAR.

    ``first_register``: of the first destination. ``at``: see Context.
    """

    begins: Expr
    begins_many: Expr
    bare: Expr
    surely_low: Expr
    surely_high: Expr
    first_data: Expr
    second_of_two: Expr
    second_of_more: Expr
    surely_last: Expr
    first: Expr
    first_alone: Expr
    first_of_two: Expr
    further: Expr
    second_before_old: Expr
    row_alone: Expr
    row_before_second: Expr
    row_before_old: Expr
    bar: Expr
    first_register: Word
    at: Bits


@dataclass(frozen=True, eq=False)
class Places:
    """``of_early``, ``of_late``: the present token is an EXEC whose first destination is the early or the late one, or
    a marker or DATA that belongs to it; ``of_old``: a marker or DATA of an atomic's old value."""

    of_early: Expr
    of_late: Expr
    of_old: Expr
    phase: Phase


def places(b: Builder, ctx: Context) -> Places:
    """Three levels from the block's fields."""
    t, at, marker, rom, ranks = ctx.token.kind, ctx.position, ctx.marker, ctx.rom, ctx.ranks
    data, wide = t["DATA"], marker["VALW"]
    with b.scope("phase"):
        early, late = b.or_("has.early", rom["d_e"]), b.or_("has.late", rom["d_b"])
        named = (marker["VAL"] + marker["VALW"]).assume(0, 1)
        is_ = {
            name: b.and_(f"is.{name}", named, w.equal(b, f"register.{name}", ctx.register, rom[field]))
            for name, field in (("early", "d_e"), ("late", "d_b"), ("old", "d_o"))
        }
        of_early = (is_["early"] + b.and_("exec.early", marker["EXEC"], early)).assume(0, 1)
        of_late = (is_["late"] + b.and_("exec.late", marker["EXEC"], ~early, late)).assume(0, 1)
        second = b.and_("two", early, late)
        returns = b.and_("returns", *(b.or_(f"has.{field}", rom[field]) for field in ("d_o", "atomic", "store")))
        many = (ranks.three + ranks.four).assume(0, 1)
        short = ((marker["EXEC"],), (marker["VAL"],))

        def when(name: str, *more: Expr) -> Expr:
            """At DATA of a destination in a short form."""
            return any_of(b, name, *((*case, *more) for case in short))

        exec_data = b.and_("exec.data", marker["EXEC"], data)
        wide_first = ((is_["early"], wide, data), (is_["late"], wide, data, ~early))
        phase = Phase(
            begins=any_of(b, "begins", (t["EXEC"], early), (t["EXEC"], ~early, late)),
            begins_many=any_of(b, "begins.many", (t["EXEC"], early, many), (t["EXEC"], ~early, late, many)),
            bare=b.and_("bare", t["EXEC"], ~early, ~late),
            surely_low=any_of(
                b, "surely.low", (t["VAL"],), (t["VALW"],), *((*case, at[3], ranks.four) for case in short),
                (wide, at[2]), (wide, at[4]), (wide, at[6], ranks.four),
            ),
            surely_high=any_of(
                b, "surely.high", *((*case, at[3], ranks.two) for case in short),
                (wide, at[1]), (wide, at[3]), (wide, at[5]), (wide, at[7]),
            ),
            first_data=when("first.data", at[1]),
            second_of_two=when("second.of.two", at[2], ranks.two),
            second_of_more=when("second.of.more", at[2], ~ranks.two),
            surely_last=any_of(
                b, "surely.last", *((*case, at[3], ranks.three) for case in short), *((*case, at[4]) for case in short),
                (wide, at[6], ranks.three), (wide, at[8]),
            ),
            first=any_of(b, "first", (exec_data,), *wide_first),
            first_alone=any_of(b, "first.alone", (exec_data, ~second), *((*case, ~second) for case in wide_first)),
            first_of_two=any_of(b, "first.of.two", (exec_data, second), *((*case, second) for case in wide_first)),
            further=any_of(
                b, "further", (marker["VAL"], data, ~is_["late"]), (marker["VAL"], data, is_["late"], ~returns),
                (is_["late"], wide, data, early, ~returns), (is_["old"], wide, data),
            ),
            second_before_old=any_of(
                b, "second.before.old", (marker["VAL"], data, is_["late"], returns),
                (is_["late"], wide, data, early, returns),
            ),
            row_alone=b.and_("row.alone", marker["MEM"], ~second, ~returns),
            row_before_second=b.and_("row.before.second", marker["MEM"], second),
            row_before_old=b.and_("row.before.old", marker["MEM"], ~second, returns),
            bar=t["BAR"],
            first_register=b.mux("first.register", [(early, rom["d_e"]), (~early, rom["d_b"])]),
            at=at,
        )  # fmt: skip
        return Places(of_early, of_late, is_["old"], phase)
