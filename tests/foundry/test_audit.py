"""The proof from the weights alone: it holds for what the foundry casts, and sees whatever is done to a weight."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.foundry.random_netlists import random_netlist

from qgpu.circuit.examples import fibonacci
from qgpu.foundry import Options, cast
from qgpu.foundry.audit import CONTEXT, audit
from qgpu.foundry.network import Network, Sparse

BETA = "in_proj_b"  # sigmoid(128): twice or half as much is as good
WIPE = "in_proj_a"  # a louder wipe wipes as well


@cache
def network(seed: int | None) -> Network:
    return cast(fibonacci()) if seed is None else cast(random_netlist(seed), Options(heads=8))


def changed(made: Network, name: str, index: int, value: float | None) -> Network:
    """The network with one weight of a matrix at ``value``, None: taken out."""
    matrix = made.sparse[name]
    keep = np.arange(len(matrix.values)) != index
    if value is None:
        fresh = Sparse(matrix.shape, matrix.rows[keep], matrix.cols[keep], matrix.values[keep])
    else:
        fresh = Sparse(matrix.shape, matrix.rows, matrix.cols, np.where(keep, matrix.values, np.float32(value)))
    return replace(made, sparse={**made.sparse, name: fresh})


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_what_the_foundry_casts_is_proved_from_the_file(seed: int | None, tmp_path: Path) -> None:
    network(seed).save(tmp_path / "network.safetensors")
    found = audit(Network.load(tmp_path / "network.safetensors"))
    assert found.faults == []
    assert found.margin_bf16 >= 0.25 and found.margin_float32 > 0.1
    assert found.counts["neurons"] > 50 and found.counts["outputs"] > 0
    assert CONTEXT == 262_144 and 0 <= found.state_loss < 1e-6


@pytest.mark.parametrize("seed", [None, 1])
def test_a_changed_weight_is_seen(seed: int | None) -> None:
    """A sign turned, a weight made smaller or taken out: whichever weight it is."""
    made = network(seed)
    rng = np.random.default_rng(0)
    names = sorted(made.sparse)
    for trial in range(120):
        name = names[rng.integers(len(names))]
        values = made.sparse[name].values
        index = int(rng.integers(len(values)))
        value = (-float(values[index]), 0.75 * float(values[index]), None)[trial % 3]
        if BETA in name and trial % 3 == 1:
            continue
        assert audit(changed(made, name, index, value)).faults, (name, index, value)


def test_a_state_that_fades_is_seen() -> None:
    made = network(None)
    name = next(name for name in made.vectors if name.endswith("A_log"))
    fading = made.vectors[name].copy()
    fading[0] = -12.0
    assert any("loses" in fault for fault in audit(replace(made, vectors={**made.vectors, name: fading})).faults)


def test_a_claim_that_the_weights_do_not_keep_is_seen() -> None:
    made = network(None)
    hi = made.ranges["hi"].copy()
    boundary, dim = (int(n[-1]) for n in np.nonzero(hi == 1))
    hi[boundary, dim] = 0
    assert audit(replace(made, ranges={**made.ranges, "hi": hi})).faults
