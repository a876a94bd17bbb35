"""What one block computes: operands, ALU A, load, stage registers, unit M, ALU B, predicate, store address, faults."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.isa import encoding
from qgpu.machine import alu_a, alu_b, alu_shift
from qgpu.machine.address import ADDRESS_BITS, store_address
from qgpu.machine.alu_order import condition, condition_lines, order
from qgpu.machine.exchange import ballot, shuffles, voted, with_ballot
from qgpu.machine.faults import access_fault, first_fault, sizes
from qgpu.machine.flow import flow
from qgpu.machine.lanes import lanes
from qgpu.machine.loads import BYTES as LOAD_BYTES
from qgpu.machine.loads import Load, load_value
from qgpu.machine.operands import decoded, operands
from qgpu.machine.parts import Context, Datapath, Writes
from qgpu.machine.results import any_of
from qgpu.machine.storage import load_row, predicate, stage_registers
from qgpu.machine.stores import BYTES as STORE_BYTES
from qgpu.machine.waits import member_masks, waits


def datapath(b: Builder, ctx: Context, writes: Writes) -> Datapath:
    """The second part of the machine; see ``parts`` for what comes out and ``isa.subset`` for what is implemented."""
    execute, rom = ctx.token.kind["EXEC"], ctx.rom
    ops = operands(b, ctx, writes)
    ends = flow(b, ctx)
    v, inside = shuffles(b, ctx, writes, ends, ops.bs, ops.a_port)
    waiting = waits(b, ctx, ends, member_masks(b, ctx, ops.a_port, ops.q))
    with b.scope("decode"):
        a_is, b_is = alu_a.lines(b, rom, execute), alu_b.lines(b, rom)
        amount_is = alu_shift.amount_lines(b, rom)
        e_is, stage_is = (decoded(b, ctx, field) for field in ("e_sel", "stage_w"))
        of_range = w.is_constant(b, "p.range", rom["p_src"], encoding.CHOICES["p_src"].index("v"))
        compares = [condition_lines(b, rom, f"cond.{source}", source) for source in ("a", "b")]
        load_is, store_is = (decoded(b, ctx, field, (execute,)) for field in ("load", "store"))
        load_size = sizes(b, "load.size", load_is, LOAD_BYTES, rom["load_wide"][0])
        store_size = sizes(b, "store.size", store_is, STORE_BYTES, rom["store_wide"][0])
        takes_high = b.and_("early.high", e_is["H"], load_is["b64"])
        traps = decoded(b, ctx, "branch", (execute,))["trap"]
        staged = b.or_("stage.write", rom["stage_w"])
        stage_write, p_write = b.and_("stage.now", staged, execute), b.and_("p.now", rom["p_write"][0], execute)
    r, s, load, high, orders = [], [], [], [], []
    row = Word("row", ())
    wrong: list[list[Expr]] = [[], []]
    misaligned: list[list[Expr]] = [[], []]
    for i in range(4):
        orders.append(order(b, f"order.a.lane{i}", ops.a[i], ops.bs[i]))
        result = alu_a.alu_a(b, f"alu.a.lane{i}", ops.a[i], ops.bs[i], orders[i], a_is)
        r.append(buffered(b, f"r.lane{i}", result))
        s.append(store_address(b, f"store.address.lane{i}", ops.store[i]))
        # Four ports take four layers; the lanes whose port comes later keep their address for it
        address = result if i < 2 else r[i]
        lower, upper = load_row(b, ctx, writes, i, address, load_size.any)
        row = lower + upper if i == 0 else row
        word = load_value(b, f"load.lane{i}", load_is, address, lower, upper)
        load.append(Load(word, (load_is, address, lower, upper) if i == 3 else None))
        high.append(upper)
        for n, (name, at, size) in enumerate((("load", r[i], load_size), ("store", s[i], store_size))):
            found = access_fault(b, f"fault.{name}{i}", ctx, at, size, ctx.active[i])
            wrong[n].append(found[0])
            misaligned[n].append(found[1])
    with b.scope("stage"):
        data = []
        for i in range(4):
            loaded = load[i].cases(b, f"load.lane{i}", (stage_is["L"], ctx.active[i]))
            own = (stage_is["R"], ctx.active[i])
            bits = (any_of(b, f"data.lane{i}.bit{k}", (*own, r[i][k]), *loaded[k]) for k in range(32))
            data.append(Word(f"data.lane{i}", tuple(bits)))
        reads = {f"stage_{k}": [operand.staged(f"S{k}") for operand in ops.late] for k in (1, 2)}
        stage_registers(b, ctx, data, stage_write, reads)
    results, early, guard, taken, store_lane, at_fault, trap_lane, predicates = ([] for _ in range(8))
    for i in range(4):
        with b.scope(f"lane{i}"):
            m1, m2, c = ops.late[i].join(b, r[i], load[i], voted(ends, v[i]))
            first = condition(b, "condition.a", orders[i], compares[0])
            later = order(b, "order.b", m1, c)
            second = condition(b, "condition.b", later, compares[1])
            third = b.and_("condition.v", of_range, inside[i])
            holds = total([first, second, third]).assume(0, 1)
            held, negated = predicate(b, ctx, i, holds, p_write), rom["g_neg"][0]
            predicates.append(held)
            true = ((held, ~negated), (~held, negated))
            guard.append(any_of(b, "guard", *true))
            active, wait = ctx.active[i], ((guard[i],),)
            plain = b.and_("taken.plain", ~rom["g_branch"][0], active)
            taken.append((plain + b.and_("taken.guarded", rom["g_branch"][0], guard[i], active)).assume(0, 1))
            trap_lane.append(any_of(b, "traps", *_allowed(rom["g_branch"][0], wait, active, traps)))
            store_lane.append(any_of(b, "stores", *_allowed(rom["g_store"][0], true, active, store_size.any)))
            at_fault.append([
                any_of(b, f"{name}.fault", *_allowed(rom[f"g_{name}"][0], true, wrong[n][i]))
                for n, name in enumerate(("load", "store"))
            ])  # fmt: skip
            takes = alu_b.choice(b, "choice", later, b_is)
            asks = (~takes, active, rom["g_sel"][0])
            cases = ((takes,), (~takes, ~active), (*asks, held, negated), (*asks, ~held, ~negated))
            replace = any_of(b, "replace", *cases)
            amount = alu_shift.amount(b, "amount", ops.late[i].amount, amount_is)
            results.append(alu_b.late(b, "late", m1, m2, c, ops.late[i].third, amount, b_is, replace))
            early.append(b.mux("early", [
                ((active, e_is["R"]), r[i]), ((active, e_is["L"]), load[i].word), ((active, takes_high), high[i])
            ]))  # fmt: skip
    fault = first_fault(b, *zip(*at_fault, strict=True), trap_lane, [*misaligned[0], *misaligned[1]])
    alive = lanes(b, ctx, ends, waiting, predicates)
    chosen = ballot(b, ctx, ends, guard, waiting.voters, alive.exited)
    results = [with_ballot(b, f"result.lane{i}", ends, word, chosen) for i, word in enumerate(results)]
    path = Datapath(early, results, guard, taken, store_lane, [a[:ADDRESS_BITS] for a in s], fault.any, fault.cause,
                    fault.lane, row, ops.b, ops.c, ends, waiting, alive)  # fmt: skip
    _probes(b, path)
    return path


def _allowed(asked: Expr, true: Sequence[tuple[Expr, ...]], *more: Expr) -> list[tuple[Expr, ...]]:
    """Cases of "all of ``more``, and the guard is ``true`` or not asked for"."""
    return [(~asked, *more), *((asked, *more, *case) for case in true)]


def buffered(b: Builder, name: str, word: Word) -> Word:
    """The same bits, a signal each. One level."""
    return Word(b.path(name), tuple(b.buffer(f"{name}.bit{i}", bit) for i, bit in enumerate(word)))


def _probes(b: Builder, path: Datapath) -> None:
    """All that control is given, by name."""
    lanes: dict[str, Sequence[Word]] = {"early": path.early, "late": path.late, "address": path.store_address}
    for name, words in lanes.items():
        for i, word in enumerate(words):
            b.probe(f"{name}{i}", word)
    fault = (path.fault, *path.fault_cause, *path.fault_lane)
    for name, bits in (("guard", path.guard), ("taken", path.taken), ("store", path.store_lane), ("fault", fault)):
        b.probe(name, bits)
    b.probe("row", path.row)
