"""A base checkpoint: a dense Qwen3.5 in a folder, nested (with vision, MTP) or flat: whole, or a list of faults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu.checkpoint.errors import MergeError
from qgpu.checkpoint.files import KINDS, Stored, stored

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
TEXT, NESTED = "qwen3_5_text", "qwen3_5"
VISION = "model.visual."
MTP_NORMS = ("norm.weight", "pre_fc_norm_embedding.weight", "pre_fc_norm_hidden.weight")


@dataclass(frozen=True)
class Sizes:
    """Sizes of a text model, all from its config."""

    hidden: int
    layers: int
    intermediate: int
    vocabulary: int
    attention_heads: int
    key_value_heads: int
    head_dim: int
    key_heads: int
    value_heads: int
    linear_dim: int
    conv: int
    tied: bool
    eps: float
    full: tuple[bool, ...]  # by layer

    def layer(self, full: bool) -> dict[str, tuple[int, ...]]:
        """Name within a layer -> shape; ``full``: of a layer with attention instead of DeltaNet."""
        hidden = self.hidden
        keys, values = self.key_heads * self.linear_dim, self.value_heads * self.linear_dim
        query, pair = self.attention_heads * self.head_dim, self.key_value_heads * self.head_dim
        linear = {
            "in_proj_qkv.weight": (2 * keys + values, hidden), "in_proj_z.weight": (values, hidden),
            "in_proj_a.weight": (self.value_heads, hidden), "in_proj_b.weight": (self.value_heads, hidden),
            "conv1d.weight": (2 * keys + values, 1, self.conv), "A_log": (self.value_heads,),
            "dt_bias": (self.value_heads,), "norm.weight": (self.linear_dim,), "out_proj.weight": (hidden, values),
        }  # fmt: skip
        attention = {
            "q_proj.weight": (2 * query, hidden), "k_proj.weight": (pair, hidden), "v_proj.weight": (pair, hidden),
            "o_proj.weight": (hidden, query), "q_norm.weight": (self.head_dim,), "k_norm.weight": (self.head_dim,),
        }  # fmt: skip
        every = {
            "input_layernorm.weight": (hidden,), "post_attention_layernorm.weight": (hidden,),
            "mlp.gate_proj.weight": (self.intermediate, hidden), "mlp.up_proj.weight": (self.intermediate, hidden),
            "mlp.down_proj.weight": (hidden, self.intermediate),
        }  # fmt: skip
        mixer, parts = ("self_attn", attention) if full else ("linear_attn", linear)
        return {f"{mixer}.{name}": shape for name, shape in parts.items()} | every

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Name (without prefix) -> shape of every tensor of the text model, in file order; the head as ``lm_head``."""
        found: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (self.vocabulary, self.hidden)}
        for layer, full in enumerate(self.full):
            found |= {f"layers.{layer}.{name}": shape for name, shape in self.layer(full).items()}
        found["norm.weight"] = (self.hidden,)
        if not self.tied:
            found["lm_head.weight"] = (self.vocabulary, self.hidden)
        return found


@dataclass(frozen=True, eq=False)
class Base:
    """``config``: as it stands in the folder. ``text``: name without prefix -> tensor; ``others``: vision, MTP and
    whatever else, by full name. ``nested``: the layout that the folder has."""

    folder: Path
    config: Mapping[str, Any]
    nested: bool
    sizes: Sizes
    text: Mapping[str, Stored]
    others: Mapping[str, Stored]

    @property
    def text_config(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.config["text_config"] if self.nested else self.config
        return found


def read(folder: Path) -> Base:
    """The base in a folder. MergeError with everything that is missing or does not fit, each on its line."""
    config = _json(folder / "config.json", "a model's folder has one; name the folder, not a file in it")
    kind = config.get("model_type")
    if kind not in (TEXT, NESTED):
        raise MergeError(f"{folder}: model_type is {kind!r}; the base has to be a dense Qwen3.5 ({NESTED} or {TEXT})")
    nested = kind == NESTED
    sizes = sizes_of(folder, config.get("text_config", {}) if nested else config, config)
    tensors = _tensors(folder)
    prefix = "model.language_model." if nested else "model."
    text, others = {}, {}
    for name, tensor in tensors.items():
        if name == "lm_head.weight":
            text[name] = tensor
        elif name.startswith(prefix):
            text[name.removeprefix(prefix)] = tensor
        else:
            others[name] = tensor
    if sizes.tied:
        text.pop("lm_head.weight", None)
    _check(folder, sizes, text, prefix, _fit(sizes, config, others))
    return Base(folder, config, nested, sizes, text, others)


def _json(path: Path, hint: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MergeError(f"{path}: cannot be read ({error.strerror}): {hint}") from None
    except ValueError as error:
        raise MergeError(f"{path}: not JSON ({error}); download it again") from None
    if not isinstance(found, dict):
        raise MergeError(f"{path}: not a JSON object; download it again")
    return found


def sizes_of(folder: Path, text: Mapping[str, Any], whole: Mapping[str, Any] | None = None) -> Sizes:
    """Sizes by a text model's config, and ``whole``, the config that it stands in. MergeError if it lacks something."""
    config = whole or {}
    try:
        layers = int(text["num_hidden_layers"])
        interval = int(text.get("full_attention_interval", 4))
        kinds = text.get("layer_types") or [
            "full_attention" if (i + 1) % interval == 0 else "linear_attention" for i in range(layers)
        ]
        if text["linear_key_head_dim"] != text["linear_value_head_dim"]:
            raise MergeError(f"{folder}: linear_key_head_dim and linear_value_head_dim have to be the same")
        return Sizes(
            hidden=int(text["hidden_size"]), layers=layers, intermediate=int(text["intermediate_size"]),
            vocabulary=int(text["vocab_size"]), attention_heads=int(text["num_attention_heads"]),
            key_value_heads=int(text["num_key_value_heads"]), head_dim=int(text["head_dim"]),
            key_heads=int(text["linear_num_key_heads"]), value_heads=int(text["linear_num_value_heads"]),
            linear_dim=int(text["linear_value_head_dim"]), conv=int(text.get("linear_conv_kernel_dim", 4)),
            tied=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
            eps=float(text.get("rms_norm_eps", 1e-6)), full=tuple(kind == "full_attention" for kind in kinds),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise MergeError(f"{folder}/config.json: {type(error).__name__}: {error}: no dense Qwen3.5's config") from None


def _tensors(folder: Path) -> dict[str, Stored]:
    if (folder / INDEX).is_file():
        index = _json(folder / INDEX, "")
        placed = index.get("weight_map")
        if not isinstance(placed, dict):
            raise MergeError(f"{folder / INDEX}: it has no weight_map; download it again")
        names = sorted(set(placed.values()))
        lacking = [name for name in names if not (folder / str(name)).is_file()]
        if lacking:
            raise MergeError(f"{folder}: {len(lacking)} of {len(names)} files are missing: {', '.join(lacking[:8])}")
        if any("/" in str(name) or "\\" in str(name) for name in names):
            raise MergeError(f"{folder / INDEX}: it names files outside of its folder")
        files = {name: stored(folder / name) for name in names}
        wrong = [name for name, file in placed.items() if name not in files[file]]
        if wrong:
            raise MergeError(f"{folder}: {len(wrong)} tensors are not in the files the index names: {wrong[:8]}")
        return {name: files[file][name] for name, file in placed.items()}
    if (folder / SINGLE).is_file():
        return stored(folder / SINGLE)
    raise MergeError(f"{folder}: neither {SINGLE} nor {INDEX} is there; only safetensors are read")


def extras(sizes: Sizes, config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Full name -> shape of the tensors of the vision tower and of the MTP layers, as far as the config tells."""
    count = config.get("text_config", config).get("mtp_num_hidden_layers", 1)
    found = {f"mtp.{name}": (sizes.hidden,) for name in MTP_NORMS} | {"mtp.fc.weight": (sizes.hidden, 2 * sizes.hidden)}
    for layer in range(count):
        found |= {f"mtp.layers.{layer}.{name}": shape for name, shape in sizes.layer(full=True).items()}
    try:
        tower = _tower(config["vision_config"])
    except (KeyError, TypeError):
        tower = {}
    return found | {f"{VISION}{name}": shape for name, shape in tower.items()}


def _tower(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, wide = config["hidden_size"], config["intermediate_size"]
    patch, merged = config["patch_size"], hidden * config["spatial_merge_size"] ** 2
    linear = {"attn.qkv": (3 * hidden, hidden), "attn.proj": (hidden, hidden), "mlp.linear_fc1": (wide, hidden),
              "mlp.linear_fc2": (hidden, wide), "norm1": (hidden,), "norm2": (hidden,)}  # fmt: skip
    parts: dict[str, tuple[int, ...]] = {
        "patch_embed.proj": (hidden, config["in_channels"], config["temporal_patch_size"], patch, patch),
        "merger.norm": (hidden,), "merger.linear_fc1": (merged, merged),
        "merger.linear_fc2": (config["out_hidden_size"], merged),
    }  # fmt: skip
    for layer in range(config["depth"]):
        parts |= {f"blocks.{layer}.{name}": shape for name, shape in linear.items()}
    found = {f"{name}.weight": shape for name, shape in parts.items()}
    found |= {f"{name}.bias": shape[:1] for name, shape in parts.items()}
    return found | {"pos_embed.weight": (config["num_position_embeddings"], hidden)}


def _fit(sizes: Sizes, config: Mapping[str, Any], found: Mapping[str, Stored]) -> list[str]:
    """What is wrong with a vision tower or MTP layers. Either may be left out, as a whole; unknown tensors pass."""
    faults = []
    tower = config.get("vision_config")
    if isinstance(tower, Mapping) and tower.get("out_hidden_size", sizes.hidden) != sizes.hidden:
        faults.append(f"vision_config: out_hidden_size {tower['out_hidden_size']}, but hidden_size is {sizes.hidden}")
    needed = extras(sizes, config)
    for head in (VISION, "mtp."):
        if any(name.startswith(head) for name in found):
            faults += [f"{name}: missing" for name in needed if name.startswith(head) and name not in found]
    return faults + [fault for name, tensor in found.items() if name in needed
                     for fault in _faults(name, tensor, needed[name])]  # fmt: skip


def _faults(name: str, tensor: Stored, shape: tuple[int, ...]) -> list[str]:
    faults = []
    if tensor.shape != shape:
        faults.append(f"{name}: {list(tensor.shape)}, the config says {list(shape)}")
    if tensor.kind not in KINDS:
        faults.append(f"{name}: {tensor.kind}; bfloat16 or float32 is needed, no quantised weights")
    return faults


def _check(folder: Path, sizes: Sizes, text: Mapping[str, Stored], prefix: str, more: list[str]) -> None:
    needed = sizes.tensors()
    faults = [f"{prefix}{name}: missing" for name in needed if name not in text]
    for name, tensor in text.items():
        if name not in needed:
            faults.append(f"{prefix}{name}: a dense Qwen3.5 of this config has no such tensor")
        else:
            faults += _faults(f"{prefix}{name}", tensor, needed[name])
    faults += more
    if sizes.conv != 4 or sizes.linear_dim != 128:
        faults.append(f"convolution {sizes.conv}, linear head dim {sizes.linear_dim}: 4 and 128 are needed")
    if sizes.value_heads % max(sizes.key_heads, 1):
        faults.append(f"{sizes.value_heads} value heads over {sizes.key_heads} key heads")
    if any(full != (i % 4 == 3) for i, full in enumerate(sizes.full)) or len(sizes.full) != sizes.layers:
        faults.append("layer_types: every fourth layer, and no other, has to be full attention")
    if faults:
        listed = "".join(f"\n  - {fault}" for fault in faults)
        raise MergeError(f"{folder}: {len(faults)} faults in this base:{listed}")
