"""The proof anew, from the emitted weights alone: no circuit, no schedule, no names.

Starts from what the file claims of each residual dim at each boundary (``ranges``) and walks the layers: every row of
every matrix is read back as an integer argument, bounded by interval arithmetic, and measured against the point where
it would decide otherwise, in bfloat16 (all is exact or it is refused) and in float32 (errors are carried from dim to
dim). Where what a layer writes is not bounded by intervals alone (sums of exclusive cases, banks), the claim is *taken
on trust*; the certificate lists those places with the interval that the weights give, and a list that differs is a
fault. So is whatever is not of the foundry's making: weights that are no whole numbers of units, neurons that can never
be on, dims that change without being written, rows of a memory that can be asked for together.

State: a row is replaced whole by a write (beta is 1 to within 1e-13), rows that are not written lose nothing but the
decay, which is added up over the longest context (``CONTEXT`` tokens).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from math import exp, log1p
from typing import Any

import numpy as np

from .audit_heads import audit_heads
from .audit_lines import Anchors, Line, anchors, lines
from .network import Network
from .numbers import GATE, LOGIT
from .rows import CLEAR_ARITHMETIC, DEPTH, FLAT, SCALE_ARITHMETIC, TAIL, ULP
from .stock import has_deltanet

Array = np.ndarray[Any, Any]
CONTEXT = 262_144
LEAST = 1 / 16
LEAST_GAP = 40.0
Place = tuple[int, int, int, int]
"""Boundary, dim, and the interval that the weights give; or boundary, a key (negative: -1 - 2 * head - part), and how
many pairs of its rows intervals alone do not keep apart, by how much in all (-1: how many rows are never asked for); or
boundary, a channel of values or gates (more negative), and the interval of what has to be a bit."""


@dataclass
class Audit:
    """What was found. ``margin_bf16``, ``margin_float32``: the smallest, in units of a signal; ``weakest``: where;
    ``trusted``: claims that intervals alone do not give."""

    faults: list[str] = field(default_factory=list)
    trusted: list[Place] = field(default_factory=list)
    margin_bf16: float = 0.5
    margin_float32: float = 0.5
    weakest: str = ""
    gap_float32: float = LOGIT
    largest_error: float = 0.0
    state_loss: float = 0.0
    entries: int = 0
    counts: dict[str, int] = field(default_factory=lambda: {"neurons": 0, "keys": 0, "reads": 0, "outputs": 0})

    def decide(self, kind: str, what: str, room: float, off: float) -> None:
        """A decision that is ``room`` away from failing and can be ``off`` by that much."""
        self.counts[kind] += 1
        margin = room - off
        self.margin_bf16 = min(self.margin_bf16, room)
        if margin < self.margin_float32 or not self.weakest:
            self.margin_float32, self.weakest = min(margin, self.margin_float32), what
        if margin < LEAST:
            self.fault(f"{what}: margin {margin:.3g} in float32 ({room:g} in bfloat16), {LEAST:g} is the least")

    def fault(self, text: str) -> None:
        self.faults.append(text)


class Walk:
    """Ranges and errors of all dims at the boundary that the walk has reached."""

    def __init__(self, network: Network, audit: Audit, anchor: Anchors) -> None:
        self.network, self.audit, self.anchor = network, audit, anchor
        self.lo = network.ranges["lo"].astype(np.float64)
        self.hi = network.ranges["hi"].astype(np.float64)
        self.size = np.maximum(np.abs(self.lo), np.abs(self.hi))
        hidden = network.shape.hidden
        largest = self.size.max(axis=0)
        energy = float((largest**2).sum()) / (2 * hidden * anchor.scale**2)
        self.scale = SCALE_ARITHMETIC + energy
        self.left = 2 * self.scale + CLEAR_ARITHMETIC  # what a clear leaves, by unit of what it takes
        self.errors = np.zeros(hidden)
        if self.scale > 2.0**-18:
            audit.fault(f"the signals' own energy moves RMSNorm by {energy:.3g}: it would show in bfloat16")

    def arrive(self, boundary: int, written: dict[int, tuple[float, float]]) -> None:
        """Check the claims of ``boundary`` against the intervals of the dims that were written before it."""
        before, lo, hi = boundary - 1, self.lo[boundary], self.hi[boundary]
        changed = np.flatnonzero((lo > self.lo[before]) | (hi < self.hi[before]))
        for dim in changed.tolist():
            if dim not in written:
                self.audit.fault(f"boundary {boundary}: dim {dim} is claimed to hold less, but nothing writes it")
        for dim, (low, high) in written.items():
            if dim in self.anchor.level:
                self.audit.fault(f"boundary {boundary}: anchor dim {dim} is written")
            elif low < lo[dim] or high > hi[dim]:
                self.audit.trusted.append((boundary, dim, round(low), round(high)))


def audit(network: Network) -> Audit:
    """Audit of a network. ``faults`` is empty if the proof holds."""
    found = Audit()
    anchor, faults = anchors(network)
    found.faults += faults
    if "lo" not in network.ranges:
        found.fault("the file holds no ranges: cast the network anew")
        return found
    walk = Walk(network, found, anchor)
    _embedding(walk)
    for layer in range(network.shape.layers):
        if has_deltanet(layer):
            written = audit_heads(walk, layer)
        else:
            written = {}
            if f"layers.{layer}.self_attn.o_proj.weight" in network.sparse:
                found.fault(f"layer {layer}: its full attention writes; it has to be idle")
        walk.arrive(2 * layer + 1, written)
        walk.arrive(2 * layer + 2, _mlp(walk, layer))
        found.largest_error = max(found.largest_error, float(walk.errors.max()))
    _output(walk)
    found.entries = sum(len(matrix.values) for matrix in network.sparse.values())
    if network.certificate.get("entries") not in (None, found.entries):
        found.fault(f"{found.entries} weights are not zero, {network.certificate['entries']} were when it was cast")
    if "trusted" in network.ranges:
        differing = set(map(tuple, network.ranges["trusted"].tolist())) ^ set(found.trusted)
        if differing:
            found.fault(
                f"{len(differing)} places are bounded otherwise than when the network was cast; the first, as "
                f"(boundary, dim, low, high): {sorted(differing)[:8]}"
            )
    return found


def sealed(network: Network) -> Network:
    """The network with what its audit takes on trust, and the number of its weights, written down in it."""
    found = audit(network)
    ranges = {**network.ranges, "trusted": np.array(found.trusted, np.int32).reshape(-1, 4)}
    return replace(network, certificate={**network.certificate, "entries": found.entries}, ranges=ranges)


def decay(rate_log: float, bias: float, shift: float = 0.0) -> float:
    """What a state loses, relatively, over the longest context."""
    total = bias + shift
    softplus = total if total > 30 else log1p(exp(total))
    return CONTEXT * exp(rate_log) * softplus


def _embedding(walk: Walk) -> None:
    table = walk.network.embedding
    for column, dim in enumerate(table.dims.tolist()):
        if dim in walk.anchor.level:
            continue
        values = table.codes[:, column].astype(np.float64) * table.scales[column] + table.offsets[column]
        if values.min() < walk.lo[0, dim] or values.max() > walk.hi[0, dim] or (values != np.round(values)).any():
            walk.audit.fault(
                f"embedding: dim {dim} holds {values.min():g}..{values.max():g}, "
                f"{walk.lo[0, dim]:g}..{walk.hi[0, dim]:g} are claimed"
            )
        walk.errors[dim] = walk.scale * walk.size[0, dim]


@dataclass(frozen=True)
class _Neuron:
    """``line``: its argument in whole units; ``linear``: without relu."""

    line: Line
    linear: bool


def _neurons(walk: Walk, layer: int) -> dict[int, _Neuron]:
    prefix = f"layers.{layer}.mlp."
    gates = dict(lines(walk.network.sparse.get(prefix + "gate_proj.weight"), walk.anchor))
    ups = dict(lines(walk.network.sparse.get(prefix + "up_proj.weight"), walk.anchor))
    found: dict[int, _Neuron] = {}
    for number in sorted(gates.keys() | ups.keys()):
        where = f"layer {layer}, neuron {number}"
        gate, up = gates.get(number), ups.get(number)
        if gate is None or up is None:
            walk.audit.fault(f"{where}: has no {'gate' if gate is None else 'up'}, so it does nothing")
        elif not up.terms and up.const == 1.0:
            found[number] = _Neuron(gate.scaled(GATE), False)
        elif not gate.terms and gate.const == GATE:
            found[number] = _Neuron(up, True)
        else:
            walk.audit.fault(f"{where}: neither its gate nor its up is the constant that it has to be")
        if number in found and not found[number].line.whole:
            walk.audit.fault(f"{where}: its weights are no whole numbers of units")
            del found[number]
    return found


def _mlp(walk: Walk, layer: int) -> dict[int, tuple[float, float]]:
    lo, hi = walk.lo[2 * layer + 1], walk.hi[2 * layer + 1]
    neurons = _neurons(walk, layer)
    offs: dict[int, float] = {}
    for number, neuron in neurons.items():
        offs[number] = _measure(walk, f"layer {layer}, neuron {number}", neuron, lo, hi)
    uses: dict[int, list[tuple[int, float]]] = defaultdict(list)
    down = walk.network.sparse.get(f"layers.{layer}.mlp.down_proj.weight")
    if down is not None:
        for dim, number, value in zip(down.rows.tolist(), down.cols.tolist(), down.values.tolist(), strict=True):
            if number in neurons:
                uses[dim].append((number, value * GATE))
    used = {number for weights in uses.values() for number, _ in weights}
    for number in neurons.keys() - used:
        walk.audit.fault(f"layer {layer}, neuron {number}: nothing takes what it says")
    fresh: dict[int, float] = {}
    written: dict[int, tuple[float, float]] = {}
    for dim, weights in uses.items():
        cleared = [n for n, w in weights if w == -1 and neurons[n] == _Neuron(Line(((dim, 1.0),), 0.0), True)]
        low, high = (0.0, 0.0) if cleared else (float(lo[dim]), float(hi[dim]))
        # a clear leaves a rounding of what it takes, whatever the dim was off by
        base = self_left(walk, lo, hi, dim) if cleared else walk.errors[dim]
        rest = [(neurons[n], w, offs[n]) for n, w in weights if n not in cleared[:1]]
        claim = walk.size[2 * layer + 2, dim]
        f_low, f_high, error = _sum(walk, rest, lo, hi, claim)
        written[dim] = (low + f_low, high + f_high)
        fresh[dim] = base + error
    for dim, error in fresh.items():
        walk.errors[dim] = error
    return written


def self_left(walk: Walk, lo: Array, hi: Array, dim: int) -> float:
    """What a clear leaves in a dim."""
    return walk.left * float(max(abs(lo[dim]), abs(hi[dim])))


def _measure(walk: Walk, where: str, neuron: _Neuron, lo: Array, hi: Array) -> float:
    """The error of a neuron by roundings alone; its margin is noted."""
    line = neuron.line
    reach, terms = line.reach(lo, hi)
    halves = 2 if line.const != int(line.const) else 1
    if reach * halves > 256:
        walk.audit.fault(f"{where}: partial sums of its argument reach {reach:g}, bfloat16 would round them")
    top = line.bounds(lo, hi)[1]
    rounding = ULP * (min(len(line.terms), DEPTH) * reach + terms + 3 * max(top, 0.0))
    if neuron.linear or not line.terms:
        return rounding
    if top <= 0:
        walk.audit.fault(f"{where}: it can never be on")
    doubled = 2 if halves == 2 or all(coef % 2 == 0 for _, coef in line.terms) else 1
    off = (line.error(walk.errors) + rounding) / doubled
    walk.audit.decide("neurons", where, FLAT if halves == 2 else 0.5, off)
    return rounding


def _sum(
    walk: Walk, rows: list[tuple[_Neuron, float, float]], lo: Array, hi: Array, claim: float
) -> tuple[float, float, float]:
    """(low, high, error) of what neurons add to a dim: those of one argument together are one table of an integer."""
    groups: dict[tuple[tuple[int, int], ...], list[tuple[_Neuron, float, float]]] = defaultdict(list)
    low = high = 0.0
    for neuron, weight, off in rows:
        if neuron.line.terms:
            groups[neuron.line.direction()[0]].append((neuron, weight, off))
        else:
            value = weight * max(neuron.line.const, 0.0)
            low, high = low + value, high + value
    errors, ons, tails = 0.0, [], 0
    positive = negative = 0.0
    for terms, members in groups.items():
        table = _table(walk, terms, members, lo, hi)
        low, high = low + table.low, high + table.high
        tails += table.rows
        positive, negative = positive + max(table.high, 0.0), negative + max(-table.low, 0.0)
        if table.low >= 0 and table.off == 0.0:
            ons.append((table.on, table.high))
        else:
            errors += max(table.off, table.on)
    # tables that are never negative exclude each other as far as the claim of the sum goes
    count = min(len(ons), max(int(claim - low), 1) if claim >= low else len(ons))
    ons.sort(reverse=True)
    errors += sum(error for error, _ in ons[:count])
    rounded = claim + 2 if ons else max(positive, negative)
    return low, high, errors + TAIL * tails + ULP * min(tails, DEPTH) * rounded


@dataclass(frozen=True)
class _Table:
    """``low``, ``high``: of its values; ``on``, ``off``: errors where it is not zero and where it is; ``rows``."""

    low: float
    high: float
    on: float
    off: float
    rows: int


def _table(
    walk: Walk, terms: tuple[tuple[int, int], ...], members: list[tuple[_Neuron, float, float]], lo: Array, hi: Array
) -> _Table:
    line = Line(tuple((dim, float(coef)) for dim, coef in terms), 0.0)
    first, last = line.bounds(lo, hi)
    off = line.error(walk.errors)
    n = np.arange(first, last + 1)
    at = np.concatenate([n, n - off, n + off]).reshape(3, -1)
    values = np.zeros_like(at)
    rounding = np.zeros(len(n))
    for neuron, weight, own in members:
        argument = neuron.line.direction()[1] * at + neuron.line.const
        values += weight * (argument if neuron.linear else np.maximum(argument, 0.0))
        near = argument[0] + off * abs(neuron.line.direction()[1]) > 0
        rounding += abs(weight) * own * (near | neuron.linear)
    moved = np.abs(values[1:] - values[0]).max(axis=0) + rounding
    on = values[0] != 0
    if np.abs(values[0] - np.round(values[0])).max() > 0:
        walk.audit.fault(f"a table over dims {[dim for dim, _ in terms][:6]} has values that are no integers")
    return _Table(
        float(values[0].min()),
        float(values[0].max()),
        float(moved[on].max(initial=0.0)),
        float(moved[~on].max(initial=0.0)),
        len(members),
    )


def _output(walk: Walk) -> None:
    """Every wrong bit of the output code must cost ``LOGIT``, and no two ids may share a code."""
    network, found = walk.network, walk.audit
    table, norm = network.head, network.vectors["norm.weight"].astype(np.float64) + 1.0
    live = {dim for dim in np.flatnonzero(norm).tolist()}
    scaled = table.codes * table.scales + table.offsets
    gains = np.array([norm[dim] * walk.anchor.level.get(dim, 1 / walk.anchor.scale) for dim in table.dims.tolist()])
    logits = scaled * gains
    signals = [i for i, dim in enumerate(table.dims.tolist()) if dim not in walk.anchor.level]
    const = logits[:, [i for i, dim in enumerate(table.dims.tolist()) if dim in walk.anchor.level]].sum(axis=1)
    bits = logits[:, signals] / (2 * LOGIT)
    if not np.isin(bits, (0.0, 1.0)).all():
        found.fault("head: an entry is neither nothing nor one bit of the output code")
        return
    columns: dict[bytes, list[int]] = {}
    for i, signal in enumerate(signals):
        columns.setdefault(bits[:, i].astype(np.int8).tobytes(), []).append(int(table.dims[signal]))
    code = np.stack([np.frombuffer(column, np.int8) for column in columns], axis=1)
    if len(np.unique(code, axis=0)) < len(code):
        found.fault("head: two ids have the same code")
    if not np.array_equal(const, -LOGIT * code.sum(axis=1)):
        found.fault("head: the constant of an id is not that of its bits")
    if not {int(table.dims[i]) for i in signals} <= live:
        found.fault("head: it reads dims that the final norm turns off")
    off = 0.0
    for dims in columns.values():
        error = float(sum(walk.errors[dim] for dim in dims))
        found.decide("outputs", f"output code of dims {dims}", 0.5, error)
        off += error
    found.gap_float32 = LOGIT * (1 - 2 * off)
    if found.gap_float32 < LEAST_GAP:
        found.fault(f"the best logit is only {found.gap_float32:.3g} above the second, {LEAST_GAP:g} is the least")
