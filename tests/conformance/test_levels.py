"""Every row of the conformance table at every level but the dense one: it gives what the oracle says."""

from __future__ import annotations

import pytest

from qgpu.conformance import levels
from qgpu.conformance.levels import launch
from qgpu.conformance.oracle import expected
from qgpu.conformance.table import table
from qgpu.driver.device import Device

TABLE = table()
NAMES = [pytest.param(row.name, marks=pytest.mark.full if row.full else ()) for row in TABLE.values()]
LEVELS = ("ir", "interpreter", "native")


def faults(name: str, compiler: str) -> list[str]:
    """Where a row's outcome is another than the oracle's, and what it is."""
    outcomes = [levels.run(TABLE[name], level, compiler) for level in LEVELS]
    return [f"{outcome.level}: {outcome.status}: {outcome.message}" for outcome in outcomes if not outcome.ok]


@pytest.mark.parametrize("name", NAMES)
def test_row(name: str) -> None:
    assert faults(name, "clang") == []


@pytest.mark.full
@pytest.mark.parametrize("name", TABLE)
def test_row_in_float32(name: str) -> None:
    found, _ = launch(TABLE[name], _float32())
    assert levels.difference(found, expected(TABLE[name])) == ""


def _float32() -> Device:
    if "device" not in _kept:
        _kept["device"] = Device("native", "float32")
    return _kept["device"]


_kept: dict[str, Device] = {}


@pytest.mark.full
@pytest.mark.skipif(bool(levels.available("nvrtc")), reason="NVRTC is not installed")
@pytest.mark.parametrize("name", TABLE)
def test_row_by_nvrtc(name: str) -> None:
    """The second compiler: what clang's PTX can, its PTX must."""
    assert faults(name, "nvrtc") == []


def test_dot_takes_few_tokens() -> None:
    outcome = levels.run(TABLE["dot"], "native")
    assert outcome.tokens is not None and outcome.tokens <= 9


def test_an_outcome_tells_wrong_from_right(monkeypatch: pytest.MonkeyPatch) -> None:
    right = expected(TABLE["dot"])
    monkeypatch.setattr(levels, "expected", lambda row: [*right[:2], right[2] + 1])
    outcome = levels.run(TABLE["dot"], "interpreter")
    assert (outcome.status, outcome.message) == ("wrong", "array 2 at 0: 32, expected 33 (1 of 1 differ)")
