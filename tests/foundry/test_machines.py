"""Whole circuits: the examples run by the stock model for hundreds of tokens, random deep circuits, text beside."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from tests.foundry.random_netlists import random_netlist
from tests.foundry.stock_model import DTYPES, agree, decode, gaps, prefill, stock_model
from transformers import DynamicCache

from qgpu.circuit.examples import (
    AccumulatorIds,
    accumulator,
    accumulator_reference,
    fibonacci,
    fibonacci_reference,
)
from qgpu.circuit.graph import outputs
from qgpu.foundry import Options, cast

HEADS = 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_fibonacci_runs_on_its_own(dtype: str) -> None:
    model = stock_model(cast(fibonacci(), Options(heads=1)), dtype)
    prompt = torch.tensor([[1, 1]])
    with torch.inference_mode():
        got = model.generate(prompt, max_new_tokens=220, do_sample=False)[0].tolist()
    assert got[2:] == fibonacci_reference(got)[1:-1]
    assert len(set(got)) > 200
    assert prefill(model, got) == fibonacci_reference(got)
    assert gaps(model, got) >= 40


@pytest.mark.parametrize("dtype", DTYPES)
def test_accumulator(dtype: str) -> None:
    """Loads, stores, sums and wipes of 600 random tokens, by prefill; the first 200 by decoding as well."""
    ids = AccumulatorIds(4)
    model = stock_model(cast(accumulator(4), Options(heads=HEADS)), dtype)
    rng = np.random.default_rng(3)
    tokens = [int(t) for t in rng.integers(0, ids.vocabulary, 600)]
    for at in range(0, 600, 3):
        tokens[at] = int(rng.integers(ids.VALUES, ids.clear))
    tokens[300] = tokens[310] = tokens[311] = ids.clear
    wanted = accumulator_reference(tokens, 4)
    assert len(set(wanted)) > 80
    assert prefill(model, tokens) == wanted
    assert decode(model, tokens[:200]) == wanted[:200]
    assert gaps(model, tokens) >= 40


@pytest.mark.parametrize("seed", range(6))
def test_random_circuits(seed: int) -> None:
    circuit = random_netlist(seed)
    network = cast(circuit, Options(heads=8))
    assert network.certificate["sums_in_steps"] > 0
    ids = [int(i) for i in np.random.default_rng(seed).integers(0, circuit.vocabulary, 150)]
    agree(circuit, network, ids, decoded=12)


@pytest.mark.parametrize("seed", range(3))
def test_random_circuits_with_shared_signals(seed: int) -> None:
    circuit = random_netlist(seed, levels=6, shared=True)
    drivers = Counter(signal for cell in circuit.cells for signal in outputs(cell))
    assert max(drivers.values()) >= 4
    ids = [int(i) for i in np.random.default_rng(seed).integers(0, circuit.vocabulary, 150)]
    agree(circuit, cast(circuit, Options(heads=8)), ids, decoded=12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_text_passes_unchanged(dtype: str) -> None:
    """Machine tokens, then hidden states without machine dims, then machine tokens: the text dims keep every bit, the
    recurrent states stay as they are, and the machine goes on as if nothing had been there."""
    text = 96
    network = cast(accumulator(4), Options(heads=HEADS, text_dims=text))
    assert network.certificate["text_dims"] == text
    model = stock_model(network, dtype).model
    ids = AccumulatorIds(4)
    cache = DynamicCache(config=model.config)
    with torch.inference_mode():
        first = torch.tensor([[7, ids.operation("store", 2), 200]])
        model(first, cache=cache, use_cache=True)
        before = [layer.recurrent_states[0].clone() for layer in cache.layers if hasattr(layer, "recurrent_states")]
        words = torch.zeros(1, 70, network.shape.hidden, dtype=DTYPES[dtype])
        words[..., :text] = torch.randn(1, 70, text, generator=torch.Generator().manual_seed(5)) * 3
        states: list[torch.Tensor] = []
        hooks = [
            layer.register_forward_hook(lambda _m, _i, out: states.append(out[0] if isinstance(out, tuple) else out))
            for layer in model.layers
        ]
        model(inputs_embeds=words[:, :69], cache=cache, use_cache=True)
        for hook in hooks:
            hook.remove()
        for out in states:
            assert torch.equal(out, words[:, :69])
        model(inputs_embeds=words[:, 69:], cache=cache, use_cache=True)
        after = [layer.recurrent_states[0] for layer in cache.layers if hasattr(layer, "recurrent_states")]
        assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        assert any(bool(state.any()) for state in after)
        again = model(torch.tensor([[ids.operation("add", 2)]]), cache=cache, use_cache=True).last_hidden_state[0, -1]
    head = torch.from_numpy(network.dense("lm_head.weight")).to(DTYPES[dtype])
    assert int((head @ again).argmax()) == 207
