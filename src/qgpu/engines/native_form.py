"""Whether a network has the form of a netlist (RMSNorm is one number, keys and queries are of one token), and the
form in which the netlist has its readers."""

from __future__ import annotations

import numpy as np

from qgpu.engines.native_plan import Plan, pointers
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


def readers(fans: list[tuple[int, int]], nets: int, guards: list[tuple[int, int, int]], items: int) -> list[Array]:
    """Readers by net, as words of a bit mask over items; guards by item, those that most items read first."""
    net, item = np.unique(np.array(fans, np.int64).reshape(-1, 2), axis=0).T
    place, inverse = np.unique(net * 2**32 + item // 64, return_inverse=True)
    mask = np.zeros(len(place), np.uint64)
    np.bitwise_or.at(mask, inverse.reshape(-1), np.uint64(1) << (item % 64).astype(np.uint64))
    at, by, code = np.array(guards, np.int64).reshape(-1, 3).T
    order = np.lexsort((-np.bincount(net, minlength=nets)[by], at))
    at, by, code = at[order], by[order], code[order]
    return [
        pointers(place >> 32, nets), (place & 0xFFFFFFFF).astype(np.int32), mask, pointers(at, items),
        (by + (code << 16)).astype(np.uint32), np.searchsorted(place, by * 2**32 + at // 64).astype(np.int32),
    ]  # fmt: skip
