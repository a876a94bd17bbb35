"""The CTA index: whether the last one is done, and the DATA of the next.

The next index is computed at the CTA token, from the present one, and kept in a deep row, since the first DATA already
overwrites the present one above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.machine.context import row64
from qgpu.machine.gates import any_of
from qgpu.machine.parts import Context


@dataclass(frozen=True, eq=False)
class Grid:
    """``last``: the present CTA is the grid's last. ``starts``: the CTA starts with the next token: at GO and at the
    last DATA of an index. ``goes_on``: a DATA of the next index follows; ``choices``: (conditions, 16 bits) of it."""

    last: Expr
    starts: Expr
    goes_on: Expr
    choices: Sequence[tuple[tuple[Expr, ...], Word]]


def grid(b: Builder, ctx: Context) -> Grid:
    with b.scope("grid"):
        write = w.Access(Word("only", ()), (ctx.marker["GRID"], ctx.third))
        end = row64(b, "end", ctx.token.payload, write, w.Access(Word("only", ())))
        x, y, z = ctx.cta[0:16] + ctx.cta[48:64], ctx.cta[16:32], ctx.cta[32:48]
        last_x = w.equal(b, "last.x", x, end[0:16] + end[48:64])
        last_y = w.equal(b, "last.y", y, end[16:32])
        last_z = w.equal(b, "last.z", z, end[32:48])
        row = b.and_("next.row", last_x, ~last_y)
        layer = b.and_("next.layer", last_x, last_y)
        up_x = w.increment(b, "up.x", x)
        up_y = w.increment(b, "up.y", y, row)
        next_x = b.mux("next.x", [(~last_x, up_x)])
        next_y = b.mux("next.y", [(~layer, up_y)])
        next_z = w.increment(b, "next.z", z, layer)
        index = next_x[0:16] + next_y + next_z + next_x[16:32]
        kept = b.memory("next", [Field("index", index)], Port((), (ctx.token.kind["CTA"],)), Port(()))["index"]
        data = [kept[16 * i : 16 * i + 16] for i in range(4)]
        has = [b.or_(f"has{i}", data[i]) for i in (1, 2, 3)]
        at, mine = ctx.position, ctx.marker["CTA"]
        # how many DATA: 4 if x is long, else 3 if z is there, else 2 if y is, else 1
        length = ((~has[0], ~has[1], ~has[2]), (has[0], ~has[1], ~has[2]), (has[1], ~has[2]), (has[2],))
        done = [(mine, at[n + 1], *case) for n, case in enumerate(length)]
        more = [(mine, at[d], *case) for n, case in enumerate(length) for d in range(1, n + 1)]
        return Grid(
            b.and_("last", last_x, last_y, last_z),
            any_of(b, "starts", (ctx.token.kind["GO"],), *done),
            any_of(b, "goes.on", (ctx.token.kind["CTA"],), *more),
            [((mine, at[d]), word) for d, word in enumerate(data)],
        )
