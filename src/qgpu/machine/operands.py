"""Where a block's operands come from: register ports, parameters, specials, and the muxes in front of ALU A.

All selects are decoded with the EXEC bit, so that at other tokens every operand of ALU A is zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import encoding
from qgpu.machine.context import taps
from qgpu.machine.parts import Context, Writes

SPECIAL_BITS = 8


@dataclass(frozen=True, eq=False)
class Operands:
    """``a``, ``bs``: operands of ALU A a lane, ``base``, ``offset``: of the store address. ``ports``: A, B, C registers a
    lane. ``x`` a lane, ``q``, ``imm``: further operands of unit M and ALU B, 32 bits each."""

    a: Sequence[Word]
    bs: Sequence[Word]
    base: Sequence[Word]
    offset: Sequence[Word]
    ports: Mapping[str, Sequence[Word]]
    x: Sequence[Word]
    q: Word
    imm: Word


def decoded(b: Builder, ctx: Context, field: str, enable: Sequence[Expr] = ()) -> dict[str, Expr]:
    """choice name -> 1 if the block's enumerated field holds it (and all of ``enable``). One level."""
    names = encoding.CHOICES[field]
    hot = w.decode(b, f"is.{field}", ctx.rom[field], len(names), enable)
    return dict(zip(names, hot, strict=True))


def register_ports(b: Builder, ctx: Context, writes: Writes) -> dict[str, list[Word]]:
    """What ports A, B and C read, a word a lane: 512 rows a lane (quad, register), four banks each."""
    ports: dict[str, list[Word]] = {"A": [], "B": [], "C": []}
    for lane in range(4):
        write = w.Access(writes.register + writes.quad, (writes.enable[lane],))
        reads = [w.Access(ctx.rom[field] + ctx.exec_quad) for field in ("ra", "rb", "rc")]
        found = w.register_file(b, f"registers.lane{lane}", [Field("word", writes.values[lane])], write, reads)
        for port, read in zip(ports, found, strict=True):
            ports[port].append(read["word"])
    return ports


def parameters(b: Builder, ctx: Context) -> list[Word]:
    """Parameter words P, Q and T."""
    found = []
    for port in ("pa", "pq", "pt"):
        address = ctx.rom[port]
        write = w.Access(ctx.row[0:6], (ctx.marker["PARAM"], ctx.position[4]))
        halves = [~address[0], ~address[0], address[0], address[0]]
        fields = [
            Field(f.name, f.data, f.delay, select) for f, select in zip(taps(ctx.token.payload), halves, strict=True)
        ]
        row = w.register_file(b, f"parameters.{port}", fields, write, [w.Access(address[1:7])])[0]
        low, high = row["word0"] + row["word1"], row["word2"] + row["word3"]
        found.append(Word(port, tuple((p + q).assume(0, 1) for p, q in zip(low, high, strict=True))))
    return found


def specials(b: Builder, ctx: Context) -> list[Word]:
    """X a lane, as 8 bits: thread indices, lane and warp number."""
    found = []
    is_ = decoded(b, ctx, "x", (ctx.token.kind["EXEC"],))
    for lane in range(4):
        row = ctx.threads[lane]
        number = Word.constant(lane, 2) + ctx.exec_quad[0:3]
        choices = [
            (is_["tid.x"], row[0:8]),
            (is_["tid.y"], row[8:16]),
            (is_["tid.z"], row[16:24]),
            (is_["laneid"], number.zero_extend(SPECIAL_BITS)),
            (is_["warpid"], ctx.exec_quad[3:5].zero_extend(SPECIAL_BITS)),
        ]
        found.append(b.mux(f"x.lane{lane}", choices))
    return found


def operands(b: Builder, ctx: Context, writes: Writes) -> Operands:
    execute = ctx.token.kind["EXEC"]
    with b.scope("operand"):
        ports = register_ports(b, ctx, writes)
        p, q, t = parameters(b, ctx)
        x = [word.zero_extend(32) for word in specials(b, ctx)]
        imm = ctx.rom["imm"].sign_extend(32)
        is_y = decoded(b, ctx, "y")
        wide_x = ctx.cta[0:16] + ctx.cta[48:64]
        y = b.mux("y", [
            (is_y["ctaid.x"], wide_x),
            (is_y["ctaid.y"], ctx.cta[16:32].zero_extend(32)),
            (is_y["ctaid.z"], ctx.cta[32:48].zero_extend(32)),
        ])  # fmt: skip
        a_is, b_is = (decoded(b, ctx, field, (execute,)) for field in ("a_sel", "b_sel"))
        base_is, offset_is = (decoded(b, ctx, field, (execute,)) for field in ("sa_sel", "sb_sel"))
        by = w.decode(b, "shift", ctx.rom["b_shift"])
        # what is the same for all lanes is shifted once
        common = b.mux("common", [
            ((b_is[name], by[n]), word.shift_left(n)) for name, word in (("I", imm), ("P", p)) for n in range(4)
        ])  # fmt: skip
        a, bs, base, offset = [], [], [], []
        for lane in range(4):
            with b.scope(f"lane{lane}"):
                own = ports["A"][lane], ports["B"][lane]
                a.append(b.mux("a", [(a_is["A"], own[0]), (a_is["P"], p), (a_is["Y"], y), (a_is["X"], x[lane]), (a_is["I"], imm)]))
                moved = b.mux("x.shifted", [((b_is["X"], by[n]), x[lane][0:11].shift_left(n)) for n in range(4)])
                registers = [((b_is["B"], by[n]), own[1].shift_left(n)) for n in range(4)]
                shifted = b.mux("b", [*registers, (_one(), common), (_one(), moved.zero_extend(32))])
                bs.append(shifted)
                base.append(b.mux("base", [(base_is["A"], own[0]), (base_is["B"], own[1]), (base_is["T"], t)]))
                offset.append(b.mux("offset", [(offset_is["BS"], shifted), (offset_is["I"], imm)]))
        return Operands(a, bs, base, offset, ports, x, q, imm)


def _one() -> Expr:
    return constant(1)
