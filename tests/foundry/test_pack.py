"""Signals that wait in a common dim: what comes out of the layers is what the circuit says, whatever is packed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.foundry.random_netlists import random_netlist
from tests.foundry.stock_model import agree

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Circuit, Port
from qgpu.circuit.memory import Field
from qgpu.foundry import Options, cast
from qgpu.foundry.cast import arrange
from qgpu.foundry.netlist import SumCell, inputs, outputs, prune
from qgpu.foundry.validate import validate


def waiting(bits: int = 20, levels: int = 6) -> Circuit:
    """Words of bits and of small numbers that wait while a long chain runs, are read in its middle, and wait again."""
    b = Builder("waiting", 1 << 10)
    x = b.token_word("x", lambda i: i, 10)
    early = [b.xor(f"early{i}", x[i % 10], x[(3 * i + 1) % 10], x[(7 * i + 2) % 10]) for i in range(bits)]
    kept = b.memory("kept", [Field("v", x)], Port(x.bits[:2], (x[9],)), Port(x.bits[4:6]))["v"]
    counts = [b.sum_of(f"count{i}", [(x[i] + x[i + 1] + x[i + 2], lambda n: n * n % 4)]) for i in range(6)]
    at, middle = x[0], x[1]
    for level in range(levels):
        at = b.xor(f"chain{level}", at, x[level % 10], x[9])
        if level == levels // 2:
            middle = b.xor("middle", at, *early[:8], kept[3])
    ends = [b.xor(f"end{i}", at, middle, early[i], early[i + 10], kept[i]) for i in range(9)]
    ends.append(b.sum_of("last", [(counts[i] + at, lambda n: n & 1) for i in range(1)]))
    code = [*ends[:4], *(b.lookup(f"out{i}", counts[i] * 2 + ends[i], lambda n: n >> 1 & 1) for i in range(4, 6))]
    code += [b.lookup(f"top{i}", counts[i] + ends[5 + i], lambda n: int(n % 3 == 1)) for i in range(4)]
    return b.finish(code, np.random.default_rng(0).permutation(1 << 10))


def cast_within(circuit: Circuit, share: float, heads: int = 8) -> tuple[int, int]:
    """Slots with and without packing down to that share of them."""
    netlist = prune(validate(circuit))
    free = arrange(netlist, Options(heads=heads))[0].slots
    return free, arrange(netlist, Options(heads=heads, max_hidden=int(share * free)))[0].slots


def test_words_that_wait_take_fewer_dims() -> None:
    circuit = waiting()
    free, packed = cast_within(circuit, 0.6)
    assert packed < 0.8 * free
    network = cast(circuit, Options(heads=8, max_hidden=int(0.6 * free)))
    ids = [int(i) for i in np.random.default_rng(1).integers(0, circuit.vocabulary, 200)]
    agree(circuit, network, ids)


@pytest.mark.parametrize(("seed", "shared"), [(0, False), (1, True), (4, False), (3, True)])
def test_random_circuits(seed: int, shared: bool) -> None:
    circuit = random_netlist(seed, levels=9, shared=shared)
    free, packed = cast_within(circuit, 0.6)
    assert packed < free
    network = cast(circuit, Options(heads=8, max_hidden=int(0.6 * free)))
    ids = [int(i) for i in np.random.default_rng(seed).integers(0, circuit.vocabulary, 150)]
    agree(circuit, network, ids, decoded=12)


def test_packed_cells_follow_what_they_read() -> None:
    placement = arrange(prune(validate(random_netlist(4))), Options(heads=8, max_hidden=40))[0]
    plan = placement.schedule
    netlist = plan.lowered.netlist
    assert any(name.startswith("packed.") for name in netlist.names)
    ready: dict[int, int] = {}
    for cell, stage in zip(netlist.cells, plan.stage, strict=True):
        assert stage % 2 == isinstance(cell, SumCell)
        assert all(ready.get(signal, -1) < stage for signal in inputs(cell))
        for out in outputs(cell):
            ready[out] = max(ready.get(out, -1), stage)


def test_packing_stops_at_its_target() -> None:
    """No more is packed than is needed: with room enough, nothing is."""
    netlist = prune(validate(waiting()))
    free = arrange(netlist, Options(heads=8))[0]
    roomy = arrange(netlist, Options(heads=8, max_hidden=2 * free.slots))[0]
    assert not any(name.startswith("packed.") for name in roomy.schedule.lowered.netlist.names)
    near = arrange(netlist, Options(heads=8, max_hidden=int(0.9 * free.slots)))[0]
    far = arrange(netlist, Options(heads=8, max_hidden=int(0.5 * free.slots)))[0]
    assert len(near.schedule.lowered.netlist.names) < len(far.schedule.lowered.netlist.names)
