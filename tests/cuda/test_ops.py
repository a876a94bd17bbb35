"""What each operation means: against NumPy where it has the operation, else against values worked out by hand."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qgpu.cuda.ir import Type
from qgpu.cuda.ops import ATOMICS, OPPOSITE, OPS, evaluate

SIGNED = {16: np.int16, 32: np.int32, 64: np.int64}
UNSIGNED = {16: np.uint16, 32: np.uint32, 64: np.uint64}
WIDTHS = st.sampled_from([Type.B16, Type.B32, Type.B64])
WORDS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**15, 2**31, 2**63, 2**64 - 1])


def s(value, bits):
    return np.array([value & (2**bits - 1)], UNSIGNED[bits]).view(SIGNED[bits])


def u(value, bits):
    return np.array([value & (2**bits - 1)], UNSIGNED[bits])


def word(array):
    return int(array.view(UNSIGNED[array.dtype.itemsize * 8])[0])


SAME_WIDTH = {
    "add": lambda a, b, x, y: x + y,
    "sub": lambda a, b, x, y: x - y,
    "mul": lambda a, b, x, y: x * y,
    "min.s": lambda a, b, x, y: np.minimum(a, b),
    "min.u": lambda a, b, x, y: np.minimum(x, y),
    "max.s": lambda a, b, x, y: np.maximum(a, b),
    "max.u": lambda a, b, x, y: np.maximum(x, y),
    "and": lambda a, b, x, y: x & y,
    "or": lambda a, b, x, y: x | y,
    "xor": lambda a, b, x, y: x ^ y,
}
COMPARED = {
    "eq": lambda a, b, x, y: x == y,
    "ne": lambda a, b, x, y: x != y,
    "lt.s": lambda a, b, x, y: a < b,
    "le.s": lambda a, b, x, y: a <= b,
    "gt.s": lambda a, b, x, y: a > b,
    "ge.s": lambda a, b, x, y: a >= b,
    "lt.u": lambda a, b, x, y: x < y,
    "le.u": lambda a, b, x, y: x <= y,
    "gt.u": lambda a, b, x, y: x > y,
    "ge.u": lambda a, b, x, y: x >= y,
}


@settings(max_examples=120, deadline=None)
@given(WIDTHS, WORDS, WORDS)
@example(Type.B32, 2**31, 2**32 - 1)
def test_arithmetic_and_comparison(type_, a, b):
    bits = int(type_)
    a, b = a & type_.mask, b & type_.mask
    views = s(a, bits), s(b, bits), u(a, bits), u(b, bits)
    for op, numpy in SAME_WIDTH.items():
        assert evaluate(op, type_, type_, a, b) == word(numpy(*views)), op
    for op, numpy in COMPARED.items():
        assert evaluate(op, type_, Type.PRED, a, b) == int(numpy(*views)[0]), op
        assert evaluate(OPPOSITE[op], type_, Type.PRED, a, b) == int(not numpy(*views)[0]), op


@settings(max_examples=120, deadline=None)
@given(st.sampled_from([Type.B16, Type.B32]), WORDS, WORDS)
def test_products_and_quotients(type_, a, b):
    bits = int(type_)
    double = Type(bits * 2)
    a, b = a & type_.mask, b & type_.mask
    wide = {
        "s": s(a, bits).astype(SIGNED[bits * 2]) * s(b, bits),
        "u": u(a, bits).astype(UNSIGNED[bits * 2]) * u(b, bits),
    }
    for sign, product in wide.items():
        assert evaluate(f"mulwide.{sign}", type_, double, a, b) == word(product)
        assert evaluate(f"mulhi.{sign}", type_, type_, a, b) == word(product) >> bits
    if b:
        assert evaluate("div.u", type_, type_, a, b) == a // b
        assert evaluate("rem.u", type_, type_, a, b) == a % b
        x, y = int(s(a, bits)[0]), int(s(b, bits)[0])
        quotient = int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)
        assert evaluate("div.s", type_, type_, a, b) == quotient & type_.mask
        assert evaluate("rem.s", type_, type_, a, b) == (x - quotient * y) & type_.mask


B16, B32, B64 = Type.B16, Type.B32, Type.B64
MINUS = 0xFFFFFFFF
LEAST = 0x80000000


@pytest.mark.parametrize(
    ("op", "type_", "result", "sources", "expected"),
    [
        # Division by zero gives all ones, remainder the dividend; the least number by -1 wraps.
        ("div.s", B32, B32, (5, 0), MINUS),
        ("div.u", B32, B32, (5, 0), MINUS),
        ("rem.s", B32, B32, (0xFFFFFFFB, 0), 0xFFFFFFFB),
        ("rem.u", B32, B32, (5, 0), 5),
        ("div.s", B32, B32, (LEAST, MINUS), LEAST),
        ("rem.s", B32, B32, (LEAST, MINUS), 0),
        ("neg", B32, B32, (LEAST,), LEAST),
        ("abs", B32, B32, (LEAST,), LEAST),
        ("abs", B32, B32, (0xFFFFFFFB,), 5),
        # Shifts clamp their count.
        ("shl", B32, B32, (1, 31), LEAST),
        ("shl", B32, B32, (1, 32), 0),
        ("shl", B32, B32, (1, MINUS), 0),
        ("shr.u", B32, B32, (LEAST, 32), 0),
        ("shr.s", B32, B32, (LEAST, 40), MINUS),
        ("shr.s", B16, B16, (0x8000, 3), 0xF000),
        ("shl", B64, B64, (1, 63), 1 << 63),
        ("funnel.l.wrap", B32, B32, (0x89ABCDEF, 0x01234567, 8), 0x23456789),
        ("funnel.l.wrap", B32, B32, (0x89ABCDEF, 0x01234567, 40), 0x23456789),
        ("funnel.l.clamp", B32, B32, (0x89ABCDEF, 0x01234567, 40), 0x89ABCDEF),
        ("funnel.r.wrap", B32, B32, (0x89ABCDEF, 0x01234567, 8), 0x6789ABCD),
        ("funnel.r.clamp", B32, B32, (0x89ABCDEF, 0x01234567, 40), 0x01234567),
        # Bits.
        ("popc", B64, B32, (0xF0F0000000000001,), 9),
        ("clz", B32, B32, (0,), 32),
        ("clz", B64, B32, (1,), 63),
        ("reverse", B32, B32, (0x00000006,), 0x60000000),
        ("find.u", B32, B32, (0,), MINUS),
        ("find.u", B32, B32, (0x00080001,), 19),
        ("find.s", B32, B32, (MINUS,), MINUS),
        ("find.s", B32, B32, (0xFFFFFFF0,), 3),
        ("findshift.u", B32, B32, (0x00080001,), 12),
        ("findshift.u", B32, B32, (0,), MINUS),
        ("extract.u", B32, B32, (0x12345678, 8, 12), 0x456),
        ("extract.u", B32, B32, (0x12345678, 0, 0), 0),
        ("extract.u", B32, B32, (0x12345678, 28, 12), 1),
        ("extract.s", B32, B32, (0x00000F00, 8, 4), MINUS),
        ("extract.s", B32, B32, (0x80000000, 28, 12), 0xFFFFFFF8),
        ("extract.s", B32, B32, (0x80000000, 200, 3), MINUS),
        ("extract.s", B32, B32, (0x70000000, 200, 3), 0),
        ("insert", B32, B32, (0xAB, 0x11111111, 8, 8), 0x1111AB11),
        ("insert", B32, B32, (0xAB, 0x11111111, 8, 0), 0x11111111),
        ("insert", B32, B32, (0xAB, 0x11111111, 28, 8), 0xB1111111),
        ("permute", B32, B32, (0x33221100, 0x77665544, 0x7351), 0x77335511),
        ("permute", B32, B32, (0x332211F0, 0x77665544, 0x888C), 0xFFFFFF00),
        ("logic3", B32, B32, (0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0x80), 0x80808080),
        ("logic3", B32, B32, (0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0x96), 0x96969696),
        # Widths.
        ("sext8", B32, B32, (0x12345680,), 0xFFFFFF80),
        ("zext8", B32, B32, (0x12345680,), 0x80),
        ("sext32", B64, B64, (LEAST,), 0xFFFFFFFF80000000),
        ("zext32", B32, B32, (0x123456789ABCDEF0,), 0x9ABCDEF0),
        ("sext16", B16, B16, (0x12348000,), 0x8000),
        ("pack", B32, B64, (1, 2), 0x200000001),
        ("high", B32, B32, (0x200000001,), 2),
        ("high", B16, B16, (0x20001,), 2),
        ("select", B32, B32, (1, 2, 0), 2),
        ("not", Type.PRED, Type.PRED, (1,), 0),
    ],
)
def test_value(op, type_, result, sources, expected):
    assert evaluate(op, type_, result, *sources) == expected


@pytest.mark.parametrize(
    ("op", "old", "sources", "expected"),
    [
        ("add", MINUS, (2,), 1), ("exch", 1, (9,), 9), ("min.s", 1, (MINUS,), MINUS), ("min.u", 1, (MINUS,), 1),
        ("max.s", 1, (MINUS,), 1), ("max.u", 1, (MINUS,), MINUS), ("inc", 4, (5,), 5), ("inc", 5, (5,), 0),
        ("inc", 9, (5,), 0), ("dec", 4, (5,), 3), ("dec", 0, (5,), 5), ("dec", 9, (5,), 5),
        ("cas", 3, (3, 8), 8), ("cas", 4, (3, 8), 4), ("and", 6, (3,), 2), ("or", 6, (3,), 7), ("xor", 6, (3,), 5),
    ],
)  # fmt: skip
def test_atomic(op, old, sources, expected):
    assert ATOMICS[op](32, old, *sources) & MINUS == expected


def test_rows_agree_with_their_letters():
    for name, row in OPS.items():
        assert set(row.sources) <= set("twpd*") and row.result in "twpd", name
        assert not row.commutative or row.sources[0] == row.sources[1], name
