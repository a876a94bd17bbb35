"""Ten thousand random blocks: the circuit writes what the interpreter writes."""

from __future__ import annotations

from random import Random

from tests.machine.harness import mismatches
from tests.machine.random_launches import straight

from qgpu.isa import tokens
from qgpu.isa.interpreter import run

PROGRAMS, BLOCKS = 256, 40


def test_ten_thousand_random_blocks() -> None:
    rng = Random(2035)
    launches = [straight(rng, BLOCKS) for _ in range(PROGRAMS)]
    found, compared = mismatches(launches, 100_000)
    assert [str(m) for m in found[:10]] == []
    executed = sum(run(launch)[1].statistics.tokens["EXEC"] for launch in launches)
    assert executed >= 10_000
    assert compared > 4 * executed
    assert all(run(launch)[0][-1] == tokens.encode("HALT") for launch in launches[:20])
