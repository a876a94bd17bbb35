"""Kernels in which a looser scheduler livelocks, deadlocks or hands a shuffle the wrong words, against the oracle."""

from __future__ import annotations

import pytest
from tests.isa.reference import SCHEDULES, Reference
from tests.isa.test_scheduling import compare

from qgpu.isa import tokens
from qgpu.isa.assembly import assemble
from qgpu.isa.interpreter import run
from qgpu.isa.program import Launch

ALL = (1 << 64) - 1
MAP = {row: ALL for row in range(256)}

# r1: lane id; its result goes to r2, which ends in memory at 64 + 4 * thread
HEAD = ".program trap\n.pool 0xffffffff 64 0xf 0xf0 0xff 0x3 0xff00\nhead: a_sel=X x=laneid d_e=r1\n"
TAIL = """
out:  x=tid.x b_sel=X b_shift=2 sa_sel=T pt=pool1 sb_sel=BS store=b32 m1_sel=A ra=r2
      branch=exit
"""


def trap(text: str, threads: int = 32, grid: int = 1) -> Launch:
    return Launch(assemble(HEAD + text + TAIL), (grid, 1, 1), (threads, 1, 1), (), {}, MAP)


LATE_EXIT_SHUFFLE = """
      a_sel=A ra=r1 b_sel=I imm=5 cond=ge.u p_write=1 g_branch=1 branch=bra target=late
pub:  m1_sel=A ra=r1 pq=pool0 branch=gather
col:   collect=shfl.idx imm=31 b_sel=zero c_sel=V alu_b=second d_b=r2 branch=bra target=out
late: a_sel=A ra=r4 b_sel=I imm=1 alu_a=add d_e=r4
more: a_sel=A ra=r4 b_sel=I imm=9 cond=lt.u p_write=1 g_branch=1 branch=bra target=late
gone: branch=exit
"""

LATE_EXIT_BARRIER = """
      a_sel=A ra=r1 b_sel=I imm=5 cond=ge.u p_write=1 g_branch=1 branch=bra target=late
b1x:  a_sel=I imm=7 d_e=r2 branch=bar
b2x:  branch=bra target=out
late: a_sel=A ra=r4 b_sel=I imm=1 alu_a=add d_e=r4
b4x:  a_sel=A ra=r4 b_sel=I imm=9 cond=lt.u p_write=1 g_branch=1 branch=bra target=late
b5x:  branch=exit
"""

# lanes 0..3 gather among themselves at one place, lanes 4..7 at another, lanes 8.. only with everybody left
TWO_GATHERS = """
      a_sel=A ra=r1 b_sel=I imm=4 cond=lt.u p_write=1 g_branch=1 branch=bra target=low
mid:  a_sel=A ra=r1 b_sel=I imm=8 cond=ge.u p_write=1 g_branch=1 branch=bra target=join
four: m1_sel=A ra=r1 pq=pool3 branch=gather publish_parity=1
sum4: collect=shfl.idx b_sel=I imm=6 collect_parity=1 c_sel=V alu_b=second d_b=r2 branch=bra target=join
low:  m1_sel=A ra=r1 pq=pool2 branch=gather publish_parity=1
sum:  collect=shfl.idx b_sel=I imm=2 collect_parity=1 c_sel=V alu_b=second d_b=r2
join: m1_sel=A ra=r1 c_sel=C rc=r2 alu_b=add d_b=r6 pq=pool0 branch=gather
all:  collect=shfl.bfly b_sel=I imm=31 m1_sel=V c_sel=C rc=r2 alu_b=add d_b=r2
"""

# lanes of one quad with different member masks at one gather: pairs (0, 1) and (2, 3), shifted to the lane's own
PAIRS = """
      a_sel=A ra=r1 b_sel=I imm=-2 alu_a=and d_e=r4
mask: m1_sel=Q pq=pool5 m2_sel=A ra=r4 m_op=shl d_b=r5
p:    m1_sel=B rb=r1 cond=ne p_write=1 p_src=b member=A ra=r5 branch=gather
c:    collect=ballot m1_sel=A ra=r5 c_sel=V alu_b=and d_b=r2
"""

# a tile of 8 lanes whose second quad loops first: it comes long after the first has published
LATE_QUAD = """
      a_sel=A ra=r1 b_sel=I imm=4 cond=lt.u p_write=1 g_branch=1 branch=bra target=go
late: a_sel=A ra=r4 b_sel=I imm=1 alu_a=add d_e=r4
more: a_sel=A ra=r4 b_sel=I imm=20 cond=lt.u p_write=1 g_branch=1 branch=bra target=late
go:   a_sel=A ra=r1 b_sel=I imm=8 cond=ge.u p_write=1 g_branch=1 branch=bra target=out
g:    m1_sel=A ra=r1 pq=pool4 branch=gather
c:    collect=shfl.up b_sel=zero imm=0x1800 m1_sel=V c_sel=C rc=r4 alu_b=add d_b=r2
"""

# groups of lanes (by lane mod 3) hand a ticket on in turn: each spins until the word at 1024 is its number or more
SPIN_IN_TURN = """
      a_sel=A ra=r1 d_e=r4
mod:  a_sel=A ra=r4 b_sel=I imm=3 alu_a=sub cond=ge.s p_write=1 g_sel=1 d_b=r4 m1_sel=R c_sel=C rc=r4 alu_b=first
      g_branch=1 branch=bra target=mod
spin: a_sel=I imm=1024 load=b32 d_e=r5 e_sel=L
test: a_sel=A ra=r5 b_sel=B rb=r4 cond=lt.u p_write=1 g_branch=1 branch=bra target=spin yield=1
mine: m1_sel=A ra=r4 d_b=r2
next: a_sel=A ra=r4 b_sel=I imm=1 alu_a=add d_e=r6
inc:  m1_sel=Q pq=pool0 sb_sel=I imm=1028 store=b32 atomic=add
turn: sb_sel=I imm=1024 store=b32 atomic=max.u m1_sel=A ra=r6
"""

YIELDS_EVERYWHERE = """
loop: a_sel=A ra=r4 b_sel=I imm=1 alu_a=add d_e=r4
test: a_sel=A ra=r4 b_sel=B rb=r1 cond=le.u p_write=1 g_branch=1 branch=bra target=loop yield=1
g:    m1_sel=A ra=r4 pq=pool0 branch=gather
c:    collect=shfl.bfly b_sel=I imm=31 m1_sel=V d_b=r2
b5x:  m1_sel=A ra=r2 sb_sel=I imm=1024 store=b32 atomic=add
"""

# odd lanes go on at the top of the loop without the barrier in it; barriers count lanes, so it still meets
CONTINUE = """
loop: a_sel=A ra=r4 b_sel=I imm=1 alu_a=add d_e=r4
odd:  a_sel=A ra=r1 b_sel=I imm=1 alu_a=and d_e=r5
skip: a_sel=A ra=r5 b_sel=I imm=1 cond=eq p_write=1 g_branch=1 branch=bra target=latch
wait: m1_sel=A ra=r4 sb_sel=I imm=1024 store=b32 atomic=add branch=bar
latch: a_sel=A ra=r4 b_sel=I imm=4 cond=lt.u p_write=1 g_branch=1 branch=bra target=loop
done: a_sel=A ra=r4 d_e=r2 branch=bar
"""

# a warp of 32 whose lanes 20.. do not exist or have gone; the ballot names who is left
BALLOT_OF_SOME = """
      a_sel=A ra=r1 b_sel=I imm=3 cond=eq p_write=1 g_branch=1 branch=exit
g:    pq=pool0 g_neg=1 branch=gather
c:    collect=ballot c_sel=V alu_b=second d_b=r2
"""

# lanes 0..7 want each other, and so do 8..15; the first gather is complete when lanes 4..7 exit, while the second, that
# was published later, is still waited for
COVERED_BY_EXIT = """
      a_sel=A ra=r1 b_sel=I imm=12 cond=ge.u p_write=1 g_branch=1 branch=bra target=late
two:  a_sel=A ra=r1 b_sel=I imm=8 cond=ge.u p_write=1 p_index=1 g_index=1 g_branch=1 branch=bra target=pub2
one:  a_sel=A ra=r1 b_sel=I imm=4 cond=ge.u p_write=1 p_index=2 g_index=2 g_branch=1 branch=bra target=leave
pub1: m1_sel=A ra=r1 pq=pool4 branch=gather
col1: collect=shfl.idx b_sel=I imm=3 c_sel=V alu_b=second d_b=r2 branch=bra target=out
leave: a_sel=A ra=r4 b_sel=I imm=1 alu_a=add d_e=r4
turn: a_sel=A ra=r4 b_sel=I imm=6 cond=lt.u p_write=1 g_branch=1 branch=bra target=leave
gone: branch=exit
late: a_sel=A ra=r4 b_sel=I imm=1 alu_a=add d_e=r4
wait: a_sel=A ra=r4 b_sel=I imm=20 cond=lt.u p_write=1 g_branch=1 branch=bra target=late
pub2: m1_sel=A ra=r1 pq=pool6 branch=gather
col2: collect=shfl.idx b_sel=I imm=9 c_sel=V alu_b=second d_b=r2
"""

# lane 3 speaks once, exits, and has no word in the next ballot of the same buffer
BALLOT_AFTER_EXIT = """
g:    pq=pool0 g_neg=1 branch=gather
c:    collect=ballot c_sel=V alu_b=second d_b=r4
x:    a_sel=A ra=r1 b_sel=I imm=3 cond=eq p_write=1 g_branch=1 branch=exit
h:    pq=pool0 g_neg=1 branch=gather
d:    collect=ballot c_sel=V alu_b=second d_b=r2
"""

# even lanes come to the barrier first, at a lower place than where odd lanes of their quads still loop
BARRIER_BELOW = """
      a_sel=A ra=r1 b_sel=I imm=1 alu_a=and d_e=r4
part: a_sel=A ra=r4 cond=ne p_write=1 g_branch=1 branch=bra target=odd
even: branch=bar
read: a_sel=I imm=1024 load=b32 d_e=r2 e_sel=L branch=bra target=out
odd:  a_sel=A ra=r5 b_sel=I imm=1 alu_a=add d_e=r5
turn: a_sel=A ra=r5 b_sel=I imm=9 cond=lt.u p_write=1 g_branch=1 branch=bra target=odd
tell: sb_sel=I imm=1024 store=b32 atomic=add m1_sel=A ra=r5 branch=bar
"""

TRAPS = {
    "a gather that an exit completes while another is pending": (COVERED_BY_EXIT, 16),
    "a ballot after an exit": (BALLOT_AFTER_EXIT, 32),
    "a barrier below lanes that still run": (BARRIER_BELOW, 13),
    "exits after the others have come to a shuffle": (LATE_EXIT_SHUFFLE, 32),
    "exits after the others have come to a barrier": (LATE_EXIT_BARRIER, 70),
    "two gathers pending in one warp": (TWO_GATHERS, 32),
    "member masks that differ in one quad": (PAIRS, 32),
    "a tile with one late quad": (LATE_QUAD, 32),
    "yields on every back edge": (YIELDS_EVERYWHERE, 32),
    "continue around a barrier": (CONTINUE, 37),
    "a partial warp": (BALLOT_OF_SOME, 19),
    "a partial second warp": (BALLOT_OF_SOME, 33),
}


def cleaned(text: str) -> str:
    """Lines before the first label of a text belong to a block of its own."""
    return "first:" + text


@pytest.mark.parametrize("name", TRAPS)
def test_traps(name: str) -> None:
    text, threads = TRAPS[name]
    assert compare(trap(cleaned(text), threads), tuple(SCHEDULES)) > 10


def results(launch: Launch) -> list[int]:
    """r2 of every thread, as the kernel stored it."""
    _, machine = run(launch, 100_000)
    return [machine.state.byte_word(64 + 4 * thread) for thread in range(launch.cta[0])]


def test_ballots_name_who_is_left() -> None:
    assert results(trap(cleaned(BALLOT_OF_SOME), 19)) == [0x7FFF7 if lane != 3 else 0 for lane in range(19)]


def test_member_masks_of_pairs() -> None:
    launch = trap(cleaned(PAIRS), 8)
    found = results(launch)
    # a quad waits for the union of its lanes' masks, and collects all of them at once
    block = [b.label for b in launch.program.blocks].index("c")
    written = [tokens.text(token) for token in run(launch)[0]]
    assert [text for text in written if text[:4] == "MASK" or f"EXEC b{block} " in text] == [
        f"EXEC b{block} q0",
        f"EXEC b{block} q1",
    ]
    assert found == [0b10, 0b10, 0b1100, 0b1100, 0b110000, 0b110000, 0b11000000, 0b11000000]


def test_two_gathers_by_hand() -> None:
    own = [2] * 4 + [6] * 4 + [0] * 24
    expected = [own[lane] + own[lane ^ 31] + (lane ^ 31) for lane in range(32)]
    assert results(trap(cleaned(TWO_GATHERS))) == expected


def test_groups_that_spin_on_each_other_in_turn() -> None:
    launch = trap(cleaned(SPIN_IN_TURN), 7)
    written, machine = run(launch, 100_000)
    assert tokens.text(written[-1]) == "HALT"
    assert results(launch) == [thread % 3 for thread in range(7)]
    assert machine.state.byte_word(1028) == 2**32 - 7


DEADLOCKS = {
    # lane 0 waits for everybody, the others at a barrier for lane 0
    "gather against barrier": """
      a_sel=A ra=r1 cond=ne p_write=1 g_branch=1 branch=bra target=bar
g:    pq=pool0 branch=gather
c:    collect=sync branch=bra target=out
bar:  branch=bar
    """,
    # halves of a warp wait for each other at two places
    "two gathers that want each other": """
      a_sel=A ra=r1 b_sel=I imm=16 cond=ge.u p_write=1 g_branch=1 branch=bra target=h
g:    pq=pool0 branch=gather
c:    collect=sync branch=bra target=out
h:    pq=pool0 branch=gather
d:    collect=sync branch=bra target=out
    """,
}


@pytest.mark.parametrize("name", DEADLOCKS)
def test_true_deadlocks_end(name: str) -> None:
    launch = trap(cleaned(DEADLOCKS[name]))
    written, machine = run(launch, 10_000)
    assert tokens.text(written[-1]) == "FAULT deadlock, lane 0"
    assert machine.next() is None
    assert {Reference(launch, schedule).run().outcome for schedule in SCHEDULES} == {"deadlock"}
