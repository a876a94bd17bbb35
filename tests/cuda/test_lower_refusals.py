"""What lowering refuses: everything at once, each with its place, its instruction and what to do instead."""

import re

import pytest

from qgpu.cuda.pipeline import compile_source
from qgpu.errors import PtxError, UnsupportedError

MANY = """__global__ void many(int* o, int n) {
  int i = threadIdx.x;
  o[i] = o[i] / n;
  o[i + 1] = o[i + 1] >> 1;
  __syncthreads();
  o[i + 2] = atomicMax(&o[0], i);
}
"""
EXPECTED = [  # source line, instruction, hint
    (3, "div.s32", "count in a loop"),
    (4, "shr.s32", "compare and subtract"),
    (5, "bar.sync", "let one launch end"),
    (6, "atom.global.max.s32", "only atomicAdd"),
]


def test_all_faults_at_once(small_machine):
    with pytest.raises(UnsupportedError) as error:
        compile_source(MANY, "many.cu")
    head, *lines = str(error.value).splitlines()
    assert head == "many.cu: kernel many holds 4 things this machine cannot run:"
    assert len(lines) == 3 * len(EXPECTED)  # the place, the line of the source, the advice
    for (line, instruction, hint), place, advice in zip(EXPECTED, lines[::3], lines[2::3], strict=True):
        assert re.fullmatch(rf"  many\.cu:{line} \(PTX line \d+\): {re.escape(instruction)} .*;", place)
        assert hint in advice


def test_a_machine_without_a_place_for_them_tells_of_too_many_registers(small_machine):
    names = range(24)
    source = (
        "__global__ void k(const int* a, int* o) {"
        + "".join(f"int v{k} = a[{k}];" for k in names)
        + "for (int t = 0; t < a[99]; t++) {"
        + "".join(f"v{k} = v{(k + 1) % 24} ^ (v{k} + t);" for k in names)
        + "}"
        + "".join(f"o[{k}] = v{k};" for k in names)
        + "}"
    )
    with pytest.raises(UnsupportedError) as error:
        compile_source(source, "k.cu")
    found = re.match(
        r"k\.cu:1: kernel k needs (\d+) registers at the same time here, and the machine has 15:", str(error.value)
    )
    assert found and int(found[1]) >= 24


def test_a_missing_or_open_name_lists_the_kernels():
    source = "__global__ void p(int* o) { o[0] = 1; } __global__ void q(int* o) { o[0] = 2; }"
    with pytest.raises(PtxError, match="there are several kernels, p, q"):
        compile_source(source, "two.cu")
    with pytest.raises(PtxError, match="there is no kernel zz; there are: p, q"):
        compile_source(source, "two.cu", "zz")
    assert compile_source(source, "two.cu", "q").name == "q"
