"""DeltaNet heads: memories and delays as weights.

Key and query, row r: 2048 * (literals of r's address + enables - (their number - 1/2)), through tap 3 of the
convolution and its SiLU: 1024 on the row that is meant, nothing elsewhere, and after the l2norm exactly 1. A port
that is not enabled has a zero key. Beta is 1. Value: bit c in dim c, its complement in dim c + 64, each 0 or 1024;
unused columns hold a constant one, so that half of the 128 dims are always on and the gated norm sees the same energy
whatever the data.

*Quiet* heads have one dim (the last) that holds a constant far above everything else instead, so that the data does
not matter to the norm at all: delays, and memories with delayed columns where a column is left for it, for both are
read before their past is there. In a *gather*, whose read is the sum of many rows, the constant is as large as a bit,
but stands in a row of its own that the query asks for far louder than for the others; that row is written whenever
the write port is not enabled.

The convolution's taps are the delays; the z gate is the select. A head that can be wiped has A = 1 and a bias of -128
on its rate, so that nothing decays unless the wipe line is up; every other head's rate is 1e-35.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .netlist import Affine, ColumnSpec, DelayCell, MemoryCell, PortSpec
from .network import Shape, Sparse
from .numbers import (
    BETA,
    GATHER_RATIO,
    HEAD_DIM,
    KEY,
    NO_DECAY_A_LOG,
    NORM_WEIGHT,
    PAD_RATIO,
    QUIET_VALUE,
    RAIL,
    READ_GATE,
    READ_WEIGHT,
    SCALE_UP,
    VALUE,
    WIPE_DT_BIAS,
    WIPE_RATE,
)
from .plan import DELAYS_A_HEAD
from .schedule import Schedule
from .weights import Array, SparseBuilder

NOW = 3  # the convolution's tap for the present token
PAD = HEAD_DIM - 1
ONE_PAD = 8.0  # a single dim on in 128 leaves the norm as sqrt(128) = 8 * sqrt(2)


@dataclass(frozen=True)
class Wire:
    """How a layer's input is read: dim of each signal, one anchor's dim, and what that anchor is after RMSNorm."""

    dim_of: tuple[int, ...]
    anchor: int
    level: float

    def constant(self, value: float) -> float:
        """Weight on the anchor that gives ``value``."""
        return value / self.level

    def line(self, unit: float, terms: Sequence[tuple[int, int]], const: float) -> Iterator[tuple[int, float]]:
        """(dim, weight) of ``unit * (sum(coef * signal) + const)``."""
        for signal, coef in terms:
            yield self.dim_of[signal], unit * coef * SCALE_UP
        if const:
            yield self.anchor, self.constant(unit * const)


@dataclass(frozen=True)
class Style:
    """How a head keeps its energy the same: levels of a stored bit and of the pad (0: none), and the read's weight."""

    value: float
    pad: float
    read: float


EVEN = Style(VALUE, 0.0, READ_WEIGHT)
QUIET = Style(QUIET_VALUE, QUIET_VALUE * PAD_RATIO, READ_WEIGHT * PAD_RATIO / ONE_PAD)
GATHER = Style(VALUE, VALUE, READ_WEIGHT * GATHER_RATIO / ONE_PAD)
CONSTANT_ONE = Affine((), 1, 1, 1)


def style_of(cell: MemoryCell) -> Style:
    """Even if every row is written whole at once; quiet if delayed columns may be read before their past is there."""
    if cell.gather:
        return GATHER
    return QUIET if len(cell.columns) < RAIL and any(column.delay for column in cell.columns) else EVEN


def stored(cell: MemoryCell, column: ColumnSpec) -> Affine:
    """What goes into a value dim. A gather's key is never zero, so there the data has to be: twice all enables, and
    what says where the column is written, are added and twice their number taken off. Once would do on integers, but
    leave a bit without its enable at exactly zero, where SiLU passes errors, and the constant's row, which they would
    go to, is read ``GATHER_RATIO`` times louder."""
    data = column.data
    if not cell.gather:
        return data
    terms, asked = dict(data.terms), (*cell.write.enable, *column.where)
    for arg in asked:
        for signal, coef in arg.terms:
            terms[signal] = terms.get(signal, 0) + 2 * coef
    const = data.const + 2 * (sum(arg.const for arg in asked) - len(asked))
    return Affine(tuple((s, c) for s, c in sorted(terms.items()) if c), const, -2 * len(asked), 1)


class HeadWriter:
    """The DeltaNet of one layer."""

    def __init__(self, shape: Shape, wire: Wire) -> None:
        self.shape = shape
        self.wire = wire
        self.heads = shape.linear_heads
        wide = self.heads * HEAD_DIM
        self.qkv = SparseBuilder((3 * wide, shape.hidden))
        self.conv = SparseBuilder((3 * wide, shape.conv_kernel))
        self.z = SparseBuilder((wide, shape.hidden))
        self.a = SparseBuilder((self.heads, shape.hidden))
        self.b = SparseBuilder((self.heads, shape.hidden))
        self.out = SparseBuilder((shape.hidden, wide))
        self.a_log = np.full(self.heads, NO_DECAY_A_LOG, np.float32)
        self.dt_bias = np.zeros(self.heads, np.float32)
        self.used = 0

    def fill(self, plan: Schedule, layer: int) -> dict[str, tuple[int, int, int]]:
        """All memories and delays of a layer. Returns name -> (head, address bits, columns) of the memories."""
        states: dict[str, tuple[int, int, int]] = {}
        delays: list[DelayCell] = []
        for cell, stage in zip(plan.lowered.netlist.cells, plan.stage, strict=True):
            if stage != 2 * layer:
                continue
            if isinstance(cell, MemoryCell):
                states[cell.name] = (self.used, len(cell.write.address), len(cell.columns))
                self._memory(cell)
            elif isinstance(cell, DelayCell):
                delays.append(cell)
        for start in range(0, len(delays), DELAYS_A_HEAD):
            self._delays(delays[start : start + DELAYS_A_HEAD])
        return states

    def matrices(self, prefix: str) -> dict[str, Sparse]:
        built = {"in_proj_qkv": self.qkv, "conv1d": self.conv, "in_proj_z": self.z, "in_proj_a": self.a}
        built |= {"in_proj_b": self.b, "out_proj": self.out}
        return {f"{name}.weight": matrix.done(f"{prefix}{name}.weight") for name, matrix in built.items()}

    def vectors(self) -> dict[str, Array]:
        norm = np.full(HEAD_DIM, NORM_WEIGHT, np.float32)
        return {"A_log": self.a_log, "dt_bias": self.dt_bias, "norm.weight": norm}

    def _next_head(self) -> int:
        head, self.used = self.used, self.used + 1
        for dim, weight in self.wire.line(BETA, (), 1):
            self.b.add(head, dim, weight)
        return head

    def _channel(self, part: int, head: int, index: int) -> int:
        """Row of in_proj_qkv; part 0: query, 1: key, 2: value."""
        return (part * self.heads + head) * HEAD_DIM + index

    def _key_row(
        self, part: int, head: int, row: int, unit: float, terms: Sequence[tuple[int, int]], const: float
    ) -> None:
        channel = self._channel(part, head, row)
        for dim, weight in self.wire.line(unit, terms, const):
            self.qkv.add(channel, dim, weight)
        self.conv.add(channel, NOW, 1.0)

    def _key_rows(self, part: int, head: int, port: PortSpec) -> None:
        """One row an address: a matrix over (the port's signals, the anchor)."""
        bits, enables = port.address, port.enable
        signals = sorted({signal for arg in (*bits, *enables) for signal, _ in arg.terms})
        column_of = {signal: column for column, signal in enumerate(signals)}
        rows = np.arange(1 << len(bits))
        sums = np.zeros((len(rows), len(signals) + 1))
        sums[:, -1] = 0.5 - (len(bits) + len(enables))
        for number, arg in enumerate((*bits, *enables)):
            sign = 2 * ((rows >> number) & 1) - 1 if number < len(bits) else np.ones(len(rows))
            for signal, coef in arg.terms:
                sums[:, column_of[signal]] += sign * coef
            sums[:, -1] += np.where(sign > 0, arg.const, 1 - arg.const)
        dims = np.array([self.wire.dim_of[signal] for signal in signals] + [self.wire.anchor])
        units = np.array([KEY * SCALE_UP] * len(signals) + [self.wire.constant(KEY)])
        at, column = np.nonzero(sums)
        channels = self._channel(part, head, 0) + at
        self.qkv.add_block(channels, dims[column], sums[at, column] * units[column])
        taps = self._channel(part, head, 0) + rows
        self.conv.add_block(taps, np.full(len(rows), NOW), np.ones(len(rows)))

    def _value(self, head: int, dim: int, level: float, arg: Affine, delay: int) -> None:
        channel = self._channel(2, head, dim)
        for at, weight in self.wire.line(level, arg.terms, arg.const):
            self.qkv.add(channel, at, weight)
        self.conv.add(channel, NOW - delay, 1.0)

    def _read(self, head: int, dim: int, weight: float, out: int, select: Affine | None) -> None:
        channel = head * HEAD_DIM + dim
        gate = select if select is not None else CONSTANT_ONE
        for at, value in self.wire.line(READ_GATE, gate.terms, gate.const):
            self.z.add(channel, at, value)
        self.out.add(self.wire.dim_of[out], channel, weight)

    def _memory(self, cell: MemoryCell) -> None:
        head = self._next_head()
        style = style_of(cell)
        self._key_rows(1, head, cell.write)
        if cell.gather:
            self._gather_keys(head, cell)
        else:
            self._key_rows(0, head, cell.read)
        for number, column in enumerate(cell.columns):
            self._value(head, number, style.value, stored(cell, column), column.delay)
            if not cell.gather:
                self._value(head, number + RAIL, style.value, column.data.inverted(), column.delay)
            for dim, out in ((number, column.out), (number + RAIL, column.out_not)):
                if out is not None:
                    self._read(head, dim, style.read * column.weight, out, column.select)
        if style.pad:
            self._value(head, PAD, style.pad, CONSTANT_ONE, 0)
        else:
            for number in range(len(cell.columns), RAIL):
                self._value(head, number, style.value, CONSTANT_ONE, 0)
        if cell.wipe is not None:
            self.a_log[head] = 0.0
            self.dt_bias[head] = WIPE_DT_BIAS
            for dim, value in self.wire.line(WIPE_RATE, cell.wipe.terms, cell.wipe.const):
                self.a.add(head, dim, value)

    def _gather_keys(self, head: int, cell: MemoryCell) -> None:
        """The query is up on every row whose highest address bits are asked for, and far higher on the constant's row,
        which the key names while the port is not enabled."""
        rows, high = 1 << len(cell.write.address), len(cell.read.address)
        terms = [term for arg in cell.read.enable for term in arg.terms]
        const = sum(arg.const for arg in cell.read.enable) + 0.5 - len(cell.read.enable)
        for row in range(rows):
            literals, offset = list(terms), const - high
            for number, arg in enumerate(cell.read.address):
                sign = 1 if row >> (len(cell.write.address) - high + number) & 1 else -1
                literals += [(signal, sign * coef) for signal, coef in arg.terms]
                offset += arg.const if sign > 0 else 1 - arg.const
            self._key_row(0, head, row, KEY, literals, offset)
        self._key_row(0, head, rows, KEY * GATHER_RATIO, terms, const)
        terms = [(signal, -coef) for arg in cell.write.enable for signal, coef in arg.terms]
        const = len(cell.write.enable) - 0.5 - sum(arg.const for arg in cell.write.enable)
        self._key_row(1, head, rows, KEY, terms, const)

    def _delays(self, cells: Sequence[DelayCell]) -> None:
        head = self._next_head()
        for part in (0, 1):
            self._key_row(part, head, 0, KEY, (), 0.5)
        for number, cell in enumerate(cells):
            self._value(head, number, QUIET.value, cell.arg, cell.tokens)
            self._read(head, number, QUIET.read, cell.out, None)
        self._value(head, PAD, QUIET.pad, CONSTANT_ONE, 0)
