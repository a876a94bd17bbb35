"""What runs next (rules 3 to 8): a sweep, another quad's group, a barrier's end, the next CTA, a deadlock.

An EXEC keeps its quad's group and whether the quad can run for later tokens; both stand deep, since they hang on who
has exited. Whether a quad can run is kept negated and in two parts, so that a wiped row means a fresh quad and a BAR
only wipes one: ``over`` if no lane of it is live, ``held`` if some are and all of them are blocked.

Rule 8 needs no circuit. A warp with waiting lanes of which none is runnable starts a sweep or faults with its own EXEC
(rule 4), and only a BAR makes others runnable; so where nothing runs, nobody of another warp waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.group import group
from qgpu.machine.operands import literals
from qgpu.machine.parts import Bits, Context, Datapath
from qgpu.machine.warp import Flow, Go

COUNT, WARP = tokens.QUADS, tokens.QUADS_PER_WARP
MANY = 40  # more than there are quads


@dataclass(frozen=True, eq=False)
class Quads:
    """What follows once an EXEC (or BAR) is over; exactly one of these is 1: the first of each of ``goes``, whose Go is
    then next; ``over``: no lane is left; ``barrier``: BAR; ``deadlock``. ``leader_pc`` (8): at MASK, the PC of its
    leader."""

    goes: Sequence[tuple[Expr, Go]]
    over: Expr
    barrier: Expr
    deadlock: Expr
    leader_pc: Word


@dataclass(frozen=True, eq=False)
class _Summary:
    """``runs``: whether each of the 32 quads is runnable; ``count`` of them all, ``mates`` of those of the last EXEC's
    warp."""

    runs: Bits
    count: Expr
    mates: Expr


def quads(b: Builder, ctx: Context, path: Datapath) -> Quads:
    execute, lanes, flow, waits = ctx.token.kind["EXEC"], path.lanes, path.flow, path.waits
    with b.scope("quads"):
        stuck = b.lookup("stuck", total(lanes.runs), lambda n: int(n == 0))
        yields = b.lookup("yields", total(path.taken) + flow.yields * 4, lambda n: int(n > 4))
        found = group(b, ctx, lanes, yields, stuck)
        leader = w.decode(b, "leader", ctx.token.leader, enable=(ctx.token.kind["MASK"],))
        # at an EXEC the PC of the group that it leaves, at a MASK that of its leader
        pc = b.mux("pc.next", [
            *(((execute, speaks), word) for speaks, word in zip(found.speaks, lanes.pcs, strict=True)),
            *zip(leader, lanes.pcs, strict=True),
        ])  # fmt: skip
        event = _event(b, ctx, flow, path.taken)
        summary = _summary(b, ctx, lanes.live, lanes.runs)
        target = w.encode("target", _next(b, ctx, summary.runs, event))
        quad = Word("quad", tuple(b.buffer(f"quad{i}", bit) for i, bit in enumerate(target)))
        kept = b.memory(
            "groups", [Field("pc", pc), Field("pair", found.pair), Field("masks", Word("masks", (found.masks,)))],
            Port(ctx.exec_quad.bits, (execute,)), Port(quad.bits), wipe=ctx.start,
        )  # fmt: skip
        with b.scope("then"):
            barred = b.memory(
                "barred", [Field("it", Word("it", (constant(1),)))], Port((), (execute, flow.blocks)), Port(()),
                wipe=(ctx.start + ctx.token.kind["BAR"]).assume(0, 1),
            )["it"][0]  # fmt: skip
            sweep, first = ~lanes.goes_last, waits.any
            none, alone = -summary.count, -summary.mates
            goes_on = [
                (total([sweep, ~first]) * MANY + summary.count, lambda n: int(n > 2 * MANY)),
                (total([sweep, first]) * MANY + summary.mates, lambda n: int(n > 2 * MANY)),
            ]
            goes = [
                (lanes.goes_last, waits.last.go),
                (b.lookup("first", total([sweep, first, lanes.may_first, alone]), {3: 1}), waits.first.go),
                (b.sum_of("group", goes_on, 0, 1), Go(quad, kept["pc"], kept["pair"], kept["masks"][0])),
            ]
            over = b.lookup("over", total([sweep, ~first, ~barred, none]), {3: 1})
            barrier = b.lookup("barrier", total([sweep, ~first, barred, none]), {3: 1})
            deadlock = b.lookup("deadlock", total([sweep, first, ~lanes.may_first, alone]), {3: 1})
        return Quads(goes, over, barrier, deadlock, pc)


def _event(b: Builder, ctx: Context, flow: Flow, taken: Bits) -> Expr:
    """Whether the last EXEC had an event, or BAR has come since."""
    execute, bar = ctx.token.kind["EXEC"], ctx.token.kind["BAR"]
    now = b.lookup("event.now", total(taken) + flow.leaps * 5 + (flow.gathers + bar) * 10, lambda n: int(n > 5))
    writes = (execute + bar).assume(0, 1)
    return b.memory("event", [Field("it", Word("event", (now,)))], Port((), (writes,)), Port(()))["it"][0]


def _summary(b: Builder, ctx: Context, live: Bits, runs: Bits) -> _Summary:
    """One level, a read."""
    t, quad, warp = ctx.token.kind, ctx.exec_quad, ctx.exec_quad[3:5]
    afresh = (ctx.start + t["THREADS"]).assume(0, 1)
    parts = {
        "over": (b.lookup("over", total(live), lambda n: int(n == 0)), afresh),
        "held": (
            b.lookup("held", total(runs) * 5 + total(live), lambda n: int(0 < n < 5)), (afresh + t["BAR"]).assume(0, 1)
        ),
    }
    first = Port(ctx.quad.bits, (ctx.marker["THREADS"], ctx.third, ~ctx.sub[0]))
    still, exist = b.bus_word("still", COUNT), b.bus_word("exist", COUNT)
    counts = {name: b.bus(f"{name}.count", 0, COUNT) for name in ("still", "exist")}
    mates = {name: b.bus(f"{name}.mates", 0, WARP) for name in ("still", "exist")}

    def keep(name: str, key: str, bit: Expr, row: Word, write: Port, words: Word, wipe: Expr | None) -> None:
        one = Word(name, (bit,))
        fields = [Field("count", one), *(Field(f"quad{j}", one, where=tuple(literals(row, j))) for j in range(COUNT))]
        into: dict[str, Word | Expr] = {f"quad{j}": words[j : j + 1] for j in range(COUNT)} | {"count": counts[key]}
        b.memory(f"{name}.all", fields, write, Port(()), wipe=wipe, gather=True, into=into)
        b.memory(f"{name}.warp", fields[:1], write, Port(warp.bits), wipe=wipe, gather=True, into={"count": mates[key]})

    keep("exist", "exist", ctx.payloads[2][15], ctx.quad, first, exist, None)
    for name, (bit, wipe) in parts.items():
        keep(name, "still", bit, quad, Port(quad.bits, (t["EXEC"],)), still, wipe)
    run = [(p - q).assume(0, 1) for p, q in zip(exist, still, strict=True)]
    return _Summary(run, counts["exist"] - counts["still"], mates["exist"] - mates["still"])


def _next(b: Builder, ctx: Context, runs: Bits, event: Expr) -> list[Expr]:
    """One-hot: the first runnable quad of rule 5: after the last EXEC's, or, without an event, from it on."""
    quad, upper, target = ctx.exec_quad, [], []
    for j in range(COUNT):
        beyond = runs[j] * COUNT - quad.value + (j - 1)
        own = total([runs[j], *literals(quad, j), ~event])
        upper.append(b.sum_of(f"upper{j}", [(beyond, lambda n: int(n >= COUNT)), (own, {7: 1})], 0, 1))
    for j in range(COUNT):
        here = total([upper[j], *(~bit for bit in upper[:j])])
        wrapped = total([runs[j], *(~bit for bit in runs[:j]), *(~bit for bit in upper)])
        target.append(b.sum_of(f"target{j}", [(here, {j + 1: 1}), (wrapped, {j + 1 + COUNT: 1})], 0, 1))
    return target
