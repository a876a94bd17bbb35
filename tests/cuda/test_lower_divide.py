"""Division by blocks: the reciprocal on many divisors with NumPy, and whole expansions against the operations' rows."""

import random
import zlib

import numpy as np
import pytest
from tests.cuda.test_lower_wide import EDGES, one_operation, result

from qgpu.cuda.ir import Compute, Type
from qgpu.cuda.lower_divide import KINDS, START, STEPS, divide_wide, divide_words
from qgpu.cuda.lower_wide import split_wide
from qgpu.cuda.verify import verify


def test_the_reciprocal_is_the_largest_that_fits():
    """The same steps as the expansion's, on divisors of every length and near every power of two."""
    rng = np.random.default_rng(5)
    powers = np.uint64(1) << np.arange(32, dtype=np.uint64)
    lengths = rng.integers(0, 32, 200_000, dtype=np.uint64)
    near = np.concatenate([powers + np.uint64(k) for k in range(40)] + [powers - np.uint64(k) for k in range(1, 40)])
    quotients = np.uint64(2**32) // np.arange(1, 70_000, dtype=np.uint64)
    random_ones = rng.integers(1, 2**32, 200_000, dtype=np.uint64) >> lengths
    d = np.concatenate([np.arange(1, 70_000, dtype=np.uint64), near, quotients, quotients + np.uint64(1), random_ones])
    d = d[(d > 0) & (d < 2**32)]
    place = np.frexp(d.astype(np.float64))[1].astype(np.uint64) - np.uint64(1)
    z = np.uint64(START.value) >> place
    for _ in range(STEPS):
        z += (z * (np.uint64(0) - d * z & np.uint64(0xFFFFFFFF))) >> np.uint64(32)
    z += (np.uint64(0) - d * z & np.uint64(0xFFFFFFFF)) > d
    assert (z == np.uint64(0xFFFFFFFF) // d).all()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("op", sorted(KINDS))
def test_division(op, bits):
    rng = random.Random(zlib.crc32(op.encode()) + bits)
    for round_ in range(40):
        values = [
            rng.choice([rng.choice(EDGES), rng.getrandbits(bits), rng.getrandbits(bits) >> rng.randrange(bits)])
            for _ in range(4)
        ]
        whole = one_operation(op, Type(bits), values, constants=round_ % 4 == 3)
        written_out = verify(divide_words(split_wide(divide_wide(whole))))
        assert result(written_out, values) == result(whole, values), [hex(value) for value in values]
        left = [item for b in written_out.blocks for item in b.instructions if isinstance(item, Compute)]
        assert all(item.op not in KINDS for item in left)
