"""The machine's circuit against the interpreter: every token of every launch."""

from __future__ import annotations

from random import Random

import pytest
from tests.machine.harness import DOT, block, mismatches
from tests.machine.random_launches import launch

from qgpu.isa.program import Launch, Program

EXIT = block(branch="exit")
ALL = (1 << 64) - 1


def program(*blocks: object, parameters: int = 0) -> Program:
    return Program("test", tuple(blocks), parameters)  # type: ignore[arg-type]


LAUNCHES = {
    "one thread": Launch(program(EXIT)),
    "grid in three dimensions": Launch(program(EXIT), (3, 2, 2), (6, 1, 1)),
    "short value": Launch(program(block(c_sel="I", imm=5, d_b=3), EXIT), (2, 1, 1), (9, 1, 1)),
    "a value a lane": Launch(program(block(c_sel="X", x="tid.x", d_b=3), EXIT), (1, 1, 1), (11, 1, 1)),
    "two destinations, wide": Launch(
        program(block(a_sel="I", imm=32766, b_sel="X", x="tid.x", d_e=4, c_sel="X", d_b=3), EXIT), (1, 1, 1), (128, 1, 1)  # noqa: E501
    ),
    "back edge": Launch(
        program(block(branch="bra", target=2), EXIT, block(branch="bra", target=1, back=1)), (5, 1, 1), (17, 3, 1)
    ),
    "bytes side by side": Launch(
        program(block(sa_sel="T", pt=6, sb_sel="BS", b_sel="X", x="tid.x", c_sel="X", alu_b="second", store="b8"), EXIT,
                parameters=1),
        (1, 1, 1), (11, 1, 1), (65,), {8: (0x11111111, 0x22222222)}, {1: ALL},
    ),
    "counters with their old values": Launch(
        program(
            block(sa_sel="T", pt=6, c_sel="I", alu_b="second", imm=-1, rc=5, store="b32", atomic="add", d_o=5),
            block(sa_sel="T", pt=6, sb_sel="I", imm=8, rc=6, c_sel="X", x="tid.x", alu_b="second", store="b32",
                  atomic="max.s", d_b=2, d_o=6),
            EXIT, parameters=1,
        ),
        (1, 1, 1), (7, 1, 1), (64,), {8: (3, 0)}, {1: ALL},
    ),
    "a swap of 64 bits": Launch(
        program(block(a_sel="I", imm=7, c_sel="I", alu_b="second", sa_sel="T", pt=6, store="b64", atomic="cas"), EXIT,
                parameters=1),
        (1, 1, 1), (2, 1, 1), (64,), {8: (7, 0)}, {1: ALL},
    ),
    "dot": Launch(DOT, (1, 1, 1), (3, 1, 1), (64, 80, 96), {8: (1, 2), 9: (3, 0), 10: (4, 5), 11: (6, 0)}, {1: ALL}),
}  # fmt: skip


def test_named_launches() -> None:
    found, compared = mismatches(list(LAUNCHES.values()))
    assert [str(m) for m in found] == []
    assert compared > 800


@pytest.mark.parametrize("seed", range(2))
def test_random_launches(seed: int) -> None:
    rng = Random(seed)
    found, compared = mismatches([launch(rng) for _ in range(64)], 150)
    assert [str(m) for m in found] == []
    assert compared > 2000
