"""Launches of the kernels that come with qgpu."""

from __future__ import annotations

from qgpu.conformance.inputs import edges, i32, rand, zeros
from qgpu.conformance.table import Row, row

_A, _B = edges(10), edges(10, 3)


def _matmul(m: int, n: int, k: int, cta: tuple[int, int], grid: tuple[int, int] = (1, 1)) -> Row:
    a, b = rand(m * k, -(2**31), 2**31 - 1, 1), rand(k * n, -99, 99, 2)
    return row(f"matmul {m}x{k}x{n}", "matmul", cta, a, b, zeros(m * n), m, n, k, grid=grid)


ROWS = [
    row("dot", "dot", 3, i32(1, 2, 3), i32(4, 5, 6), zeros(1), 3),
    row("dot of two CTAs", "dot", 4, edges(7), edges(7, 3), i32(5), 7, grid=2),
    row("saxpy", "saxpy", 10, -77777, _A, _B, 10),
    *(row(name, name, 4, _A, _B, zeros(10), 10, grid=3) for name in ("vector_add", "vector_sub", "vector_mul")),
    *(row(name, name, 8, _A, 40000, zeros(10), 10, grid=2) for name in ("scalar_add", "scalar_mul")),
    row("scalar_sub", "scalar_sub", 8, 40000, _A, zeros(10), 10, grid=2),
    row("matvec", "matvec", 5, edges(20), rand(4, -9, 9), zeros(5), 5, 4),
    _matmul(2, 2, 2, (2, 2)),
    _matmul(3, 3, 3, (3, 3)),
    _matmul(4, 5, 3, (4, 2), (2, 2)),
    row("divergent", "divergent", 10, _A, zeros(10), 10),
    row("trips", "trips", 6, i32(0, 1, 15, 16, 50, 99), i32(*[-1] * 6), 6),
    row("atomic_sum", "atomic_sum", 2, _A, zeros(1), 10, grid=3),
]
