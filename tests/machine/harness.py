"""Runs launches through the machine's circuit and through the interpreter, token by token, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from qgpu.circuit.evaluate import Simulator
from qgpu.isa import encoding, tokens
from qgpu.isa.interpreter import run
from qgpu.isa.program import FIRST_PARAM, Block, Launch, Program, prompt
from qgpu.machine.machine import machine_circuit


@cache
def simulator(batch: int) -> Simulator:
    return Simulator(machine_circuit(), batch)


def block(**fields: int | str) -> Block:
    """A block from field values or choice names."""
    numbers = {
        name: encoding.CHOICES[name].index(value) if isinstance(value, str) else value for name, value in fields.items()
    }
    return Block({name: value for name, value in numbers.items() if value})


@dataclass(frozen=True)
class Mismatch:
    launch: int
    position: int
    expected: int
    got: int
    before: tuple[int, ...]

    def __str__(self) -> str:
        trail = " ".join(f"[{tokens.text(t)}]" for t in self.before)
        got = tokens.text(self.got) if 0 <= self.got < tokens.USED_IDS else str(self.got)
        return f"launch {self.launch}, token {self.position}: expected {tokens.text(self.expected)}, got {got} after {trail}"  # noqa: E501


def mismatches(launches: Sequence[Launch], max_tokens: int = 2000) -> tuple[list[Mismatch], int]:
    """The first difference of each launch that has one, and how many tokens were compared."""
    traces = []
    for launch in launches:
        start = prompt(launch)
        written, _ = run(launch, max_tokens)
        traces.append((start, written))
    sim = simulator(len(launches))
    sim.reset()
    longest = max(len(start) + len(written) for start, written in traces)
    found: dict[int, Mismatch] = {}
    compared = 0
    for position in range(longest):
        ids = np.full(len(launches), -1, np.int64)
        for i, (start, written) in enumerate(traces):
            if position < len(start) + len(written) and i not in found:
                ids[i] = start[position] if position < len(start) else written[position - len(start)]
        answers = sim.step(ids)
        for i, (start, written) in enumerate(traces):
            at = position - len(start) + 1
            if 0 <= at < len(written) and i not in found:
                compared += 1
                if int(answers[i]) != written[at]:
                    before = tuple((start + written)[position - 3 : position + 1])
                    found[i] = Mismatch(i, at, written[at], int(answers[i]), before)
    return list(found.values()), compared


DOT = Program(
    "dot",
    (
        block(a_sel="P", pa=FIRST_PARAM, b_sel="X", x="tid.x", b_shift=2, load="b32", stage_w="L"),
        block(a_sel="P", pa=FIRST_PARAM + 1, b_sel="X", x="tid.x", b_shift=2, load="b32", m1_sel="S1", m2_sel="L",
              m_op="mul.lo", sa_sel="T", pt=FIRST_PARAM + 2, store="b32", atomic="add", branch="exit"),
    ),
    3,
)  # fmt: skip
