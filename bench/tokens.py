"""How many tokens the stock kernels take: tokens after the prompt by kind, and tokens a lane-instruction.

``any``: tokens of the program that runs launches of every shape; the other columns are of the one for this shape.

Counts of the interpreter, which every engine reproduces token by token.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.cuda.on_machine import run_on_machine  # noqa: E402

from qgpu.cuda.pipeline import compile_file  # noqa: E402
from qgpu.errors import UnsupportedError  # noqa: E402

RANDOM = np.random.default_rng(1)


def small(*shape: int) -> np.ndarray:
    return RANDOM.integers(-9, 10, shape).astype(np.int32)


def wide(*shape: int) -> np.ndarray:
    return RANDOM.integers(-(2**31), 2**31, shape).astype(np.int32)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


CASES = [
    ("dot", "3", (np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32), zeros(1), 3), 1, 3),
    ("dot", "32", (small(32), small(32), zeros(1), 32), 1, 32),
    ("vector_add", "32, small", (small(32), small(32), zeros(32), 32), 1, 32),
    ("vector_add", "32, wide", (wide(32), wide(32), zeros(32), 32), 1, 32),
    ("vector_add", "96 in 3 CTAs", (small(96), small(96), zeros(96), 96), 3, 32),
    ("vector_sub", "32", (small(32), small(32), zeros(32), 32), 1, 32),
    ("vector_mul", "32", (small(32), small(32), zeros(32), 32), 1, 32),
    ("scalar_add", "32", (small(32), 5, zeros(32), 32), 1, 32),
    ("scalar_sub", "32", (5, small(32), zeros(32), 32), 1, 32),
    ("scalar_mul", "32", (small(32), 5, zeros(32), 32), 1, 32),
    ("saxpy", "32", (3, small(32), small(32), 32), 1, 32),
    ("matvec", "8 x 8", (small(8, 8), small(8), zeros(8), 8, 8), 1, 8),
    ("matmul", "4 x 4 x 4", (small(4, 4), small(4, 4), zeros(4, 4), 4, 4, 4), 1, (4, 4)),
    ("divergent", "32", (small(32), zeros(32), 32), 1, 32),
    ("trips", "32", (np.arange(1, 33, dtype=np.int32), zeros(32), 32), 1, 32),
    ("atomic_sum", "64 in 2 x 16", (small(64), zeros(1), 64), 2, 16),
]


KINDS = [("EXEC",), ("DATA",), ("VAL", "VALW"), ("MEM",), ("MASK",)]


def row(cells: Sequence[object]) -> None:
    print("".join(str(cell).ljust(14) if k < 2 else str(cell).rjust(8) for k, cell in enumerate(cells[:-2])), end="")
    print("".join(str(cell).rjust(13) for cell in cells[-2:]))


def main() -> None:
    row(("kernel", "size", "any", "tokens", "EXEC", "DATA", "VAL", "MEM", "MASK", "lane-instr.", "each"))
    for name, size, arguments, grid, cta in CASES:
        try:
            kernel = compile_file(ROOT / "kernels" / f"{name}.cu", name)
        except UnsupportedError as error:
            print(f"{name.ljust(12)}  {str(error).splitlines()[0]}")
            continue
        result = run_on_machine(kernel, arguments, grid, cta)
        assert result.fault is None, result.fault
        general = run_on_machine(kernel, arguments, grid, cta, shaped=False).statistics.total
        kinds, total = result.statistics.tokens, result.statistics.total
        lanes = result.statistics.lane_instructions
        counts = [sum(kinds.get(kind, 0) for kind in kind_pair) for kind_pair in KINDS]
        row((name, size, general, total, *counts, lanes, f"{total / lanes:.2f}"))


if __name__ == "__main__":
    main()
