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
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5VisionConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM, Qwen3_5VisionModel

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


def vision(form: Form) -> dict[str, Any]:
    return {
        "model_type": "qwen3_5_vision", "depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2,
        "in_channels": 3, "patch_size": 16, "temporal_patch_size": 2, "spatial_merge_size": 2,
        "num_position_embeddings": 64, "out_hidden_size": form.hidden,
    }  # fmt: skip


def mtp(form: Form) -> dict[str, tuple[int, ...]]:
    """Name -> shape of what predicts a second token: embedding and hidden state side by side, then one layer."""
    hidden, wide = form.hidden, form.intermediate
    layer = {
        "self_attn.q_proj": (256, hidden), "self_attn.k_proj": (64, hidden), "self_attn.v_proj": (64, hidden),
        "self_attn.o_proj": (hidden, 128), "self_attn.q_norm": (64,), "self_attn.k_norm": (64,),
        "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,), "mlp.gate_proj": (wide, hidden),
        "mlp.up_proj": (wide, hidden), "mlp.down_proj": (hidden, wide),
    }  # fmt: skip
    names = {"fc": (hidden, 2 * hidden), "norm": (hidden,), "pre_fc_norm_embedding": (hidden,),
             "pre_fc_norm_hidden": (hidden,)}  # fmt: skip
    return {f"{name}.weight": shape for name, shape in (names | {f"layers.0.{k}": v for k, v in layer.items()}).items()}


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
        tower = Qwen3_5VisionModel(Qwen3_5VisionConfig(**vision(form)))
        more = {f"model.visual.{name}": 0.1 * torch.randn_like(value) for name, value in tower.state_dict().items()}
        more |= {f"mtp.{name}": 0.1 * torch.randn(shape) for name, shape in mtp(form).items()}
        tensors |= {name: value.to(torch.bfloat16).contiguous() for name, value in more.items()}
        whole = {
            "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "text_config": text,
            "tie_word_embeddings": form.tied, "vision_config": vision(form), "image_token_id": 300,
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
