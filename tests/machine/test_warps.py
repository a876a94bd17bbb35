"""Barriers, gathers, shuffles, ballots, yields and deadlocks: every token of the circuit is the interpreter's."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.isa.random_programs import launch
from tests.isa.test_traps import DEADLOCKS, SPIN_IN_TURN, TRAPS, cleaned, trap
from tests.machine.harness import block, mismatches

from qgpu.isa import subset
from qgpu.isa.encoding import CHOICES
from qgpu.isa.program import Block, Launch, Program

NAMED = {**TRAPS, **{name: (text, 32) for name, text in DEADLOCKS.items()}, "spin in turn": (SPIN_IN_TURN, 7)}
ALL = (1 << 64) - 1


def has(start: Launch) -> bool:
    return not subset.program_faults(start.program)


def test_traps() -> None:
    """All at once, to their end or their first tokens, with no more of the allocation map than they need."""
    launches = {name: trap(cleaned(text), threads) for name, (text, threads) in NAMED.items()}
    launches = {name: replace(start, allocated={row: ALL for row in range(18)}) for name, start in launches.items()}
    launches = {name: start for name, start in launches.items() if has(start)}
    assert len(launches) >= 13
    found, compared = mismatches(list(launches.values()), 700)
    assert [str(m) for m in found] == []
    assert compared > 3500


def mended(given: Block) -> Block:
    """A block of the whole contract as one that circuits have: other choices where they lack one."""
    f = dict(given.fields)
    put = {"store": "b32", "load": "b32", "atomic": "add", "e_sel": "L"}
    for name in list(f):
        if name in subset.PRESENT and CHOICES[name][f[name]] not in subset.PRESENT[name]:
            f[name] = CHOICES[name].index(put[name]) if name in put else 0
            if name in ("store", "load"):
                f["imm"] = f.get("imm", 0) & ~3
        if name in subset.ABSENT_FIELDS:
            f[name] = 0
    return replace(given, fields={name: value for name, value in f.items() if value})


def random_launch(rng: Random) -> Launch:
    """What a random kernel computes may be changed by mending it: who is asked, or whether it faults. Both are told."""
    while True:
        start = launch(rng, circuits=True)
        start = replace(start, program=replace(start.program, blocks=tuple(map(mended, start.program.blocks))))
        if has(start):
            return start


def test_random_programs() -> None:
    rng = Random(0)
    found, compared = mismatches([random_launch(rng) for _ in range(24)], 250)
    assert [str(m) for m in found] == []
    assert compared > 2500


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 9))
def test_many_random_programs(seed: int) -> None:
    rng = Random(seed)
    found, compared = mismatches([random_launch(rng) for _ in range(64)], 1500)
    assert [str(m) for m in found] == []
    assert compared > 10000


def shuffle(rng: Random) -> Launch:
    """Every mode with any operands, of lanes that may not exist, for a CTA of any size; then a ballot of guards."""
    mode = rng.choice(("shfl.idx", "shfl.up", "shfl.down", "shfl.bfly"))
    imm = rng.choice((31, 0, 0x101F, 0x1800, 0x1C1F, rng.randrange(0x2000)))
    parity, source = rng.randrange(2), rng.choice(("I", "X", "P"))
    way = {"m1_sel": "V"} if rng.random() < 0.5 else {"c_sel": "V", "alu_b": "second"}
    blocks = (
        block(c_sel="X", x="tid.x", alu_b="second", d_b=2, pq=6, branch="gather", publish_parity=parity),
        block(collect=mode, imm=imm, b_sel=source, x="laneid", pa=7, d_b=3, collect_parity=parity, p_write=1, p_src="v",
              p_index=1, g_index=1, pq=6, branch="gather", publish_parity=1 - parity, **way),
        block(collect="ballot", collect_parity=1 - parity, c_sel="V", alu_b="and", m1_sel="Q", pq=8, d_b=4),
        block(branch="exit"),
    )  # fmt: skip
    pool = (ALL & 0xFFFFFFFF, rng.randrange(64), rng.getrandbits(32))
    return Launch(Program("shuffle", blocks, 0, pool), (1, 1, 1), (rng.choice((1, 3, 7, 32, 33)), 1, 1))


def test_shuffles_and_ballots() -> None:
    rng = Random(7)
    found, compared = mismatches([shuffle(rng) for _ in range(64)], 200)
    assert [str(m) for m in found] == []
    assert compared > 2500
