"""The network as a netlist: what an event-driven evaluation follows from one changed value to the next.

A *net* is a residual dim between two of its writes: what the embedding puts there, or what one stage leaves there. A
net's value at a token is a *code*: value minus ``net_lo``, or a number for another value that was met (see
``native_wave``). An *item* is the least that is evaluated at once; items are numbered such that what an item decides
is read by later ones alone. Readers of a net are bits in a mask over all items. Kinds of items:

- CONE: residual dims that an MLP writes from the same inputs, at most eight; its neurons are all that write them;
- SELECT: which rows a head's key or query selects, and with which weights;
- KEEP: by what a head's state decays; WRITE and READ: what a head stores and what is read of it;
- SUM: a dim that heads write; HEAD: the output head.

All this says where values flow, not what they are: they come from evaluating the rows of the plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qgpu.engines.native_plan import PARTS, Plan, pointers
from qgpu.engines.native_values import make_values
from qgpu.engines.protocol import Array
from qgpu.foundry.network import Network

CONE, SELECT, KEEP, WRITE, READ, SUM, HEAD = range(7)
OUTS = 8  # of a cone, codes of eight bits in one word
KEY_BITS = 128
UNKNOWN = 255  # code of an embedding's value that its net does not know
ZERO = 0  # the net that is always zero


class Nets(NamedTuple):
    """N: nets, I: items, W: words of I bits, U: cones, C: cells (heads), R: reads (of the plan), P: delayed inputs,
    D: sums. ``x_ptr, x_...``: CSR."""

    at: Array  # int32 [stages + 1, L]: the net of a dim before each stage
    lo: Array  # int16 [N]
    span: Array  # int16 [N]: codes below it are value - lo
    roomy: Array  # uint8 [N]: other values may get codes too
    level_of: Array  # int32 [N]: what its codes mean, a row of ``levels``; a roomy net has one of its own
    levels: Array  # float32 [., 256]
    embed_net: Array  # int32 [J]
    embed_code: Array  # uint8 [J, 256]
    fan_ptr: Array  # int32 [N + 1]
    fan_word: Array  # int32
    fan_mask: Array  # uint64
    kind: Array  # int8 [I]
    arg: Array  # int32 [I]: which cone, part (2 * cell: key, 2 * cell + 1: query), cell or sum
    key_ptr: Array  # int32 [U + 2C + 1]: inputs of cones, then of parts
    key_input: Array  # uint32: net + place in the key * 2**20
    key_size: Array  # int16 [U + 2C]: bits of the key
    out_ptr: Array  # int32 [U + 1]
    out_net: Array
    out_old: Array  # the net of the same dim before
    neuron_ptr: Array  # int32 [U + 1]
    neuron: Array
    put_ptr: Array  # int32 [neurons of cones + 1]
    put_out: Array  # uint8
    put_val: Array  # float32
    row_net: Array  # int32, by entry of the plan's rows
    item_ptr: Array  # int32 [layers + 1]
    write_item: Array  # int32 [C]
    read_item: Array  # int32 [C]
    delayed: Array  # uint8 [C]: it stores something of earlier tokens
    value_net: Array  # int32 [C, 128]: net (of this token), or number of a delayed input, or -1
    row_past: Array  # int32, by entry of the plan's rows: number of the delayed input
    past_net: Array  # int32 [P]
    past_key: Array  # int64 [P]: layer * L + dim
    sum_net: Array  # int32 [D]
    sum_old: Array
    sum_dim: Array
    sum_layer: Array  # int32 [layers + 1]: pointers
    sum_ptr: Array  # int32 [D + 1]
    sum_read: Array
    sum_val: Array  # float32
    to_ptr: Array  # int32 [R + 1]: items of the sums that a read goes to
    to_item: Array
    head_net: Array  # int32 [head columns]


class _Building:
    def __init__(self) -> None:
        self.lo, self.span, self.bits = [0], [1], [1]
        self.kind: list[int] = []
        self.arg: list[int] = []
        self.fans: list[tuple[int, int]] = []  # (net, item)

    def net(self, low: float, high: float, roomy: bool) -> int:
        span = int(high - low) + 1
        self.lo.append(int(low))
        self.span.append(span)
        self.bits.append(8 if roomy else max(1, (span - 1).bit_length()))
        return len(self.lo) - 1

    def item(self, kind: int, arg: int, nets: list[int]) -> int:
        number = len(self.kind)
        self.kind.append(kind)
        self.arg.append(arg)
        self.fans.extend((net, number) for net in nets if net != ZERO)
        return number


class _Csr:
    def __init__(self) -> None:
        self.ptr, self.columns = [0], []

    def add(self, rows: list[tuple]) -> None:
        self.columns.extend(rows)
        self.ptr.append(len(self.columns))

    def arrays(self, *types: type) -> list[Array]:
        whole = list(zip(*self.columns, strict=True)) or [()] * len(types)
        return [np.array(self.ptr, np.int32), *(np.array(c, t) for c, t in zip(whole, types, strict=True))]


def boundaries(network: Network, plan: Plan) -> tuple[Array, Array]:
    """(lo, hi) for ``make_nets``."""
    lo = np.zeros((2 * plan.layers + 1, len(plan.dims)), np.float32)
    hi = np.ones_like(lo)
    if network.ranges:
        lo, hi = np.minimum(lo, network.ranges["lo"][:, plan.dims]), np.maximum(hi, network.ranges["hi"][:, plan.dims])
    return lo, hi


def make_nets(p: Plan, lo: Array, hi: Array) -> Nets | None:
    """``lo``, ``hi``: float32 [2 * layers + 1, L], what dims are claimed to hold; a wrong claim costs time alone. None
    where the network has no such form: other norms than 1, delayed keys, values that move RMSNorm."""
    live, stages = len(p.dims), 2 * p.layers
    most = np.maximum(np.abs(lo), np.abs(hi)) + 1
    most[:, p.base != 0] = 0
    energy = float(np.sum(p.base.astype(np.float64) ** 2))
    extra = float(np.max(np.sum(most.astype(np.float64) ** 2, axis=1)))
    same = np.float32((energy + extra) / p.hidden) == np.float32(energy / p.hidden)
    inverse = np.float32(1) / np.sqrt(np.float32(energy / p.hidden) + np.float32(p.eps))
    steady = energy > 0 and same and abs(inverse / np.float32(p.scale0) - 1) < 2.0**-10
    if not steady or not np.all(p.plain) or np.any(p.conv[:, :2, :, :3]) or np.max(hi - lo) > 200:
        return None
    b = _Building()
    rows = p.rows
    rptr, rdim = rows.rptr, rows.rdim
    row_net, row_past = np.zeros(len(rdim), np.int32), np.zeros(len(rdim), np.int32)
    item_ptr, sum_layer, sum_dim = [0], [0], []
    at = np.zeros((stages + 1, live), np.int32)
    now = np.zeros(live, np.int32)
    key, out, neuron, put, sums, past = _Csr(), _Csr(), _Csr(), _Csr(), _Csr(), {}
    part_keys: list[list[int]] = []
    sum_net: list[tuple[int, int]] = []
    sizes: list[int] = []
    values = make_values(p, True)
    value_net = np.full((len(p.cell_rows), PARTS), -1, np.int32)
    write_item, read_item = np.zeros(len(p.cell_rows), np.int32), np.zeros(len(p.cell_rows), np.int32)
    delayed = np.zeros(len(p.cell_rows), np.uint8)
    to: dict[int, list[int]] = {}
    read_at = {(int(c), int(j)): r for r, (c, j) in enumerate(
        zip(np.repeat(np.arange(len(p.cell_rows)), np.diff(p.read_ptr)), p.read_dim, strict=True))}  # fmt: skip

    embed_net, embed_code = [], np.full((len(p.embed_dims), 256), UNKNOWN, np.uint8)
    for j, dim in enumerate(p.embed_dims.tolist()):
        if p.base[dim] != 0:
            embed_net.append(ZERO)
            embed_code[j] = np.where(p.embed_values[j] == p.base[dim], 0, UNKNOWN)
            continue
        held = p.embed_values[j][np.unique(p.embed_codes[:, j])]
        whole = held[(held == np.round(held)) & (np.abs(held) < 100)]
        low, high = min(0, lo[0, dim]), max(1, hi[0, dim])
        if len(whole) and whole.max() - whole.min() <= 200:
            low, high = min(low, whole.min()), max(high, whole.max())
        now[dim] = b.net(low, high, False)
        embed_net.append(int(now[dim]))
        code = p.embed_values[j] - low
        embed_code[j] = np.where((code == np.round(code)) & (code >= 0) & (code <= high - low), code, UNKNOWN)

    def packed(nets: list[int]) -> list[tuple[int, int]]:
        """(net, place) of a key: no code lies across two words."""
        place, found = 0, []
        for net in nets:
            if net == ZERO:
                continue
            if place // 64 != (place + b.bits[net] - 1) // 64:
                place = -(-place // 64) * 64
            found.append((net, place))
            place += b.bits[net]
        sizes.append(place)
        return found

    def inputs(first: int, last: int) -> list[int]:
        return np.unique(row_net[rptr[first] : rptr[last]]).tolist()

    def claimed(stage: int, dim: int) -> tuple[float, float]:
        return min(0.0, float(lo[stage + 1, dim])), max(1.0, float(hi[stage + 1, dim]))

    part_sizes: list[int] = []
    cones = 0
    for layer in range(p.layers):
        stage = 2 * layer
        at[stage] = now
        cells = range(p.cell_ptr[layer], p.cell_ptr[layer + 1])
        for cell in cells:
            first = p.cell_rows[cell].tolist()
            for row, count in zip(first, (PARTS, PARTS, PARTS, PARTS, 1, 1), strict=True):
                row_net[rptr[row] : rptr[row + count]] = now[rdim[rptr[row] : rptr[row + count]]]
            for part, row in ((2 * cell, first[1]), (2 * cell + 1, first[0])):
                nets = inputs(row, row + PARTS)
                part_keys.append(packed(nets))
                part_sizes.append(sizes.pop())
                b.item(SELECT, part, nets)
            b.item(KEEP, cell, inputs(first[4], first[4] + 1))
            if rptr[first[5]] != rptr[first[5] + 1]:
                return None  # a rate of learning that is not constant: no machine has one
        for cell in cells:
            first = p.cell_rows[cell].tolist()
            write_item[cell] = b.item(WRITE, cell, inputs(first[2], first[2] + PARTS))
            delayed[cell] = np.any(p.conv[cell, 2, :, :3])
            read_item[cell] = b.item(READ, cell, inputs(first[3], first[3] + PARTS))
            for j in range(PARTS):
                dim, tap = int(values.dim[cell, j]), int(values.tap[cell, j])
                if tap >= 0 and dim >= 0:
                    value_net[cell, j] = now[dim] if tap == 3 else past.setdefault((layer, dim), len(past))
            for row in range(first[2], first[2] + PARTS):
                if np.any(p.conv[cell, 2, row - first[2], :3]):
                    for e in range(rptr[row], rptr[row + 1]):
                        row_past[e] = past.setdefault((layer, int(rdim[e])), len(past))
        found: dict[int, list[tuple[int, float]]] = {}
        for cell in cells:
            for channel in range(cell * PARTS, cell * PARTS + PARTS):
                for e in range(p.out_ptr[channel], p.out_ptr[channel + 1]):
                    read = read_at[cell, channel - cell * PARTS]
                    found.setdefault(int(p.out_dim[e]), []).append((read, float(p.out_val[e])))
        fresh = now.copy()
        for dim in sorted(found):
            low, high = claimed(stage, dim)
            net = b.net(low, high, high - low > 1)
            item = b.item(SUM, len(sum_net), [int(now[dim])])
            sum_net.append((net, int(now[dim])))
            sums.add(found[dim])
            sum_dim.append(dim)
            for read, _ in found[dim]:
                to.setdefault(read, []).append(item)
            fresh[dim] = net
        now = fresh
        at[stage + 1] = now
        # the MLP
        first_neuron, last_neuron = int(p.neuron_ptr[layer]), int(p.neuron_ptr[layer + 1])
        writers: dict[int, list[tuple[int, float]]] = {}
        reads: dict[int, frozenset[int]] = {}
        for n in range(first_neuron, last_neuron):
            both: set[int] = set()
            for row in p.neuron_rows[n].tolist():
                span = slice(rptr[row], rptr[row + 1])
                row_net[span] = now[rdim[span]]
                both.update(row_net[span].tolist())
            reads[n] = frozenset(both - {ZERO})
            for e in range(p.down_ptr[n], p.down_ptr[n + 1]):
                writers.setdefault(int(p.down_dim[e]), []).append((n, float(p.down_val[e])))
        groups: dict[frozenset[int], list[int]] = {}
        for dim, by in writers.items():
            support = frozenset({int(now[dim])} - {ZERO}).union(*(reads[n] for n, _ in by))
            groups.setdefault(support, []).append(dim)
        fresh = now.copy()
        for support, dims in groups.items():
            for start in range(0, len(dims), OUTS):
                chosen = dims[start : start + OUTS]
                nets = sorted(support)
                key.add(packed(nets))
                outs, puts = [], {}
                for place, dim in enumerate(chosen):
                    fresh[dim] = b.net(*claimed(stage + 1, dim), False)
                    outs.append((int(fresh[dim]), int(now[dim])))
                    for n, weight in writers[dim]:
                        puts.setdefault(n, []).append((place, weight))
                out.add(outs)
                neuron.add([(n,) for n in sorted(puts)])
                for n in sorted(puts):
                    put.add(puts[n])
                b.item(CONE, cones, nets)
                cones += 1
        now = fresh
        item_ptr.append(len(b.kind))
        sum_layer.append(len(sum_net))
    at[stages] = now
    head_net = now[p.head.dims]
    b.item(HEAD, 0, head_net.tolist())
    for keys in part_keys:
        key.add(keys)
    sizes += part_sizes
    if max(part_sizes, default=0) > KEY_BITS:
        return None
    count = len(b.lo)
    bits = np.array(b.bits)
    own = np.where(bits == 8, np.arange(count), -1)
    forms, level_of = np.unique(np.column_stack([b.lo, b.span, own]), axis=0, return_inverse=True)
    levels = (forms[:, :1] + np.arange(256)).astype(np.float32)
    fan_ptr, fan_word, fan_mask = _fans(b.fans, count)
    reads_count = len(p.read_dim)
    to_csr = _Csr()
    for read in range(reads_count):
        to_csr.add([(item,) for item in to.get(read, [])])
    key_ptr, key_net, key_place = key.arrays(np.uint32, np.uint32)
    out_ptr, out_net, out_old = out.arrays(np.int32, np.int32)
    neuron_ptr, neurons = neuron.arrays(np.int32)
    put_ptr, put_out, put_val = put.arrays(np.uint8, np.float32)
    sum_ptr, sum_read, sum_val = sums.arrays(np.int32, np.float32)
    to_ptr, to_item = to_csr.arrays(np.int32)
    pairs = np.array(sum_net, np.int32).reshape(-1, 2)
    places = np.array(list(past), np.int64).reshape(-1, 2)
    return Nets(
        at, np.array(b.lo, np.int16), np.array(b.span, np.int16),
        (bits == 8).astype(np.uint8), level_of.reshape(-1).astype(np.int32), levels,
        np.array(embed_net, np.int32), embed_code, fan_ptr, fan_word, fan_mask,
        np.array(b.kind, np.int8), np.array(b.arg, np.int32), key_ptr, key_net + (key_place << 20), np.array(sizes, np.int16),
        out_ptr, out_net, out_old, neuron_ptr, neurons, put_ptr, put_out, put_val, row_net,
        np.array(item_ptr, np.int32), write_item, read_item, delayed, value_net, row_past,
        at[2 * places[:, 0], places[:, 1]], places[:, 0] * live + places[:, 1],
        pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(sum_dim, np.int32),
        np.array(sum_layer, np.int32), sum_ptr, sum_read, sum_val, to_ptr, to_item, head_net.astype(np.int32),
    )  # fmt: skip


def _fans(fans: list[tuple[int, int]], count: int) -> tuple[Array, Array, Array]:
    """Readers by net: words of a bit mask over items."""
    net, item = np.unique(np.array(fans, np.int64).reshape(-1, 2), axis=0).T
    place, inverse = np.unique(net * 2**32 + item // 64, return_inverse=True)
    mask = np.zeros(len(place), np.uint64)
    np.bitwise_or.at(mask, inverse.reshape(-1), np.uint64(1) << (item % 64).astype(np.uint64))
    return pointers(place >> 32, count), (place & 0xFFFFFFFF).astype(np.int32), mask
