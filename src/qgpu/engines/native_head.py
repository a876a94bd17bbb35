"""The output head as a table: which id has the best logit, found from the signs of a few sums instead of all rows.

A head's columns hold small integer codes. Where every column is an affine function of a few two-valued *bits* of the id
(checked for every id), a logit is a constant plus, for each bit that is on, a weight that depends on the final hidden
state alone. The best pattern takes the bits with positive weight; if an id has just that pattern, it is the argmax,
whatever the weights. Ids that do not follow the columns' form are *odd*, and are compared one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qgpu.engines.protocol import Array
from qgpu.foundry.network import Lookup

MAX_BITS = 20  # widest pattern that gets a direct table
MAX_ODD_IDS = 256  # ids that may miss the form before the table is given up


class HeadPlan(NamedTuple):
    """V: vocabulary, J: columns, U: bits; U is 0 where the head has no such form and every row must be computed."""

    dims: Array  # int32 [J]
    codes: Array  # int8 [V, J]
    scales: Array  # float32 [J]
    offsets: Array  # float32 [J]
    mix: Array  # float32 [U, J]: what bit u adds to the code of column j
    table: Array  # int32 [2**U]: the lowest id of each pattern, -1 where there is none
    odd: Array  # int32: ids outside the form


def lookup_values(table: Lookup, column: int) -> Array:
    """Float32 [vocabulary] of one column."""
    return np.asarray(table.codes[:, column].astype(np.float32) * table.scales[column] + table.offsets[column])


def _bits(codes: Array) -> tuple[list[Array], Array]:
    """The distinct two-valued columns as bool [V], and which ids hold a third code in a column of two main codes."""
    bits: list[Array] = []
    seen: set[bytes] = set()
    odd = np.zeros(len(codes), bool)
    for j in range(codes.shape[1]):
        values, counts = np.unique(codes[:, j], return_counts=True)
        if len(values) < 2 or np.sort(counts)[:-2].sum() > MAX_ODD_IDS:
            continue
        low, high = np.sort(values[np.argsort(-counts, kind="stable")[:2]])
        bit = codes[:, j] == high
        odd |= ~bit & (codes[:, j] != low)
        if bit.tobytes() not in seen:
            seen |= {bit.tobytes(), (~bit).tobytes()}
            bits.append(bit)
    return bits, odd


def make_head(head: Lookup, remap: Array) -> HeadPlan:
    """``remap``: live dim of a residual dim."""
    width = len(head.dims)
    codes = np.ascontiguousarray(head.codes, np.int8)
    none = np.zeros(0, np.int32)
    plain = HeadPlan(
        remap[head.dims].astype(np.int32), codes, head.scales.astype(np.float32), head.offsets.astype(np.float32),
        np.zeros((0, width), np.float32), none, none,
    )  # fmt: skip
    bits, odd = _bits(codes)
    if not 0 < len(bits) <= MAX_BITS:
        return plain
    inputs = np.column_stack([np.ones(len(codes)), *bits])
    regular = np.flatnonzero(~odd)
    sample = np.random.default_rng(0).permutation(regular)[:4096]  # a regular step would miss the low bits
    solved = np.linalg.lstsq(inputs[sample], codes[sample].astype(np.float64), rcond=None)[0]
    solved = np.round(solved * 2) / 2
    odd |= np.any(inputs @ solved != codes, axis=1)
    if odd.sum() > MAX_ODD_IDS:
        return plain
    table = np.full(1 << len(bits), -1, np.int32)
    pattern = sum(bit.astype(np.int64) << u for u, bit in enumerate(bits))
    descending = np.flatnonzero(~odd)[::-1]  # the lowest id of equal ones is written last
    table[np.asarray(pattern)[descending]] = descending
    return plain._replace(mix=solved[1:].astype(np.float32), table=table, odd=np.flatnonzero(odd).astype(np.int32))
