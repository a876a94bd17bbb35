"""What a base has beside its text model, in the merged width: the vision tower, MTP layers, and whatever else.

An image's features must be as wide as the text they stand among, and an MTP layer reads hidden states: so the last
projection of the vision tower and all of MTP are widened with zeros, MTP's norms folded like the base's, and the
machine's dims turned off there. All other tensors stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from qgpu.checkpoint import base as bases
from qgpu.checkpoint.files import Array, Stored, Stream, bits, floats
from qgpu.checkpoint.surgery import ROWS, Plan, fold

Piece = tuple[int, int, int]  # first column in the base, first column in the merged model, columns


def vision_config(made: Plan) -> dict[str, Any] | None:
    """The base's, with the merged width; None if it has none."""
    config = made.base.config.get("vision_config")
    return None if config is None else {**config, "out_hidden_size": made.sizes.hidden}


def streams(made: Plan) -> list[Stream]:
    """Every tensor beside the text model, by full name."""
    wide = shapes(made.base, made.sizes)
    exact = folded(made)
    return [_stream(made, name, tensor, wide.get(name, tensor.shape), exact.get(name))
            for name, tensor in made.base.others.items()]  # fmt: skip


def shapes(base: bases.Base, sizes: bases.Sizes) -> dict[str, tuple[int, ...]]:
    """Full name -> shape in a model of these sizes."""
    config = dict(base.config)
    if config.get("vision_config") is not None:
        config["vision_config"] = {**config["vision_config"], "out_hidden_size": sizes.hidden}
    return bases.extras(sizes, config)


def folded(made: Plan) -> dict[str, Array]:
    """MTP's norms, folded, float32, by full name."""
    return {name: fold(made, tensor) for name, tensor in made.base.others.items() if is_folded(name)}


def is_folded(name: str) -> bool:
    """Whether it is a norm of hidden states."""
    return name.startswith("mtp.") and (name.endswith("layernorm.weight") or name[4:] in bases.MTP_NORMS)


def pieces(name: str, own: int, wide: int) -> list[Piece]:
    """How a tensor's columns (its last dim's) lie in the widened one: as they are, but for the pair that MTP joins."""
    if name == "mtp.fc.weight":
        return [(0, 0, own // 2), (own // 2, wide // 2, own // 2)]
    return [(0, 0, own)]


def recovered(name: str, tensor: Stored, found: Stored, norms: Mapping[str, Stored]) -> bool:
    """Whether a base's tensor can be had back from the merged one, bit for bit."""
    values = tensor.map()
    if name in norms:
        own, wide = tensor.shape[0], found.shape[0]
        exact = (1.0 + norms[name].map()[:own].astype(np.float64)) / np.sqrt(own / wide) - 1.0
        return np.array_equal(bits(exact.astype(np.float32)), bits(floats(values)))
    other = found.map()
    if tensor.kind != found.kind:
        values, other = floats(values), floats(other)
    if tensor.shape == found.shape:
        return np.array_equal(values, other)
    cut = other[tuple(slice(0, size) for size in tensor.shape[:-1])]
    return all(np.array_equal(values[..., first : first + size], cut[..., there : there + size])
               for first, there, size in pieces(name, tensor.shape[-1], found.shape[-1]))  # fmt: skip


def _stream(made: Plan, name: str, tensor: Stored, shape: tuple[int, ...], exact: Array | None) -> Stream:
    kind = "F32" if made.dtype == "float32" and tensor.kind in bases.KINDS else tensor.kind
    if exact is not None:
        return Stream(name, kind, shape, lambda: iter([exact if kind == "F32" else bits(exact)]))
    return Stream(name, kind, shape, lambda: _widened(name, tensor, kind, shape))


def _widened(name: str, tensor: Stored, kind: str, shape: tuple[int, ...]) -> Iterator[Array]:
    values = tensor.map()
    for start in range(0, shape[0] if shape else 1, ROWS):
        part = values[start : start + ROWS] if tensor.shape == shape else values[start : min(start + ROWS, shape[0])]
        part = floats(part) if kind == "F32" else part
        if tensor.shape == shape or tensor.kind not in bases.KINDS:
            yield part
            continue
        dense = np.zeros((min(ROWS, shape[0] - start), *shape[1:]), part.dtype)
        if len(shape) == 1:
            dense[: len(part)] = part
        else:
            for first, there, size in pieces(name, tensor.shape[-1], shape[-1]):
                dense[: len(part), ..., there : there + size] = part[..., first : first + size]
        yield dense
