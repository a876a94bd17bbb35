"""Random kernels: what the interpreter leaves in memory and registers is what one thread at a time leaves."""

from __future__ import annotations

from random import Random

import pytest
from tests.isa.random_programs import launch
from tests.isa.reference import Reference

from qgpu.isa import tokens
from qgpu.isa.interpreter import Interpreter, run
from qgpu.isa.program import Launch

PROGRAMS = 20


def memory_of(machine: Interpreter, launch: Launch) -> bytes:
    rows = (machine.state.memory.get(row, (0, 0)) for row in range(tokens.ROWS))
    return b"".join(word.to_bytes(4, "little") for row in rows for word in row)


def compare(launch: Launch, schedules: tuple[str, ...], seed: int = 0) -> int:
    """Assert that the interpreter and every schedule agree; returns the tokens of the launch."""
    written, machine = run(launch, 200_000)
    assert tokens.text(written[-1]) == "HALT"
    for schedule in schedules:
        reference = Reference(launch, schedule, seed).run()
        assert reference.outcome == "halt"
        assert memory_of(machine, launch) == bytes(reference.memory)
        for thread in reference.threads:
            assert machine.state.registers[thread.number // 4][thread.number % 4] == thread.registers, thread.number
    return len(written)


@pytest.mark.parametrize("seed", range(5))
def test_random_programs(seed: int) -> None:
    rng = Random(seed)
    for number in range(PROGRAMS):
        schedules = ("random", "fair", "fair, last first") if number % 5 == 0 else ("random",)
        compare(launch(rng, circuits=seed % 2 == 1), schedules, number)
