"""Whole launches token by token: written out by hand from docs/machine.md."""

from __future__ import annotations

import pytest
from tests.machine.harness import DOT

from qgpu.isa import tokens
from qgpu.isa.assembly import assemble
from qgpu.isa.interpreter import Interpreter, run
from qgpu.isa.program import Launch, faults, prompt

ALL = (1 << 64) - 1


def said(launch: Launch, limit: int = 10_000) -> list[str]:
    """Tokens as text, DATA as plain hexadecimal numbers."""
    return [tokens.text(token).removeprefix("DATA ") for token in run(launch, limit)[0]]


def launch(text: str, threads: int = 4, grid: tuple[int, int, int] = (1, 1, 1), **more: object) -> Launch:
    program = assemble(".program test\n.pool 0xffffffff 0x12345678 64\n" + text)
    return Launch(program, grid, (threads, 1, 1), (), **{"allocated": {1: ALL, 192: ALL}, **more})  # type: ignore[arg-type]


def test_dot_of_three_is_nine_tokens() -> None:
    start = Launch(DOT, (1, 1, 1), (3, 1, 1), (64, 80, 96), {8: (1, 2), 9: (3, 0), 10: (4, 5), 11: (6, 0)}, {1: ALL})
    assert said(start) == [
        "EXEC b0 q0", "EXEC b1 q0",
        "MEM row 12 lane 0", "0x0004", "MEM row 12 lane 1", "0x000e", "MEM row 12 lane 2", "0x0020", "HALT",
    ]  # fmt: skip


def test_destinations_come_in_order_around_memory() -> None:
    text = """
b0: a_sel=X x=laneid b_sel=I imm=5 alu_a=add d_e=r1 m1_sel=Q pq=pool1 d_b=r2 d_o=r3
    pt=pool2 sa_sel=T store=b32 atomic=add
b1: branch=exit
"""
    assert said(launch(text, 2)) == [
        "EXEC b0 q0", "0x0005", "0x0006",  # early result, first: after the EXEC itself
        "MEM row 8 lane 0", "0x5678", "0x1234", "0x0000",
        "MEM row 8 lane 1", "0xacf0", "0x2468", "0x0000",
        "VAL r2", "0x5678", "0x1234", "0x5678", "0x1234",  # two lanes: no short form for equal words of 32 bits
        "VAL r3", "0x0000", "0x0000", "0x5678", "0x1234",
        "EXEC b1 q0", "HALT",
    ]  # fmt: skip


def test_wide_values_go_lane_by_lane() -> None:
    text = "b0: m1_sel=Q pq=pool1 c_sel=X x=laneid alu_b=add d_b=r4 branch=exit"
    assert said(launch(text, 3)) == [
        "EXEC b0 q0", "VALW r4", "0x5678", "0x1234", "0x5679", "0x1234", "0x567a", "0x1234", "HALT",
    ]  # fmt: skip


def test_lanes_that_part_get_masks() -> None:
    text = """
b0: a_sel=X x=laneid b_sel=I imm=2 cond=ge.u p_write=1 g_branch=1 branch=bra target=b2
b1: c_sel=I imm=7 alu_b=second d_b=r1
b2: branch=exit
"""
    assert said(launch(text)) == [
        "EXEC b0 q0",
        "MASK q0 0b0011 leader 0", "EXEC b1 q0", "0x0007", "MASK q0 0b1111 leader 0", "EXEC b2 q0", "HALT",
    ]  # fmt: skip


def test_stores_of_one_row_merge_and_the_highest_lane_stays() -> None:
    text = "b0: c_sel=X x=laneid alu_b=second sa_sel=T pt=pool2 sb_sel=I imm=3 store=b8 branch=exit"
    assert said(launch(text, rows={8: (0x00AAAAAA, 9)})) == [
        "EXEC b0 q0",
        "MEM row 8 lane 0",
        "0xaaaa",
        "0x03aa",
        "0x0009",
        "HALT",
    ]
    text = "b0: c_sel=X x=laneid alu_b=second sa_sel=T pt=pool2 sb_sel=BS b_sel=X b_shift=2 store=b32 branch=exit"
    assert said(launch(text)) == [
        "EXEC b0 q0",
        "MEM row 8 lane 0",
        "0x0000",
        "0x0001",
        "MEM row 9 lane 2",
        "0x0002",
        "0x0003",
        "HALT",
    ]


def test_grids_run_x_first_and_barriers_count_all_quads() -> None:
    text = "b0: branch=bar\nb1: branch=exit"
    one = ["EXEC b0 q0", "EXEC b0 q1", "BAR", "EXEC b1 q0", "EXEC b1 q1"]
    # after BAR the next quad runs, cyclically after the last: of two, the first
    assert said(launch(text, 5, (2, 2, 2))) == [
        *one, "CTA", "0x0001", *one, "CTA", "0x0000", "0x0001", *one, "CTA", "0x0001", "0x0001",
        *one, "CTA", "0x0000", "0x0000", "0x0001", *one, "CTA", "0x0001", "0x0000", "0x0001",
        *one, "CTA", "0x0000", "0x0001", "0x0001", *one, "CTA", "0x0001", "0x0001", "0x0001", *one, "HALT",
    ]  # fmt: skip


def test_a_large_x_has_the_form_of_four() -> None:
    machine = Interpreter()
    machine.feed(prompt(launch("b0: branch=exit", 1, (65538, 1, 1))))
    machine.state.cta = (65535, 0, 0)
    written = []
    while (token := machine.next()) is not None:
        written.append(tokens.text(token).removeprefix("DATA "))
        machine.feed([token])
    assert written == ["EXEC b0 q0", "CTA", "0x0000", "0x0000", "0x0000", "0x0001", "EXEC b0 q0", "CTA",
                       "0x0001", "0x0000", "0x0000", "0x0001", "EXEC b0 q0", "HALT"]  # fmt: skip


def test_shared_memory_is_wiped_by_a_cta_and_global_memory_is_not() -> None:
    text = """
b0: a_sel=I imm=12288 load=b32 m1_sel=L d_b=r1
b1: a_sel=I imm=64 load=b32 m1_sel=L d_b=r2
b2: sb_sel=I imm=12288 c_sel=I alu_b=second store=b32
b3: sb_sel=I imm=64 c_sel=I alu_b=second store=b32 branch=exit
"""
    _, machine = run(launch(text, 1, (2, 1, 1)))
    assert machine.state.registers[0][0][1:3] == [0, 64]
    _, machine = run(launch(text, 1, (1, 1, 1)))
    assert machine.state.byte_word(12288) == 12288


def test_register_0_is_0() -> None:
    text = "b0: c_sel=I imm=9 alu_b=second\nb1: m1_sel=A ra=r0 c_sel=X x=tid.x alu_b=add d_b=r1 branch=exit"
    assert said(launch(text, 1)) == ["EXEC b0 q0", "EXEC b1 q0", "0x0000", "HALT"]


GUARDED = "b0: a_sel=X x=laneid b_sel=I imm=1 cond=gt.u p_write=1 {} \nb1: branch=exit"
FAULTS = [
    # loads before stores before traps, whatever the lane
    (
        "b0: a_sel=X x=laneid b_sel=I imm=1 cond=ge.u p_write=1 load=b32 g_load=1 sb_sel=I store=b32 branch=exit",
        "load misaligned, lane 1",
    ),
    ("b0: sb_sel=I imm=4000 store=b32 branch=trap", "store out of bounds, lane 0"),
    ("b0: a_sel=I imm=4000 load=b32 branch=trap", "load out of bounds, lane 0"),
    # misaligned before out of bounds for one lane, but the lowest lane first
    ("b0: a_sel=I imm=4001 load=b32 branch=exit", "load misaligned, lane 0"),
    ("b0: a_sel=I imm=61 b_sel=X x=laneid load=b32 branch=exit", "load misaligned, lane 0"),
    ("b0: a_sel=I imm=60 b_sel=X x=laneid load=b32 branch=exit", "load out of bounds, lane 0"),
    ("b0: a_sel=I imm=126 b_sel=X x=laneid load=u8 branch=exit", "load out of bounds, lane 2"),
    ("b0: a_sel=I imm=126 b_sel=X x=laneid load=u16 branch=exit", "load misaligned, lane 1"),
    ("b0: a_sel=I imm=68 load=b64 branch=exit", "load misaligned, lane 0"),
    ("b0: a_sel=I imm=72 load=b64 load_wide=1 branch=exit", "load misaligned, lane 0"),
    ("b0: sb_sel=I imm=72 store=b64 store_wide=1 branch=exit", "store misaligned, lane 0"),
    ("b0: sb_sel=I imm=16384 store=b8 branch=exit", "store out of bounds, lane 0"),
    ("b0: sb_sel=I imm=-4 store=b32 branch=exit", "store out of bounds, lane 0"),
    ("b0: sb_sel=I imm=66 store=b32 atomic=add branch=exit", "store misaligned, lane 0"),
    # guards
    (GUARDED.format("branch=trap g_branch=1"), "trap, lane 2"),
    (GUARDED.format("store=b32 g_store=1"), "store out of bounds, lane 2"),
    (GUARDED.format("store=b32"), "store out of bounds, lane 0"),
    (GUARDED.format("load=b32 g_load=1"), "load misaligned, lane 2"),
]  # fmt: skip


@pytest.mark.parametrize("text, fault", FAULTS)
def test_faults_and_their_priority(text: str, fault: str) -> None:
    assert said(launch(text)) == ["EXEC b0 q0", f"FAULT {fault}"]


def test_a_fault_ends_the_launch_and_memory_can_be_read() -> None:
    store = "sb_sel=I imm={} c_sel=I alu_b=second store=b32"
    text = f"b0: {store.format(64)}\nb1: {store.format(72)} branch=trap"
    written, machine = run(launch(text, 1))
    assert [tokens.text(t) for t in written[-2:]] == ["EXEC b1 q0", "FAULT trap, lane 0"]
    assert machine.fault == (tokens.CAUSES.index("trap"), 0, 0, 1, 0)
    assert read(machine, 8) == ["DATA 0x0040", "HALT"]
    assert read(machine, 9) == ["DATA 0x0000", "HALT"]


def read(machine: Interpreter, row: int) -> list[str]:
    machine.feed([tokens.encode("READ", row)])
    found = []
    while (token := machine.next()) is not None:
        machine.feed([token])
        found.append(tokens.text(token))
    return found


def test_faults_of_a_launch_are_all_named() -> None:
    program = assemble(".program bad\n.parameters 2\nb0: branch=bra target=9\nb1: load=7\n")
    found = faults(Launch(program, (0, 70000, 1), (200, 1, 1)))
    text = "\n".join(found)
    for part in ("branch to block 9", "load 7 is reserved", "falls off", "200 threads", "sizes of at least 1",
                 "CUDA's limits", "2 parameter words, 0 given"):  # fmt: skip
        assert part in text
    with pytest.raises(ValueError, match="branch to block 9"):
        prompt(Launch(program))
