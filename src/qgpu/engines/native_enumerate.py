"""Cones evaluated for all their inputs: which of these matter, and a table that needs no filling later.

A dim is often cleared by the very neurons that write it anew: then what it held before decides nothing. Where an
input changes no entry of a cone's table it is left out, and nobody needs to look when it changes.
"""

from __future__ import annotations

import numba
import numpy as np

from qgpu.engines.native_cones import Piece
from qgpu.engines.native_math import sources
from qgpu.engines.native_plan import Plan
from qgpu.engines.native_rows import code_of, part_of, settled, sum_of_neurons
from qgpu.engines.protocol import Array

UNKNOWN = 255
NO_GUARD = 255


def _make_enumerate(sources: str):  # type: ignore[no-untyped-def]
    @numba.njit(cache=True)
    def enumerate_cones(
        first, last, net, old, base, plain_cone, inputs, neuron_first, neuron_last, neurons, put, neuron_rows, rptr,
        rval, const, row_net, lo, span, room, level_of, levels, table,
    ):  # type: ignore[no-untyped-def]  # fmt: skip
        """Fill ``table`` for each cone by mixed radix; uint8 by input: whether it matters, or 2 where the cone stays as
        it is."""
        _ = len(sources)
        matters = np.full(len(inputs), 2, np.uint8)
        code = np.zeros(len(lo), np.uint8)
        met = np.zeros(len(levels), np.int32)
        for i in range(len(lo)):
            code[i] = max(0, -lo[i])
        for c in range(len(first)):
            size = 1
            plain = plain_cone[c]
            for i in range(first[c], last[c]):
                read = inputs[i]
                plain = plain and room[read] == span[read]
                size *= span[read]
            if not plain:
                continue
            for key in range(size):
                rest = key
                for i in range(first[c], last[c]):
                    read = inputs[i]
                    code[read] = rest % span[read]
                    rest //= span[read]
                y, _ = sum_of_neurons(neurons, put, neuron_first[c], neuron_last[c], neuron_rows, rptr, rval, const,
                                      row_net, level_of, levels, code)  # fmt: skip
                value = settled(levels[level_of[old[c]], code[old[c]]], y)
                given = code_of(lo, span, span, level_of, levels, met, net[c], value)
                table[base[c] + key] = UNKNOWN if given < 0 else given
            for i in range(first[c], last[c]):
                code[inputs[i]] = max(0, -lo[inputs[i]])
            stride = 1
            for i in range(first[c], last[c]):
                radix = np.int64(span[inputs[i]])
                matters[i] = 0
                for key in range(size):
                    if (key // stride) % radix and table[base[c] + key] != table[base[c] + key - stride]:
                        matters[i] = 1
                        break
                stride *= radix
        return matters

    return enumerate_cones


def _make_compress(sources: str):  # type: ignore[no-untyped-def]
    @numba.njit(cache=True)
    def compress(first, last, base, sizes, inputs, span, matters, table, new_base, new_table):  # type: ignore[no-untyped-def]
        """Tables without what does not matter."""
        _ = len(sources)
        for c in range(len(first)):
            size, whole = 1, True
            for i in range(first[c], last[c]):
                whole = whole and matters[i] != 0
                if matters[i]:
                    size *= span[inputs[i]]
            if whole:
                for key in range(sizes[c]):
                    new_table[new_base[c] + key] = table[base[c] + key]
                continue
            for key in range(size):
                rest, place, stride = key, 0, 1
                for i in range(first[c], last[c]):
                    radix = np.int64(span[inputs[i]])
                    if matters[i]:
                        place += rest % radix * stride
                        rest //= radix
                    stride *= radix
                new_table[new_base[c] + key] = table[base[c] + place]

    return compress


def _make_fill(sources: str):  # type: ignore[no-untyped-def]
    @numba.njit(cache=True)
    def fill_pieces(
        first, last, base, inputs, neuron_first, neuron_last, neurons, put, neuron_rows, rptr, rval, const, row_net, lo,
        span, room, level_of, levels, table,
    ):  # type: ignore[no-untyped-def]  # fmt: skip
        """Fill the tables of pieces by mixed radix, as far as all codes have a value."""
        _ = len(sources)
        code = np.zeros(len(lo), np.uint8)
        for c in range(len(first)):
            size = 1
            for i in range(first[c], last[c]):
                size *= room[inputs[i]]
            for key in range(size):
                rest, known = key, True
                for i in range(first[c], last[c]):
                    read = inputs[i]
                    code[read] = rest % room[read]
                    known = known and code[read] < span[read]
                    rest //= room[read]
                if known:
                    y, exact = sum_of_neurons(neurons, put, neuron_first[c], neuron_last[c], neuron_rows, rptr, rval,
                                              const, row_net, level_of, levels, code)  # fmt: skip
                    table[base[c] + key] = part_of(y, exact)

    return fill_pieces


def _make_guards(sources: str):  # type: ignore[no-untyped-def]
    @numba.njit(cache=True)
    def find_guards(first, last, base, inputs, room, table, unknown, inexact):  # type: ignore[no-untyped-def]
        """By input of tables by mixed radix: a code at which it leaves nothing to the others, or NO_GUARD."""
        _ = len(sources)
        found = np.full(len(inputs), NO_GUARD, np.uint8)
        for c in range(len(first)):
            size = 1
            for i in range(first[c], last[c]):
                size *= room[inputs[i]]
            stride = 1
            for i in range(first[c], last[c]):
                radix = np.int64(room[inputs[i]])
                for digit in range(radix if last[c] - first[c] > 1 else 0):
                    held = table[base[c] + digit * stride]
                    same = held != unknown and held != inexact
                    key = 0
                    while same and key < size:
                        same = (key // stride) % radix != digit or table[base[c] + key] == held
                        key += 1
                    if same:
                        found[i] = digit
                        break
                stride *= radix
        return found

    return find_guards


def guards(items: list[int], places: Array, pairs: list[list[tuple[int, int]]], room: Array, table: Array,
           unknown: int, inexact: int) -> list[tuple[int, int, int]]:  # fmt: skip
    """(item, net, code): an input that, at this code, leaves nothing to the item's others."""
    counts = np.array([len(inputs) for inputs in pairs], np.int64)
    ends = np.cumsum(counts)
    nets = np.array([net for inputs in pairs for net, _ in inputs], np.int32)
    found = find_guards(ends - counts, ends, places.astype(np.int64), nets, room, table, unknown, inexact)
    use = found != NO_GUARD
    numbers = np.repeat(np.array(items, np.int64), counts)
    return list(zip(numbers[use].tolist(), nets[use].tolist(), found[use].tolist(), strict=True))


def reduced(
    cones: list[Piece], net: Array, old: Array, lists: Array, neurons: Array, put: Array, p: Plan, row_net: Array,
    lo: Array, span: Array, room: Array, levels: Array,
) -> tuple[list[list[tuple[int, int]]], list[int], Array]:  # fmt: skip
    """By cone: the (net, multiplier) that matter, and its place in the table that is returned with them. ``lists``
    int [., 2]: its neurons; ``levels``: by net."""
    plain = np.array([cone.plain for cone in cones], bool)
    sizes = np.array([cone.size for cone in cones], np.int64)
    counts = np.array([len(cone.inputs) for cone in cones], np.int64)
    pairs = np.array([pair for cone in cones for pair in cone.inputs], np.int32).reshape(-1, 2)
    ends = np.cumsum(counts)
    table = np.full(int(sizes.sum()), UNKNOWN, np.uint8)
    base = np.cumsum(sizes) - sizes
    level_of = np.arange(len(lo), dtype=np.int32)
    matters = enumerate_cones(
        ends - counts, ends, net, old, base, plain, pairs[:, 0].copy(), lists[:, 0].copy(), lists[:, 1].copy(), neurons,
        put, p.neuron_rows, p.rows.rptr, p.rows.rval, p.rows.const, row_net, lo, span, room, level_of, levels, table,
    )  # fmt: skip
    kept: list[list[tuple[int, int]]] = []
    fresh = sizes.copy()
    for c, cone in enumerate(cones):
        flags = matters[ends[c] - counts[c] : ends[c]]
        if np.all(flags):
            kept.append(cone.inputs)
            continue
        factor, inputs = 1, []
        for (read, _), flag in zip(cone.inputs, flags.tolist(), strict=True):
            if flag:
                inputs.append((read, factor))
                factor *= int(span[read])
        kept.append(inputs)
        fresh[c] = factor
    new_base = np.cumsum(fresh) - fresh
    new_table = np.full(int(fresh.sum()), UNKNOWN, np.uint8)
    compress(ends - counts, ends, base, sizes, pairs[:, 0].copy(), span, matters, table, new_base, new_table)
    return kept, [int(place) + cone.start for place, cone in zip(new_base, cones, strict=True)], new_table


_SOURCES = sources()
enumerate_cones, compress = _make_enumerate(_SOURCES), _make_compress(_SOURCES)
fill_pieces, find_guards = _make_fill(_SOURCES), _make_guards(_SOURCES)
