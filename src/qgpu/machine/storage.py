"""Memory with a port a lane, 2,048 rows, stage registers and predicates.

A port that does not load reads zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.gates import Gated
from qgpu.machine.operands import literals
from qgpu.machine.parts import Context, Writes

BANK_BITS = 7


def memory_port(b: Builder, name: str, ctx: Context, writes: Writes, row: Word, enable: Expr) -> tuple[Word, Word]:
    """(low word, high word) of the memory row."""
    fields = [Field(f"word{i}", writes.row_data[32 * i : 32 * i + 32]) for i in range(2)]
    found: dict[str, Word] | None = None
    for bank in range(tokens.ROWS >> BANK_BITS):
        write = Port(writes.row.bits[:BANK_BITS], (writes.row_enable, *literals(writes.row[BANK_BITS:], bank)))
        read = Port(row.bits[:BANK_BITS], (enable, *literals(row[BANK_BITS:], bank)))
        shared = bank << BANK_BITS >= tokens.SHARED_FIRST_ROW
        found = b.memory(f"{name}.bank{bank}", fields, write, read, wipe=ctx.start if shared else None, into=found)
    assert found is not None
    return found["word0"], found["word1"]


def load_row(
    b: Builder, ctx: Context, writes: Writes, lane: int, address: Word, loads: Expr
) -> tuple[Word, Word]:  # fmt: skip
    """Both words of the row at ``address`` (the memory repeats beyond its end), zero if there is no load.

    The port of lane 0 also reads the row that a MEM or READ names: there ``address`` is zero, as the token's row is
    elsewhere.
    """
    row = address[3:14]
    if lane == 0:
        names = (ctx.token.kind["MEM"] + ctx.token.kind["READ"]).assume(0, 1)
        loads = (loads + names).assume(0, 1)
        row = Word("row", tuple((p + q).assume(0, 1) for p, q in zip(row, ctx.token.row, strict=True)))
    return memory_port(b, f"memory.lane{lane}", ctx, writes, row, loads)


def stage_registers(
    b: Builder, ctx: Context, data: Sequence[Word], writes: Expr, reads: Mapping[str, Sequence[Sequence[Gated]]]
) -> None:
    """``data``: what a lane writes where ``writes`` is 1. ``reads``: field that names the register (stage_1, stage_2),
    and for each lane what it is read to. A row holds two words."""
    write = w.Access(ctx.rom["stage_wi"] + ctx.exec_quad, (writes,))
    for port, lanes in reads.items():
        every = [(data[lane], *gated) for lane, targets in enumerate(lanes) for gated in targets]
        for n in range(0, len(every), 2):
            pair = {f"word{k}": one for k, one in enumerate(every[n : n + 2])}
            fields = [Field(name, word, select=on) for name, (word, on, _) in pair.items()]
            into = {name: to for name, (_, _, to) in pair.items()}
            read = w.Access(ctx.rom[port] + ctx.exec_quad)
            w.register_file(b, f"stage.{port}.pair{n // 2}", fields, write, [read], into=[into])


def predicate(b: Builder, ctx: Context, lane: int, holds: Expr, writes: Expr) -> Expr:
    """The guard's predicate of a lane, after this block's own write."""
    return w.register_file(
        b, f"predicates.lane{lane}", [Field("it", Word("it", (holds,)))],
        w.Access(ctx.rom["p_index"] + ctx.exec_quad, (writes, ctx.active[lane])),
        [w.Access(ctx.rom["g_index"] + ctx.exec_quad)],
    )[0]["it"][0]  # fmt: skip
