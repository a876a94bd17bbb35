"""Rows for control flow, and for what threads of a CTA do together."""

from __future__ import annotations

import numpy as np

from qgpu.conformance.inputs import edges, i32, pairs, rand, words, wrap, zeros
from qgpu.conformance.table import row

_X, _Y = pairs(24)
_DIVISORS = np.where(_Y == 0, np.int32(-3), _Y)
_DIVIDENDS = np.where((_X == -(2**31)) & (_DIVISORS == -1), np.int32(5), _X)
_HEADS = wrap([1, 0, 0, 1, 1, 0, 0, 0] * 4, "uint8")
_SORTED = np.sort(rand(20, 0, 99, 4))

ROWS = [
    row("predicated_keeps_old", "control", 24, edges(22), zeros(44), 22),
    row("predicated_memory", "control", 12, rand(8, 1, 99), zeros(12), 8),
    row("select_negated", "control", 24, edges(22), zeros(66), 22),
    row("predicates_combined", "control", 24, rand(24, 7, 13, 2), rand(24, -1, 13, 3), zeros(24, "uint32"), 24),
    row("immediates", "control", 24, edges(22), zeros(66, "uint32"), 22),
    row("loops_rolled_and_unrolled", "control", 8, edges(8, 13), zeros(24), 8),
    row("signed_and_unsigned", "control", 24, _DIVIDENDS, _DIVISORS, zeros(144, "uint32"), 24),
    row("division_by_constants", "control", 24, edges(22), zeros(88), 22),
    row("nested_branches", "control", 32, rand(30, -90, 90), zeros(30), 30),
    row("switch_cases", "control", 24, rand(20, -99, 99, 2), zeros(20), 20),
    row("break_and_continue", "control", 12, rand(10, 0, 30, 3), zeros(10), 10),
    row("short_circuit", "control", 16, rand(12, -3, 9, 3), zeros(16), 12),
    row("calls", "control", 12, edges(10, 3), zeros(10), 10),
    row("exit_before_barrier", "control", 40, rand(37, 0, 999), zeros(40), 37),
    row("barrier_on_both_ways", "control", 48, rand(48, 0, 999), zeros(48)),
    row("barrier_in_a_loop", "control", 36, rand(36, 0, 99), zeros(36), 3),
    row("barrier_while_some_leave", "control", 20, rand(20, 0, 99), zeros(20)),
    row("barrier_votes", "control", 40, rand(40, -3, 9, 2), zeros(120)),
    row("code_around_convergence", "control", 32, rand(32, -9, 9, 2), zeros(32)),
    row("trip_counts", "control", 12, rand(10, -2, 15, 3), zeros(10), 10),
    row("indices_3d", "control", (3, 2, 2), zeros(144, "uint32"), grid=(2, 3, 2)),
    row("grid_stride", "control", 5, edges(27), zeros(27), 27, grid=2),
    row("reduce_shared", "collective", 32, rand(80, -999, 999), zeros(3), 80, grid=3),
    row("reduce_two_steps", "collective", 64, edges(150), zeros(1), 150),
    row("reduce_minimum_place", "collective", 32, rand(50, -9, 99), zeros(2), 50),
    row("scan_hillis_steele", "collective", 32, rand(32, -99, 99), zeros(32)),
    row("scan_blelloch", "collective", 16, rand(32, -99, 99), zeros(32)),
    row("scan_of_warps", "collective", 128, rand(128, -99, 99), zeros(128), full=True),
    row("scan_segmented", "collective", 32, rand(32, -99, 99), _HEADS, zeros(32)),
    row("compact_by_ballot", "collective", 32, rand(32, -9, 9), zeros(32), zeros(1)),
    row("compact_by_scan", "collective", 32, rand(32, 0, 99), zeros(32), zeros(1)),
    row("sort_bitonic", "collective", 16, rand(16, -99, 99)),
    row("sort_bitonic_warp", "collective", 32, words(32, 4)),
    row("sort_odd_even", "collective", 8, rand(15, -99, 99), 15),
    row("sort_by_rank", "collective", 16, rand(14, 0, 9), zeros(14), 14),
    row("sort_insertion", "collective", 3, rand(21, -9, 9), 7),
    row("radix_pass", "collective", 32, words(32, 9), zeros(32, "uint32"), 8),
    row("merge_by_search", "collective", 24, np.sort(rand(10, 0, 30, 1)), np.sort(rand(10, 0, 30, 2)), zeros(20), 10),
    row("binary_search", "collective", 12, _SORTED, i32(*(int(x) for x in _SORTED[::3]), -5, 50, 200), zeros(10), 20,
        10),
    row("ring_buffer_rotate", "collective", 24, rand(20, 0, 99), 20, 7),
]  # fmt: skip
