"""The certificate against measurement, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.foundry.random_netlists import random_netlist
from tests.foundry.stock_model import expected, prefill, stock_model

from qgpu.circuit.builder import Builder
from qgpu.circuit.examples import fibonacci
from qgpu.circuit.ir import total
from qgpu.foundry import FoundryError, Options, cast, cast_with_report
from qgpu.foundry.numbers import NORM_WEIGHT, READ_GATE, READ_WEIGHT, SCALE_BITS, anchors_for, to_bf16


@pytest.mark.parametrize(("seed", "shared"), [(1, False), (4, False), (1, True)])
def test_no_dim_is_further_from_an_integer_than_proved(seed: int, shared: bool) -> None:
    """Every machine dim holds an integer after every layer: exactly in bfloat16, within the proved error in float32."""
    circuit = random_netlist(seed, shared=shared)
    network = cast(circuit, Options(heads=8))
    ids = torch.tensor([np.random.default_rng(seed).integers(0, circuit.vocabulary, 130).tolist()])
    worst = {}
    for dtype in ("float32", "bfloat16"):
        model = stock_model(network, dtype).model
        off: list[float] = []
        for layer in model.layers:
            layer.register_forward_hook(
                lambda _m, _i, out, off=off: off.append(float((out.double() - out.double().round()).abs().max()))
            )
        with torch.inference_mode():
            model(ids, use_cache=False)
        worst[dtype] = max(off)
    assert worst["bfloat16"] < 1e-12  # what silu leaves of -32
    assert worst["float32"] <= network.certificate["largest_error_float32"]
    assert worst["float32"] > 0


def test_certificate_of_fibonacci() -> None:
    certificate = cast(fibonacci(8), Options(heads=1)).certificate
    assert certificate["min_margin_bf16"] >= 0.25
    assert certificate["min_margin_float32"] >= 0.0625
    assert certificate["min_gap_bf16"] == 64
    assert certificate["min_gap_float32"] > 40
    assert certificate["decisions"]["outputs"] == 8
    assert certificate["decisions"]["neurons"] > 8


def test_claims_are_listed() -> None:
    b = Builder("claims", 4)
    x = b.token_word("x", lambda i: i, 2)
    either = (x[0] + x[1]).assume(0, 1)
    network = cast(b.finish([b.lookup("y", either, lambda n: n), x[1]], lambda i: i), Options(heads=1))
    assert any("is in 0..1" in claim and "x.bit0" in claim for claim in network.certificate["assumptions"])


def test_wide_and_is_within_the_margins() -> None:
    b = Builder("wide", 4)
    x = b.token_word("x", lambda i: i, 2)
    many = [b.xor(f"bit{i}", x[0], x[1], *[x[0]] * (i % 3)) for i in range(200)]
    network, report = cast_with_report(b.finish([b.and_("wide", *many), x[0]], lambda i: i), Options(heads=1))
    assert report.margin >= 0.0625
    assert network.certificate["min_margin_float32"] == report.margin
    assert "wide" in report.weakest or "code" in report.weakest


def test_errors_that_nothing_can_end_are_refused_by_name() -> None:
    """A steep table over 100 bits: ramps would carry too much, and steps would pass the 8 bits of a bfloat16 gate."""
    b = Builder("steep", 4)
    x = b.token_word("x", lambda i: i, 2)
    many = [b.xor(f"bit{i}", x[0], x[1], *[x[0]] * (i % 3)) for i in range(100)]
    steep = b.lookup("steep", total(many), lambda n: 200 * (n & 1))
    circuit = b.finish([b.lookup("back", steep, lambda n: int(n > 99)), x[0]], lambda i: i)
    with pytest.raises(FoundryError, match=r"sum 'steep': float32 errors .* bit0, bit1, bit10") as caught:
        cast(circuit, Options(heads=1))
    assert len(caught.value.faults) == 1


def test_read_constants() -> None:
    """sqrt(2) * norm * gate * weight is 1 within 1e-6, and exactly 1 after bfloat16 roundings in any known order."""
    one = np.sqrt(2.0) * NORM_WEIGHT * READ_GATE * READ_WEIGHT
    assert abs(one - 1) < 1e-6
    root = to_bf16(np.sqrt(2.0))
    gate, norm, weight = np.float32(READ_GATE), np.float32(NORM_WEIGHT), np.float32(READ_WEIGHT)
    stock = to_bf16(to_bf16(norm * root) * gate)
    late = to_bf16(np.float32(np.sqrt(2.0)) * norm * gate)
    kept = to_bf16(norm * root * gate)
    for read in (stock, late, kept):
        assert to_bf16(read * weight) == 1


@pytest.mark.parametrize("hidden", [64, 128, 704, 2560, 2752, 2816, 3072, 4800])
def test_anchors(hidden: int) -> None:
    amplitudes = anchors_for(hidden)
    assert sum(a * a for a in amplitudes) == hidden * 4.0**SCALE_BITS
    assert all(np.log2(a) % 1 == 0 for a in amplitudes)
    assert len(amplitudes) <= 12


@pytest.mark.parametrize("seed", [0, 5])
def test_worse_arithmetic_than_any_kernel_has(seed: int) -> None:
    """float32 with a random error on every norm (2 units in the last place, one factor a token), every linear layer and
    every read: still within the proved error, still every token right."""
    circuit = random_netlist(seed)
    network = cast(circuit, Options(heads=8))
    ids = np.random.default_rng(seed).integers(0, circuit.vocabulary, 130).tolist()
    model = stock_model(network, "float32")
    generator = torch.Generator().manual_seed(seed)

    def factor(shape: tuple[int, ...]) -> torch.Tensor:
        return 1 + (2 * torch.rand(shape, generator=generator) - 1) * 2.0**-22

    off: list[float] = []
    for layer in model.model.layers:
        for norm in (layer.input_layernorm, layer.post_attention_layernorm):
            norm.register_forward_hook(lambda _m, _i, out: out * factor((*out.shape[:-1], 1)))
        for linear in (module for module in layer.modules() if isinstance(module, torch.nn.Linear)):
            linear.register_forward_hook(lambda _m, _i, out: out * factor(tuple(out.shape)))
        layer.register_forward_hook(
            lambda _m, _i, out: off.append(float((out.double() - out.double().round()).abs().max()))
        )
    assert prefill(model, ids) == expected(circuit, ids)
    assert 2e-7 < max(off) <= network.certificate["largest_error_float32"]
