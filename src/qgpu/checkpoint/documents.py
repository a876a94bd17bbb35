"""What stands beside the weights: configs, tokenizer, chat template, model card, and qgpu's own notes."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

from qgpu.checkpoint import extras
from qgpu.checkpoint.base import NESTED, TEXT
from qgpu.checkpoint.errors import MergeError
from qgpu.checkpoint.surgery import Plan
from qgpu.isa import tokens

NOTES = "qgpu.json"
COPIED = (
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
    "chat_template.json", "preprocessor_config.json",
    "video_preprocessor_config.json", "processor_config.json", "LICENSE",
)  # fmt: skip


def config(made: Plan, nested: bool) -> dict[str, Any]:
    """``config.json`` of the merged model: the base's, with the sizes that have changed."""
    base, sizes = made.base, made.sizes
    text = copy.deepcopy(dict(base.text_config))
    text |= {
        "model_type": TEXT,
        "dtype": made.dtype,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.intermediate,
        "num_hidden_layers": sizes.layers,
        "vocab_size": sizes.vocabulary,
        "layer_types": ["full_attention" if full else "linear_attention" for full in sizes.full],
        "full_attention_interval": 4,
        "linear_num_key_heads": sizes.key_heads,
        "linear_num_value_heads": sizes.value_heads,
        "mamba_ssm_dtype": "float32",
        "tie_word_embeddings": sizes.tied,
    }
    text.pop("torch_dtype", None)
    if not nested:
        return {**text, "architectures": ["Qwen3_5ForCausalLM"]}
    whole = copy.deepcopy(dict(base.config)) if base.nested else {}
    whole |= {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": NESTED,
        "text_config": text,
        "tie_word_embeddings": sizes.tied,
        "dtype": made.dtype,
    }
    if (tower := extras.vision_config(made)) is not None:
        whole["vision_config"] = tower
    whole.pop("torch_dtype", None)
    return whole


def stop_ids(made: Plan) -> list[int]:
    """HALT and every FAULT, as ids of the merged model."""
    halt, fault = tokens.BY_NAME["HALT"], tokens.BY_NAME["FAULT"]
    return [made.text + i for kind in (fault, halt) for i in range(kind.first, kind.first + kind.count)]


def generation_config(made: Plan) -> dict[str, Any]:
    """The base's, with HALT and FAULT among the ids that end a generation."""
    path = made.base.folder / "generation_config.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    stops = found.get("eos_token_id", made.base.text_config.get("eos_token_id"))
    own = [] if stops is None else stops if isinstance(stops, list) else [stops]
    return {**found, "eos_token_id": [*own, *stop_ids(made)]}


def notes(made: Plan) -> dict[str, Any]:
    """What qgpu needs to know again about a merged folder."""
    certificate = made.front.network.certificate
    return {
        "format": "qgpu-merged-1",
        "base_hidden": made.base.sizes.hidden,
        "base_layers": made.base.sizes.layers,
        "base_vocabulary": made.text,
        "gpu_layers": made.gpu,
        "machine_dims": made.sizes.hidden - made.base.sizes.hidden,
        "first_machine_id": made.text,
        "parameters": made.parameters,
        "anchor": made.front.anchor,
        "code": list(made.front.code),
        "tag": made.front.tag,
        "min_margin_bf16": certificate.get("min_margin_bf16"),
        "min_margin_float32": certificate.get("min_margin_float32"),
        "states": {name: list(where) for name, where in made.front.network.states.items()},
    }


def machine_token(identifier: int) -> str:
    """The name of a machine id in the tokenizer's vocabulary.

    It is a plain entry that no merge leads to, not an added special token: libraries look for added tokens in the text
    itself, before anything else, so that whoever types such a name would give the machine an order. A plain entry is
    named when it is decoded, and no text ever becomes it.
    """
    return f"<|gpu:{tokens.text(identifier).replace(' ', '_')}|>"


def tokenizer(base: Path, folder: Path, first: int) -> bool:
    """Write the tokenizer of the base in folder ``base`` with the machine's ids, ``first`` and up, as entries of its
    vocabulary, and copy what stands beside it. False if the base has none.

    A byte-level BPE reaches an entry by merges alone; these entries have none, so that encoding never gives them, while
    decoding names them.
    """
    source = base / "tokenizer.json"
    for name in COPIED:
        if (base / name).is_file():
            shutil.copyfile(base / name, folder / name)
    if not source.is_file():
        return False
    try:
        data = json.loads(source.read_text(encoding="utf-8"))
        model = data["model"]
        if model["type"] != "BPE" or model.get("ignore_merges"):
            raise MergeError(f"{source}: a byte-level BPE that keeps to its merges is needed")
        vocabulary: dict[str, int] = model["vocab"]
        # an added token that is no entry would be numbered anew behind all entries, the machine's among them
        vocabulary.update({token["content"]: token["id"] for token in data.get("added_tokens", [])})
        for identifier in range(tokens.USED_IDS):
            vocabulary[machine_token(identifier)] = first + identifier
    except (ValueError, KeyError, TypeError) as error:
        raise MergeError(f"{source}: {type(error).__name__}: {error}: no tokenizer of the tokenizers library") from None
    (folder / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return True


def card(made: Plan, name: str) -> str:
    """The model card, README.md."""
    facts = notes(made)
    return f"""---
license: apache-2.0
base_model: {name}
library_name: transformers
pipeline_tag: text-generation
tags: [qgpu, deltanet, exact-arithmetic]
---

# {name} with a GPU in front

A standard Qwen3.5 checkpoint: {facts["gpu_layers"]} layers that were *computed*, not trained, stand in front of the
{facts["base_layers"]} layers of {name}. They are a GPU: fed a program, arrays and GO as tokens, the model writes the
launch token by token, exactly. On text those layers add nothing to the base's hidden dims, not a bit.

| | |
|---|---|
| parameters | {facts["parameters"]:,} (vision and MTP not counted) |
| hidden size | {made.sizes.hidden} = {facts["base_hidden"]} of the base + {facts["machine_dims"]} of the machine |
| machine ids | {made.text} to {made.text + tokens.USED_IDS - 1}; DATA d is {made.text} + d |
| threads in a CTA | {tokens.THREADS_PER_CTA}, warps of {tokens.WARP_SIZE} |
| memory | {tokens.MEMORY_BYTES:,} bytes, byte addressable |
| program | {tokens.BLOCKS} blocks |

Machine ids never come up in text, and text never becomes machine ids: their names are entries of the vocabulary that no
merge leads to. HALT and FAULT end a generation.

## Running it

Any engine that loads Qwen3.5 runs it, greedily (`do_sample=False`); no code comes with the checkpoint. With qgpu:
`qgpu run kernels/dot.cu --model FOLDER ...`, `qgpu chat FOLDER`.

## License

The weights are the base's with computed layers added, under the base's license, Apache-2.0. The compiler that made the
layers is MIT licensed.
"""


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
