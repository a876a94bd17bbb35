"""Ids and block encodings: every one comes back, none overlaps another, and bad ones are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.isa.random_blocks import fields

from qgpu.isa import encoding, tokens


@given(st.integers(0, tokens.USED_IDS - 1))
def test_every_id_comes_back(token: int) -> None:
    name, values = tokens.decode(token)
    assert tokens.encode(name, *values) == token


def test_ids_by_hand() -> None:
    assert tokens.encode("EXEC", 3, 2) == 65536 + 3 * 32 + 2
    assert tokens.encode("MEM", 5, 3) == 65536 + 8192 + 5 * 4 + 3
    assert tokens.encode("HALT") == tokens.USED_IDS - 1 < tokens.VOCABULARY
    assert tokens.mask(1, 0b0101, 2) == tokens.BY_NAME["MASK"].first + 32 + 6  # after 1, 2, 3 (twice), 4, 5 led by 0
    assert tokens.data(-1) == 0xFFFF


@pytest.mark.parametrize("token", [-1, tokens.USED_IDS, tokens.VOCABULARY])
def test_ids_of_no_kind(token: int) -> None:
    with pytest.raises(ValueError, match="token id"):
        tokens.decode(token)


@pytest.mark.parametrize("call", [("EXEC", 256, 0), ("EXEC", 0), ("MEM", 2048, 0), ("VAL", -1)])
def test_fields_out_of_range(call: tuple[str, int]) -> None:
    with pytest.raises(ValueError, match=call[0]):
        tokens.encode(*call)


def test_tokens_as_text() -> None:
    said = [
        (tokens.encode("EXEC", 3, 0), "EXEC b3 q0"),
        (0x20, "DATA 0x0020"),
        (tokens.mask(1, 0b0101, 2), "MASK q1 0b0101 leader 2"),
        (tokens.encode("FAULT", 3, 1), "FAULT store misaligned, lane 1"),
        (tokens.encode("MEM", 5, 3), "MEM row 5 lane 3"),
        (tokens.encode("GO"), "GO"),
    ]
    for token, text in said:
        assert tokens.text(token) == text


@given(fields)
def test_every_block_comes_back(values: dict[str, int]) -> None:
    parts = encoding.encode(dict(values))
    assert len(parts) == 4 and all(0 <= part < 2**64 for part in parts)
    assert {name: value for name, value in encoding.decode(parts).items() if value} == {
        name: value for name, value in values.items() if value
    }


def test_fields_do_not_overlap_and_are_little_endian() -> None:
    for part in range(4):
        at = 0
        for f in (f for f in encoding.FIELDS if f.part == part):
            assert f.shift == at
            at += f.width
            assert encoding.encode({f.name: 1})[part] == 1 << f.shift
        assert at <= 64
    assert encoding.encode({"imm": -2})[0] == 0xFFFE << 24
    for name, choices in encoding.CHOICES.items():
        assert len(choices) <= 1 << encoding.BY_NAME[name].width
        assert len(set(choices)) == len(choices)


@pytest.mark.parametrize(
    "bad", [{"nothing": 1}, {"ra": 16}, {"imm": 32768}, {"imm": -32769}, {"load": "b128"}, {"ra": "r1"}]
)
def test_bad_fields_are_named(bad: dict[str, int | str]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        encoding.encode(bad)


def test_reserved_choices_have_no_name() -> None:
    with pytest.raises(ValueError, match="load 7 is reserved"):
        encoding.choice("load", 7)
