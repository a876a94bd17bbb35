"""The units once more, written from the PTX ISA with other means than the package: lists of bits, bytes, big integers.

Words are unsigned 32-bit integers. The functions are slow and plain on purpose.
"""

from __future__ import annotations

import struct

WORD = 1 << 32


def as_signed(word: int) -> int:
    return struct.unpack("<i", struct.pack("<I", word))[0]


def as_word(number: int) -> int:
    return number % WORD


def bits(word: int) -> list[int]:
    """Bit 0 first."""
    return [int(c) for c in reversed(format(word, "032b"))]


def from_bits(found: list[int]) -> int:
    return sum(bit * 2**place for place, bit in enumerate(found))


def _field(a: int, spec: int, signed: bool) -> int:
    """PTX: bfe's own loop over the 32 bits of the result."""
    position, length = spec % 256, spec // 256 % 256
    source = bits(a)
    fill = source[min(position + length - 1, 31)] if signed and length else 0
    return from_bits([source[position + i] if i < length and position + i <= 31 else fill for i in range(32)])


def _place(a: int, spec: int) -> int:
    position, length = spec % 256, spec // 256 % 256
    return from_bits([bit if position <= i < position + length else 0 for i, bit in enumerate(bits(a))])


def _permute(a: int, selector: int) -> int:
    source, result = struct.pack("<I", a), []
    for i in range(4):
        nibble = selector // 16**i % 16
        byte = source[nibble % 4]
        result.append((255 if byte > 127 else 0) if nibble > 7 else byte)
    return struct.unpack("<I", bytes(result))[0]


def _find(a: int, signed: bool) -> int:
    source = bits(a)
    sign = source[31] if signed else 0
    for place in range(31, -1, -1):
        if source[place] != sign:
            return place
    return WORD - 1


def _leading(a: int) -> int:
    return next((i for i, bit in enumerate(reversed(bits(a))) if bit), 32)


def alu(op: str, a: int, b: int) -> int:
    """ALU A and ALU B."""
    signed_a, signed_b = as_signed(a), as_signed(b)
    if op in ("byte.u", "byte.s"):
        return as_word(struct.unpack("<4B" if op[-1] == "u" else "<4b", struct.pack("<I", a))[b % 4])
    if op in ("half.u", "half.s"):
        return as_word(struct.unpack("<2H" if op[-1] == "u" else "<2h", struct.pack("<I", a))[b % 2])
    found = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "rsub": lambda: b - a,
        "addc": lambda: (a + b) // WORD,
        "and": lambda: from_bits([x * y for x, y in zip(bits(a), bits(b), strict=True)]),
        "or": lambda: from_bits([max(x, y) for x, y in zip(bits(a), bits(b), strict=True)]),
        "xor": lambda: from_bits([(x + y) % 2 for x, y in zip(bits(a), bits(b), strict=True)]),
        "andn": lambda: from_bits([x * (1 - y) for x, y in zip(bits(a), bits(b), strict=True)]),
        "orn": lambda: from_bits([max(x, 1 - y) for x, y in zip(bits(a), bits(b), strict=True)]),
        "min.s": lambda: min(signed_a, signed_b),
        "max.s": lambda: max(signed_a, signed_b),
        "min.u": lambda: a if a < b else b,
        "max.u": lambda: a if a > b else b,
        "first": lambda: a,
        "second": lambda: b,
        "sad.s": lambda: signed_a - signed_b if signed_a > signed_b else signed_b - signed_a,
        "sad.u": lambda: a - b if a > b else b - a,
        "clz": lambda: _leading(a),
        "popc": lambda: sum(bits(a)),
        "brev": lambda: from_bits(bits(a)[::-1]),
        "bfind.s": lambda: _find(a, True),
        "bfind.u": lambda: _find(a, False),
        "prmt": lambda: _permute(a, b),
        "bfe.s": lambda: _field(a, b, True),
        "bfe.u": lambda: _field(a, b, False),
        "place": lambda: _place(a, b),
        "cnot": lambda: 1 if a == 0 else 0,
        "slct": lambda: a if signed_b >= 0 else 0,
    }[op]()
    return as_word(found)


def condition(name: str, a: int, b: int) -> bool:
    stem, _, kind = name.partition(".")
    x, y = (as_signed(a), as_signed(b)) if kind == "s" else (a, b)
    order = (x > y) - (x < y)
    return order in {"eq": (0,), "ne": (-1, 1), "lt": (-1,), "le": (-1, 0), "gt": (1,), "ge": (0, 1)}[stem]


def unit_m(op: str, a: int, b: int, c: int) -> int:
    if op == "first":
        return a
    if op == "mul.lo":
        return as_word(a * b)
    if op.startswith("mulhi"):
        product = as_signed(a) * as_signed(b) if op[-1] == "s" else a * b
        return as_word(product // WORD)
    source = bits(a)
    if op == "shl":
        return from_bits(([0] * min(b, 32) + source)[:32])
    if op == "shr.u":
        return from_bits((source[min(b, 32) :] + [0] * 32)[:32])
    if op == "shr.s":
        return from_bits((source[min(b, 32) :] + [source[31]] * 32)[:32])
    pair, amount = source + bits(c), b % 32 if op.endswith("wrap") else min(b, 32)
    return from_bits(pair[32 - amount : 64 - amount] if op.startswith("shf.l") else pair[amount : amount + 32])


def atomic(op: str, old: int, value: int, compare: int, size: int) -> int:
    """The new value; ``size`` in bits."""
    if op in ("min.s", "max.s"):
        half = 1 << size - 1
        key = [(n + half) % (2 * half) for n in (old, value)]
        return (old, value)[key.index(min(key) if op == "min.s" else max(key))]
    return {
        "add": lambda: (old + value) % (1 << size),
        "min.u": lambda: min(old, value),
        "max.u": lambda: max(old, value),
        "inc": lambda: old + 1 if old < value else 0,
        "dec": lambda: value if not 0 < old <= value else old - 1,
        "and": lambda: old & value,
        "or": lambda: old | value,
        "xor": lambda: old ^ value,
        "exch": lambda: value,
        "cas": lambda: value if compare == old else old,
    }[op]()


def shuffle_source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """PTX ISA, shfl.sync: (source lane, predicate)."""
    bval, cval, segmask = b % 32, c % 32, c // 256 % 32
    max_lane = (lane & segmask) | (cval & (31 - segmask))
    min_lane = lane & segmask
    j = {
        "shfl.up": lane - bval,
        "shfl.down": lane + bval,
        "shfl.bfly": lane ^ bval,
        "shfl.idx": min_lane | (bval & (31 - segmask)),
    }[mode]
    inside = j >= max_lane if mode == "shfl.up" else j <= max_lane
    return (j, True) if inside else (lane, False)
