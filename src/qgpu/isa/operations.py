"""What the units compute, on 32-bit integers: one row an operation. docs/machine.md, "Units", says the same in words.

All operands and results are unsigned 32-bit integers (0..2**32-1); comparisons give 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qgpu.isa.values import signed

MASK: Final = 0xFFFFFFFF


def _bfe(value: int, spec: int, is_signed: bool) -> int:
    """Bit field extract; ``spec`` holds position in bits 0..7 and length in bits 8..15 (PTX ISA, bfe)."""
    position, length = spec & 0xFF, spec >> 8 & 0xFF
    if length == 0:
        return 0
    sign = value >> min(position + length - 1, 31) & 1 if is_signed else 0
    field = value >> position if position < 32 else 0
    available = max(0, min(length, 32 - position))
    field &= (1 << available) - 1
    return (field | (MASK << available if sign else 0)) & MASK


def _prmt(a: int, selector: int) -> int:
    """Byte permute of one word with itself; a selector nibble's bit 3 replicates the byte's sign (PTX ISA, prmt)."""
    result = 0
    for i in range(4):
        nibble = selector >> 4 * i & 0xF
        byte = a >> 8 * (nibble & 3) & 0xFF
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * i
    return result


def _brev(a: int) -> int:
    return int(f"{a:032b}"[::-1], 2)


def _bfind(a: int, is_signed: bool) -> int:
    if is_signed and a >> 31:
        a = ~a & MASK
    return a.bit_length() - 1 & MASK


ALU: Final[dict[str, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b & MASK,
    "sub": lambda a, b: a - b & MASK,
    "rsub": lambda a, b: b - a & MASK,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn": lambda a, b: a & ~b & MASK,
    "orn": lambda a, b: (a | ~b) & MASK,
    "min.s": lambda a, b: min(a, b, key=signed),
    "max.s": lambda a, b: max(a, b, key=signed),
    "min.u": min,
    "max.u": max,
    "first": lambda a, b: a,
    "second": lambda a, b: b,
    "sad.s": lambda a, b: abs(signed(a) - signed(b)) & MASK,
    "sad.u": lambda a, b: abs(a - b),
    "clz": lambda a, b: 32 - a.bit_length(),
    "popc": lambda a, b: a.bit_count(),
    "brev": lambda a, b: _brev(a),
    "bfind.s": lambda a, b: _bfind(a, True),
    "bfind.u": lambda a, b: _bfind(a, False),
    "prmt": _prmt,
    "bfe.s": lambda a, b: _bfe(a, b, True),
    "bfe.u": lambda a, b: _bfe(a, b, False),
    "place": lambda a, b: a & ((1 << min(b >> 8 & 0xFF, 32)) - 1) << min(b & 0xFF, 32) & MASK,
    "byte.s": lambda a, b: signed(a >> 8 * (b & 3), 8) & MASK,
    "byte.u": lambda a, b: a >> 8 * (b & 3) & 0xFF,
    "half.s": lambda a, b: signed(a >> 16 * (b & 1), 16) & MASK,
    "half.u": lambda a, b: a >> 16 * (b & 1) & 0xFFFF,
    "cnot": lambda a, b: int(a == 0),
    "slct": lambda a, b: a if signed(b) >= 0 else 0,
    "addc": lambda a, b: a + b >> 32,
}

CONDITION: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt.s": lambda a, b: signed(a) < signed(b),
    "le.s": lambda a, b: signed(a) <= signed(b),
    "gt.s": lambda a, b: signed(a) > signed(b),
    "ge.s": lambda a, b: signed(a) >= signed(b),
    "lt.u": lambda a, b: a < b,
    "le.u": lambda a, b: a <= b,
    "gt.u": lambda a, b: a > b,
    "ge.u": lambda a, b: a >= b,
}


def _funnel(pair: int, amount: int, left: bool, clamp: bool) -> int:
    amount = min(amount, 32) if clamp else amount & 31
    return (pair << amount >> 32 if left else pair >> amount) & MASK


# Unit M: operands m1, m2 and, for the funnel shifts, the raw register of port C as the high word.
UNIT_M: Final[dict[str, Callable[[int, int, int], int]]] = {
    "first": lambda a, b, c: a,
    "mul.lo": lambda a, b, c: a * b & MASK,
    "mulhi.s": lambda a, b, c: signed(a) * signed(b) >> 32 & MASK,
    "mulhi.u": lambda a, b, c: a * b >> 32,
    "shl": lambda a, b, c: a << b & MASK if b < 32 else 0,
    "shr.s": lambda a, b, c: signed(a) >> min(b, 31) & MASK,
    "shr.u": lambda a, b, c: a >> b if b < 32 else 0,
    "shf.l.wrap": lambda a, b, c: _funnel(c << 32 | a, b, True, False),
    "shf.l.clamp": lambda a, b, c: _funnel(c << 32 | a, b, True, True),
    "shf.r.wrap": lambda a, b, c: _funnel(c << 32 | a, b, False, False),
    "shf.r.clamp": lambda a, b, c: _funnel(c << 32 | a, b, False, True),
}

# Atomics: (old, operand, compare, size mask) -> new
ATOMIC: Final[dict[str, Callable[[int, int, int, int], int]]] = {
    "add": lambda old, v, c, m: old + v & m,
    "min.s": lambda old, v, c, m: min(old, v, key=lambda n: signed(n, m.bit_length())),
    "max.s": lambda old, v, c, m: max(old, v, key=lambda n: signed(n, m.bit_length())),
    "min.u": lambda old, v, c, m: min(old, v),
    "max.u": lambda old, v, c, m: max(old, v),
    "inc": lambda old, v, c, m: 0 if old >= v else old + 1,
    "dec": lambda old, v, c, m: v if old == 0 or old > v else old - 1,
    "and": lambda old, v, c, m: old & v,
    "or": lambda old, v, c, m: old | v,
    "xor": lambda old, v, c, m: old ^ v,
    "exch": lambda old, v, c, m: v,
    "cas": lambda old, v, c, m: v if old == c else old,
}


def shuffle(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """(source lane, in range) of a shuffle, as the PTX ISA's shfl.sync pseudocode defines them."""
    amount, clamp, segment = b & 31, c & 31, c >> 8 & 31
    last = (lane & segment) | (clamp & ~segment)
    if mode == "shfl.up":
        source = lane - amount
        valid = source >= last
    elif mode == "shfl.down":
        source = lane + amount
        valid = source <= last
    elif mode == "shfl.bfly":
        source = lane ^ amount
        valid = source <= last
    else:
        source = (lane & segment) | (amount & ~segment & 31)
        valid = source <= last
    return (source if valid else lane), valid
