"""The independent judge: a cast network in the stock transformers classes, beside the circuit on plain integers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from transformers import DynamicCache
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM
from transformers.utils import logging as transformers_logging

from qgpu.circuit.evaluate import Simulator
from qgpu.circuit.ir import Circuit
from qgpu.foundry.network import Network

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def stock_model(network: Network, dtype: str) -> Qwen3_5ForCausalLM:
    """Qwen3_5ForCausalLM with the network's dense weights; every parameter has to be in the network."""
    shape = network.shape
    transformers_logging.set_verbosity_error()
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        model = Qwen3_5ForCausalLM(
            Qwen3_5TextConfig(
                hidden_size=shape.hidden,
                num_hidden_layers=shape.layers,
                intermediate_size=shape.intermediate,
                vocab_size=shape.vocabulary,
                linear_num_key_heads=shape.linear_heads,
                linear_num_value_heads=shape.linear_heads,
                linear_key_head_dim=shape.head_dim,
                linear_value_head_dim=shape.head_dim,
                linear_conv_kernel_dim=shape.conv_kernel,
                num_attention_heads=shape.attention_heads,
                num_key_value_heads=shape.key_value_heads,
                head_dim=shape.attention_head_dim,
                rms_norm_eps=shape.rms_norm_eps,
                tie_word_embeddings=False,
            )
        )
    model.to_empty(device="cpu")
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(network.dense(name.removeprefix("model.")))
    for rotary in (m for m in model.modules() if type(m).__name__ == "Qwen3_5TextRotaryEmbedding"):
        rotary.inv_freq = torch.ones_like(rotary.inv_freq)  # attention writes nothing
    return model.eval().to(DTYPES[dtype])


def expected(circuit: Circuit, ids: Sequence[int]) -> list[int | None]:
    """What the circuit asks for after each token, on integers."""
    simulator = Simulator(circuit)
    return [simulator.step(int(token)) for token in ids]


@torch.inference_mode()
def prefill(model: Qwen3_5ForCausalLM, ids: Sequence[int]) -> list[int]:
    """argmax after each token, all tokens in one pass (the chunked form)."""
    logits = model(torch.tensor([list(ids)]), use_cache=False).logits[0]
    return [int(i) for i in logits.argmax(-1)]


@torch.inference_mode()
def decode(model: Qwen3_5ForCausalLM, ids: Sequence[int]) -> list[int]:
    """argmax after each token, one token a pass (the recurrent form)."""
    cache = DynamicCache(config=model.config)
    result = []
    for token in ids:
        logits = model(torch.tensor([[int(token)]]), cache=cache, use_cache=True).logits[0, -1]
        result.append(int(logits.argmax()))
    return result


@torch.inference_mode()
def gaps(model: Qwen3_5ForCausalLM, ids: Sequence[int]) -> float:
    """Smallest distance between the best and the second logit."""
    best = model(torch.tensor([list(ids)]), use_cache=False).logits[0].float().topk(2, dim=-1).values
    return float((best[:, 0] - best[:, 1]).min())


def agree(circuit: Circuit, network: Network, ids: Sequence[int], decoded: int = 24) -> None:
    """Both dtypes, chunked and recurrent, say what the circuit says, at every token and with a gap of at least 40."""
    wanted = expected(circuit, ids)
    assert None not in wanted, "the circuit itself asks for an id that does not exist"
    for dtype in DTYPES:
        model = stock_model(network, dtype)
        got = prefill(model, ids)
        assert got == wanted, (dtype, "prefill", np.flatnonzero(np.array(got) != np.array(wanted))[:5])
        assert gaps(model, ids) >= 40
        head = list(ids[:decoded])
        assert decode(model, head) == wanted[: len(head)], (dtype, "decode")
