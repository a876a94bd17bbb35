"""Rows and neurons evaluated from codes, compiled. See ``native_nets`` for nets and codes."""

from __future__ import annotations

import numpy as np

from qgpu.engines.native_math import F32, compiled, inlined, mlp_value, rounded
from qgpu.engines.native_plan import FLUSH
from qgpu.engines.native_units import SILENT

NET_MASK, FOLLOWED = 0x7FFF, 0x8000  # of an input
MISSING, INEXACT = 127, -128  # in the table of a piece: not evaluated yet; no whole number
ONE, TWO, THREE, FOUR = (np.uint64(n) for n in (1, 2, 3, 4))
GRID = 1024  # sums of multiples of 1 / GRID are exact in any order


@inlined
def code_of(lo, span, room, level_of, levels, met, net, value):  # type: ignore[no-untyped-def]
    """-1 where there is none."""
    low, size = np.int64(lo[net]), np.int64(span[net])
    shifted = value - F32(low)
    if F32(0) <= shifted and shifted < F32(size):
        code = np.int64(shifted)
        if F32(code) == shifted:
            return code
    if room[net] == size or not (abs(value) <= F32(max(-low, low + size - 1) + 1)):
        return np.int64(-1)
    row = level_of[net]
    for code in range(size, np.int64(met[row])):
        if levels[row, code] == value:
            return np.int64(code)
    code = np.int64(met[row])
    if code >= room[net]:
        return np.int64(-1)
    levels[row, code] = value
    met[row] += 1
    return np.int64(code)


@inlined
def looked_up(inputs, quad, code):  # type: ignore[no-untyped-def]
    """Codes times multipliers: where in its table something stands. Each quad of inputs says whether another follows,
    so that this is no counted loop: as one it would be vectorised, for four inputs that is slower."""
    i = np.uint64(quad) << np.uint64(2)
    place = np.int64(0)
    while True:
        a, b, c, d = inputs[i], inputs[i + ONE], inputs[i + TWO], inputs[i + THREE]
        place += ((a >> 16) * code[a & NET_MASK] + (b >> 16) * code[b & NET_MASK]) + (
            (c >> 16) * code[c & NET_MASK] + (d >> 16) * code[d & NET_MASK]
        )
        if d & FOLLOWED == 0:
            return place
        i += FOUR


@compiled
def row_value(rptr, rval, const, row_net, level_of, levels, code, row):  # type: ignore[no-untyped-def]
    """Pre-activation of a row, this token's inputs."""
    total = F32(0)
    for e in range(rptr[row], rptr[row + 1]):
        net = row_net[e]
        total += rval[e] * levels[level_of[net], code[net]]
    return F32(total + const[row])


@compiled
def sum_of_neurons(neurons, put, first, last, neuron_rows, rptr, rval, const, row_net, level_of, levels, code):
    # type: ignore[no-untyped-def]
    """What they add to their dim; whether sums of that are exact in any order."""
    y = F32(0)
    exact = True
    for i in range(first, last):
        neuron = neurons[i]
        gate = rounded(row_value(rptr, rval, const, row_net, level_of, levels, code, neuron_rows[neuron, 0]), True)
        if gate <= F32(SILENT) or gate == 0:
            continue
        up = rounded(row_value(rptr, rval, const, row_net, level_of, levels, code, neuron_rows[neuron, 1]), True)
        part = put[i] * mlp_value(gate, up, True)
        scaled = part * F32(GRID)
        exact = exact and abs(scaled) < F32(1 << 17) and F32(np.int32(scaled)) == scaled
        y += part
    return y, exact


@inlined
def settled(held, y):  # type: ignore[no-untyped-def]
    """The residual after ``y`` is added."""
    new = rounded(held + rounded(y, True), True)
    if abs(new) < F32(FLUSH):
        return F32(0)
    return new


@inlined
def part_of(y, exact):  # type: ignore[no-untyped-def]
    """What a piece adds, as its table has it."""
    if exact and abs(y) < F32(MISSING) and F32(np.int32(y)) == y:
        return np.int8(np.int32(y))
    return np.int8(INEXACT)
