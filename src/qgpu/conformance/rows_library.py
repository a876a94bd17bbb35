"""Rows for CUDA's integer functions, dynamic shared memory and cooperative groups."""

from __future__ import annotations

from qgpu.conformance.inputs import edges, pairs, rand, u32, words, zeros
from qgpu.conformance.table import row

_N = 20
_COUNTS = u32(0, 1, 5, 16, 31, 32, 33, 40, 64, 2**31, 2**32 - 1)

ROWS = [
    row("packed_arithmetic", "intrinsics", _N, *pairs(_N, "uint32"), zeros(5 * _N, "uint32"), _N),
    row("packed_comparisons", "intrinsics", _N, *pairs(_N, "uint32"), zeros(5 * _N, "uint32"), _N),
    row("dot_products_packed", "intrinsics", 12, words(12, 1, "int32"), words(12, 2, "int32"), edges(12), zeros(48),
        12),
    row("averages_and_distances", "intrinsics", 24, *pairs(24), zeros(120, "uint32"), 24),
    row("funnel_shifts", "intrinsics", 12, words(11, 1), words(11, 2), _COUNTS, zeros(44, "uint32"), 11),
    row("bits_of_doublewords", "intrinsics", 12, edges(12, 3, "uint64"), zeros(36, "uint32"), 12),
    row("find_nth_one", "intrinsics", 8, words(8, 1), zeros(16, "uint32"), 8),
    row("byte_permutes", "intrinsics", 12, words(12, 1), words(12, 2), zeros(12, "uint32"), 12),
    row("dynamic_shared", "intrinsics", 20, rand(20, 0, 99), zeros(20), 20, shared=160),
    row("groups_tiles", "groups", 40, rand(40, -9, 9), zeros(40)),
    row("groups_reduce", "groups", 64, rand(64, -99, 99), zeros(64), full=True),
    row("groups_ballot", "groups", 32, rand(32, -9, 9), zeros(32)),
]  # fmt: skip
