"""printf: what the formats make of their values, against C's rules as Python's own formatting and by hand."""

import struct

import pytest

from qgpu.cuda.printf import Value, render, values, words_of


def packed(*parts):
    """Values as CUDA lays them out: (struct letter, value) pairs, each aligned to its size."""
    data = b""
    for letter, value in parts:
        size = struct.calcsize(letter)
        data = data.ljust(-(-len(data) // size) * size, b"\0") + struct.pack(f"<{letter}", value)
    return data


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("nothing\n", [], "nothing\n"),
        ("100%%", [], "100%"),
        ("%d %u", [("i", -1), ("i", -1)], "-1 4294967295"),
        ("%5d|%-5d|%05d|%+d", [("i", 42)] * 4, "   42|42   |00042|+42"),
        ("%x %X %#x %o %#o", [("I", 255)] * 5, "ff FF 0xff 377 0377"),
        ("%08x", [("I", 0xBEEF)], "0000beef"),
        ("%lld %llu", [("q", -(2**63)), ("Q", 2**64 - 1)], "-9223372036854775808 18446744073709551615"),
        ("%d %lld %d", [("i", 1), ("q", 2), ("i", 3)], "1 2 3"),
        ("%c%c", [("i", 104), ("i", 105)], "hi"),
        ("%hd %hhu", [("i", 65535), ("i", 511)], "-1 255"),
        ("%*d|%-*d", [("i", 4), ("i", 7), ("i", 3), ("i", 8)], "   7|8  "),
        ("%.3d %06.3d", [("i", 7), ("i", 7)], "007    007"),
        ("%f %.2f %g", [("d", 1.5), ("d", 2.25), ("d", 1e10)], "1.500000 2.25 1e+10"),
        ("%s and %5.2s|", [("I", 100), ("I", 200)], "text at 100 and    te|"),
        ("%p", [("I", 0x40)], "0x40"),
        ("%99999999d", [("i", 7)], "%99999999d"),
    ],
)
def test_render(text, parts, expected):
    assert render(text, packed(*parts), 4, lambda address: f"text at {address}") == expected


def test_long_and_pointers_follow_the_module():
    assert values("%ld %d %s", 4) == (Value(0, 4), Value(4, 4), Value(8, 4))
    assert values("%ld %d %s", 8) == (Value(0, 8), Value(8, 4), Value(16, 8))
    assert [words_of("%ld %d %s", size) for size in (4, 8)] == [3, 6]
    assert render("%ld", struct.pack("<q", -(2**40)), 8, str) == str(-(2**40))
