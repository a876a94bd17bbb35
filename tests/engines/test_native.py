"""The native engine evaluates the weights it is given: against a dense float32 model written here, weight by weight."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tests.engines.builder import Pad, fibonacci, fibonacci_ids

from qgpu.circuit.examples import AccumulatorIds, accumulator, accumulator_reference
from qgpu.engines.native import NativeEngine
from qgpu.engines.protocol import EngineError
from qgpu.foundry import Options, cast
from qgpu.foundry.network import Network, Shape, Sparse
from qgpu.foundry.stock import has_deltanet

TRACE = fibonacci_ids(1, 1, 60)


class Dense:
    """The stock arithmetic in float64, every matrix dense: slow, short, and knows no shortcut."""

    def __init__(self, network: Network) -> None:
        self.net, self.shape = network, network.shape
        heads = network.shape.linear_heads
        self.state = np.zeros((network.shape.layers, heads, 128, 128))
        self.past = np.zeros((network.shape.layers, 3 * heads * 128, 3))

    def changes(self, ids: list[int], least: float) -> np.ndarray:
        """How many dims of the residual each layer's mixer and MLP changes by more than ``least``, a row a token."""
        self.stages: list[np.ndarray] = []
        for i in ids:
            self.token(i)
        counts = [int((np.abs(after) > least).sum()) for after in self.stages]
        return np.reshape(counts, (len(ids), self.shape.layers, 2))

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x**2) + 1e-6) * (1 + self.net.dense(name).astype(float))

    def token(self, i: int) -> np.ndarray:
        d = lambda name: self.net.dense(name).astype(float)  # noqa: E731
        sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
        x = d("embed_tokens.weight")[i]
        changed = getattr(self, "stages", [])
        heads = self.shape.linear_heads
        for layer in range(self.shape.layers):
            n = f"layers.{layer}."
            if has_deltanet(layer):
                h, a = self.norm(x, n + "input_layernorm.weight"), n + "linear_attn."
                window = np.column_stack([self.past[layer], d(a + "in_proj_qkv.weight") @ h])
                self.past[layer] = window[:, 1:]
                mixed = (window * d(a + "conv1d.weight")[:, 0]).sum(1)
                q, k, v = (mixed * sigmoid(mixed)).reshape(3, heads, 128)
                q = q / np.sqrt((q**2).sum(-1, keepdims=True) + 1e-6) * 128**-0.5
                k = k / np.sqrt((k**2).sum(-1, keepdims=True) + 1e-6)
                beta = sigmoid(d(a + "in_proj_b.weight") @ h)
                g = -np.exp(d(a + "A_log")) * np.log1p(np.exp(d(a + "in_proj_a.weight") @ h + d(a + "dt_bias")))
                s = self.state[layer]
                s *= np.exp(g)[:, None, None]
                s += k[:, :, None] * ((v - np.einsum("hk,hkv->hv", k, s)) * beta[:, None])[:, None]
                o = np.einsum("hk,hkv->hv", q, s)
                z = (d(a + "in_proj_z.weight") @ h).reshape(heads, 128)
                o = o / np.sqrt(np.mean(o**2, -1, keepdims=True) + 1e-6) * d(a + "norm.weight") * z * sigmoid(z)
                changed.append(d(a + "out_proj.weight") @ o.reshape(-1))
                x = x + changed[-1]
            else:
                changed.append(np.zeros(1))
            h = self.norm(x, n + "post_attention_layernorm.weight")
            gate = d(n + "mlp.gate_proj.weight") @ h
            changed.append(d(n + "mlp.down_proj.weight") @ (gate * sigmoid(gate) * (d(n + "mlp.up_proj.weight") @ h)))
            x = x + changed[-1]
        return d("lm_head.weight") @ self.norm(x, "norm.weight")


def random_network(seed: int, anchored: bool) -> Network:
    """No circuit: weights of all sizes in every tensor, so that nothing is a 0/1 signal and no screen may rely on
    it."""
    rng = np.random.default_rng(seed)
    pad = Pad(Shape(32, 4, 24, 40, linear_heads=2))
    for layer in range(4):
        for name, scale, filled in (
            ("linear_attn.in_proj_qkv", 1.5, 0.2), ("linear_attn.conv1d", 0.7, 0.6), ("linear_attn.in_proj_z", 1, 0.3),
            ("linear_attn.in_proj_a", 2, 0.5), ("linear_attn.in_proj_b", 2, 0.5), ("linear_attn.out_proj", 0.5, 0.1),
            ("mlp.gate_proj", 1, 0.4), ("mlp.up_proj", 1, 0.3), ("mlp.down_proj", 0.5, 0.4),
        ):  # fmt: skip
            if has_deltanet(layer) or name.startswith("mlp"):
                tensor = pad[f"layers.{layer}.{name}.weight"]
                tensor[:] = rng.normal(0, scale, tensor.shape) * (rng.random(tensor.shape) < filled)
        pad[f"layers.{layer}.input_layernorm.weight"][:] = rng.normal(0, 0.2, 32) * (layer % 2)
        if has_deltanet(layer):
            pad[f"layers.{layer}.linear_attn.A_log"][:] = rng.normal(-1, 1, 2)
            pad[f"layers.{layer}.linear_attn.dt_bias"][:] = rng.normal(-1, 1, 2)
            pad[f"layers.{layer}.linear_attn.norm.weight"][:] = rng.normal(1, 0.2, 128)
    codes = rng.integers(-3, 4, (40, 12))
    scales = rng.normal(0, 0.7, 12)
    if anchored:
        codes[:, 0], scales[0] = 1, 8.0
        for layer in range(4):  # an anchor is not written
            pad[f"layers.{layer}.mlp.down_proj.weight"][0] = 0
            if has_deltanet(layer):
                pad[f"layers.{layer}.linear_attn.out_proj.weight"][0] = 0
    head = (np.arange(16, 32), rng.integers(-5, 6, (40, 16)), rng.normal(0, 1, 16), rng.normal(0, 0.1, 16))
    return pad.network((np.arange(12), codes, scales, np.zeros(12)), head)


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("screening", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_any_weights_at_all(seed: int, screening: bool, anchored: bool) -> None:
    network = random_network(seed, anchored)
    engine, dense = NativeEngine(network, "float32", screening), Dense(network)
    ids = np.random.default_rng(seed).integers(0, 40, 30).tolist()
    answers = engine.feed(ids, argmax=True)
    logits = [dense.token(i) for i in ids]
    assert answers == [int(np.argmax(row)) for row in logits]
    assert len(set(answers or [])) > 5
    for layer in range(3):
        for head in range(2):
            expected = dense.state[layer, head]
            assert np.allclose(engine.state(layer, head), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_what_layers_do_is_counted(dtype: str) -> None:
    """In a cast machine signals change by 1, so that noise can be told from them."""
    network = cast(accumulator(4), Options(heads=3))
    engine = NativeEngine(network, dtype)
    ids = np.random.default_rng(4).integers(0, AccumulatorIds(4).vocabulary, 20).tolist()
    counts = engine.activity(ids)
    assert counts.shape == (20, network.shape.layers, 2) and len(np.unique(counts)) > 3
    assert np.array_equal(counts, Dense(network).changes(ids, 0.25))
    assert engine.position == 20


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_cast_machine_is_counted_alike_on_every_way(dtype: str) -> None:
    network = cast(accumulator(4), Options(heads=3))
    ids = np.random.default_rng(5).integers(0, AccumulatorIds(4).vocabulary, 100).tolist()
    screened, plain = (NativeEngine(network, dtype, screening).activity(ids) for screening in (True, False))
    assert np.array_equal(screened, plain) and screened.any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("screening", [False, True])
def test_a_cast_machine_with_banks(dtype: str, screening: bool) -> None:
    ids = AccumulatorIds(4)
    engine = NativeEngine(cast(accumulator(4), Options(heads=3)), dtype, screening)
    rng = np.random.default_rng(5)
    tokens = [int(t) for t in rng.integers(0, ids.vocabulary, 3000 if screening else 200)]
    assert engine.feed(tokens, argmax=True) == accumulator_reference(tokens, 4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize(
    ("name", "row", "col", "value"),
    [
        ("layers.0.linear_attn.in_proj_qkv.weight", 256, 1, 0.0),  # bit 0 is stored
        ("layers.0.linear_attn.in_proj_qkv.weight", 128, 0, 0.0),  # the key's only row
        ("layers.0.linear_attn.conv1d.weight", 256, 2, 0.0),  # the tap of the token before
        ("layers.0.linear_attn.out_proj.weight", 17, 0, 0.0),
        ("layers.1.mlp.gate_proj.weight", 0, 33, 0.0),  # a carry
        ("layers.2.mlp.down_proj.weight", 50, 0, 0.0),  # a sum bit
        ("layers.2.mlp.gate_proj.weight", 0, 1, 0.0),
    ],
)
def test_a_changed_weight_changes_tokens(dtype: str, name: str, row: int, col: int, value: float) -> None:
    network = fibonacci()
    matrix = network.sparse[name]
    at = (matrix.rows == row) & (matrix.cols == col)
    assert at.sum() == 1
    changed = Sparse(matrix.shape, matrix.rows, matrix.cols, np.where(at, np.float32(value), matrix.values))
    engine = NativeEngine(replace(network, sparse={**network.sparse, name: changed}), dtype)
    engine.feed(TRACE[:2])
    assert engine.check(TRACE[2:]) is not None


def test_what_is_kept_of_keys_may_be_forgotten_at_any_time() -> None:
    """Selections are kept by the levels that decide them. Where their room ends all are forgotten, and nothing else
    changes."""
    engine = NativeEngine(cast(accumulator(4), Options(heads=3)), netlist=False)
    assert engine._tables()[1].masks.settled.any()
    tokens = np.random.default_rng(6).integers(0, AccumulatorIds(4).vocabulary, 400).tolist()
    answers = []
    for first in range(0, 400, 50):
        answers += engine.feed(tokens[first : first + 50], argmax=True) or []
        assert engine._memory.pool_used[0] > 0 and engine._memory.memo[:, 3].any()
        engine._memory.pool_used[0] = len(engine._memory.pool_row) - first // 50
    assert answers == accumulator_reference(tokens, 4)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (-3, 5), (-300, 300)])
def test_what_the_file_claims_of_dims_decides_no_result(low: int, high: int) -> None:
    network = cast(accumulator(4), Options(heads=3))
    claims = {"lo": np.full_like(network.ranges["lo"], low), "hi": np.full_like(network.ranges["hi"], high)}
    engine = NativeEngine(replace(network, ranges={**network.ranges, **claims}))
    tokens = np.random.default_rng(8).integers(0, AccumulatorIds(4).vocabulary, 600).tolist()
    assert engine.feed(tokens, argmax=True) == accumulator_reference(tokens, 4)


def test_engines_of_several_threads() -> None:
    """Compiled code runs without Python's lock: what two engines over one network write must stay their own."""
    network = cast(accumulator(4), Options(heads=3))
    tokens = np.random.default_rng(7).integers(0, AccumulatorIds(4).vocabulary, (2, 2000)).tolist()
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda ids: NativeEngine(network).feed(ids, argmax=True), tokens))
    assert answers == [accumulator_reference(ids, 4) for ids in tokens]


def test_the_head_without_a_table_is_computed_row_by_row() -> None:
    network = fibonacci(signed=False)
    odd = network.head.codes.copy()
    odd[:, 0] += np.arange(len(odd)) % 3 == 0  # a column that is no function of the bits
    head = replace(network.head, codes=odd, scales=network.head.scales * np.r_[1e-3, np.ones(16)].astype(np.float32))
    engine = NativeEngine(replace(network, head=head))
    assert len(engine._plan.head.mix) == 0
    assert len(NativeEngine(network)._plan.head.mix) == 16
    engine.feed([3, 5])
    hidden = head.codes.astype(float) * head.scales + head.offsets
    bits = (8 >> np.arange(16)) & 1
    assert engine.next() == int(np.argmax(hidden @ np.r_[65536.0, bits]))


def test_refusals() -> None:
    network = fibonacci()
    one = np.zeros(1, np.int32)
    for name, message in (
        ("layers.3.self_attn.o_proj.weight", "full attention.*layers.3.self_attn.o_proj.weight.*transformers engine"),
        ("layers.3.linear_attn.out_proj.weight", "no such tensor"),
    ):
        extra = Sparse((256, 64), one, one, np.ones(1, np.float32))
        with pytest.raises(EngineError, match=message):
            NativeEngine(replace(network, sparse={**network.sparse, name: extra}))
    vectors = {name: v for name, v in network.vectors.items() if not name.endswith("layers.1.linear_attn.A_log")}
    with pytest.raises(EngineError, match="layers.1.linear_attn.A_log is missing"):
        NativeEngine(replace(network, vectors=vectors))
    with pytest.raises(EngineError, match="float16"):
        NativeEngine(network, "float16")
