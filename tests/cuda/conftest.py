"""A machine with little, so that there is something to refuse: no shifts, sizes, old values, barriers or exchange."""

from __future__ import annotations

import pytest

from qgpu.isa import subset

_ALU = frozenset({"add", "sub", "rsub", "and", "or", "xor", "first", "second"})
PRESENT = {
    **subset.COMPLETE,
    "x": frozenset({"zero", "tid.x", "tid.y", "tid.z", "laneid", "warpid"}),
    "alu_a": _ALU,
    "alu_b": _ALU,
    "m_op": frozenset({"first", "mul.lo"}),
    "load": frozenset({"none", "b32"}),
    "store": frozenset({"none", "b32"}),
    "atomic": frozenset({"none", "add"}),
    "branch": frozenset({"next", "bra", "exit", "trap"}),
    "collect": frozenset({"none"}),
}
ABSENT = frozenset({"d_o", "load_wide", "store_wide", "yield", "collect_parity", "publish_parity"})


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subset, "PRESENT", PRESENT)
    monkeypatch.setattr(subset, "ABSENT_FIELDS", ABSENT)
