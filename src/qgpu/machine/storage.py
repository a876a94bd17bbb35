"""Memory with a port a lane, 2,048 rows, stage registers and predicates.

A port that does not load reads zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import tokens
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


def stage_registers(b: Builder, ctx: Context, data: Sequence[Word], writes: Expr) -> tuple[list[Word], list[Word]]:
    """S1 and S2 a lane: a row holds one stage register of two lanes."""
    ports: list[list[Word]] = []
    for port in ("stage_1", "stage_2"):
        found: list[Word] = []
        for half in range(2):
            lanes = (2 * half, 2 * half + 1)
            read = w.register_file(
                b, f"stage.{port}.half{half}", [Field(f"lane{i}", data[i]) for i in lanes],
                w.Access(ctx.rom["stage_wi"] + ctx.exec_quad, (writes,)), [w.Access(ctx.rom[port] + ctx.exec_quad)],
            )[0]  # fmt: skip
            found += [read[f"lane{i}"] for i in lanes]
        ports.append(found)
    return ports[0], ports[1]


def predicate(b: Builder, ctx: Context, lane: int, holds: Expr, writes: Expr) -> Expr:
    """The guard's predicate of a lane, after this block's own write."""
    return w.register_file(
        b, f"predicates.lane{lane}", [Field("it", Word("it", (holds,)))],
        w.Access(ctx.rom["p_index"] + ctx.exec_quad, (writes, ctx.active[lane])),
        [w.Access(ctx.rom["g_index"] + ctx.exec_quad)],
    )[0]["it"][0]  # fmt: skip
