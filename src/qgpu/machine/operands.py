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
from qgpu.machine.parts import Context, Writes

SPECIAL_BITS = 8


@dataclass(frozen=True, eq=False)
class LateOperands:
    """Operands of unit M and ALU B of one lane. ``known``: m1, m2 and c where they are registers, parameters, specials
    or the immediate, else zero. ``m1_is``, ``m2_is``, ``c_is``: choice -> 1 if it is the operand."""

    known: tuple[Word, Word, Word]
    m1_is: Mapping[str, Expr]
    m2_is: Mapping[str, Expr]
    c_is: Mapping[str, Expr]

    def with_values(self, b: Builder, r: Word, load: Word, s1: Word, s2: Word) -> tuple[Word, Word, Word]:
        """(m1, m2, c), 32 bits each. One level."""
        m1, m2, c = self.known
        return (
            b.mux("m1", [(_one(), m1), (self.m1_is["R"], r), (self.m1_is["L"], load), (self.m1_is["S1"], s1)]),
            b.mux("m2", [(_one(), m2), (self.m2_is["R"], r), (self.m2_is["L"], load), (self.m2_is["S2"], s2)]),
            b.mux("c", [(_one(), c), (self.c_is["S2"], s2), (self.c_is["L"], load)]),
        )


@dataclass(frozen=True, eq=False)
class Operands:
    """``a``, ``bs``: operands of ALU A a lane, ``base``, ``offset``: of the store address, 32 bits each.
    ``late``: of unit M and ALU B, a lane."""

    a: Sequence[Word]
    bs: Sequence[Word]
    base: Sequence[Word]
    offset: Sequence[Word]
    late: Sequence[LateOperands]


def literals(word: Word, value: int) -> list[Expr]:
    """Bits that are all 1 if and only if the word is ``value``."""
    return [bit if value >> i & 1 else ~bit for i, bit in enumerate(word)]


def decoded(b: Builder, ctx: Context, field: str, enable: Sequence[Expr] = (), name: str = "") -> dict[str, Expr]:
    """choice name -> 1 if the block's enumerated field holds it (and all of ``enable``). One level."""
    names = encoding.CHOICES[field]
    hot = w.decode(b, f"is.{name or field}", ctx.rom[field], len(names), enable)
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
    """Parameter words P, Q and T: 128 rows of one word. A marker's first two DATA are its even word, the others its odd
    one; each of them writes what has come of its word."""
    payload = ctx.token.payload
    write = w.Access(Word("odd", (ctx.third,)) + ctx.row[0:6], (ctx.marker["PARAM"], ctx.token.kind["DATA"]))
    found = []
    for port in ("pa", "pq", "pt"):
        fields = [Field("low", payload, delay=1), Field("high", payload)]
        row = w.register_file(b, f"parameters.{port}", fields, write, [w.Access(ctx.rom[port])])[0]
        found.append((row["low"] + row["high"]).named(port))
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
                sources = [("A", own[0]), ("P", p), ("Y", y), ("X", x[lane]), ("I", imm)]
                a.append(b.mux("a", [(a_is[k], word) for k, word in sources]))
                moved = b.mux("x.shifted", [((b_is["X"], by[n]), x[lane][0:11].shift_left(n)) for n in range(4)])
                registers = [((b_is["B"], by[n]), own[1].shift_left(n)) for n in range(4)]
                shifted = b.mux("b", [*registers, (_one(), common), (_one(), moved.zero_extend(32))])
                bs.append(shifted)
                base.append(b.mux("base", [(base_is["A"], own[0]), (base_is["B"], own[1]), (base_is["T"], t)]))
                offset.append(b.mux("offset", [(offset_is["BS"], shifted), (offset_is["I"], imm)]))
        return Operands(a, bs, base, offset, _late(b, ctx, ports, x, q, imm))


def _late(
    b: Builder, ctx: Context, ports: Mapping[str, Sequence[Word]], x: Sequence[Word], q: Word, imm: Word
) -> list[LateOperands]:
    """Where unit M passes its first operand on, the second one is the number one."""
    first = w.is_constant(b, "m.first", ctx.rom["m_op"], encoding.CHOICES["m_op"].index("first"))
    m1_is, c_is = decoded(b, ctx, "m1_sel"), decoded(b, ctx, "c_sel")
    m2_is = decoded(b, ctx, "m2_sel", _multiplies(ctx))
    found = []
    for lane in range(4):
        ra, rb, rc = (ports[port][lane] for port in "ABC")
        with b.scope(f"lane{lane}.known"):
            m1 = b.mux("m1", [(m1_is["A"], ra), (m1_is["B"], rb), (m1_is["Q"], q)])
            m2_choices = [(m2_is["B"], rb), (m2_is["I"], imm), (m2_is["Q"], q), (m2_is["A"], ra)]
            m2 = b.mux("m2", [*m2_choices, (first, Word.constant(1, 32))])
            c = b.mux("c", [(c_is["C"], rc), (c_is["X"], x[lane]), (c_is["I"], imm), (c_is["Q"], q)])
        found.append(LateOperands((m1, m2, c), m1_is, m2_is, c_is))
    return found


def _multiplies(ctx: Context) -> tuple[Expr, ...]:
    """1 where unit M multiplies: the only operation besides ``first``."""
    assert encoding.CHOICES["m_op"][:2] == ("first", "mul.lo")
    return (ctx.rom["m_op"][0],)


def _one() -> Expr:
    return constant(1)
