"""The netlist against the same engine without one, which looks at every token anew: from any weights they must write
the same tokens and leave the same states."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from qgpu.circuit.examples import AccumulatorIds, accumulator, accumulator_reference
from qgpu.engines.native import NativeEngine
from qgpu.engines.native_cache import key_of
from qgpu.foundry import Options, cast
from qgpu.foundry.network import Network, Sparse

KINDS = (
    "in_proj_qkv.weight", "in_proj_z.weight", "in_proj_a.weight", "in_proj_b.weight", "conv1d.weight",
    "out_proj.weight", "gate_proj.weight", "up_proj.weight", "down_proj.weight",
)  # fmt: skip
FEW = ("in_proj_a.weight", "in_proj_b.weight")  # one of them alone may decide nothing
VECTORS = ("A_log", "dt_bias", "norm.weight")
LENGTH, FLIPS, MOST_FLIPS = 120, 6, 40


@cache
def machine() -> Network:
    return cast(accumulator(4), Options(heads=3))


def ids_of(seed: int, count: int = LENGTH) -> list[int]:
    """Any ids, the last few of the vocabulary (which do most) often."""
    rng, ids = np.random.default_rng(seed), AccumulatorIds(4).vocabulary
    return np.where(rng.random(count) < 0.3, rng.integers(ids - 4, ids, count), rng.integers(0, ids, count)).tolist()


def answers_of(network: Network) -> tuple[list[int], bytes]:
    """The netlist's, and its states, once it is shown that the other way gives the same and leaves the same states."""
    quick, plain = NativeEngine(network), NativeEngine(network, netlist=False)
    ids = ids_of(1)
    found = quick.feed(ids, argmax=True)
    assert found == plain.feed(ids, argmax=True)
    states = np.array([quick.state(*place) for place in quick._cells])
    assert np.array_equal(states, [plain.state(*place) for place in plain._cells])
    return found or [], states.tobytes()


def test_the_machine_has_a_netlist() -> None:
    engine = NativeEngine(machine())
    assert engine._nets is not None and not NativeEngine(machine(), "float32")._nets
    assert engine.feed(ids_of(2, 500), argmax=True) == accumulator_reference(ids_of(2, 500), 4)
    assert engine._whole is None  # no token had to go another way


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_weights_of_a_matrix(kind: str) -> None:
    network = machine()
    names = sorted(name for name in network.sparse if name.endswith(kind) and len(network.sparse[name].values))
    rng, changed_any = np.random.default_rng(len(kind)), False
    for flip in range(MOST_FLIPS):
        if flip >= FLIPS and changed_any:
            break
        name = names[rng.integers(len(names))]
        matrix = network.sparse[name]
        values = matrix.values.copy()
        where = slice(None) if kind in FEW else rng.integers(len(values))
        values[where] *= np.float32(rng.choice([-1, 0, 2]))
        changed = Sparse(matrix.shape, matrix.rows, matrix.cols, values)
        flipped = replace(network, sparse={**network.sparse, name: changed})
        changed_any = changed_any or answers_of(flipped) != answers_of(network)
    assert changed_any


@pytest.mark.parametrize("kind", VECTORS)
def test_changed_vectors(kind: str) -> None:
    network = machine()
    name = sorted(name for name in network.vectors if name.endswith(f"linear_attn.{kind}"))[0]
    vector = network.vectors[name].copy()
    vector[:] = np.where(vector == 0, 1, -vector)
    answers_of(replace(network, vectors={**network.vectors, name: vector}))


@pytest.mark.parametrize("which", ["embedding", "head"])
def test_changed_lookups(which: str) -> None:
    network = machine()
    table = getattr(network, which)
    codes = table.codes.copy()
    ids = answers_of(network)[0] if which == "head" else ids_of(1)
    codes[ids] = codes[np.roll(ids, 1)]
    changed = replace(table, codes=codes)
    assert answers_of(replace(network, **{which: changed})) != answers_of(network)


def test_every_value_may_be_met() -> None:
    """Claims that say too little: values without a code, some in the middle of a layer, go another way."""
    network = machine()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        least = rng.random(network.ranges["hi"].shape) < 0.02
        hi = np.where(least, np.minimum(network.ranges["hi"], 0), network.ranges["hi"])
        narrow = replace(network, ranges={**network.ranges, "hi": hi.astype(np.int16)})
        assert answers_of(narrow)[0] == accumulator_reference(ids_of(1), 4)


def test_snapshots_and_forgetting() -> None:
    engine = NativeEngine(machine())
    engine.feed(ids_of(3))
    kept = engine.snapshot()
    wanted = engine.feed(ids_of(4), argmax=True)
    for room in (None, 1 << 30):
        engine._wave.count[0] = room or engine._wave.count[0]
        engine.feed(ids_of(5))
        engine.restore(kept)
        assert engine.feed(ids_of(4), argmax=True) == wanted
    engine.reset()
    engine.feed(ids_of(3))
    assert engine.feed(ids_of(4), argmax=True) == wanted


def test_what_is_kept_on_disk(tmp_path: Path) -> None:
    network = machine()
    first, second = (NativeEngine(network, folder=tmp_path) for _ in range(2))
    assert first.feed(ids_of(6), argmax=True) == second.feed(ids_of(6), argmax=True)
    (entry,) = tmp_path.iterdir()
    name = sorted(network.sparse)[0]
    matrix = network.sparse[name]
    changed = replace(network, sparse={**network.sparse, name: replace(matrix, values=matrix.values * 2)})
    assert key_of(changed) != key_of(network) == entry.stem
    entry.write_bytes(entry.read_bytes()[:1000])
    third = NativeEngine(network, folder=tmp_path)
    assert third.feed(ids_of(6), argmax=True) == accumulator_reference(ids_of(6), 4)
