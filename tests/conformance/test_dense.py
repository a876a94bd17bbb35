"""The table of kernels, and random blocks, on the dense engine: stock Qwen3.5 code in bfloat16 and in float32.

Most launches are checked in one prefill: the interpreter's tokens go in, and the model's argmax at every position must
be the next of them. Some are decoded for real, one token at a time. All in one group, so that one process loads a
model. float32 takes 10 GB and twice the time: `make test-full`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from random import Random

import numpy as np
import pytest
from tests.machine.random_launches import straight

from qgpu.conformance import levels
from qgpu.conformance.levels import difference, launch
from qgpu.conformance.oracle import expected
from qgpu.conformance.table import table
from qgpu.driver import bare
from qgpu.driver.device import Device
from qgpu.driver.network_runner import NetworkRunner
from qgpu.driver.verified import VerifiedRunner
from qgpu.engines.native import NativeEngine
from qgpu.engines.transformers import TransformersEngine
from qgpu.foundry.network import Network
from qgpu.isa.interpreter import run
from qgpu.isa.program import prompt

pytestmark = pytest.mark.xdist_group("dense")
TABLE = table()
SAMPLE = ("dot", "saxpy", "matmul 2x2x2", "trips", "atomic_sum", "ins_setp", "parameters_many", "ins_shf_l", "ins_bfe",
          "ins_prmt", "ins64_add_sub", "shuffle_idx", "vote_members", "match_any", "bytes_between", "vectors_2",
          "atomic_cas_own", "shared_bytes", "exit_before_barrier", "spin_lock")  # fmt: skip
"""Short rows that the quick tests check in one prefill each; every kind of block is among them."""
DECODED = ("dot", "saxpy", "matmul 2x2x2")
"""Those that are decoded one token at a time."""
STOPS_AT = 400
BLOCKS, PROGRAMS = 30, 10
"""Blocks in a random program; programs in all. The quick test takes the first two of them."""


@pytest.fixture(scope="module", params=["bfloat16", pytest.param("float32", marks=pytest.mark.full)])
def dense(request: pytest.FixtureRequest) -> Iterator[TransformersEngine]:
    engine = TransformersEngine(bare.dense_checkpoint(request.param), request.param)
    yield engine
    del engine
    gc.collect()


def check_in_prefill(dense: TransformersEngine, names: Iterable[str], compiler: str = "clang") -> None:
    for name in names:
        found, done = launch(TABLE[name], Device("interpreter"), compiler)
        assert difference(found, expected(TABLE[name])) == ""
        dense.reset()
        dense.feed(prompt(done.request))
        assert dense.check(done.tokens) is None, name


def test_kernels_in_prefill(dense: TransformersEngine) -> None:
    check_in_prefill(dense, SAMPLE)


@pytest.mark.full
def test_all_kernels_in_prefill(dense: TransformersEngine) -> None:
    check_in_prefill(dense, [name for name in TABLE if name not in SAMPLE])


@pytest.mark.full
@pytest.mark.skipif(bool(levels.available("nvrtc")), reason="NVRTC is not installed")
def test_all_kernels_of_nvrtc_in_prefill(dense: TransformersEngine) -> None:
    check_in_prefill(dense, TABLE, "nvrtc")


def test_kernels_decoded(dense: TransformersEngine) -> None:
    network, _ = bare.bare()
    for name in DECODED:
        _, done = launch(TABLE[name], Device("interpreter"))
        dense.reset()
        dense.feed(prompt(done.request))
        assert dense.generate(STOPS_AT, {done.tokens[-1]}) == list(done.tokens), name
        memory = NetworkRunner("transformers", dense, network.states).memory()
        np.testing.assert_array_equal(memory, done.memory)


def test_a_draft_is_verified(dense: TransformersEngine) -> None:
    runner = VerifiedRunner(dense, NetworkRunner("verified", dense, bare.bare()[0].states))
    _, done = launch(TABLE["dot"], Device("interpreter"))
    runner.reset()
    runner.feed(prompt(done.request))
    assert runner.generate(STOPS_AT, {done.tokens[-1]}) == list(done.tokens)
    np.testing.assert_array_equal(runner.memory(), done.memory)


@pytest.mark.parametrize("programs", [2, pytest.param(PROGRAMS, marks=pytest.mark.full)])
def test_random_blocks(dense: TransformersEngine, programs: int) -> None:
    """Random blocks, on the dense and on the native engine."""
    native = NativeEngine(bare.bare()[0])
    rng = Random(35)
    executed = 0
    for _ in range(programs):
        random = straight(rng, BLOCKS)
        written, machine = run(random)
        executed += machine.statistics.tokens["EXEC"]
        for engine in (native, dense):
            engine.reset()
            engine.feed(prompt(random))
            assert engine.check(written) is None
    assert executed >= programs * BLOCKS


def free_dims(network: Network) -> np.ndarray:
    """Residual dims that no weight of the machine reads or writes: where text lives in a merged model."""
    used = np.zeros(network.shape.hidden, bool)
    used[network.embedding.dims] = used[network.head.dims] = True
    for name, matrix in network.sparse.items():
        if "conv1d" not in name:
            inward = "out_proj" in name or "down_proj" in name
            used[matrix.rows if inward else matrix.cols] = True
    return np.flatnonzero(~used)


def test_text_passes_untouched(dense: TransformersEngine) -> None:
    """Zero in every machine dim, anything elsewhere: out of the GPU's layers as it went in, and no state changes."""
    import torch

    network, _ = bare.bare()
    free = free_dims(network)
    assert len(free) >= 8
    dense.reset()
    dense.feed(prompt(launch(TABLE["dot"], Device("interpreter"))[1].request))
    before = {(layer, head): dense.state(layer, head) for layer, head, _, _ in network.states.values()}
    model = dense.model.model
    text = torch.zeros((1, 5, network.shape.hidden), dtype=next(model.parameters()).dtype)
    text[:, :, torch.from_numpy(free)] = torch.randn(1, 5, len(free), generator=torch.manual_seed(3)).to(text.dtype)
    inside: list[torch.Tensor] = []
    hooks = [
        layer.register_forward_hook(lambda m, i, o: inside.append(o[0] if isinstance(o, tuple) else o))
        for layer in model.layers
    ]
    with torch.inference_mode():
        model(inputs_embeds=text, cache=dense._cache, use_cache=True)
    for hook in hooks:
        hook.remove()
    assert len(inside) == network.shape.layers
    assert all(torch.equal(out, text) for out in inside)
    for (layer, head), state in before.items():
        np.testing.assert_array_equal(dense.state(layer, head), state)
    assert any(state.any() for state in before.values())
