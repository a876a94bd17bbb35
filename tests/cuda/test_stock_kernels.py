"""Every stock kernel and some others, from our clang and from NVRTC, plain and optimised, against NumPy."""

import math

import numpy as np
import pytest
from tests.cuda.harness import KERNELS, NVRTC, OTHERS, kernel_from_file, launch

from qgpu.cuda.prebuild import stale

RANDOM = np.random.default_rng(7)


def integers(*shape):
    return RANDOM.integers(-(2**31), 2**31, shape).astype(np.int32)


def wrapped(values):
    """Integers of any size cut to 32 bits."""
    return (np.asarray(values, dtype=object) & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)


def exact(array):
    return array.astype(object)


A, B = integers(11), integers(11)
M, K = integers(3, 5), integers(5, 4)
V = integers(5)
STARTS = np.array([1, 2, 3, 6, 7, 27, 9, 1, 1024, 97, 5], np.int32)


def collatz(x):
    steps = 0
    while x != 1:
        x = 3 * x + 1 if x % 2 else x // 2
        steps += 1
    return steps


def divergent(values, even):
    return [3 * exact(values)[i - 1] + exact(values)[i] if i % 2 else even(int(values[i])) for i in range(len(values))]


EDGES = np.array([-(2**31), -(2**31), 2**31 - 1, -7, 7, -7, 7, 0, 6, -6, 1], np.int32)
DIVISORS = np.array([-1, 3, -(2**31), 2, -2, -2, 2, 5, 3, 3, 2**31 - 1], np.int32)
EXPONENTS = np.array([0, 1, 2, 3, 5, 31, 32, 33, 100, 2**31 - 1, 7], np.int32)
TIES = np.array([5, -3, 9, 5, 9, -3, 2**31 - 1, -(2**31), 0, 0, 5], np.int32)


def python(function, *vectors):
    return wrapped([function(*map(int, items)) for items in zip(*vectors, strict=True)])


OUT = np.zeros(11, np.int32)
ONE = np.zeros(1, np.int32)
# name, arguments, grid, block, position of the result among the arrays, expected (int32)
CASES = [
    ("dot", (A, B, ONE, 11), (3,), (4,), 2, wrapped([exact(A) @ exact(B)])),
    ("vector_add", (A, B, OUT, 11), (3,), (4,), 2, wrapped(exact(A) + exact(B))),
    ("vector_sub", (A, B, OUT, 11), (3,), (4,), 2, wrapped(exact(A) - exact(B))),
    ("vector_mul", (A, B, OUT, 11), (3,), (4,), 2, wrapped(exact(A) * exact(B))),
    ("scalar_add", (A, -7, OUT, 11), (3,), (4,), 1, wrapped(exact(A) - 7)),
    ("scalar_mul", (A, 12345, OUT, 11), (3,), (4,), 1, wrapped(exact(A) * 12345)),
    ("scalar_sub", (9, A, OUT, 11), (3,), (4,), 1, wrapped(9 - exact(A))),
    ("saxpy", (-3, A, B, 11), (3,), (4,), 1, wrapped(-3 * exact(A) + exact(B))),
    ("matmul", (M, K, np.zeros((3, 4), np.int32), 3, 4, 5), (2, 2), (3, 2), 2, wrapped(exact(M) @ exact(K))),
    ("matvec", (M, V, np.zeros(3, np.int32), 3, 5), (2,), (2,), 2, wrapped(exact(M) @ exact(V))),
    ("divergent", (A, OUT, 11), (3,), (4,), 1, wrapped(divergent(A, lambda x: x ^ (x << 1)))),
    ("sides", (A, OUT, 11), (3,), (4,), 1, wrapped(divergent(A, lambda x: x ^ (x >> 1)))),
    ("trips", (STARTS, OUT, 11), (2,), (8,), 1, np.array([math.isqrt(x) for x in STARTS], np.int32)),
    ("collatz", (STARTS, OUT, 11), (2,), (8,), 1, wrapped([collatz(int(x)) for x in STARTS])),
    ("atomic_sum", (A, ONE, 11), (3,), (2,), 1, wrapped([sum(exact(A))])),
    ("shared_sum", (A, ONE, 11), (3,), (2,), 1, wrapped([sum(exact(A))])),
    ("vector_floordiv", (EDGES, DIVISORS, OUT, 11), (3,), (4,), 2, python(lambda a, b: a // b, EDGES, DIVISORS)),
    ("vector_mod", (EDGES, DIVISORS, OUT, 11), (3,), (4,), 2, python(lambda a, b: a % b, EDGES, DIVISORS)),
    ("vector_pow", (EDGES, EXPONENTS, OUT, 11), (3,), (4,), 2,
     python(lambda a, b: pow(a, b, 2**32), EDGES, EXPONENTS)),
    ("vector_gcd", (EDGES, TIES, OUT, 11), (3,), (4,), 2, python(math.gcd, EDGES, TIES)),
    ("vector_max", (EDGES, TIES, OUT, 11), (3,), (4,), 2, python(max, EDGES, TIES)),
    ("vector_min", (EDGES, TIES, OUT, 11), (3,), (4,), 2, python(min, EDGES, TIES)),
    ("vector_abs", (EDGES, OUT, 11), (3,), (4,), 1, python(abs, EDGES)),
    ("vector_compare", (EDGES, TIES, OUT, 11, 5), (3,), (4,), 2, python(lambda a, b: int(a != b), EDGES, TIES)),
    ("reduce_sum", (A, ONE, 11), (3,), (4,), 1, wrapped([sum(exact(A))])),
    ("reduce_max", (A, A[:1], 11), (3,), (4,), 1, np.array([max(A)])),
    ("reduce_min", (A, A[:1], 11), (3,), (4,), 1, np.array([min(A)])),
    ("first_index", (TIES, 9, np.array([2**31 - 1], np.int32), 11, 100), (3,), (4,), 1, np.array([102])),
    ("cumsum", (A, OUT, 11, 77), (1,), (11,), 1, wrapped([77 + sum(exact(A)[: i + 1]) for i in range(11)])),
    ("sort", (TIES, 11), (1,), (8,), 0, np.array(sorted(TIES), np.int32)),
    ("transpose", (M, np.zeros((5, 3), np.int32), 3, 5), (2, 2), (3, 2), 1, M.T),
]  # fmt: skip


FILES = sorted([*KERNELS.glob("*.cu"), *OTHERS.glob("*.cu"), *NVRTC.glob("*.ptx")])
FILES.remove(OTHERS / "small.cu")


@pytest.mark.parametrize("optimised", [False, True], ids=["plain", "optimised"])
@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_result(path, optimised):
    name, arguments, grid, block, position, expected = next(case for case in CASES if case[0] == path.stem)
    function = kernel_from_file(path, name)[optimised]
    assert (launch(function, arguments, grid, block)[position] == expected).all()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_matmul_of_small_sizes(size):
    a, b = integers(size, 1), integers(1, size)
    function = kernel_from_file(KERNELS / "matmul.cu", "matmul")[1]
    c = launch(function, (a, b, np.zeros((size, size), np.int32), size, size, 1), (1, 1), (4, 4))[2]
    assert (c == wrapped(exact(a) @ exact(b))).all()


def test_the_cases_name_every_stock_kernel():
    assert {case[0] for case in CASES} == {path.stem for path in FILES}


def test_prebuilt_ptx_is_fresh():
    """When this fails: python -m qgpu.cuda.prebuild kernels/*.cu"""
    assert stale(sorted(KERNELS.glob("*.cu"))) == []


def test_prebuilt_ptx_is_what_the_compiler_gives():
    from qgpu.cuda.compile import build_ahead

    for name in ("dot", "trips"):
        assert (KERNELS / f"{name}.ptx").read_text() == build_ahead(KERNELS / f"{name}.cu")


def test_every_kernel_opens_with_a_comment():
    for path in KERNELS.glob("*.cu"):
        assert path.read_text().startswith("// "), path
