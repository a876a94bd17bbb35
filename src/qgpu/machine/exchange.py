"""The exchange: shuffles, of words that a gather's DATA (or a register) brings early, and ballots, of guards.

A shuffle's source is found in two levels from its operand BS. Modes that compare only with bits of BS (idx, bfly) are
judged with the choice itself; up and down, whose sums are made first, bring their verdict along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
FREE = 31  # no limit: as far as any lane is from another
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
    """(source lane of the warp, in range). Two levels from the distance."""
    own = Word.constant(lane, 2) + ctx.exec_quad[0:3]
    clamp, segment = ctx.rom["imm"][0:BITS], ctx.rom["imm"][8 : 8 + BITS]
    idx, up, down, bfly = (is_[mode] for mode in MODES)
    last = Word("last", tuple(
        any_of(b, f"last{i}", (own[i], segment[i]), (clamp[i], ~segment[i])) for i in range(BITS)
    ))  # fmt: skip
    # how far up or down may go, and the last lane for idx and bfly; no limit for the other two modes
    moves, stays, free = (up + down).assume(0, 1), (idx + bfly).assume(0, 1), Word.constant(FREE, BITS)
    to = b.mux("to", [(up, own), (down, last), (stays, free)])
    reach = to.value - b.mux("from", [(up, last), (down, own)]).value
    limit = b.mux("limit", [(stays, last), (moves, free)]).value
    plain, moved = [], []
    for i in range(BITS):
        plain.append(any_of(
            b, f"plain{i}", (idx, own[i], segment[i]), (idx, distance[i], ~segment[i]), (bfly, own[i], ~distance[i]),
            (bfly, ~own[i], distance[i]),
        ))  # fmt: skip
        low, far = own[0 : i + 1].value, distance[0 : i + 1].value
        carried = [*b.gated(up, low - far, _bit(i)), *b.gated(down, low + far, _bit(i))]
        moved.append(b.sum_of(f"moved{i}", carried, 0, 1))
    bad = b.lookup("bad", reach - distance.value, lambda n: int(n < 0))
    room = limit - Word("plain", tuple(plain)).value
    source = [
        b.sum_of(f"source{i}", [
            _at_least_0(room, plain[i]), _at_least_0(-1 - room, own[i]),
            (moved[i] - bad, equals(1)), (own[i] + bad, equals(2)),
        ], 0, 1)
        for i in range(BITS)
    ]  # fmt: skip
    inside = b.sum_of("inside", [_at_least_0(room, stays), (moves - bad, equals(1))], 0, 1)
    return Word("source", tuple(source)), inside


def _bit(place: int) -> Callable[[int], int]:
    return lambda n: n >> place & 1


def _at_least_0(number: Expr, condition: Expr) -> tuple[Expr, Table]:
    """The term of a sum that is 1 if the condition is, and the number is not negative."""
    return number + (condition - 1) * (number.hi + 1), lambda n: int(n >= 0)


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
