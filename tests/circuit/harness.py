"""Runs a piece of a circuit on many input cases at once: the id of a token is the number of the case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from qgpu.circuit.builder import Builder
from qgpu.circuit.evaluate import Simulator
from qgpu.circuit.graph import Cost, cost
from qgpu.circuit.ir import Expr
from qgpu.circuit.word import Word

Build = Callable[[Builder, dict[str, Word]], Mapping[str, Word | Expr | Sequence[Expr]]]


def run(build: Build, inputs: Mapping[str, tuple[int, Sequence[int]]]) -> tuple[dict[str, list[int]], Cost]:
    """``inputs``: name -> (width, values, one a case). Returns each output's unsigned value a case, and the cost."""
    cases = len(next(iter(inputs.values()))[1])
    b = Builder("test", cases)
    words = {
        name: Word(name, tuple(b.token(f"{name}.bit{i}", [(value >> i) & 1 for value in values]) for i in range(width)))
        for name, (width, values) in inputs.items()
    }
    for name, output in build(b, words).items():
        b.probe(name, output if isinstance(output, Expr | Word) else list(output))
    width = max(cases - 1, 1).bit_length()
    ids = b.token_word("id", range(cases), width)
    circuit = b.finish(ids, range(cases))
    simulator = Simulator(circuit, cases)
    assert simulator.step(np.arange(cases)).tolist() == list(range(cases))
    return {name: [int(v) for v in simulator.probe_word(name)] for name in circuit.probes}, cost(circuit.cells)
