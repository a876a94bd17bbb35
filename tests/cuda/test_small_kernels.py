"""Small kernels as people write them, on the machine's interpreter, against plain Python."""

import functools
import math

import numpy as np
import pytest
from tests.cuda.harness import OTHERS, kernel_from_file
from tests.cuda.on_machine import run_on_machine

from qgpu.cuda.evaluate import run as evaluate
from qgpu.cuda.lower import Options, lower
from qgpu.cuda.pipeline import CompiledKernel, compile_file
from qgpu.isa import subset, tokens

RANDOM = np.random.default_rng(5)
N = 13
A = RANDOM.integers(-50, 50, N).astype(np.int32)
VALUES = [int(x) for x in A]
ZEROS = np.zeros(N, np.int32)


@functools.cache
def kernel(name):
    return compile_file(OTHERS / "small.cu", name)


def result(name, arguments, grid, cta, which):
    """The array ``which`` after the launch, as a list; the same from both programs."""
    found = [run_on_machine(kernel(name), arguments, grid, cta, shaped=shaped) for shaped in (False, True)]
    for run in found:
        assert run.fault is None
        assert run.written[-1] == tokens.encode("HALT")
    lists = [[int(x) for x in run.arrays[which].reshape(-1)] for run in found]
    assert lists[0] == lists[1]
    return lists[0]


@pytest.mark.parametrize(("grid", "cta"), [(1, 16), (4, 4), (5, 3)])
def test_stencil_reads_nothing_beside_the_array(grid, cta):
    padded = [0, *VALUES, 0]
    expected = [padded[i] + 2 * padded[i + 1] + padded[i + 2] for i in range(N)]
    assert result("stencil", (A, ZEROS, N), grid, cta, 1) == expected


@pytest.mark.parametrize("cta", [1, 3, 8])
def test_count(cta):
    values = np.array([1, 7, 7, -2, 7, 0, 7, 1, 1], np.int32)
    assert result("count", (values, np.zeros(1, np.int32), 7, 9), 1, cta, 1) == [4]


def test_gcd():
    a = RANDOM.integers(1, 40, 7).astype(np.int32)
    b = RANDOM.integers(1, 40, 7).astype(np.int32)
    expected = [math.gcd(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert result("gcd", (a, b, np.zeros(7, np.int32), 7), 2, 5, 2) == expected


@pytest.mark.parametrize(("m", "n", "grid", "cta"), [(1, 1, 1, 1), (3, 2, (1, 1), (4, 4)), (2, 5, (3, 2), (2, 1))])
def test_transpose(m, n, grid, cta):
    a = RANDOM.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
    assert result("transpose", (a, np.zeros((n, m), np.int32), m, n), grid, cta, 1) == [int(x) for x in a.T.reshape(-1)]


def test_histogram():
    expected = [sum(x & 15 == bin for x in VALUES) for bin in range(16)]
    assert result("histogram", (A, np.zeros(16, np.int32), N), 4, 4, 1) == expected


def test_relu():
    assert result("relu", (A, N), 2, 8, 0) == [max(x, 0) for x in VALUES]


def test_prefix_sums():
    assert result("prefix", (A, ZEROS, N), 1, N, 1) == [sum(VALUES[: i + 1]) for i in range(N)]


@pytest.mark.parametrize("n", [0, 1, 50])
def test_fibonacci(n):
    expected, a, b = [], 0, 1
    for _ in range(n):
        expected.append(a)
        a, b = b, (a + b) % 2**32
    found = result("fib", (np.full(50, 5, np.uint32), n), 1, 1, 0)
    assert found[:n] == expected and set(found[n:]) <= {5}


def test_square():
    assert result("square", (A, ZEROS), 1, N, 1) == [x * x for x in VALUES]


def test_maximum():
    assert result("maxval", (A, np.zeros(1, np.int32), N), 1, 1, 1) == [max(VALUES)]


def test_life():
    w, h = 5, 4
    board = RANDOM.integers(0, 2, (h, w)).astype(np.int32)

    def alive(x, y):
        around = [(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy]
        n = sum(int(board[v, u]) for u, v in around if 0 <= u < w and 0 <= v < h)
        return int(n == 3 or (n == 2 and board[y, x] == 1))

    expected = [alive(x, y) for y in range(h) for x in range(w)]
    assert result("life", (board, np.zeros((h, w), np.int32), w, h), 1, (w, h), 1) == expected


def test_sieve():
    found = result("sieve", (np.zeros(60, np.int32), 60), 1, 3, 0)
    assert [n for n in range(2, 60) if not found[n]] == [n for n in range(2, 60) if all(n % d for d in range(2, n))]


def test_bubble_sort():
    values = A[:6]
    assert result("bubble", (values, 6), 1, 1, 0) == sorted(int(x) for x in values)


def test_horner():
    c, x = [3, -1, 4, 2], [-2, 0, 1, 5, 9]
    expected = [((3 * t - 1) * t + 4) * t + 2 for t in x]
    arguments = (np.array(c, np.int32), np.array(x, np.int32), np.zeros(5, np.int32), 4)
    assert result("horner", arguments, 1, 5, 2) == expected


SHARED = tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES


@pytest.mark.parametrize("name", ["collatz", "sides", "shared_sum"])
def test_what_needs_the_whole_machine(name):
    """Shifts, barriers and shared memory, which circuits may not have yet: lowered for the whole contract."""
    function = kernel_from_file(OTHERS / f"{name}.cu", name)[1]
    addresses = {variable.name: SHARED + 16 * k for k, variable in enumerate(function.variables)}
    program = lower(function, Options(subset.REVISED, frozenset(), addresses)).program
    compiled = CompiledKernel(name, program, function.parameters, (), None, function, "")
    starts = np.array([1, 2, 3, 6, 7, 27, 9, 1, 97], np.int32)
    out = np.zeros(1 if name == "shared_sum" else 9, np.int32)
    found = run_on_machine(compiled, (starts, out, 9), 2, 6, shaped=False, shared=64)
    assert found.fault is None
    memory = bytearray(64) + starts.tobytes() + out.tobytes()
    parameters = b"".join(value.to_bytes(4, "little") for value in (64, 64 + starts.nbytes, 9))
    evaluate(function, parameters, memory, (2,), (6,))
    assert found.arrays[1].tobytes() == bytes(memory[-out.nbytes :])
