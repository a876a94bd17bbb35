"""The merged model, tensor by tensor: the GPU's layers, then the base's, widened.

Widening D to D' dims scales RMSNorm by sqrt(D / D'), which is folded into 1 + w. All of the machine's dims are turned
off in the base's norms but one anchor, through which in_proj_a and in_proj_b are muted on machine tokens, so that those
leave the base's DeltaNet states as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from qgpu.checkpoint.base import Base, Sizes
from qgpu.checkpoint.files import Array, Stored, Stream, bits, floats
from qgpu.checkpoint.front import Front
from qgpu.foundry.network import Sparse
from qgpu.foundry.numbers import NO_DECAY_A_LOG

ROWS = 2048  # rows of a matrix that stand in memory at a time
MUTE = -512.0  # in_proj_a and in_proj_b on a machine token: no decay (softplus is 0), no write (sigmoid is 0)
Make = Callable[[], Iterator[Array]]


@dataclass(frozen=True, eq=False)
class Plan:
    """``sizes``: of the merged model. ``gpu``: how many layers are the GPU's. ``text``: rows of the base's vocabulary;
    the machine's ids follow. ``dtype``: "bfloat16" or "float32"."""

    base: Base
    front: Front
    sizes: Sizes
    gpu: int
    text: int
    dtype: str

    @property
    def parameters(self) -> int:
        return sum(prod(shape) for shape in self.sizes.tensors().values())


def plan(base: Base, front: Front, dtype: str = "bfloat16") -> Plan:
    """The sizes of base and front together."""
    own, shape = base.sizes, front.network.shape
    ratio = own.value_heads // own.key_heads
    keys = max(own.key_heads, shape.linear_heads)
    full = tuple(layer % 4 == 3 for layer in range(shape.layers + own.layers))
    sizes = replace(
        own, hidden=shape.hidden, layers=shape.layers + own.layers, vocabulary=own.vocabulary + shape.vocabulary,
        intermediate=max(own.intermediate, shape.intermediate), key_heads=keys, value_heads=keys * ratio, full=full,
    )  # fmt: skip
    return Plan(base, front, sizes, shape.layers, own.vocabulary, dtype)


def streams(made: Plan) -> list[Stream]:
    """Every tensor of the text model, in file order, without prefix."""
    found = []
    for name, shape in made.sizes.tensors().items():
        kind, parts = _parts(made, name, shape)
        found.append(Stream(name, kind, shape, parts))
    return found


def folded(made: Plan) -> dict[str, Array]:
    """The folded norm weights exactly, float32, by name: what bfloat16 rounds."""
    names = [name for name in made.sizes.tensors() if _is_folded(made, name)]
    return {name: _fold(made, name) for name in names}


def _is_folded(made: Plan, name: str) -> bool:
    if name == "norm.weight":
        return True
    return name.endswith("layernorm.weight") and int(name.split(".")[1]) >= made.gpu


def _parts(made: Plan, name: str, shape: tuple[int, ...]) -> tuple[str, Make]:
    if name in ("embed_tokens.weight", "lm_head.weight"):
        return _kind(made, made.base.text[name].kind), lambda: _vocabulary(made, name)
    if _is_folded(made, name):
        source = name if name == "norm.weight" else _base_name(made, name)
        return _cast(made, made.base.text[source].kind, lambda: iter([_fold(made, name)]))
    layer = int(name.split(".")[1])
    if layer < made.gpu:
        return _cast(made, _gpu_kind(made, name), lambda: _gpu(made, name, shape))
    source = _base_name(made, name)
    return _kind(made, made.base.text[source].kind), lambda: _widened(made, source, name, shape)


def _kind(made: Plan, kind: str) -> str:
    return "F32" if made.dtype == "float32" else kind


def _cast(made: Plan, kind: str, parts: Make) -> tuple[str, Make]:
    """float32 parts in the kind that is written."""
    written = _kind(made, kind)
    if written == "F32":
        return written, lambda: (np.asarray(part, np.float32) for part in parts())
    return written, lambda: (bits(part) for part in parts())


def _base_name(made: Plan, name: str) -> str:
    head, number, rest = name.split(".", 2)
    return f"{head}.{int(number) - made.gpu}.{rest}"


def _gpu_kind(made: Plan, name: str) -> str:
    """As the base keeps that part in a layer of that kind."""
    rest = name.split(".", 2)[2]
    for layer in range(made.base.sizes.layers):
        tensor = made.base.text.get(f"layers.{layer}.{rest}")
        if tensor is not None:
            return tensor.kind
    return "BF16"


# the base


def fold(made: Plan, norm: Stored) -> Array:
    """1 + w times sqrt(D / D'), minus 1, float32; the machine's dims off."""
    own, wide = made.base.sizes.hidden, made.sizes.hidden
    weights = np.full(wide, -1.0)
    weights[:own] = (1.0 + floats(norm.map()).astype(np.float64)) * np.sqrt(own / wide) - 1.0
    return weights.astype(np.float32)


def _fold(made: Plan, name: str) -> Array:
    """``fold``, with the machine's dims as the final norm wants them, and an anchor for what mutes the base."""
    final = name == "norm.weight"
    weights = fold(made, made.base.text[name if final else _base_name(made, name)])
    if final:
        for dim, value in made.front.norm.items():
            weights[dim] = value - 1.0
    elif name.endswith("input_layernorm.weight"):
        weights[made.front.anchor] = 0.0
    return weights


def _values(made: Plan, part: Array) -> Array:
    """A part of a base tensor in the kind that is written."""
    return floats(part) if made.dtype == "float32" else part


def _zero(made: Plan, kind: str, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape, np.float32 if _kind(made, kind) == "F32" else np.uint16)


def _vocabulary(made: Plan, name: str) -> Iterator[Array]:
    """Text rows, zero in the machine's dims; then the machine's rows."""
    source = made.base.text[name]
    own, wide, values = made.base.sizes.hidden, made.sizes.hidden, source.map()
    for start in range(0, made.text, ROWS):
        part = values[start : start + ROWS]
        dense = _zero(made, source.kind, (len(part), wide))
        dense[:, :own] = _values(made, part)
        yield dense
    front = made.front
    for start in range(0, len(front.rows), ROWS):
        part = front.rows[start : start + ROWS]
        rows = np.zeros((len(part), wide), np.float32)
        rows[:, front.row_dims] = part
        yield rows if _kind(made, source.kind) == "F32" else bits(rows)


def _widened(made: Plan, source: str, name: str, shape: tuple[int, ...]) -> Iterator[Array]:
    """A tensor of a base's layer in the merged sizes: new dims, heads and neurons are zero."""
    tensor = made.base.text[source]
    values = tensor.map()
    runs = _row_runs(made, name, tensor.shape)
    for size, where in runs:
        for start in range(0, size, ROWS):
            count = min(ROWS, size - start)
            dense = _zero(made, tensor.kind, (count, *shape[1:]))
            if where is not None:
                part = _values(made, values[where + start : where + start + count])
                if part.ndim == 1:
                    dense[:] = part
                else:
                    dense[(slice(None), *(slice(0, length) for length in part.shape[1:]))] = part
            if name.endswith(("in_proj_a.weight", "in_proj_b.weight")):
                mute = np.float32(MUTE / made.front.level)
                dense[:, made.front.anchor] = mute if dense.dtype == np.float32 else bits(np.array([mute]))[0]
            yield dense


def _row_runs(made: Plan, name: str, shape: tuple[int, ...]) -> list[tuple[int, int | None]]:
    """(rows, first row of the base or None for zeros): how the merged tensor's rows follow each other."""
    own, wide = made.base.sizes, made.sizes
    if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
        keys, more = own.key_heads * own.linear_dim, (wide.key_heads - own.key_heads) * own.linear_dim
        values, rest = own.value_heads * own.linear_dim, (wide.value_heads - own.value_heads) * own.linear_dim
        runs: list[tuple[int, int | None]] = [
            (keys, 0), (more, None), (keys, keys), (more, None), (values, 2 * keys), (rest, None)
        ]  # fmt: skip
        return [run for run in runs if run[0]]
    target = wide.tensors()[name][0]
    return [(shape[0], 0)] + ([(target - shape[0], None)] if target > shape[0] else [])


# the GPU


def _gpu(made: Plan, name: str, shape: tuple[int, ...]) -> Iterator[Array]:
    """A tensor of a GPU layer, float32, in the merged sizes."""
    network = made.front.network
    if name in network.sparse:
        yield from _dense(_placed(made, name, network.sparse[name]), shape)
    elif name.endswith("A_log"):
        yield _by_head(made, network.vectors[name], NO_DECAY_A_LOG)
    elif name.endswith("dt_bias"):
        yield _by_head(made, network.vectors.get(name, np.zeros(0, np.float32)), 0.0)
    elif name.endswith("linear_attn.norm.weight"):
        yield network.vectors[name]
    else:
        empty = Sparse(shape, *(np.zeros(0, kind) for kind in (np.int32, np.int32, np.float32)))
        yield from _dense(empty, shape)


def _by_head(made: Plan, values: Array, rest: float) -> Array:
    ratio = made.sizes.value_heads // made.sizes.key_heads
    found = np.full(made.sizes.value_heads, rest, np.float32)
    found[: ratio * len(values) : ratio] = values
    return found


def _placed(made: Plan, name: str, matrix: Sparse) -> Sparse:
    """Rows and columns of heads where the merged model has them: of the value heads that share a key, the first."""
    sizes, heads = made.sizes, made.front.network.shape.linear_heads
    dim, ratio = sizes.linear_dim, sizes.value_heads // sizes.key_heads

    def value(index: Array) -> Array:
        return index // dim * ratio * dim + index % dim

    rows, cols = matrix.rows, matrix.cols
    if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
        part, inside = rows // (heads * dim), rows % (heads * dim)
        rows = np.where(part < 2, part * sizes.key_heads * dim + inside, 2 * sizes.key_heads * dim + value(inside))
    elif name.endswith("in_proj_z.weight"):
        rows = value(rows)
    elif name.endswith(("in_proj_a.weight", "in_proj_b.weight")):
        rows = rows * ratio
    elif name.endswith("out_proj.weight"):
        cols = value(cols)
    return replace(matrix, rows=rows, cols=cols)


def _dense(matrix: Sparse, shape: tuple[int, ...]) -> Iterator[Array]:
    height, width = shape[0], prod(shape[1:])
    order = np.argsort(matrix.rows, kind="stable")
    rows, cols, values = matrix.rows[order], matrix.cols[order], matrix.values[order]
    for start in range(0, height, ROWS):
        stop = min(start + ROWS, height)
        low, high = np.searchsorted(rows, [start, stop])
        dense = np.zeros((stop - start, width), np.float32)
        dense[rows[low:high] - start, cols[low:high]] = values[low:high]
        yield dense
