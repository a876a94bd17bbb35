"""The example circuits against their meaning on integers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qgpu.circuit.evaluate import Simulator
from qgpu.circuit.examples import (
    AccumulatorIds,
    accumulator,
    accumulator_reference,
    fibonacci,
    fibonacci_reference,
)


def test_fibonacci_writes_itself() -> None:
    simulator = Simulator(fibonacci())
    written = [1, 1]
    simulator.step(1)
    while len(written) < 60:
        following = simulator.step(written[-1])
        assert following is not None
        written.append(following)
    for a, b, c in zip(written, written[1:], written[2:], strict=False):
        assert c == (a + b) % 65536
    assert fibonacci_reference(written[:-1])[1:] == written[2:]


def test_fibonacci_on_any_tokens() -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 65536, (200, 8))
    simulator = Simulator(fibonacci(), 8)
    answers = np.array([simulator.step(row) for row in ids])
    for instance in range(8):
        assert answers[:, instance].tolist() == fibonacci_reference(ids[:, instance].tolist())


@pytest.mark.parametrize("register_bits", [1, 4, 8])
def test_accumulator(register_bits: int) -> None:
    names = AccumulatorIds(register_bits)
    rng = random.Random(register_bits)
    near = [names.operation(kind, rng.randrange(names.registers)) for kind in names.OPERATIONS * 8]
    sequences = []
    for _ in range(20):
        sequence: list[int] = []
        answer = 0
        for _ in range(150):
            pick = rng.random()
            if pick < 0.3 and answer < names.VALUES:
                token = answer
            elif pick < 0.9:
                token = rng.choice(near)
            else:
                token = rng.choice([rng.randrange(names.vocabulary), names.clear])
            sequence.append(token)
            answer = accumulator_reference(sequence, register_bits)[-1]
        sequences.append(sequence)
    wanted = [accumulator_reference(sequence, register_bits) for sequence in sequences]
    kinds = {names.split(answer)[0] for answers in wanted for answer in answers}
    assert kinds == {"value", "ready", "fault"}
    simulator = Simulator(accumulator(register_bits), len(sequences))
    for tokens, answers in zip(np.array(sequences).T, np.array(wanted).T, strict=True):
        assert simulator.step(tokens).tolist() == answers.tolist()


def test_accumulator_ids_are_a_partition() -> None:
    names = AccumulatorIds()
    assert names.vocabulary == 256 + 4 * 16 + 3
    assert len({names.split(token) for token in range(names.vocabulary)}) == names.vocabulary
    assert names.split(names.operation("subtract", 5)) == ("subtract", 5)
