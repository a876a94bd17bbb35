"""The best id for the residual that a token leaves, compiled; ``native_head`` makes the tables for it."""

from __future__ import annotations

from math import sqrt

import numpy as np

from qgpu.engines.native_math import F32, compiled, rounded


@compiled
def logit(h, scaled, shift, token):  # type: ignore[no-untyped-def]
    total = shift
    codes = h.codes
    for j in range(codes.shape[1]):
        total += np.float64(codes[token, j]) * scaled[j]
    return total


@compiled
def argmax(p, m, bf):  # type: ignore[no-untyped-def]
    """The id with the largest logit, the lowest of equal ones; logits are summed in float64."""
    h = p.head
    dims, mix, table, odd = h.dims, h.mix, h.table, h.odd
    scales, offsets, norms = h.scales, h.offsets, p.norms
    inverse = F32(F32(1) / F32(sqrt(F32(m.energy[0] / p.hidden) + F32(p.eps))))
    scaled = m.scaled
    shift = np.float64(0)
    for j in range(len(dims)):
        v = np.float64(rounded(m.x[dims[j]] * inverse * norms[2 * p.layers, dims[j]], bf))
        scaled[j] = v * scales[j]
        shift += v * offsets[j]
    width = len(mix)
    if width:
        pattern = 0
        clear = True
        for b in range(width):
            total = np.float64(0)
            for j in range(len(dims)):
                total += mix[b, j] * scaled[j]
            if total > 0:
                pattern |= 1 << b
            elif total == 0:
                clear = False
        best = table[pattern]
        if clear and best >= 0:
            if len(odd):
                top = logit(h, scaled, shift, best)
                for n in range(len(odd)):
                    value = logit(h, scaled, shift, odd[n])
                    if value > top or (value == top and odd[n] < best):
                        best, top = odd[n], value
            return np.int64(best)
    best, top = 0, logit(h, scaled, shift, 0)
    for token in range(1, len(h.codes)):
        value = logit(h, scaled, shift, token)
        if value > top:
            best, top = token, value
    return np.int64(best)
