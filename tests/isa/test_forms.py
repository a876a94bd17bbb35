"""The prefix code, read back by the tables of docs/machine.md, and no shorter form that would have been right."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from qgpu.isa import values

EDGES = (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFF7FFF, 0xFFFF8000, 0xFFFFFFFF)
words = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**32 - 1), st.integers(0, 0xFFFF))


def sext(payload: int) -> int:
    return payload | 0xFFFF0000 if payload & 0x8000 else payload


def pair(low: int, high: int) -> int:
    return high << 16 | low


def read_lanes(k: int, wide: bool, d: list[int]) -> list[int] | None:
    """The page's table of destinations; None where it has no entry."""
    n = len(d)
    if wide:
        return [pair(d[2 * i], d[2 * i + 1]) for i in range(k)] if k > 2 and n == 2 * k else None
    table = {
        1: lambda: [sext(d[0])] * k,
        2: lambda: [sext(d[0]), sext(d[1])] if k == 2 else [pair(*d)] * k,
        3: lambda: [sext(x) for x in d] if k == 3 else None,
        4: lambda: [sext(x) for x in d] if k == 4 else [pair(d[0], d[1]), pair(d[2], d[3])] if k == 2 else None,
    }
    return table[n]() if n in table else None


@settings(max_examples=400)
@given(st.lists(words, min_size=1, max_size=4), st.booleans())
def test_lanes_come_back_and_nothing_shorter_would_do(lanes: list[int], same: bool) -> None:
    lanes = lanes[:1] * len(lanes) if same else lanes
    wide, payloads = values.lane_form(lanes)
    assert all(0 <= d <= 0xFFFF for d in payloads)
    assert read_lanes(len(lanes), wide, payloads) == lanes
    halves = [half for word in lanes for half in (word & 0xFFFF, word >> 16)]
    lows = [word & 0xFFFF for word in lanes]
    others = [lows[:1], halves[:2], lows, halves] if len(lanes) < 3 else [lows[:1], halves[:2], lows]
    right = [len(d) for d in others if read_lanes(len(lanes), False, d) == lanes]
    assert len(payloads) == min(right) if right else wide


def read_row(d: list[int]) -> tuple[int, int]:
    return {
        1: lambda: (sext(d[0]), 0),
        2: lambda: (sext(d[0]), sext(d[1])),
        3: lambda: (pair(d[0], d[1]), sext(d[2])),
        4: lambda: (pair(d[0], d[1]), pair(d[2], d[3])),
    }[len(d)]()


@settings(max_examples=400)
@given(words, words)
def test_rows_come_back_and_nothing_shorter_would_do(low: int, high: int) -> None:
    payloads = values.row_form(low, high)
    assert read_row(payloads) == (low, high) == values.row_of(payloads)
    l0, l1, h0, h1 = low & 0xFFFF, low >> 16, high & 0xFFFF, high >> 16
    candidates = [[l0], [l0, h0], [l0, l1, h0], [l0, l1, h0, h1]]
    assert payloads == next(d for d in candidates if read_row(d) == (low, high))


@given(st.integers(0, 2**31 - 1) | st.integers(0, 70000), st.integers(0, 0xFFFF), st.integers(0, 2))
def test_cta_indices(x: int, y: int, z: int) -> None:
    d = values.cta_form(x, y, z)
    full = d + [0] * (4 - len(d))
    assert (full[3] << 16 | full[0], full[1], full[2]) == (x, y, z)
    assert len(d) == 1 or d[-1] != 0
