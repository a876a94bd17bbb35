"""Waiting lanes of the last EXEC's warp, and the sweeps that could come next (rules 3 and 4), but for who has exited.

Who waits, for whom and where is known early: a gather takes all active lanes, whatever their guards. So all of it is
made ready here: which lanes a sweep would take, in which quad it begins, and who is *missing*: members of its gather
that do not wait at its block. Below, where exits are known, a gather is covered if every missing lane has gone.

Reads of the 32 lanes' blocks come as two digits a lane (0 where it does not wait: no collect is block 0). Member masks
are read through gates that let only those lanes pass that are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.machine.operands import literals
from qgpu.machine.pairs import leads, pair
from qgpu.machine.parts import Bits, Context
from qgpu.machine.warp import LANES, QUADS, Flow, Gather, Go, Waits


@dataclass(frozen=True, eq=False)
class _View:
    """What the warp's lanes wait at: ``high``, ``low`` digits of the block, both 0 if a lane does not; ``waits``."""

    high: Sequence[Expr]
    low: Sequence[Expr]
    waits: Bits

    def elsewhere(self, b: Builder, name: str, high: Expr, low: Expr) -> list[Expr]:
        """0 where a lane's block has these digits, else 1 or 2."""
        return [
            b.sum_of(f"{name}{j}", [(self.high[j] - high, _differs), (self.low[j] - low, _differs)])
            for j in range(LANES)
        ]


def _differs(n: int) -> int:
    return int(n != 0)


def member_masks(b: Builder, ctx: Context, own: Sequence[Word], q: Word) -> list[Word]:
    """The member mask of each lane, if the block gathers: register ra or Q. One level."""
    by_register = ctx.rom["member"][0]
    return [b.mux(f"member.mask{i}", [(by_register, word), (~by_register, q)]) for i, word in enumerate(own)]


def waits(b: Builder, ctx: Context, flow: Flow, masks: Sequence[Word]) -> Waits:
    """``masks``: the member mask (32) of each active lane, if the block gathers."""
    execute, warp = ctx.token.kind["EXEC"], ctx.exec_quad[3:5]
    with b.scope("waits"):
        exists = _exists(b, ctx)
        view = _view(b, ctx, flow)
        # the warp's gather
        high, low = b.bus("last.high", 0, 15), b.bus("last.low", 0, 15)
        fields = [Field("low", flow.following[0:4]), Field("high", flow.following[4:8]), Field("pc", flow.following)]
        write = Port(warp.bits, (execute, flow.gathers))
        block = b.memory("last.block", fields, write, Port(warp.bits), into={"low": low, "high": high})["pc"]
        far = view.elsewhere(b, "last.far", high, low)
        there = [b.lookup(f"last.there{j}", view.waits[j] - far[j], {1: 1}) for j in range(LANES)]
        publishers = [
            b.sum_of(f"publishers{j}", [(mask[j] + ctx.active[i], {2: 1}) for i, mask in enumerate(masks)])
            for j in range(LANES)
        ]
        union = Word("union", tuple(b.lookup(f"union{j}", n, lambda n: int(n > 0)) for j, n in enumerate(publishers)))
        takes, missing = b.bus_word("last.takes", LANES), b.bus_word("last.misses", LANES)
        reads = (there, takes.bits), (_but(b, "last.absent", exists, there), missing.bits)
        _gated(b, "last.members", union, (write, Port(warp.bits)), *reads)
        # the sweep that goes on: lanes of higher quads at this block, in the members of this collect
        swept, members = _members(b, ctx, flow, masks, view)
        more = [b.lookup(f"sweep.in{k}", total(swept[4 * k : 4 * k + 4]), lambda n: int(n > 0)) for k in range(QUADS)]
        some = [b.or_(f"last.in{k}", *takes[4 * k : 4 * k + 4]) for k in range(QUADS)]
        goes_on = w.lowest_set(b, "sweep.quad", more)
        starts = [b.and_(f"last.quad{k}", some[k], *(~bit for bit in (*some[:k], *more))) for k in range(QUADS)]
        sweeps = b.or_("sweeps", *more)
        lanes = [
            b.sum_of(f"last.lane{i}", [
                *((goes_on[k] * 4 + swept[4 * k + i], lambda n: int(n > 4)) for k in range(QUADS)),
                *((starts[k] + takes[4 * k + i], {2: 1}) for k in range(QUADS)),
            ], 0, 1)
            for i in range(4)
        ]  # fmt: skip
        quad = w.encode("last.quad", [w.merge(p, q) for p, q in zip(goes_on, starts, strict=True)]) + warp
        pc = b.mux("last.pc", [(sweeps, ctx.exec_block), (~sweeps, block)])
        go = _go(b, ctx, "last", quad, Word("lanes", tuple(lanes)), pc)
        starts_some, count = b.buffer("last.some", w.merge(*starts)), b.buffer("last.missing", total(missing))
        last = Gather(go, starts_some, missing.bits, count)
        any_waits = b.or_("any", *view.waits)
        first = _first(b, ctx, flow, masks, view, exists)
        return Waits(sweeps, last, first, any_waits, _voters(b, flow, members, exists))


def _exists(b: Builder, ctx: Context) -> Word:
    """Which lanes of the warp exist. Bit 31 of a lane's row is the last of its second DATA."""
    found: list[Expr] = [constant(0)] * LANES
    for half in range(2):
        fields = [
            Field(f"lane{4 * k + 2 * half + i}", Word("exists", (ctx.payloads[2 - 2 * i][15],)),
                  where=tuple(literals(ctx.quad[0:3], k)))
            for k in range(QUADS) for i in range(2)
        ]  # fmt: skip
        which = ctx.sub[0] if half else ~ctx.sub[0]
        write = Port(ctx.quad.bits, (ctx.marker["THREADS"], ctx.third, which))
        read = b.memory(f"exists.half{half}", fields, write, Port(ctx.exec_quad[3:5].bits), gather=True)
        for name, word in read.items():
            found[int(name.removeprefix("lane"))] = word[0]
    return Word("exists", tuple(found))


def _view(b: Builder, ctx: Context, flow: Flow) -> _View:
    """Thread rows forget who waits, so that a lane that waits exists."""
    high, low = ([b.bus(f"{name}{j}", 0, 15) for j in range(LANES)] for name in ("high", "low"))
    wipe = (ctx.start + ctx.token.kind["THREADS"]).assume(0, 1)
    for i in range(4):
        fields, into = [], {}
        for k in range(QUADS):
            for name, digit, target in (("low", flow.following[0:4], low), ("high", flow.following[4:8], high)):
                fields.append(Field(f"{name}{k}", digit, where=(flow.gathers, *flow.here[k])))
                into[fields[-1].name] = target[4 * k + i]
        write = Port(ctx.exec_quad.bits, (ctx.token.kind["EXEC"], ctx.active[i]))
        read = Port(ctx.exec_quad[3:5].bits)
        b.memory(f"blocks.lane{i}", fields, write, read, wipe=wipe, gather=True, into=into)
    return _View(high, low, [b.lookup(f"waits{j}", high[j] + low[j], lambda n: int(n > 0)) for j in range(LANES)])


def _but(b: Builder, name: str, exists: Word, there: Bits) -> list[Expr]:
    """Lanes that exist and are not there."""
    return [b.and_(f"{name}{j}", bit, ~there[j]) for j, bit in enumerate(exists)]


def _gated(
    b: Builder, name: str, mask: Word, ports: tuple[Port, Port], *reads: tuple[Bits, Sequence[Expr]]
) -> None:
    """Keeps a member mask. It is read as often as there are ``reads``: the lanes that the first list of each lets pass,
    added to the signals of the second."""
    fields, into = [], {}
    for number, (selects, targets) in enumerate(reads):
        for j in range(LANES):
            fields.append(Field(f"read{number}.{j}", mask[j : j + 1], select=selects[j]))
            into[fields[-1].name] = targets[j]
    b.memory(name, fields, *ports, into=into)


def _members(
    b: Builder, ctx: Context, flow: Flow, masks: Sequence[Word], view: _View
) -> tuple[list[Expr], list[Expr]]:
    """Over the lanes of the warp, how many active lanes have it in the member mask that they published to the parity
    that is collected: of lanes of higher quads that wait at this block, and of all."""
    rom, block, quad = ctx.rom, ctx.exec_block, ctx.exec_quad
    far = view.elsewhere(b, "sweep.far", block[4:8].value, block[0:4].value)
    above = [b.lookup(f"above{k}", quad[0:3].value, lambda n, k=k: int(n < k)) for k in range(1, QUADS)]  # type: ignore[misc]
    swept: list[Expr] = [constant(0)] * 4
    selects: list[Expr] = [constant(0)] * 4
    for j in range(4, LANES):
        swept.append(b.bus(f"swept{j}", 0, 4))
        selects.append(b.lookup(f"sweep.there{j}", view.waits[j] - far[j] + above[j // 4 - 1], {2: 1}))
    members = [b.bus(f"member{j}", 0, 4) for j in range(LANES)]
    for i, mask in enumerate(masks):
        fields = [Field(f"member{j}", mask[j : j + 1]) for j in range(LANES)]
        fields += [Field(f"swept{j}", mask[j : j + 1], select=selects[j]) for j in range(4, LANES)]
        into = {f"member{j}": members[j] for j in range(LANES)} | {f"swept{j}": swept[j] for j in range(4, LANES)}
        write = Port((quad + rom["publish_parity"]).bits, (ctx.token.kind["EXEC"], flow.gathers, ctx.active[i]))
        read = Port((quad + rom["collect_parity"]).bits, (flow.collects, ctx.active[i]))
        b.memory(f"members.lane{i}", fields, write, read, into=into)
    return swept, members


def _first(
    b: Builder, ctx: Context, flow: Flow, masks: Sequence[Word], view: _View, exists: Word
) -> Gather:
    """The gather of the first waiting lane."""
    warp = ctx.exec_quad[3:5]
    with b.scope("first"):
        first = w.lowest_set(b, "lane", view.waits)
        digits = [
            b.sum_of(name, [term for bit, n in zip(first, part, strict=True) for term in b.gated(bit, n, _same)], 0, 15)
            for name, part in (("high", view.high), ("low", view.low))
        ]
        far = view.elsewhere(b, "far", digits[0], digits[1])
        there = [b.lookup(f"there{j}", view.waits[j] - far[j], {1: 1}) for j in range(LANES)]
        mine = [w.merge(*first[4 * k : 4 * k + 4]) for k in range(QUADS)]
        takes = [b.lookup(f"takes{j}", view.waits[j] - far[j] + mine[j // 4], {2: 1}) for j in range(LANES)]
        quad = w.encode("quad", mine) + warp
        taken, missing = b.bus_word("taken", LANES), b.bus_word("misses", LANES)
        absent = _but(b, "absent", exists, there)
        for i, mask in enumerate(masks):
            write = Port(ctx.exec_quad.bits, (ctx.token.kind["EXEC"], flow.gathers, ctx.active[i]))
            ports = write, Port(quad.bits, (w.merge(*first[i::4]),))
            _gated(b, f"members.lane{i}", mask, ports, (takes, taken.bits), (absent, missing.bits))
        lanes = Word("lanes", tuple(b.or_(f"lane{i}.goes", *taken.bits[i::4]) for i in range(4)))
        pc = b.lookup_word("pc.low", digits[1], _same, 4) + b.lookup_word("pc.high", digits[0], _same, 4)
        go = _go(b, ctx, "go", quad, lanes, pc)
        return Gather(go, b.or_("some", lanes), missing.bits, b.buffer("count", total(missing)))


def _same(n: int) -> int:
    return n


def _go(b: Builder, ctx: Context, name: str, quad: Word, lanes: Word, pc: Word) -> Go:
    """GO of a quad that has had an EXEC in this CTA: its mask and leader are those of the last one."""
    with b.scope(name):
        fields = [Field("mask", Word("mask", tuple(ctx.active))), Field("leader", ctx.leader)]
        write = Port(ctx.exec_quad.bits, (ctx.token.kind["EXEC"],))
        ran = b.memory("ran", fields, write, Port(quad.bits))
        number = pair(b, "pair", lanes, leads(b, "leads", lanes, ran["leader"]))
        return Go(quad, pc, number, b.lookup("masks", lanes.value - ran["mask"].value, _differs))


def _voters(b: Builder, flow: Flow, members: Sequence[Expr], exists: Word) -> list[Expr]:
    return [
        b.lookup(f"voter{j}", (flow.ballots + exists[j]) * 5 + members[j], lambda n: int(n > 10)) for j in range(LANES)
    ]
