"""The table itself: how much is in it, and that every row fits the machine."""

from __future__ import annotations

import pytest

from qgpu.conformance import inputs
from qgpu.conformance.table import KERNELS, table
from qgpu.isa import tokens

TABLE = table()


def test_there_are_enough_kernels() -> None:
    assert len({(row.file, row.kernel) for row in TABLE.values()}) >= 120


def test_every_kernel_of_the_files_has_a_row() -> None:
    used = {(row.file, row.kernel) for row in TABLE.values()}
    for path in KERNELS.glob("*.cu"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("__global__ void ") and "kernel(" not in line:
                name = line.removeprefix("__global__ void ").split("(")[0]
                assert (path.name, name) in used


@pytest.mark.parametrize("name", TABLE)
def test_a_row_fits_the_machine(name: str) -> None:
    row = TABLE[name]
    assert row.cta[0] * row.cta[1] * row.cta[2] <= tokens.THREADS_PER_CTA
    room = tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES - 64
    assert sum(array.nbytes + 48 for array in row.arrays) <= room
    assert len(row.arguments) <= 12


def test_numbers_are_the_same_everywhere() -> None:
    assert inputs.draws(3, 1) == [12756400, 215959981, 3678183188]
    assert inputs.edges(3, 20).tolist() == [-(2**31), -(2**31) + 1, 3]
    assert inputs.rand(1000, -3, 3).min() == -3 and inputs.rand(1000, -3, 3).max() == 3
