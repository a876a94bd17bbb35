"""What one block computes: operands, ALU A, load, stage registers, unit M, ALU B, predicate, store address, faults."""

from __future__ import annotations

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.isa import encoding, tokens
from qgpu.machine.alu import alu_a, condition, late
from qgpu.machine.operands import Operands, decoded, operands
from qgpu.machine.parts import Context, Datapath, Writes
from qgpu.machine.results import any_of
from qgpu.machine.storage import allocated, loaded, memory_port, predicate, stage_registers


def datapath(b: Builder, ctx: Context, writes: Writes) -> Datapath:
    """The second part of the machine; see ``parts`` for what comes out and ``isa.subset`` for what is implemented."""
    execute = ctx.token.kind["EXEC"]
    ops = operands(b, ctx, writes)
    with b.scope("decode"):
        a_op, b_op = decoded(b, ctx, "alu_a", (execute,)), decoded(b, ctx, "alu_b")
        m1_is, m2_is, c_is, m_op = (decoded(b, ctx, field) for field in ("m1_sel", "m2_sel", "c_sel", "m_op"))
        e_is, stage_is, source = (decoded(b, ctx, field) for field in ("e_sel", "stage_w", "p_src"))
        cond = decoded(b, ctx, "cond")
        signed = total(hot for name, hot in cond.items() if name.endswith(".s")).assume(0, 1)
        loads = decoded(b, ctx, "load", (execute,))["b32"]
        stores = decoded(b, ctx, "store", (execute,))["b32"]
        traps = decoded(b, ctx, "branch", (execute,))["trap"]
        staged = b.or_("stage.write", ctx.rom["stage_w"])
        stage_write, p_write = b.and_("stage.now", staged, execute), b.and_("p.now", ctx.rom["p_write"][0], execute)
    r, s, load = [], [], []
    for i in range(4):
        r.append(alu_a(b, f"alu.a.lane{i}", ops.a[i], ops.bs[i], a_op))
        s.append(w.add(b, f"store.address.lane{i}", ops.base[i], ops.offset[i]))
        load.append(loaded(b, ctx, writes, i, r[i], loads))
    with b.scope("stage"):
        data = [
            b.mux(f"data.lane{i}", [((stage_is["R"], ctx.active[i]), r[i]), ((stage_is["L"], ctx.active[i]), load[i])])
            for i in range(4)
        ]
        s1, s2 = stage_registers(b, ctx, data, stage_write)
    guard, results, early = [], [], []
    for i in range(4):
        with b.scope(f"lane{i}"):
            m1, m2, c = _late_operands(b, ops, i, r[i], load[i], s1[i], s2[i], m1_is, m2_is, c_is, m_op["first"])
            first = condition(b, "condition.a", ops.a[i], ops.bs[i], cond, signed)
            second = condition(b, "condition.b", m1, c, cond, signed)
            holds = any_of(b, "holds", (source["a"], first), (source["b"], second))
            read = predicate(b, ctx, i, holds, p_write)
            guard.append(b.xor("guard", read, ctx.rom["g_neg"][0]))
            replace = b.and_("replace", ctx.rom["g_sel"][0], ~guard[i])
            results.append(late(b, "late", m1, m2, c, b_op, ~replace, replace))
            early.append(b.mux("early", [(e_is["R"], r[i]), (e_is["L"], load[i])]))
    taken = [any_of(b, f"taken{i}", *_where(ctx, "g_branch", ctx.active[i], guard[i])) for i in range(4)]
    store_lane = [
        any_of(b, f"stores{i}", *_where(ctx, "g_store", ctx.active[i], guard[i], stores)) for i in range(4)
    ]
    load_lane = [any_of(b, f"loads{i}", *_where(ctx, "g_load", ctx.active[i], guard[i], loads)) for i in range(4)]
    trap_lane = [b.and_(f"traps{i}", taken[i], traps) for i in range(4)]
    fault, cause, lane = _faults(b, ctx, r, s, load_lane, store_lane, trap_lane)
    names = total([ctx.token.kind["MEM"], ctx.token.kind["READ"]]).assume(0, 1)
    low, high = memory_port(b, "memory.row", ctx, writes, ctx.token.row, names, None)
    path = Datapath(early, results, guard, taken, store_lane, [a[0:14] for a in s], fault, cause, lane, low + high)
    for name, words in (("early", early), ("late", results), ("address", path.store_address)):
        for i, word in enumerate(words):
            b.probe(f"{name}{i}", word)
    for name, bits in (("guard", guard), ("taken", taken), ("store", store_lane), ("fault", (fault, *cause, *lane))):
        b.probe(name, bits)
    b.probe("row", path.row)
    return path


def _where(ctx: Context, flag: str, active: Expr, guard: Expr, *more: Expr) -> tuple[tuple[Expr, ...], ...]:
    """Cases of "active, and the guard holds or is not asked for"."""
    asked = ctx.rom[flag][0]
    return (active, ~asked, *more), (active, asked, guard, *more)


def _late_operands(
    b: Builder, ops: Operands, i: int, r: Word, load: Word, s1: Word, s2: Word,
    m1_is: dict[str, Expr], m2_is: dict[str, Expr], c_is: dict[str, Expr], first: Expr,
) -> tuple[Word, Word, Word]:  # fmt: skip
    """(m1, m2, c); where unit M passes its first operand, m2 is one."""
    ra, rb, rc = (ops.ports[port][i] for port in "ABC")
    m1 = b.mux("m1", [(m1_is["A"], ra), (m1_is["R"], r), (m1_is["L"], load), (m1_is["S1"], s1), (m1_is["B"], rb), (m1_is["Q"], ops.q)])
    sources = [("B", rb), ("I", ops.imm), ("Q", ops.q), ("L", load), ("S2", s2), ("R", r), ("A", ra)]
    m2 = b.mux("m2", [*(((m2_is[k], ~first), word) for k, word in sources), (first, Word.constant(1, 32))])
    c = b.mux("c", [(c_is["C"], rc), (c_is["S2"], s2), (c_is["X"], ops.x[i]), (c_is["I"], ops.imm), (c_is["Q"], ops.q), (c_is["L"], load)])
    return m1, m2, c


def _faults(
    b: Builder, ctx: Context, r: list[Word], s: list[Word], loads: list[Expr], stores: list[Expr], traps: list[Expr]
) -> tuple[Expr, Word, Word]:
    """(whether, cause, lane) of the first fault: loads, then stores, then traps, lowest lane first."""
    with b.scope("fault"):
        wants, misaligned = [], []
        for name, addresses, lanes in (("load", r, loads), ("store", s, stores)):
            for i in range(4):
                with b.scope(f"{name}{i}"):
                    address = addresses[i]
                    there = allocated(b, "allocated", ctx, address)
                    misaligned.append(b.or_("misaligned", *address[0:2]))
                    beyond = b.or_("beyond", *address[14:32])
                    missing = b.lookup("missing", 4 - there, lambda n: int(n > 0))
                    wrong = total([misaligned[-1], beyond, missing])
                    wants.append(b.lookup("wants", lanes[i] * 3 + wrong, lambda n: int(n > 3)))
        hot = w.lowest_set(b, "first", [*wants, *traps])
        odd = [b.and_(f"odd{k}", hot[k], misaligned[k]) for k in range(8)]
        load, store, trap = (total(hot[k : k + 4]) for k in (0, 4, 8))
        codes = {name: tokens.CAUSES.index(name) for name in tokens.CAUSES}
        assert codes["load out of bounds"] == 0 and codes["load misaligned"] == 1 and codes["store out of bounds"] == 2
        assert codes["store misaligned"] == 3 and codes["trap"] == 4
        cause = Word("cause", (total(odd).assume(0, 1), store.assume(0, 1), trap.assume(0, 1), total([])))
        lane = Word("lane", tuple(total(hot[k] for k in range(12) if k % 4 >> i & 1).assume(0, 1) for i in range(2)))
        return total([load, store, trap]).assume(0, 1), cause, lane


assert encoding.CHOICES["p_src"][:2] == ("a", "b")
