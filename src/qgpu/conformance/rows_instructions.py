"""Rows for single instructions: every operand is an edge value or meets one."""

from __future__ import annotations

import numpy as np

from qgpu.conformance.inputs import Array, draws, edges, pairs, u32, words, wrap, zeros
from qgpu.conformance.table import Row, row

N, N64, N16 = 24, 12, 16

_SHIFTS = u32(0, 1, 5, 31, 32, 33, 63, 64, 65, 255, 256, 2**31, 2**32 - 1)


def _cycle(values: Array, count: int) -> Array:
    return np.resize(values, count)


def _no_zero(values: Array) -> Array:
    """Division by zero has no one meaning in PTX."""
    return np.where(values == 0, np.array(3, values.dtype), values)


def solo(name: str, out: str = "uint32", inputs: str = "uint32") -> Row:
    return row(name, "instructions", 32, edges(N, 0, inputs), zeros(2 * N, out), N)


def duet(name: str, out: str = "uint32", division: bool = False) -> Row:
    a, b = pairs(N, "uint32")
    return row(name, "instructions", 32, a, _no_zero(b) if division else b, zeros(2 * N, out), N)


def trio(name: str, c: Array | None = None, b: Array | None = None, results: int = 2) -> Row:
    first, second = pairs(N, "uint32")
    third = edges(N, 9, "uint32") if c is None else _cycle(c, N)
    second = second if b is None else _cycle(b, N)
    return row(name, "instructions", 32, first, second, third, zeros(results * N, "uint32"), N)


def solo64(name: str, out: str = "uint64") -> Row:
    return row(name, "instructions64", 16, edges(N64, 4, "uint64"), zeros(2 * N64, out), N64)


def duet64(name: str, out: str = "uint64", division: bool = False, results: int = 2) -> Row:
    a, b = pairs(N64, "uint64")
    return row(name, "instructions64", 16, a, _no_zero(b) if division else b, zeros(results * N64, out), N64)


def duet16(name: str, out: str = "uint16", division: bool = False) -> Row:
    a, b = edges(N16, 5, "uint16"), edges(N16, 11, "uint16")
    return row(name, "instructions", 16, a, _no_zero(b) if division else b, zeros(2 * N16, out), N16)


# bfe and bfi: (position, length) with every kind of overhang; only 8 bits of each count
_FIELDS = [(0, 0), (0, 1), (0, 32), (4, 8), (31, 1), (31, 4), (28, 9), (32, 1), (32, 0), (33, 8), (0, 33), (1, 255),
           (255, 255), (63, 2), (16, 16), (5, 27), (5, 28), (64, 64), (256, 8), (8, 256), (260, 4),
           (8, 264)]  # fmt: skip
_POSITIONS = u32(*(position for position, _ in _FIELDS))
_LENGTHS = u32(*(length for _, length in _FIELDS))
_VALUES = _cycle(u32(0xFFFFFFFF, 0x80000001, 0x12345678, 0xFEDCBA98, 0x7FFFFFFF), len(_FIELDS))
_F = len(_FIELDS)
_LONG = [*_FIELDS[:12], (63, 1), (63, 9), (60, 8), (64, 1), (40, 24), (40, 25), (0, 64), (1, 64)]
_LONG_VALUES = _cycle(wrap([-1, 2**63 + 1, 0x0123456789ABCDEF, -0x0123456789ABCDEF, 2**63 - 1], "uint64"), len(_LONG))
_LONG_POSITIONS, _LONG_LENGTHS = u32(*(p for p, _ in _LONG)), u32(*(n for _, n in _LONG))
_NIBBLES = u32(0x3210, 0x7654, 0x0123, 0xFEDC, 0x8888, 0xB7A6, 0x5040, 0x4444, 0xFFFF3210, 0xCCCC, 0x9D1F, 0)

ROWS = [
    solo("ins_neg_abs", "int32", "int32"),
    solo("ins_not_cnot"),
    solo("ins_popc_clz"),
    solo("ins_bfind"),
    solo("ins_bfind_shiftamt"),
    duet("ins_add_sub", "int32"),
    duet("ins_add_sub_sat", "int32"),
    duet("ins_mul_hi"),
    duet("ins_mul24"),
    duet("ins_mul_wide", "uint64"),
    duet("ins_div", division=True),
    duet("ins_rem", division=True),
    duet("ins_min"),
    duet("ins_max"),
    duet("ins_and_or"),
    duet("ins_brev_xor"),
    row("ins_shl_mul", "instructions", 32, words(N, 3), _cycle(_SHIFTS, N), zeros(2 * N, "uint32"), N),
    row("ins_shr", "instructions", 32, edges(N, 9, "uint32"), _cycle(_SHIFTS, N), zeros(2 * N, "uint32"), N),
    trio("ins_mad_lo"),
    trio("ins_mad_hi"),
    trio("ins_sad"),
    row("ins_bfe", "instructions", 32, _VALUES, _POSITIONS, _LENGTHS, zeros(2 * _F, "uint32"), _F),
    row("ins_bfi", "instructions", 32, words(_F, 8), _VALUES, _POSITIONS, _LENGTHS, zeros(_F, "uint32"), _F),
    trio("ins_shf_l", _SHIFTS, words(N, 4)),
    trio("ins_shf_r", _SHIFTS, words(N, 4)),
    row("ins_mad_wide", "instructions", 32, *pairs(N64, "uint32"), edges(N64, 3, "uint64"), zeros(2 * N64, "uint64"),
        N64),
    trio("ins_prmt", _NIBBLES, results=1),
    row("ins_prmt_modes", "instructions", 4, 0x83C27140, 0x12B4D6F8, zeros(24, "uint32")),
    trio("ins_lop3"),
    trio("ins_lop3_more"),
    trio("ins_lop3_less"),
    row("ins_setp", "instructions", 32, *pairs(N, "uint32"), zeros(N, "uint32"), N),
    row("ins_setp_unsigned_names", "instructions", 32, *pairs(N, "uint32"), zeros(N, "uint32"), N),
    duet("ins_set"),
    row("ins_slct", "instructions", 32, *pairs(N), edges(N, 7), zeros(N), N),
    duet16("ins16_add_sub"),
    duet16("ins16_mul_hi"),
    duet16("ins16_mul_wide", "uint32"),
    duet16("ins16_div", division=True),
    duet16("ins16_rem", division=True),
    duet16("ins16_min_max"),
    duet16("ins16_logic"),
    duet16("ins16_setp"),
    row("ins16_neg_abs", "instructions", 16, edges(N16, 3, "uint16"), zeros(2 * N16, "uint16"), N16),
    row("ins16_mad_shifts", "instructions", 20, words(20, 2, "uint16"), words(20, 3, "uint16"),
        words(20, 4, "uint16"), zeros(100, "uint16"), 20),
    solo64("ins64_neg_abs"),
    solo64("ins64_not_brev"),
    solo64("ins64_popc_clz", "uint32"),
    solo64("ins64_bfind", "uint32"),
    duet64("ins64_add_sub"),
    duet64("ins64_mul_hi"),
    duet64("ins64_div", division=True),
    duet64("ins64_rem", division=True),
    duet64("ins64_min"),
    duet64("ins64_max"),
    duet64("ins64_and_or"),
    duet64("ins64_xor_mul"),
    row("ins64_mad", "instructions64", 16, *pairs(N64, "uint64"), edges(N64, 2, "uint64"), zeros(N64, "uint64"), N64),
    row("ins64_shifts", "instructions64", 16, _cycle(_LONG_VALUES, 13), _SHIFTS, zeros(39, "uint64"), 13),
    row("ins64_bfe", "instructions64", 20, _LONG_VALUES, _LONG_POSITIONS, _LONG_LENGTHS, zeros(40, "uint64"), 20),
    row("ins64_bfi", "instructions64", 20, _LONG_VALUES[::-1].copy(), _LONG_VALUES, _LONG_POSITIONS, _LONG_LENGTHS,
        zeros(20, "uint64"), 20),
    duet64("ins64_setp", "uint32", results=1),
    row("ins64_select", "instructions64", 16, *pairs(N64, "uint64"), u32(*draws(N64, 3)), zeros(N64, "uint64"), N64),
    row("ins_carry", "instructions64", 4, u32(2**32 - 1, 2**32 - 1, 0, 0, 0, 1, *draws(6, 1)),
        u32(1, 0, 0, 1, 0, 0, *draws(6, 2)), zeros(24, "uint32")),
    row("ins_cvt", "instructions64", 16, edges(N64, 1, "uint64"), zeros(7 * N64, "int64"), N64),
    row("ins_cvt_sat", "instructions64", 24, edges(22), zeros(88), 22),
]  # fmt: skip
