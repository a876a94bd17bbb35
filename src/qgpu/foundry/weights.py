"""Sparse tensors under construction, checked to be bfloat16 numbers when they are done."""

from __future__ import annotations

from typing import Any

import numpy as np

from .network import Sparse
from .numbers import is_bf16

Array = np.ndarray[Any, Any]


class SparseBuilder:
    """Collects entries of one matrix; entries at the same place add up."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._rows: list[int] = []
        self._cols: list[int] = []
        self._values: list[float] = []
        self._blocks: list[tuple[Array, Array, Array]] = []

    def add(self, row: int, col: int, value: float) -> None:
        self._rows.append(row)
        self._cols.append(col)
        self._values.append(value)

    def add_block(self, rows: Array, cols: Array, values: Array) -> None:
        """Many entries at once: three arrays of one length."""
        self._blocks.append((rows, cols, values))

    def done(self, name: str) -> Sparse:
        """The matrix, sorted, without zeros. ValueError if a value is not a bfloat16 number."""
        parts = [(np.array(self._rows, np.int64), np.array(self._cols, np.int64), np.array(self._values, np.float64))]
        parts += [(r.astype(np.int64), c.astype(np.int64), v.astype(np.float64)) for r, c, v in self._blocks]
        rows, cols, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        width = self.shape[1]
        keys, where = np.unique(rows * width + cols, return_inverse=True)
        sums = np.zeros(len(keys), np.float64)
        np.add.at(sums, where, values)
        keep = sums != 0
        keys, sums = keys[keep], sums[keep]
        if not is_bf16(sums) or np.any(sums.astype(np.float32) != sums):
            bad = sums[(sums.astype(np.float32).view(np.uint32) & 0xFFFF) != 0]
            raise ValueError(f"{name}: {bad[:3].tolist()} cannot be written in bfloat16")
        return Sparse(
            self.shape, (keys // width).astype(np.int32), (keys % width).astype(np.int32), sums.astype(np.float32)
        )
