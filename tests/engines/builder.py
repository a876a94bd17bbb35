"""Networks written by hand for the engine tests: a dense-looking scratch pad that becomes a ``Network``."""

import numpy as np

from qgpu.foundry.network import Lookup, Network, Shape, Sparse
from qgpu.foundry.stock import has_deltanet, stock_shapes


class Pad:
    """Dense float32 tensors by stock name (``pad["layers.0.mlp.gate_proj.weight"][row, col] = w``); conv1d as
    [channels, 4]."""

    def __init__(self, shape):
        self.shape = shape
        self.sizes = stock_shapes(shape)
        self.tensors = {}

    def __getitem__(self, name):
        if name not in self.tensors:
            size = self.sizes[name]
            self.tensors[name] = np.zeros((size[0], size[2]) if len(size) == 3 else size, np.float32)
        return self.tensors[name]

    def network(self, embedding, head):
        """``embedding``, ``head``: (dims, codes, scales, offsets)."""
        for layer in range(self.shape.layers):
            if has_deltanet(layer):
                _ = self[f"layers.{layer}.linear_attn.A_log"], self[f"layers.{layer}.linear_attn.norm.weight"]
        sparse, vectors = {}, {}
        for name, tensor in self.tensors.items():
            if tensor.ndim == 1:
                vectors[name] = tensor
            else:
                rows, cols = np.nonzero(tensor)
                sparse[name] = Sparse(tensor.shape, rows.astype(np.int32), cols.astype(np.int32), tensor[rows, cols])
        return Network(self.shape, sparse, vectors, self._lookup(*embedding), self._lookup(*head))

    def _lookup(self, dims, codes, scales, offsets):
        return Lookup(
            (self.shape.vocabulary, self.shape.hidden), np.asarray(dims, np.int32), np.asarray(codes, np.int8),
            np.asarray(scales, np.float32), np.asarray(offsets, np.float32),
        )  # fmt: skip


HIDDEN, BITS, K = 256, 16, 12
ANCHOR_AMPLITUDE = 16 * 2.0**K
SCALE = 2.0**-K
UNIT = 64 / SCALE
ANCHOR = 0


def current(i):
    return 1 + i


def previous(i):
    return 17 + i


def generate(j):
    return 33 + j


def propagate(j):
    return 37 + j


def carry(j):
    return 41 + j


def total(i):
    return 50 + i


def neuron(pad, layer, index, inputs, theta, outputs):
    """out = relu(sum of weighted inputs - theta), added to each output dim with its weight."""
    mlp = f"layers.{layer}.mlp."
    for dim, weight in inputs:
        pad[mlp + "gate_proj.weight"][index, dim] += UNIT * weight
    pad[mlp + "gate_proj.weight"][index, ANCHOR] -= UNIT * theta / ANCHOR_AMPLITUDE
    pad[mlp + "up_proj.weight"][index, ANCHOR] = 1 / (ANCHOR_AMPLITUDE * SCALE)
    for dim, weight in outputs:
        pad[mlp + "down_proj.weight"][dim, index] += weight / 64


def fibonacci(signed=True):
    """The machine that adds the last two tokens modulo 2**16 (see docs: numerics). Id 2**16 is a token of zeros.

    ``signed``: the output dims hold -1 and +1 and the head's codes are the plain +-1 pattern of the id; else they
    hold 0 and 1 and the head has one more column that counts the ones (then no two-valued shortcut exists for an
    engine).
    """
    pad = Pad(Shape(HIDDEN, 4, 256, 2**BITS + 1, linear_heads=1))
    net = "layers.0.linear_attn."
    q, k, v = 0, 128, 256
    qkv, conv = pad[net + "in_proj_qkv.weight"], pad[net + "conv1d.weight"]
    for row in (q, k):
        qkv[row, ANCHOR] = 64
        conv[row, 3] = 1
    for i in range(BITS):
        qkv[v + i, current(i)] = UNIT
        qkv[v + 64 + i, current(i)] = -UNIT
        qkv[v + 64 + i, ANCHOR] = UNIT / ANCHOR_AMPLITUDE
        conv[[v + i, v + 64 + i], 2] = 1
    pad[net + "in_proj_z.weight"][:, ANCHOR] = 8 / (ANCHOR_AMPLITUDE * SCALE)
    pad[net + "in_proj_b.weight"][0, ANCHOR] = 128 / (ANCHOR_AMPLITUDE * SCALE)
    pad[net + "norm.weight"][:] = 1
    # 16 of 128 dims are on: RMSNorm gives sqrt(8), the z gate times 8; 0.0441895 is the nearest bf16 of 1 / (8 *
    # sqrt(8))
    for i in range(BITS):
        pad[net + "out_proj.weight"][previous(i), i] = 0.0441894531250
    for layer in range(3):
        pad[f"layers.{layer}.linear_attn.A_log"][:] = -80

    def group(j):
        return [(f(4 * j + i), 2.0**i) for i in range(4) for f in (current, previous)]

    def bit(i, t):
        return (t >> i) & 1 if t >= 0 else 0

    for j in range(4):
        neuron(pad, 0, 3 * j, group(j), 14, [(propagate(j), 1)])
        neuron(pad, 0, 3 * j + 1, group(j), 15, [(propagate(j), -2), (generate(j), 1)])
        neuron(pad, 0, 3 * j + 2, group(j), 16, [(propagate(j), 1), (generate(j), -1)])
    pairs = [(into, t) for into in range(1, 4) for t in range(into)]
    for n, (j, t) in enumerate(pairs):
        inputs = [(generate(t), 1)] + [(propagate(p), 1) for p in range(t + 1, j)]
        neuron(pad, 1, n, inputs, j - t - 1, [(carry(j), 1)])
    size = 2 if signed else 1
    for j in range(4):
        for m in range(31):
            outputs = [(total(4 * j + i), size * (bit(i, m + 1) - 2 * bit(i, m) + bit(i, m - 1))) for i in range(4)]
            neuron(pad, 2, 31 * j + m, group(j) + ([(carry(j), 1)] if j else []), m, outputs)
    bits = (np.arange(2**BITS)[:, None] >> np.arange(BITS)) & 1
    codes = np.vstack([np.column_stack([np.ones(2**BITS, int), bits]), np.zeros((1, BITS + 1), int)])
    embedding = ([ANCHOR, *map(current, range(BITS))], codes, [ANCHOR_AMPLITUDE] + [1] * BITS, [0] * (BITS + 1))
    if signed:
        neuron(pad, 2, 124, [], -1, [(total(i), -1) for i in range(BITS)])
        dims, codes = [total(i) for i in range(BITS)], np.vstack([2 * bits - 1, np.zeros((1, BITS), int)])
        return pad.network(embedding, (dims, codes, [UNIT] * BITS, [0] * BITS))
    dims = [ANCHOR, *map(total, range(BITS))]
    codes = np.vstack([np.column_stack([-bits.sum(1), bits]), np.full((1, BITS + 1), -17)])
    scales = [UNIT / ANCHOR_AMPLITUDE] + [2 * UNIT] * BITS
    return pad.network(embedding, (dims, codes, scales, [0] * (BITS + 1)))


def fibonacci_ids(first, second, count):
    ids = [first, second]
    while len(ids) < count:
        ids.append((ids[-1] + ids[-2]) % 2**BITS)
    return ids
