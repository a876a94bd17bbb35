"""Every magnitude that the cast weights are made of, and the arithmetic behind them.

Anchors. A token carries a few constant dims whose squares add up to ``hidden * 4**SCALE_BITS``: RMSNorm then divides
by exactly ``2**SCALE_BITS``, and every 0/1 signal enters a layer as exactly ``2**-SCALE_BITS``. All weights below
that read signals are therefore multiplied by ``2**SCALE_BITS``; ``UNIT`` below always means "per unit of the signal's
own value".

Read-out. A memory row holds 64 equal values in 128 dims, so that the gated RMSNorm turns each of them into sqrt(2)
whatever the data. ``NORM_WEIGHT * READ_GATE * READ_WEIGHT * sqrt(2)`` is 1 - 2.7e-7 in exact arithmetic, found by
search over bfloat16 numbers (six bits for ``READ_GATE``, so that small multiples of it are still exact), and it is
exactly 1 after the roundings of a bfloat16 model, in each of the orders in which known engines round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SCALE_BITS = 16  # large enough that the signals' own energy does not show in float32 either
SCALE_UP = float(2**SCALE_BITS)

GATE = 64.0  # gate per unit of a neuron's argument: silu(64) = 64 to the last bit, silu(-32) = -4e-13
KEY = 2048.0  # key rows: half of it is the on-level, far above the l2norm's epsilon
BETA = 128.0  # sigmoid(128) = 1: a write replaces the row
VALUE = 1024.0  # a stored bit before the read scale
QUIET_VALUE = 256.0  # a stored bit in a head whose energy is one dominant pad ...
PAD_RATIO = float(2**14)  # ... that is larger by this factor
NO_DECAY_A_LOG = -80.0
WIPE_DT_BIAS = -128.0  # softplus(-128) = 0: a wipe head does not decay on its own, nor on text
WIPE_RATE = 188.0  # softplus(188 - 128) = 60: a wipe leaves 9e-27 of the old rows
GATHER_RATIO = float(2**22)  # a gather asks for its constant row this much louder than for its data
LOGIT = 64.0  # a wrong code bit costs this much
NORM_WEIGHT = 187 / 128
READ_GATE = 122.0
READ_WEIGHT = 130 / 2**15
READ_ERROR = 1.5e-6  # relative distance of a read from its exact value in float32, roundings included
HEAD_DIM = 128
RAIL = 64  # value dim of a column's complement = its own + RAIL


def to_bf16(values: Array | float) -> Array:
    """``values`` rounded to the nearest bfloat16 (ties to even), as float32."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


def is_bf16(values: Array) -> bool:
    """Whether every value is exactly a bfloat16 number."""
    return not bool((np.ascontiguousarray(values, np.float32).view(np.uint32) & 0xFFFF).any())


def anchors_for(hidden: int) -> tuple[float, ...]:
    """Amplitudes (largest first) whose squares sum to ``hidden * 4**SCALE_BITS``: one for each unit of a base-4
    digit."""
    amplitudes: list[float] = []
    power = 0
    while hidden:
        amplitudes += [2.0 ** (power + SCALE_BITS)] * (hidden % 4)
        hidden //= 4
        power += 1
    return tuple(reversed(amplitudes))
