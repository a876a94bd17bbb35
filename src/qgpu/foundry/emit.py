"""Fifth stage, and the only one that writes weights.

MLP: a neuron's gate is 64 times its argument, its up is 1 (an anchor), its down 1/64 of its weight: silu(64 n) = 64
n, and silu(-32) is nothing. A linear neuron has the anchor on its gate and its argument on up; so has a clear, with
weight -1. DeltaNet: see ``heads``. Nothing reads a constant but through an anchor, so a token without machine dims
stays zero everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .heads import HeadWriter, Wire
from .network import Lookup, Network, Shape, Sparse
from .numbers import GATE, LOGIT, SCALE_BITS, SCALE_UP, anchors_for
from .place import Placement, rows_a_layer, sums_a_layer
from .ranges import ranges
from .stock import has_deltanet
from .weights import Array, SparseBuilder


@dataclass(frozen=True)
class Frame:
    """Sizes of the model around the circuit: hidden and intermediate size, heads, dims kept free for text (the
    first)."""

    hidden: int
    intermediate: int
    heads: int
    text_dims: int


def neurons_a_layer(placement: Placement) -> list[int]:
    """Neurons of each MLP, clears included."""
    counts = rows_a_layer(placement.schedule)
    for layer, signals in placement.clears.items():
        counts[layer] += len(signals)
    return counts


def emit(placement: Placement, frame: Frame, certificate: Mapping[str, Any]) -> Network:
    """All tensors. ``certificate``: what ``prove`` found; the frame's dims are added to it."""
    plan = placement.schedule
    anchors = anchors_for(frame.hidden)
    anchor_dims = tuple(range(frame.text_dims, frame.text_dims + len(anchors)))
    first = frame.text_dims + len(anchors)
    dim_of = tuple(-1 if slot is None else first + slot for slot in placement.slot)
    wire = Wire(dim_of, anchor_dims[0], anchors[0] / SCALE_UP)
    shape = Shape(
        hidden=frame.hidden,
        layers=plan.layers,
        intermediate=frame.intermediate,
        vocabulary=plan.lowered.netlist.vocabulary,
        linear_heads=frame.heads,
    )
    sparse: dict[str, Sparse] = {}
    vectors: dict[str, Array] = {}
    _mlps(placement, shape, wire, sparse)
    states: dict[str, tuple[int, int, int, int]] = {}
    for layer in range(plan.layers):
        if has_deltanet(layer):
            writer = HeadWriter(shape, wire)
            states |= {name: (layer, *where) for name, where in writer.fill(plan, layer).items()}
            prefix = f"layers.{layer}.linear_attn."
            sparse |= {prefix + name: matrix for name, matrix in writer.matrices(prefix).items() if len(matrix.values)}
            vectors |= {prefix + name: vector for name, vector in writer.vectors().items()}
    head, vectors["norm.weight"] = _output(placement, shape, wire)
    return Network(
        shape=shape,
        sparse=sparse,
        vectors=vectors,
        embedding=_embedding(placement, shape, wire, anchor_dims, anchors),
        head=head,
        states=states,
        certificate={
            **certificate,
            "text_dims": frame.text_dims,
            "anchor_dims": list(anchor_dims),
            "scale_bits": SCALE_BITS,
        },
        ranges=ranges(placement, dim_of, frame.hidden),
    )


def _mlps(placement: Placement, shape: Shape, wire: Wire, sparse: dict[str, Sparse]) -> None:
    plan = placement.schedule
    for layer, sums in enumerate(sums_a_layer(plan)):
        gate = SparseBuilder((shape.intermediate, shape.hidden))
        up = SparseBuilder((shape.intermediate, shape.hidden))
        down = SparseBuilder((shape.hidden, shape.intermediate))
        numbers: dict[int, int] = {}
        for lowered in sums:
            for row, weight in lowered.uses:
                neuron = numbers.setdefault(row, len(numbers))
                down.add(wire.dim_of[lowered.out], neuron, weight / GATE)
        for row, neuron in numbers.items():
            made = plan.lowered.rows[row]
            argument, constant = (up, gate) if made.linear else (gate, up)
            unit = 1.0 if made.linear else GATE
            for dim, value in wire.line(unit, made.terms, made.bias2 / 2):
                argument.add(neuron, dim, value)
            constant.add(neuron, wire.anchor, wire.constant(GATE if made.linear else 1.0))
        for neuron, signal in enumerate(placement.clears.get(layer, ()), start=len(numbers)):
            dim = wire.dim_of[signal]
            gate.add(neuron, wire.anchor, wire.constant(GATE))
            up.add(neuron, dim, SCALE_UP)
            down.add(dim, neuron, -1 / GATE)
        for name, matrix in (("gate_proj", gate), ("up_proj", up), ("down_proj", down)):
            full = f"layers.{layer}.mlp.{name}.weight"
            made_matrix = matrix.done(full)
            if len(made_matrix.values):
                sparse[full] = made_matrix


def _embedding(
    placement: Placement, shape: Shape, wire: Wire, anchor_dims: tuple[int, ...], anchors: tuple[float, ...]
) -> Lookup:
    netlist = placement.schedule.lowered.netlist
    codes = np.zeros((shape.vocabulary, len(anchors) + len(netlist.tokens)), np.int8)
    offsets = np.array(anchors + (0.0,) * len(netlist.tokens), np.float32)
    dims = list(anchor_dims)
    for column, (signal, values) in enumerate(netlist.tokens, start=len(anchors)):
        shift = 128 if netlist.hi[signal] > 127 else -128 if netlist.lo[signal] < -128 else 0
        codes[:, column] = values - shift
        offsets[column] = shift
        dims.append(wire.dim_of[signal])
    return Lookup(
        (shape.vocabulary, shape.hidden), np.array(dims, np.int32), codes, np.ones(len(dims), np.float32), offsets
    )


def _output(placement: Placement, shape: Shape, wire: Wire) -> tuple[Lookup, Array]:
    """Head and final norm. logit(id) = 64 * sum over its 1 bits of (2 * bit - 1): each wrong bit costs 64."""
    netlist = placement.schedule.lowered.netlist
    signals = sorted({signal for bit in netlist.code for signal, _ in bit.terms})
    column_of = {signal: column for column, signal in enumerate(signals)}
    codes = np.zeros((shape.vocabulary, len(signals) + 1), np.int64)
    for number, bit in enumerate(netlist.code):
        ones = (netlist.code_of >> number) & 1
        for signal, coef in bit.terms:
            codes[:, column_of[signal]] += ones * coef
        codes[:, -1] += ones * (2 * bit.const - 1)
    scales = [2 * LOGIT * SCALE_UP] * len(signals) + [wire.constant(LOGIT)]
    dims = np.array([wire.dim_of[signal] for signal in signals] + [wire.anchor], np.int32)
    norm = np.full(shape.hidden, -1.0, np.float32)
    norm[dims] = 0.0
    head = Lookup(
        (shape.vocabulary, shape.hidden),
        dims,
        codes.astype(np.int8),
        np.array(scales, np.float32),
        np.zeros(len(dims), np.float32),
    )
    return head, norm
