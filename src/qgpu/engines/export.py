"""A cast network as a standard dense checkpoint folder of the stock text model (the *flat* layout).

Written with numpy alone, tensor by tensor and in slices, so that the dense form never stands in memory; the folder
gets its name only when it is complete. See https://github.com/huggingface/safetensors#format for the file form.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.engines.protocol import Array, EngineError
from qgpu.foundry.network import Lookup, Network, Shape, Sparse
from qgpu.foundry.stock import FULL_ATTENTION_INTERVAL, has_deltanet, stock_shapes

SLICE_ROWS = 2048  # rows of a matrix that are dense at a time
DTYPES = {"bfloat16": ("BF16", 2), "float32": ("F32", 4)}


def text_config(shape: Shape, dtype: str) -> dict[str, Any]:
    """``config.json`` of the flat layout (``qwen3_5_text``), every true entry written out."""
    return {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "dtype": dtype,
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.attention_heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.attention_head_dim,
        "linear_num_key_heads": shape.linear_heads,
        "linear_num_value_heads": shape.linear_heads,
        "linear_key_head_dim": shape.head_dim,
        "linear_value_head_dim": shape.head_dim,
        "linear_conv_kernel_dim": shape.conv_kernel,
        "layer_types": [
            "linear_attention" if has_deltanet(layer) else "full_attention" for layer in range(shape.layers)
        ],
        "full_attention_interval": FULL_ATTENTION_INTERVAL,
        "attn_output_gate": True,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "rms_norm_eps": shape.rms_norm_eps,
        "mamba_ssm_dtype": "float32",
        "max_position_embeddings": 262144,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000000,
            "partial_rotary_factor": 0.25,
            "mrope_section": [11, 11, 10],
            "mrope_interleaved": True,
        },
        "tie_word_embeddings": False,
        "use_cache": True,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }


def encode(values: Array, dtype: str, name: str) -> bytes:
    """Little-endian bytes of float32 values. EngineError where bfloat16 would have to round: the proofs rest on the
    values."""
    values = np.ascontiguousarray(values, dtype="<f4")
    if dtype == "float32":
        return values.tobytes()
    bits = values.view("<u4")
    if np.any(bits & 0xFFFF):
        raise EngineError(f"{name}: some values cannot be written in bfloat16 exactly; cast the network anew")
    return (bits >> 16).astype("<u2").tobytes()


def _sparse_slices(matrix: Sparse, shape: tuple[int, ...]) -> Iterator[Array]:
    height, width = shape[0], int(np.prod(shape[1:]))
    order = np.argsort(matrix.rows, kind="stable")
    rows, cols, values = matrix.rows[order], matrix.cols[order], matrix.values[order]
    for start in range(0, height, SLICE_ROWS):
        stop = min(start + SLICE_ROWS, height)
        lo, hi = np.searchsorted(rows, [start, stop])
        dense = np.zeros((stop - start, width), np.float32)
        dense[rows[lo:hi] - start, cols[lo:hi]] = values[lo:hi]
        yield dense


def _lookup_slices(table: Lookup, shape: tuple[int, ...]) -> Iterator[Array]:
    for start in range(0, shape[0], SLICE_ROWS):
        codes = table.codes[start : start + SLICE_ROWS].astype(np.float32)
        dense = np.zeros((len(codes), shape[1]), np.float32)
        dense[:, table.dims] = codes * table.scales + table.offsets
        yield dense


def _slices(network: Network, name: str, shape: tuple[int, ...]) -> Iterator[Array]:
    if name == "embed_tokens.weight":
        return _lookup_slices(network.embedding, shape)
    if name == "lm_head.weight":
        return _lookup_slices(network.head, shape)
    if name in network.sparse:
        return _sparse_slices(network.sparse[name], shape)
    if name in network.vectors:
        return iter([np.asarray(network.vectors[name], np.float32).reshape(shape)])
    empty = np.zeros(0, np.int32)
    return _sparse_slices(Sparse(shape, empty, empty, np.zeros(0, np.float32)), shape)


def check_names(network: Network) -> None:
    """EngineError that lists every tensor the stock model has no place for, or that has another size there."""
    stock = stock_shapes(network.shape)
    faults = [f"{name}: the stock model has no such tensor" for name in network.sparse if name not in stock]
    faults += [f"{name}: the stock model has no such tensor" for name in network.vectors if name not in stock]
    for name, matrix in network.sparse.items():
        height, width = stock[name][0] if name in stock else 0, int(np.prod(stock[name][1:])) if name in stock else 0
        if name in stock and len(matrix.rows) and (matrix.rows.max() >= height or matrix.cols.max() >= width):
            faults.append(f"{name}: an entry lies outside the stock shape {stock[name]}")
    for name, vector in network.vectors.items():
        if name in stock and np.size(vector) != int(np.prod(stock[name])):
            faults.append(f"{name}: {np.size(vector)} values where the stock shape is {stock[name]}")
    if faults:
        raise EngineError("this network is not a stock Qwen3.5:\n  " + "\n  ".join(faults))


def write_safetensors(network: Network, path: Path, dtype: str, prefix: str = "model.") -> None:
    """Write every stock tensor to one safetensors file, slice by slice."""
    code, width = DTYPES[dtype]
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    tensors = stock_shapes(network.shape)
    for name, shape in tensors.items():
        size = int(np.prod(shape)) * width
        full = name if name.startswith("lm_head") else prefix + name
        header[full] = {"dtype": code, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data starts at a multiple of 8
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in tensors.items():
            for part in _slices(network, name, shape):
                file.write(encode(part, dtype, name))


def export_dense(network: Network, folder: Path, dtype: str = "bfloat16", layout: str = "flat") -> Path:
    """Write a bare checkpoint that stock Qwen3_5ForCausalLM loads: config.json, generation_config.json,
    model.safetensors.

    ``dtype``: "bfloat16" or "float32". An existing folder of that name is replaced, once the new one is complete.
    Raises EngineError for an unknown dtype or layout, and for a network that is not stock.
    """
    if dtype not in DTYPES:
        raise EngineError(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    if layout != "flat":
        raise EngineError(f"layout {layout!r} is not known; a bare checkpoint is written 'flat'")
    check_names(network)
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        _write_json(fresh / "config.json", text_config(network.shape, dtype))
        _write_json(fresh / "generation_config.json", {"do_sample": False, "use_cache": True})
        write_safetensors(network, fresh / "model.safetensors", dtype)
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
