"""A full-size base of random weights, merged and run by stock transformers: build time, memory, size, tokens/s.

The base has the shape of Qwen3.5-2B: what it says is noise, what the GPU in front of it computes is checked token by
token. Needs some 40 GB of disk and as much memory as the merged model is large. Each step is a process of its own, so
that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.checkpoint import base as bases
from qgpu.checkpoint.files import Stream, bits, write

SHAPE = {
    "model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "vocab_size": 248320, "hidden_size": 2048,
    "intermediate_size": 6144, "num_hidden_layers": 24, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 16, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "tie_word_embeddings": True, "rms_norm_eps": 1e-6,
    "full_attention_interval": 4, "mamba_ssm_dtype": "float32", "eos_token_id": 248044, "hidden_act": "silu",
    "max_position_embeddings": 262144, "attn_output_gate": True,
}  # fmt: skip
POOL = 1 << 22  # random numbers that are drawn; tensors take them from different places on
ROWS = 1024


def random_base(folder: Path, shape: dict[str, Any]) -> None:
    """A flat base of that config, random normal weights, written without ever standing in memory."""
    rng = np.random.default_rng(0)
    pool = (0.02 * rng.standard_normal(POOL)).astype(np.float32)
    sizes = bases.sizes_of(folder, shape)

    def parts(name: str, full: tuple[int, ...]) -> Iterator[np.ndarray[Any, Any]]:
        width = int(np.prod(full[1:]))
        around = 1.0 if name.endswith("linear_attn.norm.weight") else 0.0
        for start in range(0, full[0], ROWS):
            count = min(ROWS, full[0] - start) * width
            values = np.take(pool, np.arange(count) + rng.integers(POOL), mode="wrap") + np.float32(around)
            yield values if name.endswith(("A_log", "linear_attn.norm.weight")) else bits(values)

    def stream(name: str, full: tuple[int, ...]) -> Stream:
        kind = "F32" if name.endswith(("A_log", "linear_attn.norm.weight")) else "BF16"
        return Stream(f"model.{name}", kind, full, lambda: parts(name, full))

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(shape))
    write(folder / "model.safetensors", [stream(name, full) for name, full in sizes.tensors().items()])


def build(source: Path, folder: Path) -> dict[str, Any]:
    from qgpu.checkpoint.build import build as merge
    from qgpu.checkpoint.front import machine_front

    start = time.perf_counter()
    front = machine_front(SHAPE["hidden_size"], SHAPE["intermediate_size"])  # type: ignore[arg-type]
    cast = time.perf_counter() - start
    made = merge(str(source), folder, layout="flat", front=front)
    return {
        "layers": made.layers, "hidden size": made.hidden, "parameters": made.parameters,
        "size, GB": made.bytes / 1e9, "casting the machine, s": cast,
        "whole build, s": time.perf_counter() - start,
    }  # fmt: skip


def run(folder: Path, launches: int) -> dict[str, Any]:
    from qgpu.driver.samples import samples
    from qgpu.engines.transformers import TransformersEngine

    start = time.perf_counter()
    engine = TransformersEngine(folder, "bfloat16")
    found: dict[str, Any] = {"loading, s": time.perf_counter() - start}
    first = json.loads((folder / "qgpu.json").read_text())["first_machine_id"]
    tokens, wrong = 0, 0
    start = time.perf_counter()
    for sample in samples(launches):
        engine.reset()
        ids = [first + token for token in (*sample.prompt, *sample.written)]
        said = engine.feed(ids, argmax=True) or []
        wrong += sum(a != b for a, b in zip(said[len(sample.prompt) - 1 :], ids[len(sample.prompt) :], strict=False))
        tokens += len(ids)
    found |= {"launches": launches, "wrong tokens": wrong, "prefill, tokens/s": tokens / (time.perf_counter() - start)}
    engine.reset()
    engine.feed(ids[: len(sample.prompt)])
    start = time.perf_counter()
    written = engine.generate(8)
    found["decode, tokens/s"] = len(written) / (time.perf_counter() - start)
    found["decoded wrong"] = sum(a != b for a, b in zip(written, ids[len(sample.prompt) :], strict=False))
    return found


def step(name: str, *arguments: str) -> dict[str, Any]:
    """One step in a process of its own, with its peak memory."""
    done = subprocess.run([sys.executable, __file__, "--step", name, *arguments], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", choices=("build", "run"))
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder if not named")
    given = parser.parse_args()
    if given.step is not None:
        source, folder = given.folder / "base", given.folder / "merged"
        found = build(source, folder) if given.step == "build" else run(folder, given.launches)
        found[f"peak memory, {given.step}, GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as temporary:
        place = given.folder or Path(temporary)
        if not (place / "base" / "model.safetensors").is_file():
            random_base(place / "base", SHAPE)
        more = ("--folder", str(place), "--launches", str(given.launches))
        found = step("build", *more) | step("run", *more)
    for name, value in found.items():
        print(f"{name:26s} {value:,}" if isinstance(value, int) else f"{name:26s} {value:,.1f}")


if __name__ == "__main__":
    main()
