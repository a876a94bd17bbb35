"""Which quad runs next, on which lanes, from where: lane PCs, the group stored at each EXEC, the summary of all quads.

A quad's lanes are four memories, so that an EXEC writes its active lanes only. The group (the live lanes at the
lowest PC)
is computed at the quad's own EXEC and kept below. Summaries are kept negated, so that a wiped row means a fresh quad.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import encoding, tokens
from qgpu.machine.parts import Bits, Context, Datapath
from qgpu.machine.results import any_of


@dataclass(frozen=True, eq=False)
class Quads:
    """What follows once an EXEC is over (rules 3 to 8); one of the first four is 1. ``some``: a quad can run; ``over``:
    no lane is left; ``barrier``: all that are left are blocked; ``deadlock``: anything else. ``quad`` (5): which one
    runs; ``pc`` (8), ``pair`` (5, index of mask and leader) of its group; ``masks``: the group differs from its mask,
    so that MASK comes first. ``leader_pc`` (8): at MASK, the PC of its leader."""

    some: Expr
    over: Expr
    barrier: Expr
    deadlock: Expr
    quad: Word
    pc: Word
    pair: Word
    masks: Expr
    leader_pc: Word


def branch_is(b: Builder, ctx: Context, name: str) -> Expr:
    return w.is_constant(b, f"branch.{name}", ctx.rom["branch"], encoding.CHOICES["branch"].index(name))


def quads(b: Builder, ctx: Context, path: Datapath) -> Quads:
    execute = ctx.token.kind["EXEC"]
    with b.scope("quads"):
        leaves, jumps = branch_is(b, ctx, "exit"), branch_is(b, ctx, "bra")
        following = w.increment(b, "following", ctx.exec_block)
        pcs, lives = [], []
        for i in range(4):
            with b.scope(f"lane{i}"):
                jump = b.and_("jump", path.taken[i], jumps)
                pc = b.mux("pc.new", [(jump, ctx.rom["target"]), (~jump, following)])
                gone = b.and_("exit", path.taken[i], leaves)
                kept = w.register_file(
                    b, "kept", [Field("pc", pc), Field("exited", Word("exited", (gone,)))],
                    w.Access(ctx.token.quad, (execute, ctx.active[i])), [w.Access(ctx.token.quad)], wipe=ctx.start,
                )[0]  # fmt: skip
                pcs.append(kept["pc"])
                lives.append(b.and_("live", ctx.exists[i], ~kept["exited"][0]))
        leader = w.decode(b, "mask.leader", ctx.token.leader)
        leader_pc = b.mux("leader.pc", list(zip(leader, pcs, strict=True)))
        pair, group_pc, masks = _group(b, ctx, pcs, lives)
        back = b.and_("jumps.back", jumps, ctx.rom["back"][0])
        leaps = total([leaves, back]).assume(0, 1)
        event_now = b.lookup("event.now", total(path.taken) + leaps * 4, lambda n: int(n > 4))
        event = b.memory("event", [Field("it", Word("event", (event_now,)))], Port((), (execute,)), Port(()))["it"][0]
        target, some = _next(b, ctx, b.nor("over", *lives), event)
        quad = w.encode("quads.next", target)
        found = w.register_file(
            b, "group", [Field("pc", group_pc), Field("pair", pair), Field("masks", Word("masks", (masks,)))],
            w.Access(ctx.exec_quad, (execute,)), [w.Access(quad)], wipe=ctx.start,
        )[0]  # fmt: skip
        never = constant(0)
        return Quads(some, ~some, never, never, quad, found["pc"], found["pair"], found["masks"][0], leader_pc)


def _group(b: Builder, ctx: Context, pcs: list[Word], lives: list[Expr]) -> tuple[Word, Word, Expr]:
    """(mask and leader as a pair index, PC, whether the mask differs) of the live lanes at the lowest PC."""
    with b.scope("group.new"):
        keys = [pc + Word("dead", (~live,)) for pc, live in zip(pcs, lives, strict=True)]
        below = {}
        for j in range(4):
            for i in range(j):
                found = w.compare(b, f"pc{i}{j}", keys[i], keys[j])
                below[i, j], below[j, i] = found.lt, found.gt
        among = [b.and_(f"in{i}", lives[i], *(~below[j, i] for j in range(4) if j != i)) for i in range(4)]
        lowest = [
            b.and_(f"first{i}", lives[i], *(below[i, j] for j in range(i)), *(~below[j, i] for j in range(i + 1, 4)))
            for i in range(4)
        ]
        pc = b.mux("pc", list(zip(lowest, pcs, strict=True)))
        old = w.decode(b, "old.leader", ctx.leader)
        leader = w.lowest_set_after(b, "leader", among, [old[(i + 1) % 4] for i in range(4)])
        lanes = Word("lanes", tuple(among))
        mask = total(bit * (1 << i) for i, bit in enumerate(among))
        differs = b.lookup("differs", mask - Word("active", tuple(ctx.active)).value, lambda n: int(n != 0))
        number = lanes.value * 4 + w.encode("leader", leader).value
        pairs = {mask * 4 + lead: index for index, (mask, lead) in enumerate(tokens.MASK_PAIRS)}
        found = b.lookup_word("pair.found", number, lambda n: pairs.get(n, 0), 5)
        return Word("pair", tuple(b.buffer(f"pair{i}", bit) for i, bit in enumerate(found))), pc, differs


def _next(b: Builder, ctx: Context, over: Expr, event: Expr) -> tuple[Bits, Expr]:
    """One-hot quad that runs next (rule 5), and whether there is one."""
    t, count = ctx.token, tokens.QUADS
    with b.scope("next"):
        here = w.decode(b, "here", ctx.exec_quad)
        ends = [b.and_(f"over{j}", here[j], over) for j in range(count)]
        done = b.memory(
            "over", [Field("quads", Word("over", tuple(ends)))],
            Port(ctx.exec_quad.bits, (t.kind["EXEC"],)), Port(()), wipe=ctx.start, gather=True,
        )["quads"]  # fmt: skip
        row = w.decode(b, "row", ctx.quad)
        writes = b.and_("exists.write", ctx.marker["THREADS"], ctx.position[4], ~ctx.sub[0])
        is_there = [b.and_(f"there{j}", row[j], ctx.payloads[2][15]) for j in range(count)]
        exists = b.memory(
            "exists", [Field("quads", Word("exists", tuple(is_there)))],
            Port(ctx.quad.bits, (writes,)), Port(()), gather=True,
        )["quads"]  # fmt: skip
        runs = [b.and_(f"runs{j}", exists[j], ~done[j]) for j in range(count)]
        after = [any_of(b, f"after{j}", (event, here[j]), (~event, here[(j + 1) % count])) for j in range(count)]
        return w.lowest_set_after(b, "quad", runs, after), b.or_("some", *runs)
