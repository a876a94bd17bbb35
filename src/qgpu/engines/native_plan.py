"""What the native engine evaluates: a network's non-zeros laid out flat for compiled code, without loss.

Nothing is decided here about values at run time: every weight of the network that can reach a logit or a state is in
these arrays. Three exact rearrangements are made:

- residual dims that no tensor reads or writes are left out, the others are renumbered (*live* dims);
- *anchors*, dims that hold the same value at every token and that no layer writes, are set apart, so that their part of
  each row can be summed once (``rconst``);
- rows are multiplied by ``scale0``, the power of two nearest to what RMSNorm divides anchored tokens by, so that a
row can
  read residual values as they stand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qgpu.engines.export import check_names
from qgpu.engines.native_head import HeadPlan, lookup_values, make_head
from qgpu.engines.protocol import Array, EngineError
from qgpu.foundry.network import Network, Sparse
from qgpu.foundry.stock import has_deltanet

PARTS = 128  # key and value dims of a head
FLUSH = 2.0**-40  # a residual value below this is taken as zero: a signal is 1


class Rows(NamedTuple):
    """Matrix rows as CSR over live dims, anchors apart. Row r: rdim/rval[rptr[r]:rptr[r+1]],
    adim/aval[aptr[r]:aptr[r+1]].

    ``const``: the anchors' part at the baseline.
    """

    rptr: Array
    rdim: Array
    rval: Array
    aptr: Array
    adim: Array
    aval: Array
    const: Array


class Claims(NamedTuple):
    """What the network's file says that dims hold, by stage (2 * layer: mixer; 2 * layer + 1: MLP); 0 and 1 are always
    in it. Claims are guesses: whoever relies on one checks at run time that it holds.
    """

    lo: Array  # float32 [2 * layers, L]
    hi: Array


class Plan(NamedTuple):
    """A network ready to run. L: live dims, C: cells (live DeltaNet heads), N: neurons, J: columns of a lookup."""

    hidden: int
    layers: int
    eps: float
    scale0: float
    dims: Array  # int32 [L], the residual dim behind each live dim
    base: Array  # float32 [L], anchors' values, else 0
    anchors: Array  # int32 [A]
    norms: Array  # float32 [2 * layers + 1, L]: 1 + w before each mixer and MLP, and of the final norm
    plain: Array  # uint8 [2 * layers]: that norm is 1 on all live dims
    embed_dims: Array
    embed_values: Array  # float32 [J, 256]: the value that each code (as uint8) stands for
    embed_codes: Array  # uint8 [V, J]
    rows: Rows
    cell_ptr: Array  # int32 [layers + 1]
    cell_head: Array  # int32 [C]
    cell_rows: Array  # int32 [C, 6]: first row of q, k, v, z; the rows of a and b
    cell_decay: Array  # float32 [C, 2]: exp(A_log), dt_bias
    conv: Array  # float32 [C, 3, 128, 4]: taps of q, k, v; tap 3 is this token
    gated_norm: Array  # float32 [C, 128]
    out_ptr: Array  # int32 [C * 128 + 1], columns of out_proj
    out_dim: Array
    out_val: Array
    read_ptr: Array  # int32 [C + 1], by cell: the value dims that out_proj reads
    read_dim: Array
    read_gate: Array  # float32: SiLU of that dim's z where it depends on the anchors alone, else NaN
    read_like: Array  # int32: the first of the cell's reads with the same row of z
    neuron_ptr: Array  # int32 [layers + 1]
    neuron_rows: Array  # int32 [N, 2]: rows of gate and up
    down_ptr: Array  # int32 [N + 1], columns of down_proj
    down_dim: Array
    down_val: Array
    head: HeadPlan


def sorted_by(matrix: Sparse, key: Array) -> tuple[Array, Array, Array]:
    order = np.argsort(key, kind="stable")
    return matrix.rows[order], matrix.cols[order], matrix.values[order].astype(np.float32)


def pointers(keys: Array, count: int) -> Array:
    """CSR pointers [count + 1] of sorted ``keys``."""
    return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))]).astype(np.int32)


def _matrix(network: Network, name: str) -> Sparse:
    empty = np.zeros(0, np.int32)
    found = network.sparse.get(name, Sparse((0, 0), empty, empty, np.zeros(0, np.float32)))
    keep = found.values != 0
    return Sparse(found.shape, found.rows[keep], found.cols[keep], found.values[keep])


def refuse(network: Network) -> None:
    """EngineError for what this engine does not evaluate: full attention with weights, other head sizes."""
    check_names(network)
    shape = network.shape
    faults = [name for name, m in network.sparse.items() if ".self_attn." in name and np.any(m.values)]
    if faults:
        raise EngineError(
            "the native engine skips full attention, but these tensors are not zero: "
            + ", ".join(sorted(faults)) + "; run this network in the transformers engine"
        )  # fmt: skip
    if (shape.head_dim, shape.conv_kernel) != (PARTS, 4):
        raise EngineError(
            f"linear heads of {shape.head_dim} dims and {shape.conv_kernel} taps: only 128 and 4 are known here"
        )
    for layer in range(shape.layers):
        for name in ("A_log", "norm.weight"):
            if has_deltanet(layer) and f"layers.{layer}.linear_attn.{name}" not in network.vectors:
                raise EngineError(f"layers.{layer}.linear_attn.{name} is missing, and it has no default: cast it")


class _RowBuilder:
    """Collects matrices and numbers their rows one after another."""

    def __init__(self, remap: Array, is_anchor: Array, scale: float) -> None:
        self.remap, self.is_anchor, self.scale = remap, is_anchor, np.float32(scale)
        self.parts: list[tuple[Array, Array, Array]] = []
        self.count = 0

    def add(self, rows: Array, cols: Array, values: Array, height: int) -> int:
        """Returns the number of the matrix's row 0."""
        first = self.count
        self.parts.append((rows.astype(np.int64) + first, self.remap[cols], values * self.scale))
        self.count += height
        return first

    def build(self, base: Array) -> Rows:
        rows, dims, values = (np.concatenate([part[i] for part in self.parts]) for i in range(3))
        order = np.argsort(rows, kind="stable")
        rows, dims, values = rows[order], dims[order].astype(np.int32), values[order].astype(np.float32)
        anchor = self.is_anchor[dims]
        const = np.zeros(self.count, np.float32)
        np.add.at(const, rows[anchor], values[anchor] * base[dims[anchor]])
        return Rows(
            pointers(rows[~anchor], self.count), dims[~anchor], values[~anchor],
            pointers(rows[anchor], self.count), dims[anchor], values[anchor], const,
        )  # fmt: skip


def _live_dims(network: Network) -> tuple[Array, Array]:
    """bool [hidden] each: read or written by anything; written by a layer."""
    hidden = network.shape.hidden
    live, written = np.zeros(hidden, bool), np.zeros(hidden, bool)
    for name, matrix in network.sparse.items():
        if name.endswith(("out_proj.weight", "down_proj.weight")):
            written[matrix.rows[matrix.values != 0]] = True
        elif not name.endswith("conv1d.weight"):
            live[matrix.cols[matrix.values != 0]] = True
    live[network.embedding.dims] = True
    live[network.head.dims] = True
    return live | written, written


def _baseline(network: Network, written: Array) -> Array:
    """float32 [hidden]: what the anchors hold, zero elsewhere. An anchor is constant over all tokens that are not
    zero."""
    table = network.embedding
    base = np.zeros(network.shape.hidden, np.float32)
    columns = [lookup_values(table, j) for j in range(len(table.dims))]
    present = np.zeros(network.shape.vocabulary, bool)
    for column in columns:
        present |= column != 0
    for dim, column in zip(table.dims, columns, strict=True):
        held = column[present]
        if not written[dim] and len(held) and held[0] != 0 and np.all(held == held[0]):
            base[dim] = held[0]
    return base


def make_plan(network: Network) -> Plan:
    """Lay the network out. Raises EngineError for what this engine cannot evaluate."""
    refuse(network)
    shape = network.shape
    live, written = _live_dims(network)
    dims = np.flatnonzero(live).astype(np.int32)
    remap = np.full(shape.hidden, -1, np.int32)
    remap[dims] = np.arange(len(dims), dtype=np.int32)
    base = _baseline(network, written)[dims]
    rms = np.sqrt(np.sum(base.astype(np.float64) ** 2) / shape.hidden + shape.rms_norm_eps)
    scale0 = float(2.0 ** np.round(np.log2(1 / rms)))
    rows = _RowBuilder(remap, base != 0, scale0)
    norms = np.ones((2 * shape.layers + 1, len(dims)), np.float32)

    cells: dict[str, list[Array]] = {key: [] for key in ("head", "rows", "decay", "conv", "norm")}
    out: list[tuple[Array, Array, Array]] = []  # (channel of cell, dim, value)
    down: list[tuple[Array, Array, Array]] = []  # (neuron, dim, value)
    neurons: list[Array] = []
    cell_ptr, neuron_ptr = [0], [0]
    for layer in range(shape.layers):
        prefix = f"layers.{layer}."
        for i, name in enumerate(("input_layernorm.weight", "post_attention_layernorm.weight")):
            if prefix + name in network.vectors:
                norms[2 * layer + i] += network.vectors[prefix + name][dims]
        cell_ptr.append(cell_ptr[-1])
        if has_deltanet(layer):
            cell_ptr[-1] += _mixer(network, prefix + "linear_attn.", rows, remap, cells, out, cell_ptr[-2])
        neuron_ptr.append(neuron_ptr[-1] + _mlp(network, prefix + "mlp.", rows, remap, neurons, down, neuron_ptr[-1]))
    if "norm.weight" in network.vectors:
        norms[-1] += network.vectors["norm.weight"][dims]

    out_ptr, out_dim, out_val = _columns(out, cell_ptr[-1] * PARTS)
    all_rows, cell_rows = rows.build(base), _stack(cells["rows"], (6,), np.int32)
    read_ptr, read_dim, read_gate, read_like = _reads(all_rows, cell_rows, out_ptr)
    down_ptr, down_dim, down_val = _columns(down, neuron_ptr[-1])
    embedding = network.embedding
    codes = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float32)
    return Plan(
        hidden=shape.hidden, layers=shape.layers, eps=shape.rms_norm_eps, scale0=scale0,
        dims=dims, base=base, anchors=np.flatnonzero(base).astype(np.int32), norms=norms,
        plain=np.all(norms[:-1] == 1, axis=1).astype(np.uint8),
        embed_dims=remap[embedding.dims].astype(np.int32),
        embed_values=(codes * embedding.scales[:, None] + embedding.offsets[:, None]).astype(np.float32),
        embed_codes=np.ascontiguousarray(embedding.codes).view(np.uint8),
        rows=all_rows,
        cell_ptr=np.array(cell_ptr, np.int32), cell_head=_stack(cells["head"], (), np.int32),
        cell_rows=cell_rows, cell_decay=_stack(cells["decay"], (2,), np.float32),
        conv=_stack(cells["conv"], (3, PARTS, 4), np.float32), gated_norm=_stack(cells["norm"], (PARTS,), np.float32),
        out_ptr=out_ptr, out_dim=out_dim, out_val=out_val, read_ptr=read_ptr, read_dim=read_dim, read_gate=read_gate,
        read_like=read_like,
        neuron_ptr=np.array(neuron_ptr, np.int32), neuron_rows=np.concatenate([np.zeros((0, 2), np.int32), *neurons]),
        down_ptr=down_ptr, down_dim=down_dim, down_val=down_val,
        head=make_head(network.head, remap),
    )  # fmt: skip


def make_claims(network: Network, plan: Plan, use: bool) -> Claims:
    """``use``: otherwise 0 and 1 alone are regular."""
    lo = np.zeros((2 * plan.layers, len(plan.dims)), np.float32)
    hi = np.ones_like(lo)
    if use and network.ranges:
        lo = np.minimum(lo, network.ranges["lo"][:-1, plan.dims])
        hi = np.maximum(hi, network.ranges["hi"][:-1, plan.dims])
    return Claims(lo, hi)


def _reads(rows: Rows, cell_rows: Array, out_ptr: Array) -> tuple[Array, Array, Array, Array]:
    """(read_ptr, read_dim, read_gate, read_like) of the plan."""
    column = np.flatnonzero(np.diff(out_ptr))
    cell, dim = column // PARTS, column % PARTS
    z_row = cell_rows[cell, 3] + dim
    z = rows.const[z_row].astype(np.float64)
    gate = np.where(rows.rptr[z_row] == rows.rptr[z_row + 1], z / (1 + np.exp(-np.clip(z, -700, 700))), np.nan)
    first: dict[object, int] = {}
    like = np.zeros(len(column), np.int32)
    for read, row in enumerate(z_row.tolist()):
        own, anchored = (slice(ptr[row], ptr[row + 1]) for ptr in (rows.rptr, rows.aptr))
        key = (cell[read], rows.rdim[own].tobytes(), rows.rval[own].tobytes(),
               rows.adim[anchored].tobytes(), rows.aval[anchored].tobytes())  # fmt: skip
        like[read] = first.setdefault(key, read)
    return pointers(cell, len(cell_rows)), dim.astype(np.int32), gate.astype(np.float32), like


def _stack(parts: list[Array], size: tuple[int, ...], dtype: type) -> Array:
    return np.array(parts, dtype).reshape((len(parts), *size))


def _columns(parts: list[tuple[Array, Array, Array]], count: int) -> tuple[Array, Array, Array]:
    if not parts:
        return np.zeros(count + 1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)
    keys, dims, values = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.argsort(keys, kind="stable")
    return pointers(keys, count), dims[order].astype(np.int32), values[order].astype(np.float32)


def _mixer(
    network: Network, prefix: str, rows: _RowBuilder, remap: Array,
    cells: dict[str, list[Array]], out: list[tuple[Array, Array, Array]], first_cell: int,
) -> int:  # fmt: skip
    """Add one DeltaNet's live heads; returns how many. A head whose key rows are all zero never holds anything."""
    heads = network.shape.linear_heads
    wide = heads * PARTS
    qkv, conv = _matrix(network, prefix + "in_proj_qkv.weight"), _matrix(network, prefix + "conv1d.weight")
    taps = np.zeros((3 * wide, 4), np.float32)
    taps[conv.rows, conv.cols] = conv.values
    alive = np.unique((qkv.rows[(qkv.rows >= wide) & (qkv.rows < 2 * wide)] - wide) // PARTS)
    if not len(alive):
        return 0
    first = rows.add(qkv.rows, qkv.cols, qkv.values, 3 * wide)
    others = []
    for name, height in (("in_proj_z", wide), ("in_proj_a", heads), ("in_proj_b", heads)):
        matrix = _matrix(network, f"{prefix}{name}.weight")
        others.append(rows.add(matrix.rows, matrix.cols, matrix.values, height))
    decay = np.exp(network.vectors[prefix + "A_log"].astype(np.float32))
    dt_bias = network.vectors.get(prefix + "dt_bias", np.zeros(heads, np.float32))
    for head in alive.tolist():
        at = head * PARTS
        cells["head"].append(np.int32(head))
        cells["rows"].append(
            np.array(
                [
                    first + at,
                    first + wide + at,
                    first + 2 * wide + at,
                    others[0] + at,
                    others[1] + head,
                    others[2] + head,
                ]
            )
        )
        cells["decay"].append(np.array([decay[head], dt_bias[head]]))
        cells["conv"].append(np.stack([taps[part * wide + at : part * wide + at + PARTS] for part in range(3)]))
        cells["norm"].append(network.vectors[prefix + "norm.weight"])
    rows_out, channels, values = sorted_by(m := _matrix(network, prefix + "out_proj.weight"), m.cols)
    cell_of = np.full(heads, -1)
    cell_of[alive] = np.arange(len(alive)) + first_cell
    keep = cell_of[channels // PARTS] >= 0
    channels = cell_of[channels // PARTS] * PARTS + channels % PARTS
    out.append((channels[keep], remap[rows_out][keep], values[keep]))
    return len(alive)


def _mlp(
    network: Network, prefix: str, rows: _RowBuilder, remap: Array,
    neurons: list[Array], down: list[tuple[Array, Array, Array]], first_neuron: int,
) -> int:  # fmt: skip
    """Add one MLP's neurons that can have an output at all; returns how many."""
    gate, up, put = (_matrix(network, f"{prefix}{name}_proj.weight") for name in ("gate", "up", "down"))
    alive = np.intersect1d(np.intersect1d(gate.rows, up.rows), put.cols)
    if not len(alive):
        return 0
    number = np.full(network.shape.intermediate, -1, np.int32)
    number[alive] = np.arange(len(alive))
    first = []
    for matrix in (gate, up):
        keep = number[matrix.rows] >= 0
        first.append(rows.add(number[matrix.rows[keep]], matrix.cols[keep], matrix.values[keep], len(alive)))
    index = np.arange(len(alive), dtype=np.int32)
    neurons.append(np.column_stack([first[0] + index, first[1] + index]).astype(np.int32))
    keep = number[put.cols] >= 0
    down.append((number[put.cols[keep]] + first_neuron, remap[put.rows[keep]], put.values[keep]))
    return len(alive)
