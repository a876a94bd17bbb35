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
from qgpu.machine.gates import any_of
from qgpu.machine.group import group
from qgpu.machine.operands import literals
from qgpu.machine.parts import Bits, Context, Datapath
from qgpu.machine.warp import Flow, Go

COUNT, WARP = tokens.QUADS, tokens.QUADS_PER_WARP


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
        quad = _next(b, ctx, summary.runs, event)
        kept = b.memory(
            "groups", [Field("pc", pc), Field("pair", found.pair), Field("masks", Word("masks", (found.masks,)))],
            Port(ctx.exec_quad.bits, (execute,)), Port(quad.bits), wipe=ctx.start,
        )  # fmt: skip
        with b.scope("then"):
            barred = b.memory(
                "barred", [Field("it", Word("it", (constant(1),)))], Port((), (execute, flow.blocks)), Port(()),
                wipe=(ctx.start + ctx.token.kind["BAR"]).assume(0, 1),
            )["it"][0]  # fmt: skip
            some = b.lookup("some", summary.count, lambda n: int(n > 0))
            mates = b.lookup("mates", summary.mates, lambda n: int(n > 0))
            rest, waiting = ~lanes.goes_last, waits.any
            goes = [
                (lanes.goes_last, waits.last.go),
                (b.and_("first", rest, waiting, ~mates, lanes.may_first), waits.first.go),
                (
                    any_of(b, "group", (rest, waiting, mates), (rest, ~waiting, some)),
                    Go(quad, kept["pc"], kept["pair"], kept["masks"][0]),
                ),
            ]
            over = b.and_("over", rest, ~waiting, ~some, ~barred)
            barrier = b.and_("barrier", rest, ~waiting, ~some, barred)
            deadlock = b.and_("deadlock", rest, waiting, ~mates, ~lanes.may_first)
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


def _next(b: Builder, ctx: Context, runs: Bits, event: Expr) -> Word:
    """The first runnable quad of rule 5: after the last EXEC's, or, without an event, from it on. Three levels."""
    quad, warp = ctx.exec_quad, ctx.exec_quad[3:5]
    warps = [constant(0), *(b.lookup(f"warp.below{k}", warp.value, lambda n, k=k: int(n < k)) for k in range(1, 4))]  # type: ignore[misc]
    mates = [b.lookup(f"mate.below{k}", quad[0:3].value, lambda n, k=k: int(n < k)) for k in range(WARP)]  # type: ignore[misc]
    able = [b.buffer(f"able{j}", bit) for j, bit in enumerate(runs)]
    upper = [
        any_of(
            b, f"upper{j}", (runs[j], warps[j // WARP]),
            (runs[j], *literals(warp, j // WARP), mates[j % WARP]),
            (runs[j], *literals(quad, j), ~event),
        )
        for j in range(COUNT)
    ]  # fmt: skip
    some = b.or_("upper.some", *upper)
    first = [_lowest(b, name, bits) for name, bits in (("upper.first", upper), ("able.first", able))]
    return b.mux("quad", [(constant(1), first[0]), (~some, first[1])])


def _lowest(b: Builder, name: str, bits: Bits) -> Word:
    """The number of the lowest bit that is 1; 0 of none. One level, a neuron a bit."""
    alone = [(total([bit, *(~lower for lower in bits[:j])]), {j + 1: 1}) for j, bit in enumerate(bits)]
    width = (len(bits) - 1).bit_length()
    terms = {f"{name}.bit{t}": [term for j, term in enumerate(alone) if j >> t & 1] for t in range(width)}
    made = b.sums(terms, {key: (0, 1) for key in terms})
    return Word(b.path(name), tuple(made.values()))
