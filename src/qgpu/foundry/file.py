"""The network file: one safetensors file, sizes and names as JSON in its header.

Tensors are named ``sparse.<name>.rows|cols|values``, ``vector.<name>`` and
``embedding|head.dims|codes|scales|offsets``. Indices are written as uint16 where they fit, values and vectors as the
bits of bfloat16 numbers (uint16): exact.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .errors import NetworkFileError
from .network import Lookup, Network, Shape, Sparse
from .numbers import is_bf16
from .stock import has_deltanet, stock_shapes

FORMAT = "qgpu-network-1"
Array = np.ndarray[Any, Any]
LOOKUP_PARTS = ("dims", "codes", "scales", "offsets")


def write(network: Network, path: Path) -> None:
    """Write the file under another name first, then rename: a reader never sees half of it."""
    tensors: dict[str, Array] = {}
    for name, matrix in network.sparse.items():
        tensors[f"sparse.{name}.rows"] = _narrow(matrix.rows)
        tensors[f"sparse.{name}.cols"] = _narrow(matrix.cols)
        tensors[f"sparse.{name}.values"] = _bits(matrix.values, name)
    for name, vector in network.vectors.items():
        tensors[f"vector.{name}"] = _bits(vector, name)
    for label, table in (("embedding", network.embedding), ("head", network.head)):
        tensors[f"{label}.dims"] = table.dims.astype(np.int32)
        tensors[f"{label}.codes"] = np.ascontiguousarray(table.codes, np.int8)
        tensors[f"{label}.scales"] = _bits(table.scales, label)
        tensors[f"{label}.offsets"] = _bits(table.offsets, label)
    tensors |= {f"range.{name}": np.ascontiguousarray(table) for name, table in network.ranges.items()}
    metadata = {
        "format": FORMAT,
        "shape": json.dumps(asdict(network.shape)),
        "states": json.dumps({name: list(where) for name, where in network.states.items()}),
        "certificate": json.dumps(dict(network.certificate)),
    }
    fresh = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        save_file(tensors, str(fresh), metadata=metadata)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def read(path: Path) -> Network:
    """Read and check a file. NetworkFileError (a ValueError) names the file and every fault."""
    if not path.is_file():
        raise NetworkFileError(f"{path}: there is no such file")
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors: dict[str, Array] = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise NetworkFileError(f"{path}: not a safetensors file ({error}); cast the network anew") from error
    if metadata.get("format") != FORMAT:
        raise NetworkFileError(f"{path}: format {metadata.get('format')!r}, not {FORMAT!r}; cast the network anew")
    try:
        network = _assemble(metadata, tensors)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise NetworkFileError(f"{path}: {type(error).__name__}: {error}; cast the network anew") from error
    faults = check(network)
    if faults:
        raise NetworkFileError(f"{path}: {len(faults)} faults\n" + "\n".join(f"  - {fault}" for fault in faults))
    return network


def _assemble(metadata: dict[str, str], tensors: dict[str, Array]) -> Network:
    shape = Shape(**json.loads(metadata["shape"]))
    sizes = stock_shapes(shape)
    sparse: dict[str, Sparse] = {}
    vectors: dict[str, Array] = {}
    ranges: dict[str, Array] = {}
    for key, tensor in tensors.items():
        kind, _, rest = key.partition(".")
        if kind == "sparse" and rest.endswith(".rows"):
            name = rest.removesuffix(".rows")
            size = sizes[name]
            sparse[name] = Sparse(
                (size[0], size[-1]),
                tensor.astype(np.int32),
                tensors[f"sparse.{name}.cols"].astype(np.int32),
                _floats(tensors[f"sparse.{name}.values"]),
            )
        elif kind == "vector":
            vectors[rest] = _floats(tensor)
        elif kind == "range":
            ranges[rest] = tensor
    tables = []
    for label in ("embedding", "head"):
        dims, codes, scales, offsets = (tensors[f"{label}.{part}"] for part in LOOKUP_PARTS)
        tables.append(Lookup((shape.vocabulary, shape.hidden), dims, codes, _floats(scales), _floats(offsets)))
    states = {name: (w[0], w[1], w[2], w[3]) for name, w in json.loads(metadata["states"]).items()}
    return Network(shape, sparse, vectors, tables[0], tables[1], states, json.loads(metadata["certificate"]), ranges)


def check(network: Network) -> list[str]:
    """Everything about a network that does not fit the stock model of its shape."""
    faults: list[str] = []
    shape = network.shape
    sizes = stock_shapes(shape)
    for name, matrix in network.sparse.items():
        if name not in sizes or len(sizes[name]) < 2:
            faults.append(f"{name}: the stock model has no such matrix")
            continue
        count = len(matrix.values)
        if matrix.rows.shape != (count,) or matrix.cols.shape != (count,):
            faults.append(f"{name}: rows, cols and values differ in length")
        elif count:
            inside = 0 <= matrix.rows.min() and matrix.rows.max() < sizes[name][0]
            if not (inside and 0 <= matrix.cols.min() and matrix.cols.max() < sizes[name][-1]):
                faults.append(f"{name}: an entry outside {sizes[name]}")
            places = matrix.rows.astype(np.int64) * sizes[name][-1] + matrix.cols
            if np.any(np.diff(places) <= 0):
                faults.append(f"{name}: entries are not sorted by row and column, or stand twice")
        if not np.all(np.isfinite(matrix.values)):
            faults.append(f"{name}: values that are not finite")
    for name, vector in network.vectors.items():
        if name not in sizes or sizes[name] != vector.shape:
            faults.append(f"{name}: {vector.shape} where the stock model has {sizes.get(name, 'no such vector')}")
        elif not np.all(np.isfinite(vector)):
            faults.append(f"{name}: values that are not finite")
    needed = [name for name in sizes if name.endswith(("A_log", "linear_attn.norm.weight"))]
    faults += [f"{name}: missing" for name in needed if name not in network.vectors]
    for label, table in (("embedding", network.embedding), ("head", network.head)):
        count = len(table.dims)
        if table.codes.shape != (shape.vocabulary, count):
            faults.append(f"{label}: codes are {table.codes.shape}, not {(shape.vocabulary, count)}")
        if table.scales.shape != (count,) or table.offsets.shape != (count,):
            faults.append(f"{label}: scales or offsets are not {count} values")
        outside = count and (table.dims.min() < 0 or table.dims.max() >= shape.hidden)
        if outside or len(set(table.dims.tolist())) < count:
            faults.append(f"{label}: dims outside 0..{shape.hidden - 1}, or twice")
    for name, claimed in network.ranges.items():
        if name == "trusted":
            right = claimed.dtype == np.int32 and claimed.ndim == 2 and claimed.shape[1] == 4
        else:
            right = name in ("lo", "hi") and claimed.dtype == np.int16
            right = right and claimed.shape == (2 * shape.layers + 1, shape.hidden)
        if not right:
            faults.append(f"range '{name}': {claimed.dtype} {claimed.shape} does not fit the model's sizes")
    for name, (layer, head, bits, columns) in network.states.items():
        fits = 0 <= layer < shape.layers and has_deltanet(layer) and 0 <= head < shape.linear_heads
        if not (fits and 0 <= bits <= 7 and 1 <= columns <= 64):
            where = f"layer {layer}, head {head}, {bits} address bits, {columns} columns"
            faults.append(f"state '{name}': {where} do not fit")
    return faults


def _narrow(index: Array) -> Array:
    return np.ascontiguousarray(index, np.uint16 if not len(index) or index.max() < 1 << 16 else np.int32)


def _bits(values: Array, name: str) -> Array:
    floats = np.ascontiguousarray(values, np.float32)
    if not is_bf16(floats):
        raise ValueError(f"{name}: values that are not bfloat16 numbers")
    return (floats.view(np.uint32) >> 16).astype(np.uint16)


def _floats(bits: Array) -> Array:
    if bits.dtype != np.uint16:
        raise ValueError(f"values are {bits.dtype}, not bfloat16 bits (uint16)")
    return (bits.astype(np.uint32) << 16).view(np.float32)
