"""The exchange: shuffles, of words that a gather's DATA (or a register) brings early, and ballots, of guards.

A shuffle's source is found in two levels from its operand BS. Modes that compare only with bits of BS (idx, bfly) are
judged with the choice itself; up and down, whose sums are made first, bring their verdict along.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, total
from qgpu.circuit.memory import Field
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of, equals
from qgpu.machine.operands import decoded, literals
from qgpu.machine.parts import Bits, Context, Writes
from qgpu.machine.warp import LANES, QUADS, Flow

BITS = 5
BAD = 32  # more than any difference of lanes
MODES = ("shfl.idx", "shfl.up", "shfl.down", "shfl.bfly")


def shuffles(
    b: Builder, ctx: Context, writes: Writes, flow: Flow, bs: Sequence[Word], own: Sequence[Word]
) -> tuple[list[Word], list[Expr]]:
    """V (32) and "in range" a lane, both 0 if the block shuffles nothing. ``own``: register ra a lane, what a gather
    without d_b publishes."""
    rom, t = ctx.rom, ctx.token.kind
    with b.scope("exchange"):
        # an EXEC or DATA that writes words into the exchange
        brings = b.and_("brings", flow.gathers, w.equal(b, "late", writes.register, rom["d_b"]))
        direct = b.and_("direct", t["EXEC"], flow.gathers, *(~bit for bit in rom["d_b"]))
        data, enable = [], []
        for lane in range(4):
            cases = ((direct, ctx.active[lane]), (brings, writes.enable[lane]))
            enable.append(any_of(b, f"publishes{lane}", *cases))
            word = b.mux(f"word{lane}", [(direct, own[lane]), ((t["DATA"],), writes.values[lane])])
            data.append(word)
        is_ = decoded(b, ctx, "collect")
        found, inside = [], []
        for reader in range(4):
            with b.scope(f"lane{reader}"):
                source, ok = _source(b, ctx, is_, reader, bs[reader][0:BITS])
                row = (source[2:BITS] + ctx.exec_quad[3:5] + rom["collect_parity"]).bits
                v = b.bus_word("v", 32)
                for lane in range(4):
                    write = Port((ctx.exec_quad + rom["publish_parity"]).bits, (enable[lane],))
                    shuffled = total(is_[mode] for mode in MODES).assume(0, 1)
                    read = Port(row, (shuffled, *literals(source[0:2], lane)))
                    b.memory(f"from{lane}", [Field("word", data[lane])], write, read, into={"word": v})
                found.append(v)
                inside.append(ok)
        return found, inside


def _source(b: Builder, ctx: Context, is_: dict[str, Expr], lane: int, distance: Word) -> tuple[Word, Expr]:
    """(source lane of the warp, in range). Two levels."""
    own = Word.constant(lane, 2) + ctx.exec_quad[0:3]
    clamp, segment = ctx.rom["imm"][0:BITS], ctx.rom["imm"][8 : 8 + BITS]
    idx, up, down, bfly = (is_[mode] for mode in MODES)
    plain = (idx + bfly).assume(0, 1)
    last = Word("last", tuple(
        any_of(b, f"last{i}", (own[i], segment[i]), (clamp[i], ~segment[i])) for i in range(BITS)
    ))  # fmt: skip
    # up and down bring their own verdict: for them every source is far enough from the last lane
    limit = Word("limit", tuple(
        any_of(b, f"limit{i}", (plain, own[i], segment[i]), (plain, clamp[i], ~segment[i]), (up,), (down,))
        for i in range(BITS)
    ))  # fmt: skip
    lower, upper = own.value - distance.value, own.value + distance.value
    candidate = []
    for i in range(BITS):
        terms: list[tuple[Expr, Table]] = [
            (total([idx, own[i], segment[i]]), equals(3)),
            (total([idx, distance[i], ~segment[i]]), equals(3)),
            (total([bfly, own[i], ~distance[i]]), equals(3)),
            (total([bfly, ~own[i], distance[i]]), equals(3)),
            *b.gated(up, lower, lambda n, i=i: n >> i & 1),  # type: ignore[misc]
            *b.gated(down, upper, lambda n, i=i: n >> i & 1),  # type: ignore[misc]
        ]
        candidate.append(b.sum_of(f"candidate{i}", terms, 0, 1))
    beyond = [*b.gated(up, lower - last.value, _negative), *b.gated(down, last.value - upper, _negative)]
    bad = b.sum_of("bad", beyond, 0, 1)
    room = limit.value - Word("candidate", tuple(candidate)).value - bad * BAD
    source = [
        b.sum_of(f"source{i}", [
            *b.gated(candidate[i], room, lambda n: int(n >= 0)), *b.gated(own[i], room, _negative)
        ], 0, 1)
        for i in range(BITS)
    ]  # fmt: skip
    shuffled = b.or_("shuffled", plain, up, down)
    return Word("source", tuple(source)), b.sum_of("inside", b.gated(shuffled, room, lambda n: int(n >= 0)), 0, 1)


def _negative(n: int) -> int:
    return int(n < 0)


def ballot(b: Builder, ctx: Context, flow: Flow, votes: Bits, voters: Bits, exited: Bits) -> Word:
    """The ballot (32) that the block collects, 0 if it collects none. ``votes``: the guards of the quad's lanes. A read
    and one level."""
    with b.scope("ballot"):
        found = []
        read = Port((ctx.exec_quad[3:5] + ctx.rom["collect_parity"]).bits)
        row = (ctx.exec_quad + ctx.rom["publish_parity"]).bits
        for i in range(4):
            vote = Word("vote", (votes[i],))
            fields = [Field(f"quad{k}", vote, select=voters[4 * k + i], where=flow.here[k]) for k in range(QUADS)]
            write = Port(row, (ctx.token.kind["EXEC"], flow.gathers, ctx.active[i]))
            found.append(b.memory(f"votes.lane{i}", fields, write, read, gather=True))
        bits = [found[j % 4][f"quad{j // 4}"][0] for j in range(LANES)]
        return Word("ballot", tuple(b.and_(f"bit{j}", bit, ~exited[j]) for j, bit in enumerate(bits)))


def voted(flow: Flow, v: Word) -> Word:
    """V as unit M and ALU B see it: of a ballot, which is too late for them, all ones; the ballot is put in
    afterwards (``with_ballot``)."""
    return Word(v.name, tuple((bit + flow.ballots).assume(0, 1) for bit in v))


def with_ballot(b: Builder, name: str, flow: Flow, result: Word, ballot: Word) -> Word:
    """A late result of which the ballot is a part: second(m, V) or and(m, V). One level."""
    bits = (any_of(b, f"{name}.bit{i}", (~flow.ballots, bit), (ballot[i], bit)) for i, bit in enumerate(result))
    return Word(b.path(name), tuple(bits))
