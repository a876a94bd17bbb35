"""The forms of results: the random blocks of test_blocks take every one; and what an EXEC keeps of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
from tests.machine.random_launches import EDGES, straight

from qgpu.circuit.builder import Builder
from qgpu.circuit.evaluate import Simulator
from qgpu.isa import tokens, values
from qgpu.isa.interpreter import run
from qgpu.machine.parts import Ranks
from qgpu.machine.results import result_form

BLOCKS = 40


def forms(written: Sequence[int]) -> Iterator[tuple[str, int]]:
    """(marker, DATA after it) of the destinations of a launch."""
    marker, count = "", 0
    for token in written:
        name = tokens.decode(token)[0]
        if name == "DATA":
            count += 1
            continue
        if marker in ("EXEC", "VAL", "VALW") and count:
            yield marker, count
        marker, count = name, 0


def test_random_blocks_take_every_form() -> None:
    rng = Random(2035)
    seen = set()
    for _ in range(100):
        launch = straight(rng, BLOCKS)
        seen |= {(launch.cta[0], *form) for form in forms(run(launch, 100_000)[0])}
    lengths = {1: (1, 2), 2: (1, 2, 4), 3: (1, 2, 3), 4: (1, 2, 4)}
    short = {(k, marker, n) for k, of in lengths.items() for n in of for marker in ("EXEC", "VAL")}
    assert seen == short | {(k, "VALW", 2 * k) for k in (3, 4)}


LANES = 4
CASES = 1600


def test_long_mixed_and_wide() -> None:
    """A circuit with an id for each case: four words, of which the first ones count."""
    rng = Random(1)
    pool = [*EDGES, *(rng.getrandbits(32) for _ in range(4))]
    cases = []
    for i in range(CASES):
        some = rng.sample(pool, 2)
        cases.append([rng.choice(some) if rng.random() < 0.8 else rng.choice(pool) for _ in range(1 + i % LANES)])
    padded = [[*case, *[0] * (LANES - len(case))] for case in cases]
    b = Builder("form", CASES)
    words = [
        b.token_word(f"low{lane}", [case[lane] & 0xFFFF for case in padded], 16)
        + b.token_word(f"high{lane}", [case[lane] >> 16 for case in padded], 16)
        for lane in range(LANES)
    ]
    one = b.token("one", [1] * CASES)
    lanes = [b.token(f"is{k}", [int(k == len(case)) for case in cases]) for k in (2, 3, 4)]
    found = result_form(b, "result", one, words, one, Ranks([], *lanes))
    b.probe("form", (found.long, found.mixed, found.wide))
    sim = Simulator(b.finish([one] * CASES.bit_length(), range(CASES)), CASES)
    sim.step(np.arange(CASES))
    for case, read in zip(cases, sim.probe("form").T, strict=True):
        long = not all(values.fits(word) for word in case)
        mixed = any(word != case[0] for word in case)
        assert tuple(read) == (long, mixed, values.lane_form(case)[0]), case
