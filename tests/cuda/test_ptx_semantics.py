"""What PTX instructions compute, edge cases above all, against plain Python written from the PTX manual.

Each case runs as it is translated and once more optimised, on words at the edges and on random ones.
"""

import itertools
import random

import numpy as np
import pytest
from tests.cuda.harness import HEAD, REGISTERS, launch

from qgpu.cuda.frontend import translate
from qgpu.cuda.optimize import optimize
from qgpu.cuda.ptx_parser import parse_ptx

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
RANDOM = random.Random(11)
EDGES = [0, 1, 2, 31, 32, 33, 63, 64, 255, 256, 0x7F, 0x80, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, M32 - 1, M32]


def s(value, bits=32):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def clamp(value, low, high):
    return max(low, min(high, value))


def bits_of(value, width=32):
    return [value >> i & 1 for i in range(width)]


def number(bits):
    return sum(bit << i for i, bit in enumerate(bits))


def bfe(a, b, c, signed):
    """The pseudo-code of the manual, bit by bit."""
    position, length = b & 255, c & 255
    fill = 0 if not signed or length == 0 else a >> min(position + length - 1, 31) & 1
    return number([a >> (position + i) & 1 if i < length and position + i <= 31 else fill for i in range(32)])


def bfi(a, b, c, d):
    position, length = c & 255, d & 255
    result = bits_of(b)
    for i in range(length):
        if position + i <= 31:
            result[position + i] = a >> i & 1
    return number(result)


def prmt(a, b, selector):
    pool = (b << 32 | a).to_bytes(8, "little")
    out = []
    for i in range(4):
        nibble = selector >> (4 * i) & 15
        byte = pool[nibble & 7]
        out.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return int.from_bytes(bytes(out), "little")


def by_bytes(a, b, places):
    pool = (b << 32 | a).to_bytes(8, "little")
    return int.from_bytes(bytes(pool[p] for p in places), "little")


def find(value, signed, shift=False):
    if signed and value >> 31:
        value = ~value & M32
    top = next((i for i in range(31, -1, -1) if value >> i & 1), None)
    return M32 if top is None else 31 - top if shift else top


def nth_one(mask, base, offset):
    """The pseudo-code of the manual."""
    if offset == 0:
        return base if mask >> base & 1 else M32
    position, count = base, abs(offset) - 1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += 1 if offset > 0 else -1
    return M32


def funnel(low, high, count, left, wrap):
    n = count & 31 if wrap else min(count, 32)
    whole = high << 32 | low
    return (whole << n) >> 32 & M32 if left else whole >> n & M32


def divide(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def bytes_of(value, signed):
    return [s(byte, 8) if signed else byte for byte in value.to_bytes(4, "little")]


def halves_of(value, signed):
    return [s(value, 16) if signed else value & 0xFFFF, s(value >> 16, 16) if signed else value >> 16]


# (instruction on %r1, %r2, %r3, its result in %r0; what it gives, cut to 32 bits)
THREE = [
    ("mul.hi.s32 %r0, %r1, %r2;", lambda a, b, c: s(a) * s(b) >> 32),
    ("mul.hi.u32 %r0, %r1, %r2;", lambda a, b, c: a * b >> 32),
    ("mad.lo.s32 %r0, %r1, %r2, %r3;", lambda a, b, c: a * b + c),
    ("mad.hi.s32 %r0, %r1, %r2, %r3;", lambda a, b, c: (s(a) * s(b) >> 32) + c),
    ("mad.hi.u32 %r0, %r1, 7, %r3;", lambda a, b, c: (a * 7 >> 32) + c),
    ("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", lambda a, b, c: clamp((s(a) * s(b) >> 32) + s(c), -(2**31), 2**31 - 1)),
    ("mul24.lo.s32 %r0, %r1, %r2;", lambda a, b, c: s(a, 24) * s(b, 24)),
    ("mul24.hi.s32 %r0, %r1, %r2;", lambda a, b, c: s(a, 24) * s(b, 24) >> 16),
    ("mul24.hi.u32 %r0, %r1, %r2;", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16),
    ("mad24.lo.u32 %r0, %r1, %r2, %r3;", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
    ("add.sat.s32 %r0, %r1, %r2;", lambda a, b, c: clamp(s(a) + s(b), -(2**31), 2**31 - 1)),
    ("sub.sat.s32 %r0, %r1, %r2;", lambda a, b, c: clamp(s(a) - s(b), -(2**31), 2**31 - 1)),
    ("sad.s32 %r0, %r1, %r2, %r3;", lambda a, b, c: c + abs(s(a) - s(b))),
    ("sad.u32 %r0, %r1, %r2, %r3;", lambda a, b, c: c + abs(a - b)),
    ("abs.s32 %r0, %r1;", lambda a, b, c: abs(s(a))),
    ("neg.s32 %r0, %r1;", lambda a, b, c: -a),
    ("cnot.b32 %r0, %r1;", lambda a, b, c: int(a == 0)),
    ("not.b32 %r0, %r1;", lambda a, b, c: ~a),
    ("min.s32 %r0, %r1, -5;", lambda a, b, c: min(s(a), -5)),
    ("max.u32 %r0, -5, %r2;", lambda a, b, c: max(M32 - 4, b)),
    ("shl.b32 %r0, %r1, %r2;", lambda a, b, c: a << b if b < 32 else 0),
    ("shr.u32 %r0, %r1, %r2;", lambda a, b, c: a >> b if b < 32 else 0),
    ("shr.s32 %r0, %r1, %r2;", lambda a, b, c: s(a) >> min(b, 31)),
    ("shr.b32 %r0, %r1, 40;", lambda a, b, c: 0),
    ("shf.l.wrap.b32 %r0, %r1, %r2, %r3;", lambda a, b, c: funnel(a, b, c, True, True)),
    ("shf.l.clamp.b32 %r0, %r1, %r2, %r3;", lambda a, b, c: funnel(a, b, c, True, False)),
    ("shf.r.wrap.b32 %r0, %r1, %r2, %r3;", lambda a, b, c: funnel(a, b, c, False, True)),
    ("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", lambda a, b, c: funnel(a, b, c, False, False)),
    ("shf.l.clamp.b32 %r0, %r1, %r2, 32;", lambda a, b, c: a),
    ("bfe.u32 %r0, %r1, %r2, %r3;", lambda a, b, c: bfe(a, b, c, False)),
    ("bfe.s32 %r0, %r1, %r2, %r3;", lambda a, b, c: bfe(a, b, c, True)),
    ("bfe.s32 %r0, %r1, 28, 9;", lambda a, b, c: bfe(a, 28, 9, True)),
    ("bfe.u32 %r0, %r1, 40, 9;", lambda a, b, c: 0),
    ("bfi.b32 %r0, %r1, %r2, %r3, 7;", lambda a, b, c: bfi(a, b, c, 7)),
    ("bfi.b32 %r0, %r1, %r2, 5, %r3;", lambda a, b, c: bfi(a, b, 5, c)),
    ("bfi.b32 %r0, %r1, %r2, 0, 32;", lambda a, b, c: a),
    ("bfi.b32 %r0, %r1, %r2, 32, 4;", lambda a, b, c: b),
    ("prmt.b32 %r0, %r1, %r2, %r3;", prmt),
    ("prmt.b32 %r0, %r1, %r2, 0x98ba;", lambda a, b, c: prmt(a, b, 0x98BA)),
    ("prmt.b32.f4e %r0, %r1, %r2, %r3;", lambda a, b, c: by_bytes(a, b, [(c & 3) + i for i in range(4)])),
    ("prmt.b32.b4e %r0, %r1, %r2, %r3;", lambda a, b, c: by_bytes(a, b, [((c & 3) - i) % 8 for i in range(4)])),
    ("prmt.b32.rc8 %r0, %r1, %r2, %r3;", lambda a, b, c: by_bytes(a, b, [c & 3] * 4)),
    ("prmt.b32.ecl %r0, %r1, %r2, %r3;", lambda a, b, c: by_bytes(a, b, [max(c & 3, i) for i in range(4)])),
    ("prmt.b32.ecr %r0, %r1, %r2, %r3;", lambda a, b, c: by_bytes(a, b, [min(c & 3, i) for i in range(4)])),
    ("prmt.b32.rc16 %r0, %r1, %r2, %r3;", lambda a, b, c: by_bytes(a, b, [2 * (c & 1), 2 * (c & 1) + 1] * 2)),
    ("bfind.u32 %r0, %r1;", lambda a, b, c: find(a, False)),
    ("bfind.s32 %r0, %r1;", lambda a, b, c: find(a, True)),
    ("bfind.shiftamt.u32 %r0, %r1;", lambda a, b, c: find(a, False, True)),
    ("bfind.shiftamt.s32 %r0, %r1;", lambda a, b, c: find(a, True, True)),
    ("clz.b32 %r0, %r1;", lambda a, b, c: 32 - a.bit_length()),
    ("popc.b32 %r0, %r1;", lambda a, b, c: a.bit_count()),
    ("brev.b32 %r0, %r1;", lambda a, b, c: number(bits_of(a)[::-1])),
    ("lop3.b32 %r0, %r1, %r2, %r3, 0xca;", lambda a, b, c: (a & b) | (~a & c)),
    ("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", lambda a, b, c: a ^ b ^ c),
    ("and.b32 %r4, %r2, 31; fns.b32 %r0, %r1, %r4, %r3;", lambda a, b, c: nth_one(a, b & 31, s(c))),
    ("and.b32 %r4, %r2, 31; shr.s32 %r5, %r3, 28; fns.b32 %r0, %r1, %r4, %r5;",
     lambda a, b, c: nth_one(a, b & 31, s(c) >> 28)),
    ("fns.b32 %r0, %r1, 20, -2;", lambda a, b, c: nth_one(a, 20, -2)),
    ("fns.b32 %r0, 0x50c0, 5, %r3;", lambda a, b, c: nth_one(0x50C0, 5, s(c))),
    ("bmsk.clamp.b32 %r0, %r1, %r2;", lambda a, b, c: ((1 << min(b, 32)) - 1) << min(a, 32)),
    ("bmsk.wrap.b32 %r0, %r1, %r2;", lambda a, b, c: ((1 << (b & 31)) - 1) << (a & 31)),
    ("szext.clamp.s32 %r0, %r1, %r2;", lambda a, b, c: s(a, min(b, 32)) if b else 0),
    ("szext.wrap.u32 %r0, %r1, %r2;", lambda a, b, c: a & ((1 << (b & 31)) - 1)),
    ("dp4a.s32.u32 %r0, %r1, %r2, %r3;",
     lambda a, b, c: c + sum(x * y for x, y in zip(bytes_of(a, True), bytes_of(b, False), strict=True))),
    ("dp4a.u32.s32 %r0, %r1, %r2, 3;",
     lambda a, b, c: 3 + sum(x * y for x, y in zip(bytes_of(a, False), bytes_of(b, True), strict=True))),
    ("dp2a.lo.s32.s32 %r0, %r1, %r2, %r3;",
     lambda a, b, c: c + sum(x * y for x, y in zip(halves_of(a, True), bytes_of(b, True)[:2], strict=True))),
    ("dp2a.hi.u32.s32 %r0, %r1, %r2, %r3;",
     lambda a, b, c: c + sum(x * y for x, y in zip(halves_of(a, False), bytes_of(b, True)[2:], strict=True))),
    ("vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;",
     lambda a, b, c: c + sum(abs(x - y) for x, y in zip(bytes_of(a, False), bytes_of(b, False), strict=True))),
    ("vadd4.s32.s32.s32.sat %r0, %r1, %r2, %r3;",
     lambda a, b, c: sum((clamp(x + y, -128, 127) & 255) << 8 * i
                         for i, (x, y) in enumerate(zip(bytes_of(a, True), bytes_of(b, True), strict=True)))),
    ("vavrg2.s32.s32.s32 %r0, %r1, %r2, %r3;",
     lambda a, b, c: sum(((abs(x + y) + 1) // 2 * (1 if x + y >= 0 else -1) & 0xFFFF) << 16 * i
                         for i, (x, y) in enumerate(zip(halves_of(a, True), halves_of(b, True), strict=True)))),
    ("setp.lt.s32 %p1, %r1, %r2; selp.b32 %r0, %r1, %r3, !%p1;", lambda a, b, c: c if s(a) < s(b) else a),
    ("setp.hi.and.u32 %p1|%p2, %r1, %r2, %p3; selp.b32 %r0, 1, 2, %p2;", lambda a, b, c: 2),
    ("setp.hi.xor.u32 %p1|%p2, %r1, %r2, !%p3; selp.b32 %r0, 1, 2, %p2;", lambda a, b, c: 1 if a > b else 2),
    ("set.le.or.u32.s32 %r0, %r1, %r2, %p3;", lambda a, b, c: M32 if s(a) <= s(b) else 0),
    ("slct.u32.s32 %r0, %r1, %r2, %r3;", lambda a, b, c: a if s(c) >= 0 else b),
    ("cvt.sat.u8.s32 %r0, %r1;", lambda a, b, c: clamp(s(a), 0, 255)),
    ("cvt.sat.s8.s32 %r0, %r1;", lambda a, b, c: clamp(s(a), -128, 127)),
    ("cvt.sat.s16.u32 %r0, %r1;", lambda a, b, c: min(a, 32767)),
    ("cvt.sat.s32.u32 %r0, %r1;", lambda a, b, c: min(a, 2**31 - 1)),
    ("cvt.sat.u32.s32 %r0, %r1;", lambda a, b, c: max(s(a), 0)),
    ("cvt.sat.u32.s16 %r0, %r1;", lambda a, b, c: max(s(a, 16), 0)),
    ("cvt.u32.u8 %r0, %r1;", lambda a, b, c: a & 255),
    ("cvt.s32.s8 %r0, %r1;", lambda a, b, c: s(a, 8)),
    ("cvt.s8.u32 %r0, %r1;", lambda a, b, c: s(a, 8)),
    ("cvt.u16.s32 %h1, %r1; cvt.s32.s16 %r0, %h1;", lambda a, b, c: s(a, 16)),
    ("mov.b32 {%h1, %h2}, %r1; mov.b32 %r0, {%h2, %h1};", lambda a, b, c: a >> 16 | a << 16),
    ("mov.b32 {%h1, %h2, %h3, %h4}, %r1; mov.b32 %r0, {%h4, %h3, %h2, %h1};",
     lambda a, b, c: int.from_bytes(a.to_bytes(4, "big"), "little")),
    ("mov.b64 %d1, {%r1, %r2}; mov.b64 {%r2, %r0}, %d1;", lambda a, b, c: b),
    ("mul.wide.s32 %d1, %r1, %r2; shr.s64 %d2, %d1, 20; cvt.u32.u64 %r0, %d2;", lambda a, b, c: s(a) * s(b) >> 20),
    ("cvt.u16.u32 %h1, %r1; mul.wide.s16 %r0, %h1, -3;", lambda a, b, c: s(a, 16) * -3),
    ("add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;", lambda a, b, c: c + (a + b >> 32)),
    ("add.cc.u32 %r4, %r1, %r2; addc.cc.u32 %r4, %r3, %r1; addc.u32 %r0, 0, 0;",
     lambda a, b, c: (c << 32 | a) + (a << 32 | b) >> 64),
    ("sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 1;", lambda a, b, c: c - 1 - (a < b)),
    ("sub.cc.u32 %r4, %r1, %r2; subc.cc.u32 %r4, %r3, %r2; subc.u32 %r0, 0, 0;",
     lambda a, b, c: -((c << 32 | a) < (b << 32 | b))),
    ("mad.lo.cc.u32 %r4, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, %r3;",
     lambda a, b, c: a * b + (c << 32 | c) >> 32),
    ("add.cc.u32 %r1, %r1, %r1; addc.u32 %r0, %r1, %r1;", lambda a, b, c: 4 * a + (a >> 31)),
    ("@%p3 add.s32 %r1, %r1, 1; mov.b32 %r0, %r1;", lambda a, b, c: a),
    ("mov.u16 %h1, %laneid; cvt.u32.u16 %r0, %h1;", lambda a, b, c: 0),
    ("mov.u32 %r0, %nsmid;", lambda a, b, c: 1),
    ("mov.b32 %r0, 0fC0490FDB;", lambda a, b, c: 0xC0490FDB),
    ("rem.s32 %r0, %r1, -7;", lambda a, b, c: s(a) - -7 * divide(s(a), -7)),
    ("div.s32 %r0, %r1, -7;", lambda a, b, c: divide(s(a), -7)),
    ("div.u32 %r0, -1, %r1;", lambda a, b, c: M32 // a if a else M32),
    ("rem.u32 %r0, %r2, %r1;", lambda a, b, c: b % a if a else b),
]  # fmt: skip


def kernel(instruction):
    """Reads triples of words from ``a``, and writes the instruction's results to ``out``."""
    registers = REGISTERS.replace("%r<20>", "%r<40>")
    return translate(
        parse_ptx(
            f"{HEAD}.entry k(.param .u32 a, .param .u32 out, .param .u32 n)\n{{\n{registers}\n"
            "ld.param.b32 %r30, [a]; ld.param.b32 %r31, [out]; ld.param.b32 %r32, [n]; setp.eq.s32 %p3, %r32, -1;\n"
            "LOOP: ld.global.b32 %r1, [%r30]; ld.global.b32 %r2, [%r30+4]; ld.global.b32 %r3, [%r30+8];\n"
            f"{instruction}\nst.global.b32 [%r31], %r0;\n"
            "add.s32 %r30, %r30, 12; add.s32 %r31, %r31, 4; sub.s32 %r32, %r32, 1; setp.ne.s32 %p4, %r32, 0;\n"
            "setp.eq.s32 %p3, %r32, -1; @%p4 bra LOOP; ret;\n}\n",
            "k.ptx",
        ),
        "k",
    )


TRIPLES = [
    *itertools.islice(itertools.product(EDGES, EDGES, (5, 32, M32)), 0, None, 23),
    *[(a, RANDOM.choice(EDGES), RANDOM.choice(EDGES)) for a in EDGES],
    *[tuple(RANDOM.getrandbits(32) for _ in range(3)) for _ in range(12)],
    *[(RANDOM.getrandbits(32), RANDOM.getrandbits(32), RANDOM.randrange(40)) for _ in range(8)],
]


@pytest.mark.parametrize(("instruction", "oracle"), THREE, ids=[row[0] for row in THREE])
def test_instruction(instruction, oracle):
    words = np.array(TRIPLES, np.uint32).reshape(-1)
    expected = [oracle(*triple) & M32 for triple in TRIPLES]
    function = kernel(instruction)
    for version in (function, optimize(function)):
        found = launch(version, [words, np.zeros(len(TRIPLES), np.uint32), len(TRIPLES)])[1]
        wrong = [(t, hex(int(f)), hex(e)) for t, f, e in zip(TRIPLES, found, expected, strict=True) if int(f) != e]
        assert not wrong, wrong[:3]
