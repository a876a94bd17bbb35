"""The proof anew, DeltaNet: keys, values, gates, read-outs and decays of every head, from the weights alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import exp, gcd, log1p
from typing import TYPE_CHECKING, Any

import numpy as np

from .audit_lines import Line, by_row, lines
from .numbers import GATHER_RATIO, HEAD_DIM, KEY, RAIL, READ_ERROR, READ_GATE
from .rows import KEY_LIMIT

if TYPE_CHECKING:
    from .audit import Walk

Array = np.ndarray[Any, Any]
CONTEXT = 262_144  # tokens; the longest that Qwen3.5 is made for
LOSS = 2.0**-20  # what a state may lose over that
GAIN = 4e-6  # distance of a read's factor from the whole number it stands for
QUIET = 1e-6  # how far data may move, relatively, the norm of a head whose energy is its pad
NOW = 3
QUERY, KEYS, VALUE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Head:
    """One head's lines: ``rows[part][index]``; ``tap``: by (part, index)."""

    layer: int
    number: int
    rows: tuple[dict[int, Line], dict[int, Line], dict[int, Line]]
    tap: dict[tuple[int, int], int]
    gates: dict[int, Line]
    outs: dict[int, list[tuple[int, float]]]

    @property
    def where(self) -> str:
        return f"layer {self.layer}, head {self.number}"


def audit_heads(walk: Walk, layer: int) -> dict[int, tuple[float, float]]:
    """Intervals of the dims that the layer's heads write, own contents included; errors go to ``walk``."""
    lo, hi = walk.lo[2 * layer], walk.hi[2 * layer]
    added: dict[int, list[float]] = {}
    errors: dict[int, float] = {}
    prefix = f"layers.{layer}.linear_attn."
    betas = dict(lines(walk.network.sparse.get(prefix + "in_proj_b.weight"), walk.anchor))
    wipes = dict(lines(walk.network.sparse.get(prefix + "in_proj_a.weight"), walk.anchor))
    norm = walk.network.vectors[prefix + "norm.weight"]
    for number, head in _heads(walk, layer).items():
        beta = betas.get(number)
        if beta is None or beta.terms or beta.const < 30:
            walk.audit.fault(f"{head.where}: its beta is not constantly 1")
        _state(walk, head, layer, number, wipes.get(number), lo, hi)
        for part in (QUERY, KEYS):
            _port(walk, head, part, lo, hi)
        _values(walk, head, lo, hi)
        for dim, low, high, error in _reads(walk, head, norm, lo, hi):
            ends = added.setdefault(dim, [float(lo[dim]), float(hi[dim])])
            ends[0], ends[1] = ends[0] + low, ends[1] + high
            errors[dim] = max(errors.get(dim, 0.0), error)  # of banks, all but one add exactly nothing
    for dim, error in errors.items():
        walk.errors[dim] += error
    return {dim: (ends[0], ends[1]) for dim, ends in added.items()}


def _heads(walk: Walk, layer: int) -> dict[int, _Head]:
    prefix = f"layers.{layer}.linear_attn."
    sparse, count = walk.network.sparse, walk.network.shape.linear_heads
    heads: dict[int, _Head] = {}

    def head(number: int) -> _Head:
        if number not in heads:
            heads[number] = _Head(layer, number, ({}, {}, {}), {}, {}, defaultdict(list))
        return heads[number]

    for row, line in lines(sparse.get(prefix + "in_proj_qkv.weight"), walk.anchor):
        part, rest = divmod(row, count * HEAD_DIM)
        head(rest // HEAD_DIM).rows[part][rest % HEAD_DIM] = line
    for row, taps in by_row(sparse.get(prefix + "conv1d.weight")).items():
        part, rest = divmod(row, count * HEAD_DIM)
        one = head(rest // HEAD_DIM)
        if len(taps) != 1 or taps[0][1] != 1.0 or (part != VALUE and taps[0][0] != NOW):
            walk.audit.fault(f"{one.where}: channel {rest % HEAD_DIM} of part {part} has taps {taps}")
        one.tap[part, rest % HEAD_DIM] = taps[0][0]
    for row, line in lines(sparse.get(prefix + "in_proj_z.weight"), walk.anchor):
        head(row // HEAD_DIM).gates[row % HEAD_DIM] = line
    out = sparse.get(prefix + "out_proj.weight")
    if out is not None:
        for dim, channel, value in zip(out.rows.tolist(), out.cols.tolist(), out.values.tolist(), strict=True):
            head(channel // HEAD_DIM).outs[channel % HEAD_DIM].append((dim, value))
    return heads


def _softplus(value: float) -> float:
    return value if value > 30 else log1p(exp(value))


def _state(walk: Walk, head: _Head, layer: int, number: int, wipe: Line | None, lo: Array, hi: Array) -> None:
    prefix = f"layers.{layer}.linear_attn."
    rate = exp(float(walk.network.vectors[prefix + "A_log"][number]))
    bias = float(walk.network.vectors.get(prefix + "dt_bias", np.zeros(number + 1))[number])
    idle = wipe.const if wipe is not None else 0.0
    loss = CONTEXT * rate * _softplus(bias + idle)
    walk.audit.state_loss = max(walk.audit.state_loss, loss)
    if loss > LOSS:
        walk.audit.fault(f"{head.where}: its state loses {loss:.3g} over {CONTEXT} tokens")
    if wipe is None or not wipe.terms:
        return
    unit = min(abs(coef) for _, coef in wipe.terms)
    line = Line(wipe.terms, 0.0).scaled(unit)
    if not line.whole or line.bounds(lo, hi)[0] < 0:
        walk.audit.fault(f"{head.where}: its wipe line is no bit")
    walk.audit.decide("keys", f"{head.where}, wipe", 0.5, line.error(walk.errors))
    if exp(-rate * _softplus(bias + idle + unit)) > 1e-20:
        walk.audit.fault(f"{head.where}: a wipe leaves too much")


def _port(walk: Walk, head: _Head, part: int, lo: Array, hi: Array) -> None:
    """Every row is decided by half a unit; no two rows can be up together, unless all are asked for alike."""
    name = ("query", "key")[part]
    rows: dict[int, Line] = {}
    idle = 0
    for index, line in head.rows[part].items():
        scaled = line.scaled(KEY)
        if scaled.terms and all(abs(coef) >= GATHER_RATIO for _, coef in scaled.terms):
            scaled = scaled.scaled(GATHER_RATIO)
        elif not scaled.terms and abs(scaled.const) >= GATHER_RATIO / 2:
            scaled = scaled.scaled(GATHER_RATIO)
        where = f"{head.where}, {name} row {index}"
        if head.tap.get((part, index)) != NOW:
            walk.audit.fault(f"{where}: the convolution does not pass it")
        if not scaled.whole or scaled.const == int(scaled.const):
            walk.audit.fault(f"{where}: its weights are no halves of units")
            continue
        if 2 * scaled.reach(lo, hi)[0] > 256:
            walk.audit.fault(f"{where}: partial sums reach {scaled.reach(lo, hi)[0]:g}, bfloat16 would round them")
        idle += scaled.bounds(lo, hi)[1] <= 0
        off = scaled.error(walk.errors)
        if off > KEY_LIMIT:
            walk.audit.fault(f"{where}: errors add up to {off:.3g}, at most {KEY_LIMIT} may")
        walk.audit.decide("keys", where, 0.5, off)
        rows[index] = scaled
    if idle:
        walk.audit.trusted.append((2 * head.layer + 1, -1 - 2 * head.number - part, -1, idle))
    if len({(line.terms, line.const) for line in rows.values()}) > 1:
        _exclusive(walk, (2 * head.layer + 1, -1 - 2 * head.number - part), rows, lo, hi)


def _exclusive(walk: Walk, place: tuple[int, int], rows: dict[int, Line], lo: Array, hi: Array) -> None:
    """No two rows of a port may be up at once: their arguments add up to nothing or less, or it is taken on trust."""
    dims = sorted({dim for line in rows.values() for dim, _ in line.terms})
    column = {dim: i for i, dim in enumerate(dims)}
    matrix = np.zeros((len(rows), len(dims)))
    const = np.array([line.const for line in rows.values()])
    for i, line in enumerate(rows.values()):
        for dim, coef in line.terms:
            matrix[i, column[dim]] = coef
    low, high = lo[dims], hi[dims]
    pairs, total = 0, 0.0
    for i in range(len(rows) - 1):
        both = matrix[i] + matrix[i + 1 :]
        most = const[i] + const[i + 1 :] + np.maximum(both * low, both * high).sum(axis=1)
        pairs, total = pairs + int((most > 0).sum()), total + float(most[most > 0].sum())
    if pairs:  # by intervals alone: an enable or an address bit is a sum of exclusive cases
        walk.audit.trusted.append((*place, pairs, round(total)))


def _level(line: Line) -> float:
    """The unit of a value row: what its weights have in common."""
    sizes = [abs(coef) for _, coef in line.terms] + ([abs(line.const)] if line.const else [])
    whole = all(size == int(size) for size in sizes)
    return float(gcd(*(int(size) for size in sizes))) if whole else min(sizes)


def _values(walk: Walk, head: _Head, lo: Array, hi: Array) -> None:
    for index, line in head.rows[VALUE].items():
        where = f"{head.where}, value {index}"
        scaled = line.scaled(_level(line))
        if (VALUE, index) not in head.tap:
            walk.audit.fault(f"{where}: the convolution does not pass it")
        if not scaled.whole:
            walk.audit.fault(f"{where}: its weights are no whole numbers of units")
        if scaled.reach(lo, hi)[0] > 256:
            walk.audit.fault(f"{where}: partial sums that bfloat16 would round")
        if scaled.terms:
            walk.audit.decide("reads", where, 0.5, scaled.error(walk.errors))
            _bit(walk, head, index, scaled, lo, hi)


def _bit(walk: Walk, head: _Head, channel: int, line: Line, lo: Array, hi: Array) -> None:
    """Whether intervals alone say that a line is 0 or 1; else what they say is noted."""
    low, high = line.bounds(lo, hi)
    if low < 0 or high != 1:
        number = -1 - 2 * walk.network.shape.linear_heads - 2 * HEAD_DIM * head.number - channel
        walk.audit.trusted.append((2 * head.layer + 1, number, round(low), round(high)))


def _energy(walk: Walk, head: _Head) -> tuple[float, bool]:
    """(Root mean square of what a row holds, whether a pad makes it): the same whatever the data."""
    rows = head.rows[VALUE]
    pad = rows.get(HEAD_DIM - 1)
    if pad is not None and not pad.terms:
        others = max((_level(line) for index, line in rows.items() if index != HEAD_DIM - 1), default=0.0)
        query = head.rows[QUERY]
        louder = max((abs(line.const) for line in query.values()), default=0.0) / max(
            min((abs(line.const) for line in query.values()), default=1.0), 1e-30
        )
        if len(query) > 1 and louder >= GATHER_RATIO / 4096 and others <= pad.const:
            return pad.const * GATHER_RATIO / HEAD_DIM**0.5, True
        if HEAD_DIM * (others / pad.const) ** 2 > 2 * QUIET:
            walk.audit.fault(f"{head.where}: its pad is not far above its data")
        return pad.const / HEAD_DIM**0.5, True
    level = min((_level(line) for line in rows.values()), default=0.0)
    for index in range(RAIL):
        first, second = rows.get(index), rows.get(index + RAIL)
        terms = dict(first.terms) if first else {}
        for dim, coef in second.terms if second else ():
            terms[dim] = terms.get(dim, 0.0) + coef
        const = (first.const if first else 0.0) + (second.const if second else 0.0)
        if any(terms.values()) or const != level:
            walk.audit.fault(f"{head.where}: values {index} and {index + RAIL} are no bit and its complement")
    return level * (RAIL / HEAD_DIM) ** 0.5, False


def _reads(walk: Walk, head: _Head, norm: Array, lo: Array, hi: Array) -> list[tuple[int, float, float, float]]:
    """(dim, low, high, error) of every value that is read out."""
    energy, padded = _energy(walk, head)
    rows = head.rows[VALUE]
    spread = {index: line.scaled(_level(line)).error(walk.errors) for index, line in rows.items()}
    worst = 0.0 if padded else max(spread.values(), default=0.0)  # through the norm that all share
    gather = len({(line.terms, line.const) for line in head.rows[QUERY].values()}) > 1 and any(
        abs(line.const) >= KEY * GATHER_RATIO / 2 for line in head.rows[QUERY].values()
    )
    floor = READ_ERROR + walk.scale + (len(head.rows[QUERY]) / GATHER_RATIO if gather else 0.0)
    found = []
    for index, outs in head.outs.items():
        where = f"{head.where}, read {index}"
        gate = head.gates.get(index)
        if gate is None or index not in rows:
            walk.audit.fault(f"{where}: it has no gate or no value")
            continue
        select = gate.scaled(READ_GATE)
        if not select.whole or (not select.terms and select.const != 1):
            walk.audit.fault(f"{where}: its gate is no bit")
        _bit(walk, head, HEAD_DIM + index, select, lo, hi)
        if select.terms:
            walk.audit.decide("reads", f"{where}, gate", 0.5, select.error(walk.errors))
        for dim, weight in outs:
            gain = _level(rows[index]) / energy * float(norm[index]) * READ_GATE * weight
            if abs(gain - round(gain)) > GAIN * max(abs(gain), 1.0) or not round(gain):
                walk.audit.fault(f"{where}: it brings {gain:.6g} of a unit to dim {dim}")
            size = abs(round(gain))
            error = size * (spread[index] + worst + (select.error(walk.errors) if select.terms else 0.0) + floor)
            found.append((dim, min(0.0, float(round(gain))), max(0.0, float(round(gain))), error))
    return found
