"""The fast evaluator against the naive one, and its error messages."""

from __future__ import annotations

import random

import pytest
from tests.circuit.random_circuits import random_circuit

from qgpu.circuit.evaluate import RESTS, Simulator
from qgpu.circuit.naive import Naive


@pytest.mark.parametrize("seed", range(30))
def test_fast_agrees_with_naive(seed: int) -> None:
    circuit = random_circuit(seed)
    rng = random.Random(seed)
    batch = 3
    fast = Simulator(circuit, batch)
    slow = [Naive(circuit) for _ in range(batch)]
    for _ in range(25):
        ids = [rng.randrange(circuit.vocabulary) if rng.random() < 0.9 else RESTS for _ in range(batch)]
        wanted = [RESTS if i == RESTS else naive.step(i) for naive, i in zip(slow, ids, strict=True)]
        assert fast.step(ids).tolist() == wanted
        for name, parts in circuit.probes.items():
            values = fast.probe(name)
            for instance, naive in enumerate(slow):
                if ids[instance] != RESTS:
                    assert values[:, instance].tolist() == [naive.value(part) for part in parts]
