"""What a head stores for a signal that is 0 or 1: value rows of one input and one tap, evaluated for both cases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qgpu.engines.native_plan import Plan
from qgpu.engines.protocol import Array

GENERAL = -1


class Values(NamedTuple):
    """By value row, [C, 128]."""

    tap: Array  # int8: which of the last four tokens is read (3 is this one); GENERAL where the row has another form
    dim: Array  # int32: the input; -1 where there is none
    off: Array  # float32: the stored value where the input is 0
    on: Array  # float32: where it is 1


def _rounded(values: Array, bf: bool) -> Array:
    values = values.astype(np.float32)
    if not bf:
        return values
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def make_values(p: Plan, bf: bool) -> Values:
    rows = p.rows
    row = p.cell_rows[:, 2][:, None] + np.arange(p.conv.shape[2])
    taps = p.conv[:, 2]  # [C, 128, 4]
    inputs = rows.rptr[row + 1] - rows.rptr[row]
    count = np.count_nonzero(taps, axis=2)
    simple = (inputs <= 1) & (count <= 1)
    entry = np.minimum(rows.rptr[row], max(0, len(rows.rdim) - 1))
    has = inputs == 1
    none = np.zeros(1, np.float32)
    dims, weights = (rows.rdim, rows.rval) if len(rows.rdim) else (none.astype(np.int32), none)
    tap = np.where(count == 0, 3, np.argmax(taps != 0, axis=2))
    scale = np.take_along_axis(taps, tap[..., None], 2)[..., 0]

    def stored(pre: Array) -> Array:
        total = _rounded(scale * _rounded(pre, bf), bf).astype(np.float64)
        return _rounded(total / (1 + np.exp(-np.clip(total, -88, 88))) * (total > -88), bf)

    const = rows.const[row]
    return Values(
        np.where(simple, tap, GENERAL).astype(np.int8), np.where(has & (count > 0), dims[entry], -1).astype(np.int32),
        stored(const), stored(const + np.where(has, weights[entry], 0)),
    )  # fmt: skip
