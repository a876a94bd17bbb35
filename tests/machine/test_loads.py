"""What loads make of a row, against the interpreter's own load."""

from __future__ import annotations

from random import Random

from tests.circuit.harness import run
from tests.machine.random_launches import word

from qgpu.circuit.builder import Builder
from qgpu.circuit.word import Word
from qgpu.isa import encoding
from qgpu.isa.execute import LOAD_BYTES, _load
from qgpu.isa.state import State
from qgpu.machine.loads import BYTES, load_value

KINDS = encoding.CHOICES["load"]


def test_sizes_are_the_contract_s() -> None:
    assert {"none": 0, **BYTES} == LOAD_BYTES


def test_every_size_at_every_address_of_a_row() -> None:
    rng = Random(1)
    cases = [(kind, place, word(rng), word(rng)) for kind in KINDS for place in range(8) for _ in range(40)]
    cases += [(kind, place, 0x80 << 8 * n, 0x80 << 8 * n) for kind in KINDS for place in range(8) for n in range(4)]

    def build(b: Builder, i: dict[str, Word]) -> dict[str, Word]:
        is_ = {kind: i["kind"][n] for n, kind in enumerate(KINDS)}
        return {"L": load_value(b, "load", is_, i["address"], i["low"], i["high"])}

    columns = list(zip(*cases, strict=True))
    found, cost = run(build, {
        "kind": (len(KINDS), [1 << KINDS.index(kind) for kind in columns[0]]),
        "address": (3, columns[1]), "low": (32, columns[2]), "high": (32, columns[3]),
    })  # fmt: skip
    assert cost.depth == 1
    for (kind, place, low, high), value in zip(cases, found["L"], strict=True):
        state = State(memory={5: (low, high)})
        assert value == _load(state, kind, 40 + place)[0], (kind, place, hex(low), hex(high))
