"""The whole machine in weights against the interpreter and Python integers, on the native engine in both dtypes.

`make test` takes a part of each kind; `make test-full` at least 2,000 random programs and a launch of 200,000 tokens.
The dense engine reads a sample of the same launches in ``test_dense``.
"""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance import units
from tests.isa.random_programs import launch as random_launch
from tests.isa.test_traps import DEADLOCKS, TRAPS, cleaned, trap
from tests.machine.harness import block

from qgpu.cuda.cache import cache_directory
from qgpu.driver import bare
from qgpu.engines.native import NativeEngine
from qgpu.isa import subset, tokens
from qgpu.isa.interpreter import Interpreter, run
from qgpu.isa.program import Launch, Program, prompt

pytestmark = pytest.mark.xdist_group("native")
DTYPES = ("bfloat16", "float32")
QUICK, FULL = 40, 2000  # random programs
LONG = 200_000
READ_LIMIT = 6


@cache
def engine(dtype: str) -> NativeEngine:
    cache = cache_directory()
    return NativeEngine(bare.bare()[0], dtype, folder=None if cache is None else cache / "native")


def agree(request: Launch, dtype: str, limit: int = 20_000, expect: str = "HALT") -> tuple[list[int], Interpreter]:
    """Assert that the engine writes the interpreter's tokens; returns them and the interpreter."""
    assert subset.program_faults(request.program) == []
    written, machine = run(request, limit)
    assert tokens.text(written[-1]).startswith(expect)
    found = engine(dtype)
    found.reset()
    found.feed(prompt(request))
    at = found.check(written)
    assert at is None, f"token {at}: {[tokens.text(t) for t in written[max(0, at - 4) : at + 1]]}"
    return written, machine


def row_of(found: NativeEngine, row: int) -> tuple[int, int]:
    """A memory row by READ, in tokens."""
    found.feed([tokens.encode("READ", row)])
    answer = found.generate(READ_LIMIT, {tokens.encode("HALT")})
    assert answer[-1] == tokens.encode("HALT")
    from qgpu.isa.values import row_of as reading

    return reading(answer[:-1])


@pytest.mark.parametrize("name", units.cases())
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_every_operation_on_edges(name: str, seed: int) -> None:
    """32 threads, 32 triples of operands: interpreter, weights, and integers."""
    fields, expected = units.cases()[name]
    triples = units.operands(Random(seed))
    request = units.launch(fields, triples)
    _, machine = agree(request, DTYPES[seed % 2])
    for thread, triple in enumerate(triples):
        word, bit = expected(*triple)
        assert machine.state.memory.get(units.OUT // 8 + thread, (0, 0)) == (word, bit), (name, triple)


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_programs(dtype: str) -> None:
    """Divergence, loops, exits, barriers, shuffles, ballots, atomics, locks, yields."""
    rng = Random(1)
    for _ in range(QUICK // 2):
        agree(random_launch(rng, circuits=True), dtype)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_two_thousand_random_programs(seed: int) -> None:
    """Some go on for more than 20,000 tokens; the first ones are enough then."""
    rng = Random(1000 + seed)
    for number in range(FULL // 20):
        agree(random_launch(rng, circuits=True), DTYPES[number % 2], 3000, expect="")


@pytest.mark.parametrize("name", TRAPS)
def test_traps(name: str) -> None:
    text, threads = TRAPS[name]
    for dtype in DTYPES:
        agree(trap(cleaned(text), threads), dtype)


@pytest.mark.parametrize("name", DEADLOCKS)
def test_deadlocks_end(name: str) -> None:
    for dtype in DTYPES:
        agree(trap(cleaned(DEADLOCKS[name])), dtype, expect="FAULT deadlock")


def counting(trips: int, threads: int = 32) -> Launch:
    """Every thread steps a generator and stores what it has, ``trips`` times."""
    blocks = (
        block(a_sel="X", x="tid.x", d_e=1),
        block(a_sel="P", pa=7, d_e=3),
        block(m1_sel="A", ra=1, m2_sel="Q", pq=8, m_op="mul.lo", c_sel="Q", alu_b="add", d_b=1),
        block(a_sel="P", pa=9, b_sel="X", x="tid.x", b_shift=2, alu_a="add", sa_sel="T", pt=9, sb_sel="BS", store="b32",
              m1_sel="B", rb=1),  # fmt: skip
        block(a_sel="A", ra=3, b_sel="I", imm=-1, alu_a="add", d_e=3, m1_sel="R", cond="ne", p_write=1, p_src="b",
              g_branch=1, branch="bra", target=2, back=1),  # fmt: skip
        block(branch="exit"),
    )
    program = Program("counting", blocks, 0, (0, trips, 1664525, 1024))
    return Launch(program, (1, 1, 1), (threads, 1, 1), (), {}, {row: (1 << 64) - 1 for row in range(16, 24)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_snapshot_goes_on_as_if_nothing_had_been(dtype: str) -> None:
    request = counting(3)
    written, _ = run(request, 5000)
    found = engine(dtype)
    for cut in (1, 17, len(written) // 2, len(written) - 2):
        found.reset()
        found.feed(prompt(request))
        before = found.generate(cut)
        kept = found.snapshot()
        row_of(found, 128)  # looks at memory, which ends the launch in this copy
        found.restore(kept)
        assert before + found.generate(10_000, {tokens.encode("HALT")}) == written


def faulting(rng: Random) -> Launch:
    """Threads that store to their own words, trip after trip, until one of them leaves what is allocated."""
    step = rng.choice((4, 12, 64))
    blocks = (
        block(a_sel="P", pa=6, b_sel="X", x="tid.x", b_shift=2, d_e=1),
        block(sa_sel="A", ra=1, store=rng.choice(("b8", "b16", "b32")), m1_sel="A", c_sel="I", imm=step, alu_b="xor"),
        block(a_sel="A", ra=1, b_sel="I", imm=step, d_e=1, branch="bra", target=1, back=1),
    )
    allocated = {row: (1 << 64) - 1 for row in range(16, 24)}
    allocated[23] = rng.getrandbits(64)
    return Launch(Program("faulting", blocks, 0, (1024,)), (1, 1, 1), (rng.randrange(1, 9), 1, 1), (), {}, allocated)


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_after_a_fault_is_the_interpreters(dtype: str) -> None:
    rng = Random(5)
    for _ in range(4):
        _, machine = agree(faulting(rng), dtype, expect="FAULT store")
        for row in (*range(128, 192, 5), 191, 0, 2047):
            assert row_of(engine(dtype), row) == machine.state.memory.get(row, (0, 0)), row


@pytest.mark.full
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_launch_of_two_hundred_thousand_tokens(dtype: str) -> None:
    written, _ = agree(counting(2200, 32), dtype, LONG, expect="")
    assert len(written) == LONG
