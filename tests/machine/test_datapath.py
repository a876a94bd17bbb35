"""The datapath alone against the interpreter's run_block: every word it hands to control, at every EXEC."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.machine.datapath_blocks import random_block, random_run
from tests.machine.datapath_runs import Run, full, mismatches, repair, start

from qgpu.isa import encoding, subset, tokens
from qgpu.isa.program import Block, Launch, Program

RUNS, BLOCKS, EXECUTIONS = 32, 12, 90


def test_random_blocks() -> None:
    runs = [random_run(Random(seed), BLOCKS, EXECUTIONS) for seed in range(RUNS)]
    assert list(mismatches(runs))[:5] == []
    seen = [expected for run in runs for expected in run.expected.values()]
    causes = Counter(e.fault[0] for e in seen if e.fault)
    assert all(causes[cause] > 10 for cause in range(tokens.CAUSES.index("trap") + 1))
    assert all(sum(len(e.stores) == n for e in seen if not e.fault) > 0 for n in range(5))


def test_random_blocks_take_every_choice() -> None:
    rng = Random(0)
    blocks = [random_block(rng) for _ in range(2000)]
    assert [text for fields in blocks for text in subset.faults(fields)] == []
    for name, choices in subset.PRESENT.items():
        choices = {"none", "sync"} if name == "collect" else choices
        assert {encoding.choice(name, fields[name]) for fields in blocks} == choices, name


def launch(blocks: list[dict[str, int]], **more: object) -> Run:
    program = Program("test", tuple(Block({k: v for k, v in f.items() if v}) for f in blocks))
    return start(Launch(program, (1, 1, 1), (4, 1, 1), (), **more), blocks, [0])  # type: ignore[arg-type]


def test_shared_rows_are_wiped_and_others_kept() -> None:
    rows = {1535: (5, 6), 1536: (7, 8), 2047: (9, 10)}
    run = launch([repair(0)], rows=rows)
    for row in rows:
        run.read(row)
    assert sorted(run.rows.values()) == [0, 0, 5 | 6 << 32]
    assert list(mismatches([run])) == []


@pytest.mark.parametrize("low, high", [(0, 0), (0xFFFF8000, 0), (5, 0xFFFFFFFF), (0x8000, 3), (1, 0x12345678)])
def test_a_row_of_every_form(low: int, high: int) -> None:
    run = launch([repair(0)])
    run.write(3, 0xAAAAAAAA, 0x55555555)
    run.write(3, low, high)
    run.read(3)
    assert list(mismatches([run])) == []


def test_loads_fault_before_stores_and_low_lanes_first() -> None:
    # lanes load from 4 * tid.x (allocated for lanes 0 and 1 only) and store to 2 * tid.x (misaligned in lanes 1 and 3)
    load = {"b_sel": "X", "x": "tid.x", "b_shift": 2, "load": "b32"}
    store = {"sa_sel": "A", "ra": 5, "store": "b32"}
    blocks = [full({"d_e": 1, "d_b": 2, **f}) for f in ({}, load, store, load | store)]
    run = launch(blocks, allocated={0: 0xFF})
    run.execute(0, 0)
    run.set_register(0, 5, [0, 2, 4, 6])
    assert [run.execute(block, 0).fault for block in (1, 2, 3)] == [(0, 2), (3, 1), (0, 2)]
    run.mask(0, 0b0010, 1)
    assert [run.execute(block, 0).fault for block in (1, 2, 3)] == [None, (3, 1), (3, 1)]
    assert list(mismatches([run])) == []


def test_store_addresses_wrap_at_32_bits_and_not_at_the_memory_size() -> None:
    block = full({"sa_sel": "A", "ra": 5, "sb_sel": "I", "imm": 4, "store": "b32", "d_e": 1, "d_b": 2})
    run = launch([full({"d_e": 1, "d_b": 2}), block], allocated={0: (1 << 64) - 1})
    run.execute(0, 0)
    run.set_register(0, 5, [0xFFFFFFFC, 0x3FFC, 0x40000000, 0x80000000])
    for lane, fault in enumerate((None, (2, 1), (2, 2), (2, 3))):
        run.mask(0, 1 << lane, lane)
        assert run.execute(1, 0).fault == fault
    assert list(mismatches([run])) == []
