"""Schedules and placements: what any correct one keeps, on random circuits; and the network file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.foundry.random_netlists import random_netlist

from qgpu.circuit.examples import accumulator
from qgpu.foundry import Network, Options, cast, cast_with_report
from qgpu.foundry.cast import arrange
from qgpu.foundry.emit import neurons_a_layer
from qgpu.foundry.netlist import DelayCell, SumCell, inputs, outputs, prune
from qgpu.foundry.place import Placement
from qgpu.foundry.validate import validate


@pytest.fixture(scope="module", params=[(0, 16, 6144), (2, 3, 40)], ids=["roomy", "tight"])
def placed(request: pytest.FixtureRequest) -> tuple[Placement, int, int]:
    seed, heads, neurons = request.param
    options = Options(heads=heads, max_intermediate=neurons)
    return arrange(prune(validate(random_netlist(seed))), options)[0], heads, neurons


def test_stages_follow_what_cells_read(placed: tuple[Placement, int, int]) -> None:
    """A cell's stage is after those of all drivers of all its inputs; sums are in MLPs, the rest in DeltaNets."""
    plan = placed[0].schedule
    cells = plan.lowered.netlist.cells
    ready: dict[int, int] = {}
    for cell, stage in zip(cells, plan.stage, strict=True):
        for out in outputs(cell):
            ready[out] = max(ready.get(out, -1), stage)
    for cell, stage in zip(cells, plan.stage, strict=True):
        assert stage % 2 == isinstance(cell, SumCell)
        assert stage % 2 or (stage // 2) % 4 != 3
        assert all(ready.get(signal, -1) < stage for signal in inputs(cell))
    assert plan.layers % 4 == 0 and max(plan.stage) < 2 * plan.layers


def test_capacities(placed: tuple[Placement, int, int]) -> None:
    placement, heads, neurons = placed
    plan = placement.schedule
    assert max(neurons_a_layer(placement)) <= neurons
    for layer in range(plan.layers):
        here = [c for c, s in zip(plan.lowered.netlist.cells, plan.stage, strict=True) if s == 2 * layer]
        delays = sum(isinstance(cell, DelayCell) for cell in here)
        assert len(here) - delays + -(-delays // 127) <= heads


def test_a_slot_holds_one_signal_at_a_time(placed: tuple[Placement, int, int]) -> None:
    """Simulated stage by stage: who writes a slot finds it empty, who reads a signal finds it there."""
    placement = placed[0]
    plan = placement.schedule
    netlist = plan.lowered.netlist
    readers: dict[int, list[int]] = {}
    for cell, stage in zip(netlist.cells, plan.stage, strict=True):
        for signal in inputs(cell):
            readers.setdefault(stage, []).append(signal)
    holds: dict[int, int] = {}

    def deliver(stage: int) -> None:
        for signal, birth in enumerate(plan.birth):
            if birth == stage:
                slot = placement.slot[signal]
                assert slot is not None and slot not in holds, netlist.names[signal]
                holds[slot] = signal

    deliver(-1)
    for stage in range(2 * plan.layers):
        for signal in readers.get(stage, ()):
            slot = placement.slot[signal]
            assert slot is not None and holds[slot] == signal
        if stage % 2:
            for signal in placement.clears.get(stage // 2, ()):
                slot = placement.slot[signal]
                assert slot is not None and holds.pop(slot) == signal
        deliver(stage)
    for bit in netlist.code:
        for signal, _ in bit.terms:
            slot = placement.slot[signal]
            assert slot is not None and holds[slot] == signal


def test_report_adds_up() -> None:
    network, report = cast_with_report(accumulator(4), Options(heads=3))
    neurons = sum(layer.neurons for layer in report.layers)
    assert neurons == network.certificate["neurons"]
    downs = [m for name, m in network.sparse.items() if name.endswith("down_proj.weight")]
    assert neurons == sum(len(np.unique(m.cols)) for m in downs)
    assert sorted(name for layer in report.layers for name in layer.memories) == [
        "accumulator.port0.bank0",
        "registers.port0.bank0",
    ]
    assert "registers.port0" in report.table() and len(report.table().splitlines()) == 4 + network.shape.layers


def same(a: Network, b: Network) -> bool:
    if (a.shape, a.states, a.certificate) != (b.shape, b.states, b.certificate) or a.sparse.keys() != b.sparse.keys():
        return False
    names = [*a.sparse, *a.vectors, "embed_tokens.weight", "lm_head.weight"]
    return all(np.array_equal(a.dense(name), b.dense(name)) for name in names)


def test_network_file_round_trip(tmp_path: Path) -> None:
    network = cast(accumulator(4), Options(heads=3, text_dims=32))
    path = tmp_path / "accumulator.qgpu"
    network.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["accumulator.qgpu"]
    loaded = Network.load(path)
    assert same(network, loaded)
    assert loaded.states["registers.port0.bank0"][2:] == (4, 8)
    assert loaded.dense("layers.0.linear_attn.conv1d.weight").shape == (3 * 3 * 128, 1, 4)
    assert not loaded.dense("layers.3.self_attn.o_proj.weight").any()
    embedding = dataclasses.replace(network.embedding, codes=1 - network.embedding.codes)
    assert not same(dataclasses.replace(network, embedding=embedding), loaded)
    with pytest.raises(KeyError):
        loaded.dense("layers.99.mlp.gate_proj.weight")


def test_bad_files_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "net.qgpu"
    with pytest.raises(ValueError, match="net.qgpu: there is no such file"):
        Network.load(path)
    path.write_bytes(b"not a network at all")
    with pytest.raises(ValueError, match="net.qgpu: not a safetensors file"):
        Network.load(path)
    save_file({"a": np.zeros(3)}, str(path))
    with pytest.raises(ValueError, match="net.qgpu: format None"):
        Network.load(path)
    cast(accumulator(2), Options(heads=3)).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(ValueError, match="net.qgpu"):
        Network.load(path)
    path.write_bytes(whole)
    tensors = load_file(str(path))
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        metadata = file.metadata()
    tensors["sparse.layers.0.mlp.gate_proj.weight.cols"] = tensors["sparse.layers.0.mlp.gate_proj.weight.cols"] + 5000
    tensors["vector.layers.0.linear_attn.A_log"] = tensors["vector.layers.0.linear_attn.A_log"][:-1]
    save_file(tensors, str(path), metadata=metadata)
    with pytest.raises(ValueError, match="2 faults(.|\n)*gate_proj(.|\n)*A_log"):
        Network.load(path)
