"""The machine's own file: its margins are proved from the weights alone, and no changed weight goes by unseen."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.foundry.test_audit import BETA, WIPE, changed

from qgpu.driver import bare
from qgpu.foundry.audit import Audit, audit
from qgpu.foundry.network import Network

KINDS = (
    "in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b", "conv1d", "out_proj", "gate_proj", "up_proj", "down_proj",
)  # fmt: skip
QUICK, FULL = 1, 20  # weights of each kind


@cache
def machine() -> Network:
    return bare.bare()[0]


def spoiled(kind: str, trial: int) -> Audit:
    """The proof with one weight of a kind turned in sign, made smaller, or taken out."""
    rng = np.random.default_rng([KINDS.index(kind), trial])
    names = sorted(name for name, matrix in machine().sparse.items() if kind in name and len(matrix.values))
    name = names[rng.integers(len(names))]
    values = machine().sparse[name].values
    index = int(rng.integers(len(values)))
    ways = (-float(values[index]), None, 0.75 * float(values[index]))
    return audit(changed(machine(), name, index, ways[trial % (2 if BETA in name or WIPE in name else 3)]))


def test_every_kind_of_weight_is_listed() -> None:
    missed = {name for name in machine().sparse if not any(kind in name for kind in KINDS)}
    assert missed == set()


def test_the_machine_is_proved_from_its_file() -> None:
    found = audit(machine())
    assert found.faults == []
    assert found.margin_bf16 >= 0.25 and found.margin_float32 >= 0.0625 and found.gap_float32 >= 40
    assert found.entries == sum(len(matrix.values) for matrix in machine().sparse.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "trial", [pytest.param(n, marks=pytest.mark.full if n >= QUICK else ()) for n in range(FULL)]
)
def test_a_changed_weight_is_seen(kind: str, trial: int) -> None:
    assert spoiled(kind, trial).faults
