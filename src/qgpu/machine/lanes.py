"""Lanes after the last EXEC: PCs, who has exited, who is live and runnable, and which gathers are covered.

A lane's PC and exit hang on its guard, so they are deep. What is asked of exits is known before: reads of them pass
gates that say of which lanes to tell, and the answer is a count.
"""

from __future__ import annotations

from collections.abc import Mapping

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of
from qgpu.machine.parts import Bits, Context
from qgpu.machine.warp import LANES, QUADS, Flow, Gather, Lanes, Waits


def lanes(b: Builder, ctx: Context, flow: Flow, waits: Waits, held: Bits) -> Lanes:
    """``held``: of each lane, the guard's predicate. Its read, one level, a read, one level."""
    with b.scope("lanes"):
        live, runs, pcs, leaves = [], [], [], []
        for i in range(4):
            with b.scope(f"lane{i}"):
                leaves.append(any_of(b, "leaves", (~held[i], flow.exits[0]), (held[i], flow.exits[1])))
                pc = b.mux("pc", [(~held[i], flow.pcs[0]), (held[i], flow.pcs[1])])
                waiting, blocked = _halts(b, ctx, flow, i)
                able = b.and_("able", ctx.exists[i], ~waiting)
                free = b.and_("free", ctx.exists[i], ~waiting, ~blocked)
                kept = _state(b, ctx, i, pc, leaves[i], {"able": able, "free": free})
                pcs.append(kept["pc"])
                live.append((able - kept["able"][0]).assume(0, 1))
                runs.append((free - kept["free"][0]).assume(0, 1))
        gathers = (waits.last, waits.first)
        gone = [b.bus(f"{name}.gone", 0, LANES) for name in ("last", "first")]
        exited = _exited(b, ctx, flow, leaves, gathers, gone)
        # covered: as many have gone as are missing
        last = b.sum_of("last.starts", [
            (waits.sweeps, lambda n: n), (waits.last.some + gone[0] - waits.last.count, {1: 1})
        ], 0, 1)  # fmt: skip
        first = b.lookup("first.may", waits.first.some + gone[1] - waits.first.count, {1: 1})
        return Lanes(live, runs, pcs, exited, last, first)


def _halts(b: Builder, ctx: Context, flow: Flow, lane: int) -> tuple[Expr, Expr]:
    """Whether the lane waits, whether it is blocked. Nobody waits at a BAR, so it may clear both."""
    wipe = (ctx.start + ctx.token.kind["BAR"]).assume(0, 1)
    write = Port(ctx.exec_quad.bits, (ctx.token.kind["EXEC"], ctx.active[lane]))
    fields = [Field("waits", Word("waits", (flow.gathers,))), Field("blocked", Word("blocked", (flow.blocks,)))]
    found = b.memory("halts", fields, write, Port(ctx.exec_quad.bits), wipe=wipe)
    return found["waits"][0], found["blocked"][0]


def _state(
    b: Builder, ctx: Context, lane: int, pc: Word, leaves: Expr, asks: Mapping[str, Expr]
) -> dict[str, Word]:
    """The PC of the lane, and for each of ``asks`` whether it has exited, where that is 1."""
    fields = [Field("pc", pc), *(Field(key, Word(key, (leaves,)), select=ask) for key, ask in asks.items())]
    write = Port(ctx.token.quad.bits, (ctx.token.kind["EXEC"], ctx.active[lane]))
    return b.memory("kept", fields, write, Port(ctx.token.quad.bits), wipe=ctx.start)


def _exited(
    b: Builder, ctx: Context, flow: Flow, leaves: Bits, gathers: tuple[Gather, Gather], gone: list[Expr]
) -> list[Expr]:
    """Which lanes of the warp have exited; added to ``gone``, how many of those that each gather misses."""
    found = [constant(0)] * LANES
    for i in range(4):
        fields, into = [], {}
        for k in range(QUADS):
            one = Word("one", (constant(1),))
            fields.append(Field(f"quad{k}", one, where=flow.here[k]))
            for number, gather in enumerate(gathers):
                missing = gather.missing[4 * k + i]
                fields.append(Field(f"gather{number}.quad{k}", one, select=missing, where=flow.here[k]))
                into[fields[-1].name] = gone[number]
        write = Port(ctx.exec_quad.bits, (ctx.token.kind["EXEC"], ctx.active[i], leaves[i]))
        read = Port(ctx.exec_quad[3:5].bits)
        read_back = b.memory(f"exited.lane{i}", fields, write, read, wipe=ctx.start, gather=True, into=into)
        for k in range(QUADS):
            found[4 * k + i] = read_back[f"quad{k}"][0]
    return found
