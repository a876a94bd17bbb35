"""A cast network laid out for the native engine: columns of each matrix together, only heads that exist, one array each.

Everything is taken from the network's tensors; nothing is known of circuits or of a machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qgpu.engines.protocol import EngineError
from qgpu.foundry.network import Network, Sparse

Array = np.ndarray[Any, Any]

HEAD = 128
ROWS = 3 * HEAD  # a head's rows of in_proj_qkv: 128 of q, of k, of v


class Weights(NamedTuple):
    """Flat arrays for compiled code. A matrix is (start, index, value): column c of layer l is at start[l * columns + c].

    ``head_first[l]``: the first of layer l's heads among all live heads, ``head_number``: a live head's number in its
    layer. ``conv`` [live heads * 384, 4], ``plain`` the same rows: 1 where only the present token's tap is not zero and is 1.
    """

    eps: float
    first_norm: Array  # [layers, hidden], 1 + w
    second_norm: Array
    last_norm: Array  # [hidden]
    is_linear: Array  # [layers]
    head_first: Array  # [layers + 1]
    head_number: Array  # [live heads]
    qkv_start: Array
    qkv_index: Array  # live head * 384 + part * 128 + i
    qkv_value: Array
    conv: Array
    plain: Array
    z_start: Array  # by row: live head * 128 + i
    z_index: Array  # hidden dim
    z_value: Array
    beta_start: Array  # by live head
    beta_index: Array
    beta_value: Array
    decay_start: Array
    decay_index: Array
    decay_value: Array
    a_log: Array  # [live heads]
    dt_bias: Array
    gated_norm: Array  # [layers, 128]
    out_start: Array  # by column: live head * 128 + i
    out_index: Array
    out_value: Array
    gate_start: Array
    gate_index: Array  # neuron of the layer
    gate_value: Array
    up_start: Array
    up_index: Array
    up_value: Array
    down_start: Array  # by column: layer * intermediate + neuron
    down_index: Array
    down_value: Array


def _grouped(keys: Array, index: Array, value: Array, groups: int) -> tuple[Array, Array, Array]:
    """(start, index, value) of entries grouped by key."""
    order = np.argsort(keys, kind="stable")
    start = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=groups), out=start[1:])
    return start, index[order].astype(np.int32), value[order].astype(np.float32)


class _Columns:
    """Gathers entries of one kind of matrix over all layers."""

    def __init__(self) -> None:
        self.parts: list[tuple[Array, Array, Array]] = []

    def add(self, keys: Array, index: Array, value: Array) -> None:
        self.parts.append((keys.astype(np.int64), index.astype(np.int64), value))

    def grouped(self, groups: int) -> tuple[Array, Array, Array]:
        if not self.parts:
            return np.zeros(groups + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
        keys, index, value = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        return _grouped(keys, index, value, groups)


EMPTY = Sparse((0, 0), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))


def weights_of(network: Network) -> Weights:
    """Raises EngineError for a network that is more than DeltaNet and MLP layers."""
    shape = network.shape
    attention = [name for name in (*network.sparse, *network.vectors) if ".self_attn." in name]
    if attention:
        raise EngineError(
            f"the network has full-attention weights ({attention[0]}); the native engine evaluates DeltaNet and MLP layers "
            f"only, use the transformers engine"
        )
    if shape.head_dim != HEAD or shape.conv_kernel != 4:
        raise EngineError(f"heads of {shape.head_dim} dims and a convolution of {shape.conv_kernel}: 128 and 4 are needed")
    get = lambda layer, name: network.sparse.get(f"layers.{layer}.{name}.weight", EMPTY)  # noqa: E731
    vector = lambda name, size, default: network.vectors.get(name, np.full(size, default, np.float32))  # noqa: E731
    hidden, layers, width = shape.hidden, shape.layers, shape.intermediate
    columns = {name: _Columns() for name in ("qkv", "z", "beta", "decay", "out", "gate", "up", "down")}
    head_first, head_number, conv, a_log, dt_bias = [0], [], [], [], []
    for layer in range(layers):
        part = HEAD * shape.linear_heads
        qkv = get(layer, "linear_attn.in_proj_qkv")
        used = np.unique(qkv.rows % part // HEAD) if len(qkv.rows) else np.zeros(0, np.int64)
        first = head_first[-1]
        place = np.full(shape.linear_heads, -1, np.int64)
        place[used] = first + np.arange(len(used))
        head_first.append(first + len(used))
        head_number += used.tolist()
        rows = place[qkv.rows % part // HEAD] * ROWS + qkv.rows // part * HEAD + qkv.rows % HEAD
        columns["qkv"].add(layer * hidden + qkv.cols.astype(np.int64), rows, qkv.values)
        taps = np.zeros((3 * part, 4), np.float32)
        c = network.sparse.get(f"layers.{layer}.linear_attn.conv1d.weight", EMPTY)
        taps[c.rows, c.cols] = c.values
        for head in used:
            conv.append(np.concatenate([taps[p * part + head * HEAD : p * part + head * HEAD + HEAD] for p in range(3)]))
        logs = vector(f"layers.{layer}.linear_attn.A_log", shape.linear_heads, 0)
        bias = vector(f"layers.{layer}.linear_attn.dt_bias", shape.linear_heads, 0)
        a_log += logs[used].tolist()
        dt_bias += bias[used].tolist()
        z = get(layer, "linear_attn.in_proj_z")
        keep = place[z.rows // HEAD] >= 0
        columns["z"].add((place[z.rows // HEAD] * HEAD + z.rows % HEAD)[keep], z.cols[keep], z.values[keep])
        for name, tensor in (("beta", "in_proj_b"), ("decay", "in_proj_a")):
            m = get(layer, f"linear_attn.{tensor}")
            keep = place[m.rows] >= 0
            columns[name].add(place[m.rows][keep], m.cols[keep], m.values[keep])
        out = get(layer, "linear_attn.out_proj")
        keep = place[out.cols // HEAD] >= 0
        columns["out"].add((place[out.cols // HEAD] * HEAD + out.cols % HEAD)[keep], out.rows[keep], out.values[keep])
        for name in ("gate", "up"):
            m = get(layer, f"mlp.{name}_proj")
            columns[name].add(layer * hidden + m.cols.astype(np.int64), m.rows, m.values)
        down = get(layer, "mlp.down_proj")
        columns["down"].add(layer * width + down.cols.astype(np.int64), down.rows, down.values)
    heads = head_first[-1]
    convs = np.concatenate(conv) if conv else np.zeros((0, 4), np.float32)
    norms = {
        name: np.stack([1 + vector(f"layers.{i}.{name}.weight", hidden, 0) for i in range(layers)]).astype(np.float32)
        for name in ("input_layernorm", "post_attention_layernorm")
    }
    return Weights(
        shape.rms_norm_eps,
        norms["input_layernorm"],
        norms["post_attention_layernorm"],
        (1 + vector("norm.weight", hidden, 0)).astype(np.float32),
        np.array([head_first[i + 1] > head_first[i] for i in range(layers)]),
        np.array(head_first, np.int64),
        np.array(head_number, np.int64),
        *columns["qkv"].grouped(layers * hidden),
        convs,
        (convs == np.array([0, 0, 0, 1], np.float32)).all(1),
        *columns["z"].grouped(heads * HEAD),
        *columns["beta"].grouped(heads),
        *columns["decay"].grouped(heads),
        np.array(a_log, np.float32),
        np.array(dt_bias, np.float32),
        np.stack([vector(f"layers.{i}.linear_attn.norm.weight", HEAD, 1) for i in range(layers)]).astype(np.float32),
        *columns["out"].grouped(heads * HEAD),
        *columns["gate"].grouped(layers * hidden),
        *columns["up"].grouped(layers * hidden),
        *columns["down"].grouped(layers * width),
    )
