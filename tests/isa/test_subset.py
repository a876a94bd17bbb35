"""The rules of what circuits have: blocks that are refused, with their reason, and blocks just beside them."""

from __future__ import annotations

import pytest
from tests.isa.mend import mended

from qgpu.isa import encoding, subset

REFUSED = [
    ("slow operation", {"load": "b32", "alu_a": "popc"}, {"load": "b32", "alu_a": "min.s"}),
    ("on a product", {"m_op": "mul.lo", "alu_b": "xor"}, {"m_op": "mul.lo", "alu_b": "rsub"}),
    ("in the block that computes", {"m_op": "shl", "alu_b": "max.u"}, {"alu_b": "max.u"}),
    ("in the block that computes", {"m_op": "shl", "p_write": 1, "p_src": "b"}, {"p_write": 1, "p_src": "b"}),
    ("shift by a value", {"m_op": "shr.u", "m2_sel": "L"}, {"m_op": "shr.u", "m2_sel": "A"}),
    ("with rc = d_o", {"store": "b32", "atomic": "add", "d_o": 3},
     {"store": "b32", "atomic": "add", "d_o": 3, "rc": 3}),
    ("32 bits", {"store": "b64", "atomic": "add", "d_o": 3, "rc": 3}, {"store": "b64", "atomic": "add"}),
    ("8 or 16 bits", {"store": "b16", "atomic": "xor"}, {"store": "b16"}),
    ("8 or 16 bits", {"store": "b8", "atomic": "exch"}, {"store": "b32", "atomic": "exch"}),
    ("inc and dec", {"store": "b64", "atomic": "dec"}, {"store": "b32", "atomic": "dec"}),
    ("first destination", {"store": "b64", "atomic": "cas", "rb": 5, "d_b": 5},
     {"store": "b64", "atomic": "cas", "rb": 5, "d_e": 4, "d_b": 5}),
    ("first destination", {"store": "b64", "atomic": "cas", "rb": 5, "d_e": 5},
     {"store": "b64", "atomic": "cas", "rb": 5}),
]  # fmt: skip


def numbers(fields: dict[str, int | str]) -> dict[str, int]:
    return {k: encoding.CHOICES[k].index(v) if isinstance(v, str) else v for k, v in fields.items()}


@pytest.mark.parametrize(("reason", "refused", "allowed"), REFUSED)
def test_rules(reason: str, refused: dict[str, int | str], allowed: dict[str, int | str]) -> None:
    (told,) = subset.rules(numbers(refused))
    assert reason in told
    assert subset.rules(numbers(allowed)) == []
    assert subset.rules(numbers(mended(refused))) == []
