"""Rows for warp-wide operations, all over at least one full warp unless the row is about one that is not full."""

from __future__ import annotations

import numpy as np

from qgpu.conformance.inputs import edges, filled, rand, words, zeros
from qgpu.conformance.table import Row, row

_SMALL = rand(32, -9, 9, 3)
_ANY = words(32, 5, "uint32")


def _warp(name: str, outputs: int = 1, dtype: str = "int32") -> Row:
    return row(name, "warps", 32, words(32, 5, dtype), zeros(32 * outputs, dtype))


ROWS = [
    row("shuffle_idx", "warps", 32, _ANY, zeros(32, "uint32")),
    row("shuffle_idx of three warps", "warps", 96, words(96, 6), zeros(96, "uint32")),
    row("shuffle_broadcast", "warps", 32, _ANY, zeros(32, "uint32")),
    _warp("shuffle_up_down"),
    _warp("shuffle_xor"),
    _warp("shuffle_width", 4),
    _warp("shuffle_source_modulo", 3),
    row("shuffle_range", "warps", 32, _ANY, zeros(64, "uint32")),
    _warp("shuffle_members"),
    row("shuffle_after_divergence", "warps", 32, rand(32, 0, 99, 8), zeros(32)),
    row("shuffle_after_loops", "warps", 32, rand(32, 0, 99, 9), zeros(32)),
    _warp("shuffle_64", dtype="int64"),
    row("shuffle_partial_warp", "warps", 20, rand(20, -50, 50, 2), zeros(20), 20),
    row("warp_sum", "warps", 64, edges(64), zeros(64)),
    row("warp_scan", "warps", 64, rand(64, -1000, 1000, 4), zeros(64)),
    row("warp_argmax", "warps", 96, rand(96, -20, 20, 7), zeros(6)),
    _warp("warp_reverse_bits_of_index"),
    row("votes", "warps", 32, _SMALL, zeros(96, "uint32")),
    row("vote_members", "warps", 32, _SMALL, zeros(32, "uint32")),
    row("vote_after_exit", "warps", 64, rand(64, -4, 9, 3), zeros(64, "uint32")),
    row("vote_uniform", "warps", 64, np.concatenate([rand(32, -4, 9, 3), rand(32, 1, 9, 3)]), zeros(64, "uint32")),
    row("match_any", "warps", 32, rand(32, 0, 4, 6), zeros(32, "uint32")),
    row("match_all", "warps", 64, np.concatenate([rand(32, 0, 1, 6), filled(32, -7)]), zeros(192, "uint32")),
    row("match_64", "warps", 32, rand(32, 0, 3, 6, "int64") * (2**32 + 1) % (2**33), zeros(32, "uint32")),
    row("redux", "redux", 32, edges(32, 4), zeros(128, "uint32")),
    row("redux_members", "redux", 32, edges(32, 6), zeros(32)),
    row("aggregated_count", "warps", 64, rand(64, 0, 30, 5), zeros(1), 50),
    row("warp_barrier_exchange", "warps", 64, rand(64, -99, 99, 5), zeros(64)),
    row("warp_barriers_of_sides", "warps", 32, rand(32, -99, 99, 6), zeros(32)),
    row("lane_masks", "warps", 48, zeros(288, "uint32")),
]
