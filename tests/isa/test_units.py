"""Units at the edges of their operands, against the reference and against values written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.isa import reference_units as reference

from qgpu.isa import operations

EDGES = (0, 1, 2, 3, 4, 15, 16, 30, 31, 32, 33, 63, 64, 127, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x2004, 0x20FF,
         0xFF00, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xAAAAAAAA, 0xFFFF8000, 0xFFFFFFFE, 0xFFFFFFFF)  # fmt: skip
words = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**32 - 1))
MIN, MAX, ALL = 0x80000000, 0x7FFFFFFF, 0xFFFFFFFF


@pytest.mark.parametrize("op", operations.ALU)
def test_alu_at_the_edges(op: str) -> None:
    for a in EDGES:
        for b in EDGES:
            assert operations.ALU[op](a, b) == reference.alu(op, a, b), (a, b)


@given(st.sampled_from(list(operations.ALU)), words, words)
def test_alu(op: str, a: int, b: int) -> None:
    assert operations.ALU[op](a, b) == reference.alu(op, a, b)


@pytest.mark.parametrize("op", operations.CONDITION)
def test_conditions(op: str) -> None:
    for a in EDGES:
        for b in EDGES:
            assert operations.CONDITION[op](a, b) is reference.condition(op, a, b), (a, b)


@pytest.mark.parametrize("op", operations.UNIT_M)
def test_unit_m_at_the_edges(op: str) -> None:
    for a in EDGES:
        for b in EDGES:
            for c in (0, 1, MIN, ALL, 0x12345678):
                assert operations.UNIT_M[op](a, b, c) == reference.unit_m(op, a, b, c), (a, b, c)


@given(st.sampled_from(list(operations.UNIT_M)), words, words, words)
def test_unit_m(op: str, a: int, b: int, c: int) -> None:
    assert operations.UNIT_M[op](a, b, c) == reference.unit_m(op, a, b, c)


@given(st.sampled_from(list(operations.ATOMIC)), st.sampled_from((8, 16, 32, 64)), st.data())
def test_atomics(op: str, size: int, data: st.DataObject) -> None:
    edges = st.sampled_from((0, 1, (1 << size - 1) - 1, 1 << size - 1, (1 << size) - 1))
    old, value, compare = (data.draw(edges | st.integers(0, (1 << size) - 1)) for _ in range(3))
    compare = data.draw(st.sampled_from((old, compare)))
    expected = reference.atomic(op, old, value, compare, size)
    assert operations.ATOMIC[op](old, value, compare, (1 << size) - 1) == expected


@pytest.mark.parametrize("mode", ["shfl.idx", "shfl.up", "shfl.down", "shfl.bfly"])
def test_shuffles_with_every_width(mode: str) -> None:
    for width in (1, 2, 4, 8, 16, 32):
        for clamp in (0, 31):
            for lane in range(32):
                for b in (0, 1, 2, 5, 16, 31, 32, 33):
                    c = (32 - width) << 8 | clamp
                    assert operations.shuffle(mode, lane, b, c) == reference.shuffle_source(mode, lane, b, c)


BY_HAND = [
    ("clz", 0, 0, 32), ("clz", 1, 0, 31), ("popc", ALL, 0, 32), ("brev", 1, 0, MIN), ("bfind.s", ALL, 0, ALL),
    ("bfind.u", 0, 0, ALL), ("bfind.s", MIN, 0, 30), ("sad.s", MIN, MAX, ALL),
    ("bfe.s", 0x80, 0x0800, 0xFFFFFF80), ("bfe.u", ALL, 0x0000, 0), ("bfe.u", ALL, 0xFF1F, 1),
    ("bfe.s", MIN, 0x0840, ALL), ("bfe.u", ALL, 0x0120, 0), ("prmt", 0x04030281, 0x0123, 0x81020304),
    ("prmt", 0x04030281, 0x8888, ALL), ("prmt", 0x04030281, 0x4567, 0x81020304),
    ("place", ALL, 0x0808, 0xFF00), ("place", ALL, 0x2020, 0), ("byte.s", 0x80, 0, 0xFFFFFF80),
    ("half.u", 0x12345678, 3, 0x1234), ("slct", 7, MIN, 0), ("addc", ALL, 1, 1), ("rsub", 1, 0, ALL),
    ("cnot", 0, 9, 1),
]  # fmt: skip


@pytest.mark.parametrize("op, a, b, expected", BY_HAND)
def test_values_by_hand(op: str, a: int, b: int, expected: int) -> None:
    assert operations.ALU[op](a, b) == expected


def test_shifts_by_hand() -> None:
    m = operations.UNIT_M
    assert m["shl"](1, 32, 0) == m["shr.u"](ALL, 32, 0) == m["shl"](1, ALL, 0) == 0
    assert m["shr.s"](MIN, 32, 0) == m["shr.s"](MIN, ALL, 0) == ALL
    assert m["shf.l.wrap"](0x80000001, 33, 5) == 5 << 1 | 1 and m["shf.l.clamp"](9, 40, 5) == 9
    assert m["shf.r.wrap"](9, 32, 5) == 9 and m["shf.r.clamp"](9, 32, 5) == 5
    assert m["mulhi.s"](MIN, MIN, 0) == 1 << 30 and m["mulhi.u"](ALL, ALL, 0) == ALL - 1
    assert m["mul.lo"](MIN, ALL, 0) == MIN
