"""Traces: forms read back, statistics, and whole traces as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driver.programs import ADD, COUNT

from qgpu.driver import Device
from qgpu.driver.kernel import Kernel
from qgpu.driver.trace import Place, coordinates, thread_of
from qgpu.isa.values import cta_form, cta_of, lane_form, lane_values

WORDS = st.one_of(st.integers(0, 2**32 - 1), st.integers(-40_000, 40_000).map(lambda value: value & 0xFFFFFFFF))


@given(st.lists(WORDS, min_size=1, max_size=4), st.booleans())
def test_forms_are_read_as_they_are_written(words, same):
    words = words[:1] * len(words) if same else words
    wide, payloads = lane_form(words)
    assert lane_values(len(words), payloads, wide) == words


def test_unfinished_forms_have_no_value():
    assert lane_values(4, [1, 2, 3], False) is None
    assert lane_values(3, [1, 2, 3, 4], True) is None
    assert lane_values(3, [], False) is None


@given(st.integers(0, 2**31 - 2), st.integers(0, 65_534), st.integers(0, 65_534))
def test_cta_indices_are_read_as_they_are_written(x, y, z):
    assert cta_of(cta_form(x, y, z)) == (x, y, z)


def test_threads_and_indices():
    assert thread_of((5, 3, 2), 7, 1) == (29 % 5, 29 // 5 % 3, 29 // 15)
    assert coordinates((3, 0, 0), (8, 1, 1)) == "3"
    assert coordinates((3, 1, 0), (8, 2, 1)) == "(3, 1)"
    assert coordinates((3, 0, 1), (8, 1, 2)) == "(3, 0, 1)"


def test_elements_have_their_indices():
    assert Place("v", 64, (4,)).element(2) == "v[2]"
    assert Place("m", 64, (2, 3)).element(4) == "m[1][1]"
    assert Place("s", 64, ()).element(0) == "s"


def test_a_whole_trace():
    device = Device("interpreter")
    a, b, out = device.array([1, 2, 70_000]), device.array([-10, 20, 5]), device.zeros(3, name="sum")
    launch = Kernel(device, ADD)[1, 3](a, b, out)
    assert str(launch.trace) == (
        "     0  EXEC b0 q0                add.cu:3  threads 0..2\n"
        "     1  VALW r1\n"
        "     2    DATA 0x0001\n"
        "     3    DATA 0x0000\n"
        "     4    DATA 0x0002\n"
        "     5    DATA 0x0000\n"
        "     6    DATA 0x1170\n"
        "     7    DATA 0x0001             r1 = 1, 2, 70000\n"
        "     8  EXEC b1 q0                add.cu:4  threads 0..2\n"
        "     9  MEM row 16 lane 0\n"
        "    10    DATA 0xfff7\n"
        "    11    DATA 0x0016             sum[0] = -9, sum[1] = 22\n"
        "    12  MEM row 17 lane 2\n"
        "    13    DATA 0x1175\n"
        "    14    DATA 0x0001\n"
        "    15    DATA 0x0000             sum[2] = 70005\n"
        "    16  HALT                      the launch is complete"
    )


def test_a_trace_over_two_ctas():
    device = Device("interpreter")
    launch = Kernel(device, COUNT)[(1, 2), (2, 1)](0, device.array([-1]))
    assert list(launch.trace) == [
        "     0  EXEC b0 q0                count.cu:7  threads 0, 1",
        "     1  MEM row 8 lane 0",
        "     2    DATA 0xffff             out[0] = -1  (as before)",
        "     3  MEM row 8 lane 1",
        "     4    DATA 0xffff             out[0] = -1  (as before)",
        "     5  CTA",
        "     6    DATA 0x0000",
        "     7    DATA 0x0001             CTA (0, 1) starts; shared memory is wiped",
        "     8  EXEC b0 q0                count.cu:7  threads 0, 1",
        "     9  MEM row 8 lane 0",
        "    10    DATA 0xffff             out[0] = -1  (as before)",
        "    11  MEM row 8 lane 1",
        "    12    DATA 0xffff             out[0] = -1  (as before)",
        "    13  HALT                      the launch is complete",
    ]


def test_a_trace_has_a_line_for_every_token():
    device = Device("interpreter")
    launch = Kernel(device, COUNT)[3, 100](1, device.zeros(1))
    lines = list(launch.trace)
    assert len(lines) == launch.statistics.tokens
    assert [int(line.split()[0]) for line in lines] == list(range(len(lines)))


@pytest.mark.parametrize("length", range(17))
def test_a_trace_that_stops_anywhere_can_be_read(length):
    from dataclasses import replace

    device = Device("interpreter")
    a, out = device.array([1, 2, 70_000]), device.zeros(3)
    launch = Kernel(device, ADD)[1, 3](a, a, out)
    short = replace(launch, tokens=launch.tokens[:length])
    assert len(list(short.trace)) == length
    assert short.ended == ("HALT" if length == 17 else "LIMIT")
