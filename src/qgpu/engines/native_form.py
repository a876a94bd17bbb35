"""Whether a network has the form of a netlist: RMSNorm is one number, and keys and queries are of one token."""

from __future__ import annotations

import numpy as np

from qgpu.engines.native_plan import Plan
from qgpu.engines.protocol import Array
from qgpu.foundry.network import Network


def boundaries(network: Network, plan: Plan) -> tuple[Array, Array]:
    """(lo, hi) for ``make_nets``."""
    lo = np.zeros((2 * plan.layers + 1, len(plan.dims)), np.float32)
    hi = np.ones_like(lo)
    if network.ranges:
        lo, hi = np.minimum(lo, network.ranges["lo"][:, plan.dims]), np.maximum(hi, network.ranges["hi"][:, plan.dims])
    return lo, hi


def eligible(p: Plan, lo: Array, hi: Array) -> bool:
    """Whether RMSNorm is one number for all tokens, and keys and queries are of this token."""
    most = np.maximum(np.abs(lo), np.abs(hi)) + 1
    most[:, p.base != 0] = 0
    energy = float(np.sum(p.base.astype(np.float64) ** 2))
    extra = float(np.max(np.sum(most.astype(np.float64) ** 2, axis=1)))
    same = np.float32((energy + extra) / p.hidden) == np.float32(energy / p.hidden)
    inverse = np.float32(1) / np.sqrt(np.float32(energy / p.hidden) + np.float32(p.eps))
    steady = energy > 0 and same and abs(inverse / np.float32(p.scale0) - 1) < 2.0**-10
    rates = p.cell_rows[:, 5]
    return bool(
        steady
        and np.all(p.plain)
        and not np.any(p.conv[:, :2, :, :3])
        and np.max(hi - lo) <= 200
        and np.all(p.rows.rptr[rates] == p.rows.rptr[rates + 1])
    )
