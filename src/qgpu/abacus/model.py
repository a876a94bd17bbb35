"""Abacus's shape, its checkpoints, and what it says: the stock Qwen3.5 classes, nothing of our own in the model."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import DynamicCache, Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

from qgpu.abacus.vocabulary import CLOSING, END, END_OF_TEXT, OPENING, asked

LONGEST_ANSWER = 120  # tokens


def config(entries: int, hidden: int = 256, layers: int = 4) -> Qwen3_5TextConfig:
    """A dense Qwen3.5 of that width: two DeltaNet heads a layer, full attention in every fourth."""
    kinds = ["full_attention" if layer % 4 == 3 else "linear_attention" for layer in range(layers)]
    return Qwen3_5TextConfig(
        vocab_size=entries, hidden_size=hidden, intermediate_size=3 * hidden, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, linear_num_key_heads=2, linear_num_value_heads=2,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, layer_types=kinds,
        full_attention_interval=4, tie_word_embeddings=True, rms_norm_eps=1e-6, mamba_ssm_dtype="float32",
    )  # fmt: skip


def fresh(entries: int, seed: int, hidden: int = 256, layers: int = 4) -> Qwen3_5ForCausalLM:
    """A model before training."""
    torch.manual_seed(seed)
    return Qwen3_5ForCausalLM(config(entries, hidden, layers))


def save(model: Qwen3_5ForCausalLM, folder: Path) -> None:
    """``config.json`` and bfloat16 weights (norms' scales of the heads and decays in float32, as published ones)."""
    state = {name: value for name, value in model.state_dict().items() if name != "lm_head.weight"}
    kept = ("A_log", "linear_attn.norm.weight")
    tensors = {name: value.float() if name.endswith(kept) else value.bfloat16() for name, value in state.items()}
    save_file({n: v.contiguous() for n, v in tensors.items()}, str(folder / "model.safetensors"), {"format": "pt"})
    facts = {**model.config.to_dict(), "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
             "dtype": "bfloat16"}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(facts, indent=2, default=str) + "\n", encoding="utf-8")


def load(folder: Path) -> Qwen3_5ForCausalLM:
    """A saved model, in float32."""
    facts: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = fresh(facts["vocab_size"], 0, facts["hidden_size"], facts["num_hidden_layers"])
    model.load_state_dict({n: v.float() for n, v in load_file(str(folder / "model.safetensors")).items()}, strict=False)
    return model.eval()


@torch.inference_mode()
def continued(model: Qwen3_5ForCausalLM, tokenizer: Tokenizer, texts: Sequence[str]) -> list[str]:
    """What the model writes after each text, up to the end of an expression or of its turn. Texts of as many tokens
    are read together."""
    stops = {tokenizer.token_to_id(name) for name in (CLOSING, END, END_OF_TEXT)}
    ids = [tokenizer.encode(text).ids for text in texts]
    groups: dict[int, list[int]] = defaultdict(list)
    for index, found in enumerate(ids):
        groups[len(found)].append(index)
    written: list[list[int]] = [[] for _ in texts]
    for members in groups.values():
        cache = DynamicCache(config=model.config)
        step = torch.tensor([ids[index] for index in members])
        going = set(members)
        for _ in range(LONGEST_ANSWER):
            out = model(input_ids=step, cache=cache, use_cache=True, logits_to_keep=1)
            cache = out.cache
            step = out.logits[:, -1].argmax(-1)[:, None]
            for index, token in zip(members, step[:, 0].tolist(), strict=True):
                if index in going:
                    written[index].append(token)
                    if token in stops:
                        going.discard(index)
            if not going:
                break
    return [tokenizer.decode(found, skip_special_tokens=False) for found in written]


def expressions(model: Qwen3_5ForCausalLM, tokenizer: Tokenizer, questions: Sequence[str]) -> list[str]:
    """The expression that the model writes for each question, "" where it writes none."""
    found = continued(model, tokenizer, [asked(text) for text in questions])
    inside = [text.removeprefix(OPENING).removesuffix(CLOSING) for text in found]
    return [part if text == f"{OPENING}{part}{CLOSING}" else "" for text, part in zip(found, inside, strict=True)]
