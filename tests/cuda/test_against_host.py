"""Random programs: the IR, plain and optimised, against the same C compiled for this host."""

import ctypes
import random
import sys

import numpy as np
import pytest
from tests.cuda.harness import kernel_from_source, launch
from tests.cuda.random_programs import Program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the host library is built as a .so")
EDGES = [0, 1, 2, 7, 31, 32, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


@pytest.mark.parametrize("seed", range(12))
def test_program(seed, tmp_path):
    program = Program(seed)
    on_host = program.on_host(tmp_path)
    choose = random.Random(seed + 1000)
    inputs = np.array(
        [[choose.choice([choose.choice(EDGES), choose.getrandbits(32)]) for _ in range(4)] for _ in range(6)], np.uint32
    )
    expected = np.zeros_like(inputs)
    for given, result in zip(inputs, expected, strict=True):
        on_host(given.ctypes.data_as(ctypes.c_void_p), result.ctypes.data_as(ctypes.c_void_p))
    plain, optimised = kernel_from_source(program.device)
    for function in (plain, optimised):
        assert (launch(function, (inputs, np.zeros_like(inputs)), (3,), (2,))[1] == expected).all()
