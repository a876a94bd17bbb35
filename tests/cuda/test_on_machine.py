"""Every stock kernel, compiled to machine blocks and run on the interpreter, against plain Python."""

import functools
import math

import numpy as np
import pytest
from tests.cuda.harness import KERNELS, NVRTC
from tests.cuda.on_machine import run_on_machine

from qgpu.cuda.pipeline import compile_file, compile_source
from qgpu.isa import subset, tokens

RANDOM = np.random.default_rng(11)
SIZES = [  # elements, grid, CTA: part of a quad, whole quads, several, several CTAs, threads without an element
    (1, 1, 1),
    (3, 1, 3),
    (4, 1, 4),
    (7, 1, 7),
    (11, 1, 32),
    (11, 3, 4),
    (30, 2, 15),
    (40, 1, (10, 2, 2)),
]


def integers(*shape):
    """Half of them small, since forms of tokens differ by size."""
    narrow = RANDOM.integers(-99, 100, shape)
    return np.where(RANDOM.integers(0, 2, shape) == 1, narrow, RANDOM.integers(-(2**31), 2**31, shape)).astype(np.int32)


def wrap(value):
    return (int(value) + 2**31) % 2**32 - 2**31


def wrapped(values):
    return np.array([wrap(value) for value in values], np.int32)


def plain(array):
    return [int(value) for value in array.reshape(-1)]


@functools.cache
def kernel(name):
    return compile_file(KERNELS / f"{name}.cu")


def both(name, arguments, grid=1, cta=1):
    """The arrays after the launch, the same from the program for all shapes and from the one for this shape."""
    results = [run_on_machine(kernel(name), arguments, grid, cta, shaped=shaped) for shaped in (False, True)]
    for result in results:
        assert result.fault is None
        assert result.written[-1] == tokens.encode("HALT")
    for general, shaped in zip(results[0].arrays, results[1].arrays, strict=True):
        assert (general == shaped).all()
    return results[1].arrays


ELEMENTWISE = [
    ("vector_add", 2, 0, lambda a, b, s: a + b),
    ("vector_sub", 2, 0, lambda a, b, s: a - b),
    ("vector_mul", 2, 0, lambda a, b, s: a * b),
    ("scalar_add", 1, 1, lambda a, b, s: a + s),
    ("scalar_mul", 1, 1, lambda a, b, s: a * s),
]


@pytest.mark.parametrize(("n", "grid", "cta"), SIZES[:-1])
@pytest.mark.parametrize(("name", "arrays", "scalars", "operation"), ELEMENTWISE, ids=[row[0] for row in ELEMENTWISE])
def test_elementwise(name, arrays, scalars, operation, n, grid, cta):
    a, b, scalar = integers(n), integers(n), int(integers(1)[0])
    inputs = [a, b][:arrays]
    got = both(name, (*inputs, *[scalar][:scalars], np.zeros(n, np.int32), n), grid, cta)
    expected = wrapped(operation(x, y, scalar) for x, y in zip(plain(a), plain(b), strict=True))
    assert (got[-1] == expected).all()
    for before, after in zip(inputs, got, strict=False):
        assert (before == after).all()


@pytest.mark.parametrize(("n", "grid", "cta"), SIZES[:-1])
def test_scalar_sub_and_saxpy(n, grid, cta):
    a, y, scalar = integers(n), integers(n), int(integers(1)[0])
    got = both("scalar_sub", (scalar, a, np.zeros(n, np.int32), n), grid, cta)
    assert (got[1] == wrapped(scalar - x for x in plain(a))).all()
    got = both("saxpy", (scalar, a, y, n), grid, cta)
    assert (got[1] == wrapped(scalar * u + v for u, v in zip(plain(a), plain(y), strict=True))).all()


@pytest.mark.parametrize(("n", "grid", "cta"), SIZES[:-1])
def test_dot_and_atomic_sum(n, grid, cta):
    a, b, start = integers(n), integers(n), integers(1)
    got = both("dot", (a, b, start, n), grid, cta)
    assert got[2][0] == wrap(int(start[0]) + sum(u * v for u, v in zip(plain(a), plain(b), strict=True)))
    got = both("atomic_sum", (a, start, n), max(1, grid - 1), cta)
    assert got[1][0] == wrap(int(start[0]) + sum(plain(a)))


ROWS = [(1, 1, 1, 1), (3, 5, 1, 4), (6, 2, 2, 3), (9, 0, 1, 12), (5, 3, 1, 32)]


@pytest.mark.parametrize(("m", "n", "grid", "cta"), ROWS)
def test_matvec(m, n, grid, cta):
    a, x = integers(m, n), integers(n)
    got = both("matvec", (a, x, integers(m), m, n), grid, cta)
    assert (got[2] == wrapped(sum(u * v for u, v in zip(plain(row), plain(x), strict=True)) for row in a)).all()


SHAPES = [
    (1, 1, 1, 1, 1),
    (2, 2, 2, 1, (2, 2)),
    (3, 4, 5, (2, 2), (3, 2)),
    (4, 4, 4, (1, 1), (8, 8)),
    (5, 1, 3, (1, 3), (1, 2)),
    (2, 3, 0, 1, (3, 2)),
]


@pytest.mark.parametrize(("m", "n", "k", "grid", "cta"), SHAPES)
def test_matmul(m, n, k, grid, cta):
    a, b = integers(m, k), integers(k, n)
    got = both("matmul", (a, b, integers(m, n), m, n, k), grid, cta)
    expected = [sum(int(a[i, p]) * int(b[p, j]) for p in range(k)) for i in range(m) for j in range(n)]
    assert (got[2].reshape(-1) == wrapped(expected)).all()


@pytest.mark.parametrize(("n", "grid", "cta"), SIZES[:-1])
def test_divergent(n, grid, cta):
    a = integers(n)
    values = plain(a)
    got = both("divergent", (a, np.zeros(n, np.int32), n), grid, cta)
    expected = [3 * values[i - 1] + x if i % 2 else x ^ (x << 1) for i, x in enumerate(values)]
    assert (got[1] == wrapped(expected)).all()


@pytest.mark.parametrize(("n", "grid", "cta"), SIZES[:-1])
def test_trips(n, grid, cta):
    a = RANDOM.integers(0, 300, n).astype(np.int32)
    a[0] = 0
    got = both("trips", (a, np.zeros(n, np.int32), n), grid, cta)
    assert (got[1] == [math.isqrt(x) for x in plain(a)]).all()


def test_indices_of_all_dimensions():
    """Every thread of a grid and CTA of three dimensions writes its own indices."""
    k = compile_source(
        """__global__ void k(int* out) {
             int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
             int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
             int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
             out[i] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y
                    + 100000 * blockIdx.z;
           }""",
        "k.cu",
    )
    for grid, cta in (((2, 3, 2), (3, 2, 2)), ((1, 2, 1), (1, 5, 1)), ((3, 1, 1), (2, 1, 3))):
        count = math.prod(grid) * math.prod(cta)
        expected = [
            x + 10 * y + 100 * z + 1000 * bx + 10000 * by + 100000 * bz
            for bz in range(grid[2]) for by in range(grid[1]) for bx in range(grid[0])
            for z in range(cta[2]) for y in range(cta[1]) for x in range(cta[0])
        ]  # fmt: skip
        for shaped in (False, True):
            result = run_on_machine(k, (np.zeros(count, np.int32),), grid, cta, shaped=shaped)
            assert plain(result.arrays[0]) == expected


# the others need what the machine does not have yet; test_small_kernels.py runs them on the whole contract
WHOLE_CONTRACT = ("collatz", "sides", "shared_sum")


@pytest.mark.parametrize(
    "path", [p for p in sorted(NVRTC.glob("*.ptx")) if p.stem not in WHOLE_CONTRACT], ids=lambda path: path.stem
)
def test_ptx_of_another_compiler(path):
    """What NVRTC makes of the same source (64-bit pointers, unrolled loops) gives the same, where it can run at all."""
    other = compile_file(path)
    n, grid, cta = 11, 3, 4
    arguments = {
        "dot": (integers(n), integers(n), integers(1), n),
        "vector_add": (integers(n), integers(n), integers(n), n),
        "scalar_add": (integers(n), 77, integers(n), n),
        "saxpy": (-5, integers(n), integers(n), n),
        "matvec": (integers(n, 7), integers(7), integers(n), n, 7),
        "matmul": (integers(4, 9), integers(9, 5), integers(4, 5), 4, 5, 9),
    }[path.stem]
    if path.stem == "matmul":
        grid, cta = (2, 2), (3, 2)
    mine = run_on_machine(kernel(path.stem), arguments, grid, cta)
    theirs = run_on_machine(other, arguments, grid, cta)
    assert mine.fault is None and theirs.fault is None
    for a, b in zip(mine.arrays, theirs.arrays, strict=True):
        assert (a == b).all()


@pytest.mark.parametrize("name", sorted(path.stem for path in KERNELS.glob("*.cu")))
def test_blocks_say_only_what_the_circuits_implement(name):
    for block in kernel(name).program.blocks:
        assert subset.faults(dict(block.fields)) == []
        assert block.line > 0 or not block.instructions  # what the compiler adds has no line of its own


def test_dot_of_three_takes_few_tokens():
    """Two blocks, three rows of memory with a value each, HALT: nine, when the grid is one CTA. Bounds are checked."""
    arguments = (np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32), np.zeros(1, np.int32), 3)
    result = run_on_machine(kernel("dot"), arguments, 1, 3)
    assert result.arrays[2][0] == 32
    assert result.statistics.total == len(result.written) <= 9
    assert run_on_machine(kernel("dot"), arguments, 1, 3, shaped=False).statistics.total <= 13
