"""The profile's numbers against counts made another way."""

from __future__ import annotations

import sys

import pytest
from tests.foundry.random_netlists import random_netlist

from qgpu.circuit.builder import Builder
from qgpu.foundry import Options
from qgpu.foundry.cast import arrange
from qgpu.foundry.netlist import prune
from qgpu.foundry.profile import group_of, main, profile
from qgpu.foundry.validate import validate


def test_counts_are_those_of_the_schedule() -> None:
    circuit = random_netlist(3)
    placement, _ = arrange(prune(validate(circuit)), Options(heads=8))
    found = profile(circuit, Options(heads=8))
    assert found.peak == max(max(layer.after_heads, layer.after_mlp) for layer in found.layers)
    assert found.peak == placement.schedule.peak and len(found.layers) == placement.schedule.layers
    for layer in found.layers:
        assert sum(count for _, count in layer.groups) == max(layer.after_heads, layer.after_mlp)


def test_groups_leave_numbers_out() -> None:
    assert group_of("alu.lane2.sum.bit17") == "alu.lane*.sum"
    assert group_of("alu.lane2.sum.bit17", 2) == "alu.lane*"
    assert group_of("count.is4") == "count.is*"


def test_critical_path_is_the_chain() -> None:
    b = Builder("chain", 4)
    x = b.token_word("x", lambda i: i, 2)
    at = x[0]
    for number in range(5):
        at = b.xor(f"link{number}", at, x[1])
    late = b.delay("late", at, 1)
    found = profile(b.finish([b.and_("end", late, x[0]), x[1]], lambda i: i))
    assert [name for _, name in found.path] == [*(f"link{n}" for n in range(5)), "late", "end"]
    assert [stage for stage, _ in found.path] == [1, 3, 5, 7, 9, 10, 11]
    assert "critical path: 6 layers" in found.critical()


def test_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["profile", "qgpu.circuit.examples:fibonacci", "--heads", "2"])
    main()
    text = capsys.readouterr().out
    assert "signals at most" in text and "critical path" in text
