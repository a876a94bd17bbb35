"""Lowering where much is asked of it: long straight lines, top bits of a word, parameters that end inside a word."""

import numpy as np
import pytest
from tests.cuda.on_machine import run_on_machine

from qgpu.cuda.pipeline import compile_source
from qgpu.errors import UnsupportedError


def straight_line(statements: int) -> str:
    lines = [f"a[{i}] = x * x + {i}; x = x ^ {i * 7919} + a[{i + 1}];" for i in range(statements)]
    return f"__global__ void k(int* a) {{ int x = a[0]; {' '.join(lines)} }}"


def meaning_of_straight_line(a: list[int], statements: int) -> list[int]:
    a = [value % 2**32 for value in a]
    x = a[0]
    for i in range(statements):
        a[i] = (x * x + i) % 2**32
        x ^= (i * 7919 + a[i + 1]) % 2**32
    return a


@pytest.mark.parametrize("statements", [10, 40])
def test_a_long_straight_line_is_cut_in_a_bounded_number_of_steps(statements):
    kernel = compile_source(straight_line(statements), "line.cu")
    before = np.arange(1, statements + 2, dtype=np.uint32) * np.uint32(40503)
    found = run_on_machine(kernel, (before.copy(),)).arrays[0]
    assert found.tolist() == meaning_of_straight_line(before.tolist(), statements)
    assert compile_source(straight_line(statements), "line.cu").program == kernel.program


def test_a_line_that_is_too_long_is_refused_before_it_is_all_cut():
    with pytest.raises(UnsupportedError, match=r"kernel k needs more than 256 blocks.*split it into several kernels"):
        compile_source(straight_line(400), "line.cu")


@pytest.mark.parametrize("count", [28, 29, 30, 31])
@pytest.mark.parametrize("type_", ["int", "unsigned"])
def test_right_shifts_that_leave_few_bits(type_, count):
    kernel = compile_source(f"__global__ void k({type_}* a) {{ a[threadIdx.x] >>= {count}; }}", "shift.cu")
    dtype = np.int32 if type_ == "int" else np.uint32
    bits = [0, 1, 0x0FFFFFFF, 0x10000000, 0x70000000, 0x7FFFFFFF, 0x80000000, 0x9FFFFFFF, 0xE0000001, 0xFFFFFFFF]
    values = np.array(bits, np.uint32).view(dtype)
    found = run_on_machine(kernel, (values.copy(),), cta=len(bits)).arrays[0]
    assert found.view(dtype).tolist() == [int(value) >> count for value in values]


@pytest.mark.parametrize("last", ["char", "unsigned char", "short", "bool"])
def test_a_parameter_may_end_inside_a_word(last):
    kernel = compile_source(f"__global__ void k(int* a, int n, {last} c) {{ a[0] = n + c; }}", "narrow.cu")
    assert run_on_machine(kernel, (np.zeros(1, np.int32), 41, 1)).arrays[0].tolist() == [42]
