"""A part of the machine alone: tokens whose fields are given, run one after the other, many runs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from qgpu.circuit.builder import Builder
from qgpu.circuit.evaluate import RESTS, Simulator
from qgpu.circuit.graph import Cost, cost
from qgpu.circuit.ir import Expr
from qgpu.circuit.word import Word

Inputs = Mapping[str, Word]
Build = Callable[[Builder, Inputs], Mapping[str, Word | Expr | Sequence[Expr]]]


class Unit:
    """``widths``: the inputs' names and widths; ``build`` names what is to be seen. A run is a list of tokens, each a
    mapping from inputs to values (zero where left out). Equal tokens share an id."""

    def __init__(self, widths: Mapping[str, int], build: Build, runs: Sequence[Sequence[Mapping[str, int]]]) -> None:
        keys = [[tuple(token.get(name, 0) for name in widths) for token in run] for run in runs]
        ids = {key: number for number, key in enumerate(dict.fromkeys(key for run in keys for key in run))}
        self._ids = [[ids[key] for key in run] for run in keys]
        b = Builder("unit", len(ids))
        words = {
            name: Word(name, tuple(b.token(f"{name}.bit{i}", [key[n] >> i & 1 for key in ids]) for i in range(width)))
            for n, (name, width) in enumerate(widths.items())
        }
        for name, output in build(b, words).items():
            b.probe(name, output if isinstance(output, Expr | Word) else list(output))
        width = max(len(ids) - 1, 1).bit_length()
        self.circuit = b.finish(b.token_word("id", range(len(ids)), width), range(len(ids)))

    @property
    def cost(self) -> Cost:
        return cost(self.circuit.cells)

    def __iter__(self) -> Iterator[tuple[int, list[dict[str, int] | None]]]:
        """Token after token: its place, and what each run shows there (None where a run has ended)."""
        simulator = Simulator(self.circuit, len(self._ids))
        for place in range(max(map(len, self._ids))):
            now = [run[place] if place < len(run) else RESTS for run in self._ids]
            simulator.step(np.array(now))
            seen = {name: simulator.probe_word(name) for name in self.circuit.probes}
            yield place, [
                None if token == RESTS else {name: int(values[i]) for name, values in seen.items()}
                for i, token in enumerate(now)
            ]
