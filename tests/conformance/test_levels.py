"""Every row of the conformance table at every level but the dense one: it gives what the oracle says, or it stands in
the list of what is refused."""

from __future__ import annotations

import pytest
from tests.conformance.refused import LEVELS, line, refused

from qgpu.conformance import levels
from qgpu.conformance.levels import Outcome, launch
from qgpu.conformance.oracle import expected
from qgpu.conformance.table import table
from qgpu.driver.device import Device

TABLE = table()
NAMES = [pytest.param(row.name, marks=pytest.mark.full if row.full else ()) for row in TABLE.values()]


def misplaced(outcome: Outcome) -> str:
    """What is wrong with an outcome, empty if nothing is."""
    listed = line(outcome.level, outcome.compiler, outcome.kernel) in refused()
    if outcome.ok and listed:
        return f"{outcome.level}: works now: run python -m tests.conformance.refused"
    if not outcome.ok and not (listed and outcome.status == "refused"):
        return f"{outcome.level}: {outcome.status}: {outcome.message}"
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_row(name: str) -> None:
    faults = [misplaced(levels.run(TABLE[name], level)) for level in LEVELS]
    assert [fault for fault in faults if fault] == []


@pytest.mark.full
@pytest.mark.parametrize("name", TABLE)
def test_row_in_float32(name: str) -> None:
    if line("native", "clang", name) in refused():
        pytest.skip("refused")
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
    for level in ("ir", "interpreter"):
        outcome = levels.run(TABLE[name], level, "nvrtc")
        assert outcome.ok or line(level, "clang", name) in refused(), outcome.message


def test_nothing_is_listed_that_is_no_row() -> None:
    known = {line(level, "clang", name) for level in LEVELS for name in TABLE}
    assert refused() <= known


def test_dot_takes_few_tokens() -> None:
    outcome = levels.run(TABLE["dot"], "native")
    assert outcome.tokens is not None and outcome.tokens <= 9


def test_an_outcome_tells_wrong_from_right(monkeypatch: pytest.MonkeyPatch) -> None:
    right = expected(TABLE["dot"])
    monkeypatch.setattr(levels, "expected", lambda row: [*right[:2], right[2] + 1])
    outcome = levels.run(TABLE["dot"], "interpreter")
    assert (outcome.status, outcome.message) == ("wrong", "array 2 at 0: 32, expected 33 (1 of 1 differ)")
