"""Random C programs on the machine's interpreter, against the same C compiled for this host: the whole compiler."""

import ctypes
import random
import subprocess
import sys

import numpy as np
import pytest
from tests.cuda.on_machine import run_on_machine
from tests.cuda.random_subset import SubsetProgram, host_source

from qgpu.cuda.compile import find_compiler
from qgpu.cuda.pipeline import compile_source
from qgpu.isa import subset

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the host library is built as a .so")

PROGRAMS = {seed: SubsetProgram(seed) for seed in (2, 5, 11, 17, 19, 36, 38, 47)}
SHAPES = [(3, 1, 3), (4, 1, 4), (8, 2, 5), (20, 1, 21), (11, 3, 4)]  # elements, grid, CTA
EDGES = [0, 1, 2, 7, 31, 32, 255, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The library with all programs, compiled once."""
    directory = tmp_path_factory.mktemp("host")
    source, library = directory / "all.cpp", directory / "all.so"
    source.write_text(host_source(PROGRAMS))
    subprocess.run(
        [find_compiler().command[0], "c++", "-shared", "-nostdlib", "-O1", "-fwrapv", "-fPIC", "-fno-sanitize=all",
         "-w", str(source), "-o", str(library)],
        check=True, cwd=directory,
        env={"ZIG_GLOBAL_CACHE_DIR": str(directory), "ZIG_LOCAL_CACHE_DIR": str(directory), "PATH": ""},
    )  # fmt: skip
    return ctypes.CDLL(str(library))


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


@pytest.mark.parametrize("seed", PROGRAMS)
def test_program(host, seed):
    kernel = compile_source(PROGRAMS[seed].device, "k.cu")
    assert all(subset.faults(dict(block.fields)) == [] for block in kernel.program.blocks)
    choose = random.Random(seed)
    for n, grid, cta in SHAPES:
        given = np.array(
            [choose.choice((choose.choice(EDGES), choose.getrandbits(32), choose.randrange(9))) for _ in range(4 * n)],
            np.uint32,
        ).reshape(n, 4)
        expected, total = np.zeros_like(given), np.zeros(1, np.uint32)
        for row in range(min(n, grid * cta)):
            getattr(host, f"f{seed}")(pointer(given[row]), pointer(expected[row]), pointer(total))
        result = run_on_machine(kernel, (given, np.zeros_like(given), np.zeros(1, np.uint32), n), grid, cta)
        assert result.fault is None
        before, out, added = result.arrays
        assert (before == given).all()
        assert (out == expected).all()
        assert added[0] == total[0]
