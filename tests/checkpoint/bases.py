"""Random base checkpoints of the true names, kinds, nesting and sharding, small enough for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

KEPT_FLOAT = ("A_log", "linear_attn.norm.weight")  # the published checkpoints keep these in float32


@dataclass(frozen=True)
class Form:
    """What a base looks like."""

    tied: bool = True
    ratio: int = 1  # value heads for each key head
    nested: bool = True
    shards: int = 1
    hidden: int = 128
    intermediate: int = 256
    vocabulary: int = 320


def config(form: Form) -> dict[str, Any]:
    return {
        "model_type": "qwen3_5_text", "vocab_size": form.vocabulary, "hidden_size": form.hidden,
        "intermediate_size": form.intermediate, "num_hidden_layers": 4, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 64, "linear_num_key_heads": 2, "linear_num_value_heads": 2 * form.ratio,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
        "tie_word_embeddings": form.tied, "full_attention_interval": 4, "rms_norm_eps": 1e-6, "eos_token_id": 7,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"], "mamba_ssm_dtype": "float32",
    }  # fmt: skip


def write(folder: Path, form: Form, seed: int = 0) -> Path:
    """A base with random weights in bfloat16, norms and decays included."""
    torch.manual_seed(seed)
    text = config(form)
    model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**{k: v for k, v in text.items() if k != "model_type"}))
    tensors = {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and form.tied:
            continue
        if name.endswith("norm.weight"):
            value = 0.3 * torch.randn_like(value) + (1 if "linear_attn" in name else 0)
        value = value.to(torch.bfloat16)
        kept = name.endswith(KEPT_FLOAT)
        full = name
        if form.nested and name.startswith("model."):
            full = name.replace("model.", "model.language_model.", 1)
        tensors[full] = (value.float() if kept else value).contiguous()
    whole: dict[str, Any] = {**text, "architectures": ["Qwen3_5ForCausalLM"]}
    if form.nested:
        tensors["model.visual.patch_embed.proj.weight"] = torch.randn(8, 4).to(torch.bfloat16)
        tensors["mtp.fc.weight"] = torch.randn(8, 4).to(torch.bfloat16)
        whole = {
            "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "text_config": text,
            "tie_word_embeddings": form.tied, "vision_config": {"depth": 1},
        }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(whole))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8], "temperature": 0.6}))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    if form.shards == 1:
        save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
        return folder
    names = sorted(tensors)
    placed = {}
    for number, part in enumerate(np.array_split(np.array(names), form.shards)):
        file = f"model-{number + 1:05d}-of-{form.shards:05d}.safetensors"
        save_file({name: tensors[name] for name in part.tolist()}, str(folder / file), metadata={"format": "pt"})
        placed |= {name: file for name in part.tolist()}
    index = {"metadata": {}, "weight_map": placed}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder
