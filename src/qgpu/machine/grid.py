"""The CTA index: whether the last one is done, and the DATA of the next.

The first DATA of the next index overwrites the present one, so what it is made of is kept from the CTA token on: the
present index counted up in each dimension, and in which groups of bits it agrees with the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.machine.context import row64
from qgpu.machine.gates import any_of, equals
from qgpu.machine.parts import Context

GROUP = 6  # bits compared by one table


@dataclass(frozen=True, eq=False)
class Grid:
    """``last``: the present CTA is the grid's last. ``starts``: the CTA starts with the next token: at GO and at the
    last DATA of an index. ``goes_on``: a DATA of the next index follows; ``choices``: (conditions, 16 bits) of it."""

    last: Expr
    starts: Expr
    goes_on: Expr
    choices: Sequence[tuple[tuple[Expr, ...], Word]]


def grid(b: Builder, ctx: Context) -> Grid:
    """Four levels from the index."""
    with b.scope("grid"):
        nowhere = Word("only", ())
        end = row64(b, "end", ctx.token.payload, w.Access(nowhere, (ctx.marker["GRID"], ctx.third)), w.Access(nowhere))
        x, y, z = ctx.cta[0:16] + ctx.cta[48:64], ctx.cta[16:32], ctx.cta[32:48]
        same = {
            name: _same(b, name, one, other)
            for name, one, other in (("x", x, end[0:16] + end[48:64]), ("y", y, end[16:32]), ("z", z, end[32:48]))
        }
        write = Port((), (ctx.token.kind["CTA"],))
        # by groups of bits, which ask less of the index than one long carry would
        counted = [
            Field(name, w.add(b, f"next.{name}", word, Word.constant(0, word.width), constant(1)))
            for name, word in (("x", x), ("y", y), ("z", z))
        ]
        present = [Field("y", y), Field("z", z), *(Field(f"same.{name}", same[name]) for name in "xy")]
        up, old = (b.memory(name, fields, write, Port(())) for name, fields in (("up", counted), ("old", present)))
        last_x, last_y = (b.and_(f"last.{k}", old[f"same.{k}"]) for k in "xy")
        some = {k: b.or_(f"some.{k}", word) for k, word in (("y", old["y"]), ("z", old["z"]), ("x", up["x"][16:]))}
        # x goes on until it is the last one; then y is counted up, and when that is, z is
        row, layer = (last_x, ~last_y), (last_x, last_y)
        same_layer = ((~last_x,), row)
        # counting up makes no zero, since what is counted up is not the last one
        has = [
            any_of(b, "has.y", row, (~last_x, some["y"])),
            any_of(b, "has.z", layer, *((*case, some["z"]) for case in same_layer)),
            b.and_("has.high", ~last_x, some["x"]),
        ]
        at, mine = ctx.position, ctx.marker["CTA"]
        # how many DATA: 4 if x is long, else 3 if z is there, else 2 if y is, else 1
        length = ((~has[0], ~has[1], ~has[2]), (has[0], ~has[1], ~has[2]), (has[1], ~has[2]), (has[2],))
        done = [(mine, at[n + 1], *case) for n, case in enumerate(length)]
        more = [(mine, at[d], *case) for n, case in enumerate(length) for d in range(1, n + 1)]
        choices = [
            ((mine, at[0], ~last_x), up["x"][:16]),
            ((mine, at[1], *row), up["y"]),
            ((mine, at[1], ~last_x), old["y"]),
            ((mine, at[2], *layer), up["z"]),
            *(((mine, at[2], *case), old["z"]) for case in same_layer),
            ((mine, at[3], ~last_x), up["x"][16:]),
        ]
        return Grid(
            b.and_("last", *same.values()),
            any_of(b, "starts", (ctx.token.kind["GO"],), *done),
            any_of(b, "goes.on", (ctx.token.kind["CTA"],), *more),
            choices,
        )


def _same(b: Builder, name: str, x: Word, y: Word) -> Word:
    """1 for each group of bits in which the words agree. One level."""
    count = -(-x.width // GROUP)
    parts = [slice(x.width * i // count, x.width * (i + 1) // count) for i in range(count)]
    found = (b.lookup(f"same.{name}{i}", x[p].value - y[p].value, equals(0)) for i, p in enumerate(parts))
    return Word(f"same.{name}", tuple(found))
