"""Memory and what guards it: 2,048 rows with a port a lane, stage registers, predicates, the allocation map.

A port that does not load reads zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, Port, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.operands import literals
from qgpu.machine.parts import Context, Writes

BANK_BITS = 7


def memory_port(
    b: Builder, name: str, ctx: Context, writes: Writes, row: Word, enable: Expr, select: Sequence[Expr] | None
) -> tuple[Word, Word]:
    """(low word, high word) of the memory row; ``select``: for each, 1 if it is to be read."""
    fields = [
        Field(f"word{i}", writes.row_data[32 * i : 32 * i + 32], select=select[i] if select else None) for i in range(2)
    ]
    found: dict[str, Word] | None = None
    for bank in range(tokens.ROWS >> BANK_BITS):
        write = Port(writes.row.bits[:BANK_BITS], (writes.row_enable, *literals(writes.row[BANK_BITS:], bank)))
        read = Port(row.bits[:BANK_BITS], (enable, *literals(row[BANK_BITS:], bank)))
        shared = bank << BANK_BITS >= tokens.SHARED_FIRST_ROW
        made = b.memory(f"{name}.bank{bank}", fields, write, read, wipe=ctx.start if shared else None, into=found)
        found = made if found is None else found
    assert found is not None
    return found["word0"], found["word1"]


def load_of_lane(b: Builder, ctx: Context, writes: Writes, lane: int, address: Word, loads: Expr) -> Word:
    """The aligned 32-bit word at ``address`` (the memory repeats beyond its end), zero if there is no load; chosen by
    the z gate."""
    select = (~address[2], address[2])
    low, high = memory_port(b, f"memory.lane{lane}", ctx, writes, address[3:14], loads, select)
    return Word(f"load.lane{lane}", tuple((p + q).assume(0, 1) for p, q in zip(low, high, strict=True)))


def load_of_token(b: Builder, ctx: Context, writes: Writes, address: Word, loads: Expr) -> tuple[Word, Word]:
    """The same for lane 0, a level later. Its port also reads the row that a MEM or READ names: (load, row of 64 bits).

    ``address`` is zero at all tokens but EXEC, and the token's row is zero there.
    """
    reads = total([loads, ctx.token.kind["MEM"], ctx.token.kind["READ"]]).assume(0, 1)
    row = Word("row", tuple((p + q).assume(0, 1) for p, q in zip(address[3:14], ctx.token.row, strict=True)))
    low, high = memory_port(b, "memory.lane0", ctx, writes, row, reads, None)
    return b.mux("load.lane0", [((loads, ~address[2]), low), ((loads, address[2]), high)]), low + high


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


def allocated(b: Builder, name: str, ctx: Context, address: Word, asks: Expr) -> Expr:
    """How many of the four bytes of the aligned word at ``address`` are allocated (0..4); 0 unless ``asks``. One level
    before the read."""
    with b.scope(name):
        here = w.decode(b, "word", address[2:6])
        fields = []
        for group in range(16):
            quarter, low = group // 4, 4 * (group % 4)
            nibble = ctx.token.payload[low : low + 4]
            fields.append(Field(f"word{group}", nibble, 3 - quarter, here[group]))
        write = w.Access(ctx.row[0:8], (ctx.marker["ALLOC"], ctx.position[4]))
        row = w.register_file(b, "map", fields, write, [w.Access(address[6:14], (asks,))])[0]
        return total(bit for word in row.values() for bit in word).assume(0, 4)
