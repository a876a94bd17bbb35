"""Whether a merged model still is its base: every weight recovered, every hidden dim of text, every distribution.

``recovered`` needs NumPy alone; the rest runs both models in stock transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.checkpoint import base as bases
from qgpu.checkpoint import extras
from qgpu.checkpoint.build import notes_of
from qgpu.checkpoint.files import Stored, bits, floats, stored

SHOWN = 20
Say = Callable[[str], None]
SAMPLES = (
    "The capital of France is Paris, and its river is the Seine.",
    "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n",
    "Water boils at one hundred degrees at sea level; higher up it boils sooner, since the air weighs less.",
    "1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144",
)


@dataclass(frozen=True)
class Fidelity:
    """Base against merged on text, one dtype. ``kl``: mean Kullback-Leibler divergence of next-token distributions, in
    nats; ``noise_kl``: that of the base in a batch of one against itself in a batch of four; ``top1``: share of
    positions whose first choice agrees; ``machine``: largest total probability of machine ids at a position;
    ``embedded``: whether text's hidden states before the base's first layer equal its embedding, to the bit."""

    dtype: str
    positions: int
    kl: float
    noise_kl: float
    top1: float
    noise_top1: float
    machine: float
    embedded: bool
    kls: tuple[float, ...]  # of each position
    noise_kls: tuple[float, ...]


def recovered(folder: Path, source: Path) -> list[str]:
    """Base tensors that cannot be had back, bit for bit, from the merged folder; empty if all can."""
    notes = notes_of(folder)
    base = bases.read(source)
    merged = {_bare(name): tensor for name, tensor in _all(folder).items()}
    norms = stored(folder / "qgpu_norms.safetensors")
    own, wide = base.sizes.hidden, base.sizes.hidden + notes["machine_dims"]
    faults = []
    for name, tensor in base.text.items():
        where = _merged_name(name, notes["gpu_layers"])
        if where in norms:
            exact = (1.0 + norms[where].map()[:own].astype(np.float64)) / np.sqrt(own / wide) - 1.0
            same = np.array_equal(bits(exact.astype(np.float32)), bits(floats(tensor.map())))
        elif where not in merged:
            faults.append(f"{name}: missing")
            continue
        else:
            same = _equal(tensor, merged[where], name, base)
        if not same:
            faults.append(f"{name}: differs")
    for name, tensor in base.others.items():
        if name in merged and not extras.recovered(name, tensor, merged[name], norms):
            faults.append(f"{name}: differs")
    return faults


def _all(folder: Path) -> dict[str, Stored]:
    found: dict[str, Stored] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        found |= stored(path)
    return found


def _bare(name: str) -> str:
    for prefix in ("model.language_model.", "model."):
        if name.startswith(prefix) and not name.startswith("model.visual."):
            return name.removeprefix(prefix)
    return name


def _merged_name(name: str, gpu: int) -> str:
    if not name.startswith("layers."):
        return name
    head, number, rest = name.split(".", 2)
    return f"{head}.{int(number) + gpu}.{rest}"


def _equal(tensor: Stored, merged: Stored, name: str, base: bases.Base) -> bool:
    """The base's rows and columns of a widened tensor against the base's own."""
    values = tensor.map()
    found = merged.map()
    for start, there, size in _runs(name, tensor.shape, merged.shape, base):
        for row in range(0, size, 4096):
            count = min(4096, size - row)
            part = values[start + row : start + row + count]
            other = found[(slice(there + row, there + row + count), *(slice(0, n) for n in part.shape[1:]))]
            if part.dtype != other.dtype:
                part, other = floats(part), floats(other)
            if not np.array_equal(part, other):
                return False
    return True


def _runs(
    name: str, shape: tuple[int, ...], merged: tuple[int, ...], base: bases.Base
) -> Iterator[tuple[int, int, int]]:
    """(first row in the base, first row in the merged model, rows)."""
    if not name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
        yield 0, 0, shape[0]
        return
    sizes = base.sizes
    keys, values = sizes.key_heads * sizes.linear_dim, sizes.value_heads * sizes.linear_dim
    wide = merged[0] // (2 + sizes.value_heads // sizes.key_heads)
    yield 0, 0, keys
    yield keys, wide, keys
    yield 2 * keys, 2 * wide, values


def fidelity(
    folder: Path, source: Path, dtype: str, texts: Sequence[str] = SAMPLES, say: Say = lambda text: None
) -> Fidelity:
    """Both models on the texts (random ids where the base has no tokenizer). Needs transformers and torch."""
    import torch
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

    notes = notes_of(folder)
    rows = _ids(source, texts, notes["base_vocabulary"])
    kind = getattr(torch, dtype)
    say(f"running the base in {dtype}")
    with torch.inference_mode():
        model = Qwen3_5ForCausalLM.from_pretrained(str(source), dtype=kind, local_files_only=True).eval()
        alone = [_log(model(row[None]).logits[0]) for row in rows]
        length = min(len(row) for row in rows)
        together = _log(model(torch.stack([row[:length] for row in rows])).logits)
        noise = [_compare(alone[i][:length], together[i]) for i in range(len(rows))]
        del model
        say(f"running the merged model in {dtype}")
        model = Qwen3_5ForCausalLM.from_pretrained(str(folder), dtype=kind, local_files_only=True).eval()
        _exact_norms(model, folder, dtype)
        found, embedded, machine = [], True, 0.0
        for row, before in zip(rows, alone, strict=True):
            out = model(row[None], output_hidden_states=True)
            hidden = out.hidden_states
            embedded &= bool(torch.equal(hidden[0][..., : notes["base_hidden"]],
                                         hidden[notes["gpu_layers"]][..., : notes["base_hidden"]]))  # fmt: skip
            logits = _log(out.logits[0])
            machine = max(machine, float(logits[:, notes["base_vocabulary"] :].exp().sum(-1).max()))
            found.append(_compare(before, logits[:, : notes["base_vocabulary"]]))
    positions = sum(len(row) for row in rows)
    weights = [len(row) / positions for row in rows]
    top = sum(w * one[1] for w, one in zip(weights, found, strict=True))
    kls, noise_kls = (tuple(kl for one in several for kl in one[0]) for several in (found, noise))
    return Fidelity(dtype, positions, float(np.mean(kls)), float(np.mean(noise_kls)), top,
                    sum(n[1] for n in noise) / len(noise), machine, embedded, kls, noise_kls)  # fmt: skip


def _log(logits: Any) -> Any:
    import torch

    return torch.log_softmax(logits.double(), -1)


def _compare(first: Any, second: Any) -> tuple[list[float], float]:
    """KL by position; share of positions whose first choice agrees."""
    kls = (first.exp() * (first - second)).sum(-1).clamp(min=0).tolist()
    return kls, float((first.argmax(-1) == second.argmax(-1)).double().mean())


def _exact_norms(model: Any, folder: Path, dtype: str) -> None:
    """In float32, the folded norms as they are before bfloat16 rounds them."""
    import torch

    if dtype != "float32":
        return
    parameters = dict(model.named_parameters())
    for name, tensor in stored(folder / "qgpu_norms.safetensors").items():
        if f"model.{name}" in parameters:
            parameters[f"model.{name}"].data = torch.from_numpy(np.array(tensor.map()))


def _ids(source: Path, texts: Sequence[str], vocabulary: int) -> list[Any]:
    import torch

    if (source / "tokenizer.json").is_file():
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
        return [torch.tensor(tokenizer.encode(text).ids) for text in texts]
    rng = np.random.default_rng(0)
    return [torch.from_numpy(rng.integers(0, vocabulary, 48).astype(np.int64)) for _ in texts]
