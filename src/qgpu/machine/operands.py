"""Where a block's operands come from: register ports, parameters, specials, and the muxes in front of ALU A.

All selects are decoded with the EXEC bit, so that at other tokens every operand of ALU A is zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, constant, total
from qgpu.circuit.memory import Field
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.isa import encoding
from qgpu.machine.address import added_digits, chosen_digits
from qgpu.machine.alu_shift import PRODUCTS
from qgpu.machine.alu_terms import line
from qgpu.machine.late_operands import LateOperand, LateOperands
from qgpu.machine.parts import Context, Writes


@dataclass(frozen=True, eq=False)
class Operands:
    """``a``, ``bs``: operands of ALU A a lane, 32 bits each; ``store``: digits of the store address, before carries.
    ``late``: of unit M and ALU B, a lane. ``a_port``, ``b``, ``c``: what ports A, B and C read;
    ``q``: parameter word Q."""

    a: Sequence[Word]
    bs: Sequence[Word]
    store: Sequence[Sequence[Expr]]
    late: Sequence[LateOperands]
    a_port: Sequence[Word]
    b: Sequence[Word]
    c: Sequence[Word]
    q: Word


def literals(word: Word, value: int) -> list[Expr]:
    """Bits that are all 1 if and only if the word is ``value``."""
    return [bit if value >> i & 1 else ~bit for i, bit in enumerate(word)]


def decoded(b: Builder, ctx: Context, field: str, enable: Sequence[Expr] = (), name: str = "") -> dict[str, Expr]:
    """choice name -> 1 if the block's enumerated field holds it (and all of ``enable``). One level."""
    names = encoding.CHOICES[field]
    hot = w.decode(b, f"is.{name or field}", ctx.rom[field], len(names), enable)
    return dict(zip(names, hot, strict=True))


def register_ports(b: Builder, ctx: Context, writes: Writes) -> dict[str, list[Word]]:
    """What ports A, B and C read, a word a lane: 512 rows a lane (quad, register), four banks each. C is read at EXEC
    only, so that a lane's old value can take its place after it."""
    ports: dict[str, list[Word]] = {"A": [], "B": [], "C": []}
    for lane in range(4):
        write = w.Access(writes.register + writes.quad, (writes.enable[lane],))
        when = {"rc": (ctx.token.kind["EXEC"],)}
        reads = [w.Access(ctx.rom[field] + ctx.exec_quad, when.get(field, ())) for field in ("ra", "rb", "rc")]
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


def _thread_indices(b: Builder, ctx: Context, is_: Mapping[str, Expr]) -> list[Word]:
    """The thread index that X names, 8 bits a lane; zero if it names none."""
    payload, found = ctx.token.payload, []
    for half in range(2):
        which = ctx.sub[0] if half else ~ctx.sub[0]
        fields, into = [], {}
        for lane in range(2):
            index = b.bus_word(f"thread.lane{2 * half + lane}", 8)
            for number, name in enumerate(("tid.x", "tid.y", "tid.z")):
                low = 8 * (number % 2)
                ago = 3 - 2 * lane - number // 2
                fields.append(Field(f"lane{lane}.{name}", payload[low : low + 8], ago, is_[name]))
                into[fields[-1].name] = index
            found.append(index)
        write = Port(ctx.quad.bits, (ctx.marker["THREADS"], ctx.third, which))
        b.memory(f"threads.half{half}", fields, write, Port(ctx.exec_quad.bits), into=into)
    return found


def specials(b: Builder, ctx: Context) -> list[Word]:
    """X, a word a lane, zero but at EXEC: sums of what is the same in all lanes, of the lane's thread index, and of its
    own quad's part of a lane mask. One level from the decoder."""
    is_ = decoded(b, ctx, "x", (ctx.token.kind["EXEC"],))
    quad, number = ctx.exec_quad[0:3], ctx.exec_quad[0:3].value
    eq, lt, le, gt, ge = (is_[f"lanemask_{name}"] for name in ("eq", "lt", "le", "gt", "ge"))
    below, above = (lt + le).assume(0, 1), (gt + ge).assume(0, 1)
    parts = {
        name: w.decode(b, f"own.{name}", quad, enable=(kind.assume(0, 1),))
        for name, kind in (("same", eq + le + ge), ("below", below), ("above", above))
    }
    common = []
    for j in range(32):
        there = j // 4
        terms = [
            *b.gated(below, number, lambda n, there=there: int(n > there)),  # type: ignore[misc]
            *b.gated(above, number, lambda n, there=there: int(n < there)),  # type: ignore[misc]
            *_all([is_["activemask"], ctx.active[j % 4], *literals(quad, there)]),
            *(_all([is_["laneid"], quad[j - 2]]) if 2 <= j < 5 else []),
            *(_all([is_["warpid"], ctx.exec_quad[3 + j]]) if j < 2 else []),
        ]
        common.append(b.sum_of(f"common{j}", terms, 0, 1))
    found = []
    for lane, index in enumerate(_thread_indices(b, ctx, is_)):
        bits = []
        for j in range(32):
            there, place = divmod(j, 4)
            own = parts["same" if place == lane else "below" if place < lane else "above"][there]
            one = [common[j], own, *index.bits[j : j + 1], *([is_["laneid"]] if j < 2 and lane >> j & 1 else [])]
            bits.append(total(one).assume(0, 1))
        found.append(Word(f"x.lane{lane}", tuple(bits)))
    return found


def _all(bits: Sequence[Expr]) -> list[tuple[Expr, Table]]:
    """The term of a sum that is 1 if all of these are."""
    return [(total(bits), {len(bits): 1})]


def operands(b: Builder, ctx: Context, writes: Writes) -> Operands:
    execute = ctx.token.kind["EXEC"]
    with b.scope("operand"):
        ports = register_ports(b, ctx, writes)
        p, q, t = parameters(b, ctx)
        with b.scope("x"):
            x = specials(b, ctx)
        imm = ctx.rom["imm"].sign_extend(32)
        is_y = decoded(b, ctx, "y")
        y = {"ctaid.x": ctx.cta[0:16] + ctx.cta[48:64]}
        y |= {f"ctaid.{name}": ctx.cta[low : low + 16].zero_extend(32) for name, low in (("y", 16), ("z", 32))}
        a_is, b_is = (decoded(b, ctx, field, (execute,)) for field in ("a_sel", "b_sel"))
        base_is, offset_is = (decoded(b, ctx, field, (execute,)) for field in ("sa_sel", "sb_sel"))
        by = w.decode(b, "shift", ctx.rom["b_shift"])
        # what is the same for all lanes is chosen, and shifted, once
        a_common = b.mux("a.common", [
            (a_is["P"], p), (a_is["I"], imm), *(((a_is["Y"], is_y[name]), word) for name, word in y.items())
        ])  # fmt: skip
        b_common = b.mux("b.common", [
            ((b_is[name], by[n]), word.shift_left(n)) for name, word in (("I", imm), ("P", p)) for n in range(4)
        ])  # fmt: skip
        store_common = chosen_digits(b, "store.common", [(base_is["T"], t), (offset_is["I"], imm)])
        a, bs, store = [], [], []
        for lane in range(4):
            with b.scope(f"lane{lane}"):
                own = ports["A"][lane], ports["B"][lane]
                a.append(b.mux("a", [(a_is["A"], own[0]), (a_is["X"], x[lane]), (_one(), a_common)]))
                sources = (("B", own[1]), ("X", x[lane]))
                shifted = [((b_is[name], by[n]), word.shift_left(n)) for name, word in sources for n in range(4)]
                bs.append(b.mux("b", [*shifted, (_one(), b_common)]))
                choices = [(base_is["A"], own[0]), (base_is["B"], own[1]), (offset_is["BS"], bs[-1])]
                store.append(added_digits(chosen_digits(b, "store", choices), store_common))
        late = _late(b, ctx, ports, x, q, imm)
        return Operands(a, bs, store, late, ports["A"], ports["B"], [one.third for one in late], q)


def _late(
    b: Builder, ctx: Context, ports: Mapping[str, Sequence[Word]], x: Sequence[Word], q: Word, imm: Word
) -> list[LateOperands]:
    m1_is, c_is = decoded(b, ctx, "m1_sel"), decoded(b, ctx, "c_sel")
    ops = encoding.CHOICES["m_op"]
    multiplies = line(b, ctx.rom, "m.multiplies", {"m_op": PRODUCTS})
    shifts = line(b, ctx.rom, "m.shifts", {"m_op": [op for op in ops if op not in (*PRODUCTS, "first")]})
    m2_is = {name: b.and_(f"m2.{name}", hot, multiplies) for name, hot in decoded(b, ctx, "m2_sel").items()}
    by_is = {name: b.and_(f"by.{name}", *literals(ctx.rom["m2_sel"], encoding.CHOICES["m2_sel"].index(name)), shifts)
             for name in ("B", "I", "Q", "A")}  # fmt: skip
    found = []
    for lane in range(4):
        sources = {port: ports[port][lane] for port in "ABC"} | {"Q": q, "I": imm, "X": x[lane]}
        active = ctx.active[lane]

        def operand(name: str, is_: Mapping[str, Expr], *more: Expr) -> LateOperand:
            early = [((*more, is_[k]), sources[k]) for k in is_ if k in sources]  # noqa: B023 - called in this pass
            return LateOperand(b.bus_word(name, 32), is_, early, more)

        with b.scope(f"lane{lane}"):
            amount = b.mux("amount", [(hot, sources[name]) for name, hot in by_is.items()])
            third = Word("third", tuple(b.buffer(f"third.bit{i}", bit) for i, bit in enumerate(sources["C"])))
            staged = b.and_("c.staged", active, c_is["S2"])
            c = operand("c", {**c_is, "S2": staged}, active)
            found.append(LateOperands(operand("m1", m1_is), operand("m2", m2_is), c, amount, third))
    return found


def _one() -> Expr:
    return constant(1)
