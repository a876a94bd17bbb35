"""State of a running netlist: memories of one stage as one array of rows, and what expressions were in the last
tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .ir import Expr, Memory, Signal
from .vector import ExprBlock, Violation

Array = np.ndarray[Any, Any]


class History:
    """The values of some 0/1 expressions in the last three tokens; zero before the first."""

    def __init__(self, args: Sequence[Expr], users: Sequence[str], index: Mapping[Signal, int], batch: int) -> None:
        self._block = ExprBlock(args, users, index, np.int16)
        self._row = {arg: int(row) for arg, row in zip(args, self._block.rows, strict=True)}
        width = int(self._block.rows.max(initial=-1)) + 1
        self.past = np.zeros((4, width, batch), np.int16)

    def row(self, arg: Expr) -> int:
        """Where ``arg`` stands in ``past[tokens ago]``."""
        return self._row[arg]

    def record(self, values: Array, active: Array | None) -> Violation | None:
        """Ends a token: what was n tokens ago is n + 1 ago now."""
        now = self._block(values)
        found = self._block.check(now, active)
        if found is None:
            shifted = np.concatenate([self.past[:1], now[None], self.past[1:3]])
            self.past[...] = shifted if active is None else np.where(active, shifted, self.past)
        return found


class MemoryStage:
    """Memories that depend on nothing but earlier stages; all gathering, or none."""

    def __init__(
        self,
        memories: Sequence[Memory],
        index: Mapping[Signal, int],
        history: History,
        batch: int,
        dtype: type[np.generic],
    ) -> None:
        self.memories = tuple(memories)
        self._gather = memories[0].gather
        self._history = history
        args: list[Expr] = []
        users: list[str] = []

        def slot(arg: Expr, user: str) -> int:
            args.append(arg)
            users.append(user)
            return len(args) - 1

        zero, one = Expr({}, 0), Expr({}, 1)
        bits = max(max(len(m.write.address), len(m.read.address)) for m in memories)
        self.rows = 1 << bits
        ports = []
        for port in ("write", "read"):
            address, enable = [], []
            for memory in memories:
                pins = getattr(memory, port)
                padded = [*pins.address, *[zero] * (bits - len(pins.address))]
                address.append([slot(bit, f"{memory.name} {port} address") for bit in padded])
                enable.append([slot(bit, f"{memory.name} {port} enable") for bit in (pins.enable or (one,))])
            most = max(len(pins) for pins in enable)
            ports.append((address, [pins + pins[:1] * (most - len(pins)) for pins in enable]))
        wipes = [slot(m.wipe or zero, f"{m.name} wipe") for m in memories]
        data, delayed, reads = [], [], []
        for number, memory in enumerate(memories):
            for place, column in enumerate(memory.columns):
                if column.delay:
                    delayed.append((number, place, column.delay, history.row(column.data)))
                else:
                    pins = (column.data, *column.where)
                    data.append((number, place, *(slot(bit, f"{memory.name} data") for bit in pins)))
                for out, inverted in ((column.out, 0), (column.out_not, 1)):
                    if out is not None:
                        select = slot(column.select or one, f"{memory.name} select")
                        reads.append((index[out], number, place, inverted, select, column.weight))
        self._block = ExprBlock(args, users, index, dtype)
        rows = self._block.rows
        # Pins as [pin, memory] arrays of rows in the block's result.
        (self._write_address, self._write_enable), (self._read_address, self._read_enable) = (
            (rows[np.array(address, np.intp).T.reshape(bits, len(memories))], rows[np.array(enable, np.intp).T])
            for address, enable in ports
        )
        self._wipe = rows[np.array(wipes, np.intp)]
        self._wipes = any(memory.wipe is not None for memory in memories)

        most = max((len(item) for item in data), default=0)
        even = [(n, place, *pins, *pins[:1] * (most - 2 - len(pins))) for n, place, *pins in data]
        self._data_table = _by_memory([(n, place, *(int(rows[pin]) for pin in pins)) for n, place, *pins in even])
        self._delayed_table = _by_memory([(n, place, ago, row) for n, place, ago, row in delayed])
        self._outs = _passes(reads, rows)
        self._summed = _summed(memories, reads, rows) if self._gather else []
        self._base = (np.arange(len(memories)) * self.rows)[:, None]
        self._batch = batch
        self.words = np.zeros((len(memories) * self.rows, batch), np.uint64)
        self.written = np.zeros((len(memories) * self.rows, batch), bool)

    def run(self, values: Array, active: Array | None) -> Violation | None:
        """Wipes, writes, then reads; what is read is *added* to the outputs' rows of ``values``."""
        pins = self._block(values)
        found = self._block.check(pins, active)
        if found is not None:
            return found
        if self._wipes:
            self._wipe_rows(pins, active)
        enable = np.asarray(pins[self._write_enable].all(axis=0))
        if active is not None:
            enable &= active
        memory, instance = np.nonzero(enable)
        if len(memory):
            row = (self._base + self._address(pins, self._write_address))[memory, instance]
            self.words[row, instance] = self._write_data(pins)[memory, instance]
            self.written[row, instance] = True
        enable = np.asarray(pins[self._read_enable].all(axis=0))
        if self._gather:
            self._gather_rows(values, pins, enable)
            return None
        row = self._base + self._address(pins, self._read_address)
        lane = np.arange(self._batch)
        words = self.words[row, lane]
        valid = self.written[row, lane] & enable
        both = np.stack([np.where(valid, words, np.uint64(0)), np.where(valid, ~words, np.uint64(0))])
        for out, number, place, inverted, select, weight in self._outs:
            bits = ((both[inverted, number] >> place) & np.uint64(1)).astype(values.dtype)
            values[out] += bits * pins[select] * weight.astype(values.dtype)[:, None]
        return None

    def _address(self, pins: Array, address: Array) -> Array:
        result = np.zeros((len(self.memories), self._batch), np.int64)
        for weight, bit in enumerate(address):
            result += pins[bit].astype(np.int64) << weight
        return result

    def _wipe_rows(self, pins: Array, active: Array | None) -> None:
        wiped = pins[self._wipe] != 0
        if active is not None:
            wiped &= active
        for number in np.flatnonzero(wiped.any(axis=1)):
            span = slice(number * self.rows, (number + 1) * self.rows)
            self.words[span] *= ~wiped[number]
            self.written[span] &= ~wiped[number]

    def _write_data(self, pins: Array) -> Array:
        result = np.zeros((len(self.memories), self._batch), np.uint64)
        for number, place, *bits in self._data_table:
            result[number] |= np.minimum.reduce([pins[bit] for bit in bits]).astype(np.uint64) << place
        past = self._history.past
        for number, place, ago, row in self._delayed_table:
            result[number] |= past[ago, row].astype(np.uint64) << place
        return result

    def _gather_rows(self, values: Array, pins: Array, enable: Array) -> None:
        address = self._address(pins, self._read_address)
        lane = np.arange(self._batch)
        for number, (high, low, place, out, select, weight) in enumerate(self._summed):
            start = number * self.rows
            rows = self.words[start : start + high * low].reshape(high, low, self._batch)
            found = rows[address[number], :, lane]  # [batch, low]
            counts = ((found[:, :, None] >> place) & np.uint64(1)).sum(axis=1).T.astype(values.dtype)
            np.add.at(values, out, counts * enable[number] * pins[select] * weight.astype(values.dtype)[:, None])

    def row_of(self, name: str) -> slice | None:
        """The rows of one memory in ``words`` and ``written``."""
        for number, memory in enumerate(self.memories):
            if memory.name == name:
                rows = 1 << max(len(memory.write.address), len(memory.read.address))
                return slice(number * self.rows, number * self.rows + rows)
        return None


def _by_memory(items: Sequence[tuple[int, ...]]) -> list[tuple[Any, ...]]:
    """Items (memory, column, ...) as a few array operations, no memory twice in one: the k-th item of each memory."""
    return [
        (np.array(part[0], np.intp), np.array(part[1], np.uint64)[:, None], *(np.array(p, np.intp) for p in part[2:]))
        for part in (tuple(zip(*group, strict=True)) for group in _ranked(items))
    ]


def _passes(reads: Sequence[tuple[int, ...]], rows: Array) -> list[tuple[Array, ...]]:
    """Reads (out row, memory, column, inverted, select, weight) as array operations, no output twice in one (banks
    share outputs)."""
    result: list[tuple[Array, ...]] = []
    for group in _ranked(reads):
        out, number, place, inverted, select, weight = (np.array(part, np.intp) for part in zip(*group, strict=True))
        result.append((out, number, place.astype(np.uint64)[:, None], inverted, rows[select], weight))
    return result


def _summed(memories: Sequence[Memory], reads: Sequence[tuple[int, ...]], rows: Array) -> list[tuple[Any, ...]]:
    """For each memory: how many sums of rows it has, how many rows are in one, and its reads: column, out row, select,
    weight."""
    result: list[tuple[Any, ...]] = []
    for number, memory in enumerate(memories):
        mine = [(place, out, rows[select], weight) for out, n, place, _, select, weight in reads if n == number]
        place, out, select, weight = np.array(mine, np.intp).reshape(-1, 4).T
        high = 1 << len(memory.read.address)
        low = 1 << (len(memory.write.address) - len(memory.read.address))
        result.append((high, low, place.astype(np.uint64), out, select, weight))
    return result


def _ranked(items: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """Items grouped by how many earlier items have the same first entry."""
    seen: dict[int, int] = {}
    groups: list[list[tuple[int, ...]]] = []
    for item in items:
        rank = seen.get(item[0], 0)
        seen[item[0]] = rank + 1
        if rank == len(groups):
            groups.append([])
        groups[rank].append(item)
    return groups
