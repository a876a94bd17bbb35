"""The oracle: it knows CUDA's rules, refuses what has no one result, and the stored results are its own."""

from __future__ import annotations

import base64
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from qgpu.conformance.inputs import i32, zeros
from qgpu.conformance.oracle import OracleError, entry, expected, oracle, stored
from qgpu.conformance.table import Row, key_of, source_text, table

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fibres are there for System V machines")
TABLE = table()
SAMPLE = ("divergent", "ins_bfe", "ins64_div", "shuffle_range", "atomic_contended", "last_block_sums")


def made(tmp_path: Path, body: str, threads: int, *arguments: np.ndarray | int, grid: int = 1) -> Row:
    path = tmp_path / "test.cu"
    path.write_text(body)
    source_text.cache_clear()
    return Row("test", str(path), "test", (grid, 1, 1), (threads, 1, 1), arguments)


@pytest.mark.parametrize("name", SAMPLE)
def test_stored_results_are_the_oracles(name: str) -> None:
    row = TABLE[name]
    assert entry(row, oracle(row)) == stored()[name]


@pytest.mark.full
def test_all_stored_results_are_the_oracles() -> None:
    for row in TABLE.values():
        assert entry(row, oracle(row)) == stored()[row.name]


def test_every_row_has_a_fresh_result() -> None:
    assert list(stored()) == list(TABLE)
    for row in TABLE.values():
        assert stored()[row.name]["key"] == key_of(row), "run python -m qgpu.conformance.oracle --write"


def test_every_row_changes_something() -> None:
    assert [name for name in TABLE if not stored()[name]["arrays"]] == []


EXACT = {
    "dot": lambda a, b, *rest: [a @ b],
    "matvec": lambda a, b, *rest: a.reshape(5, 4) @ b,
    "vector_sub": lambda a, b, *rest: a - b,
}


@pytest.mark.parametrize("name", EXACT)
def test_sums_are_numpys(name: str) -> None:
    exact = EXACT[name](*(array.astype(object) for array in TABLE[name].arrays))
    assert [int(x) % 2**32 for x in exact] == [int(x) % 2**32 for x in expected(TABLE[name])[2]]


def test_well_known_results() -> None:
    """Where Python's library or the books know the answer."""
    words = ["the", " ", "quick", " brown ", ""]
    assert expected(TABLE["crc32_bits"])[2].tolist() == [zlib.crc32(word.encode()) for word in words]
    line = b"the quick brown fox "
    assert expected(TABLE["adler_32"])[1].tolist() == [zlib.adler32(line[: 20 - i]) for i in range(4)]
    encoded = base64.b64encode(TABLE["base64"].arrays[0].tobytes())
    assert expected(TABLE["base64"])[1].tobytes() == encoded
    assert expected(TABLE["n_queens"])[1].tolist() == [10]
    assert expected(TABLE["edit_distance"])[2].tolist() == [8]
    assert expected(TABLE["power_modulo"])[2].tolist() == [
        pow(base, exponent, 4294967291) for base, exponent in ((2, 10), (123456789, 5), (65537, 3))
    ]
    assert np.flatnonzero(expected(TABLE["sieve"])[0][2:] == 0)[:10].tolist() == [0, 1, 3, 5, 9, 11, 15, 17, 21, 27]
    array = TABLE["sort_bitonic_warp"].arrays[0]
    assert expected(TABLE["sort_bitonic_warp"])[0].tolist() == sorted(array.tolist())


def test_barriers_and_shared_memory(tmp_path: Path) -> None:
    row = made(tmp_path, """
        __global__ void test(const int* a, int* out) {
          __shared__ int kept[8];
          kept[threadIdx.x] = a[threadIdx.x];
          __syncthreads();
          out[threadIdx.x] = kept[7 - threadIdx.x];
        }""", 8, i32(*range(8)), zeros(8))  # fmt: skip
    assert oracle(row)[1].tolist() == list(range(7, -1, -1))


REFUSED = {
    "racy": "__global__ void test(int* a) { a[0] = threadIdx.x; }",
    "racy: array 0 at 0": "__global__ void test(int* a) { __shared__ int x; if (threadIdx.x == 0) a[0] = x; }",
    "racy: array 0": "__global__ void test(int* a) { int x = __shfl_sync(threadIdx.x < 2 ? 3u : 12u, 5, 0);"
    " a[threadIdx.x] = x; }",
    "wait for each other": "__global__ void test(int* a) { if (threadIdx.x) __syncwarp(15); else __syncthreads(); }",
    "not in its own member mask": "__global__ void test(int* a) { a[0] = __ballot_sync(14u, 1); }",
    "undefined behaviour": "__global__ void test(int* a) { a[0] = 1 << (a[1] + 32); }",
    "writes beside": "__global__ void test(int* a) { a[2] = 1; }",
    "it traps": "__global__ void test(int* a) { if (threadIdx.x == 3) __trap(); }",
    "does not compile": "__global__ void test(int* a) { a[0] = undefined_name; }",
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_has_no_one_result_is_refused(fault: str, tmp_path: Path) -> None:
    with pytest.raises(OracleError, match=fault):
        oracle(made(tmp_path, REFUSED[fault], 4, zeros(4 if "array 0" in fault and "at" not in fault else 2)))


def test_a_changed_row_has_no_result(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="oracle --write"):
        expected(made(tmp_path, "", 1, zeros(1)))
