"""docs/machine.md prints the tables of the code, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qgpu.isa import encoding, operations, tokens

TEXT = (Path(__file__).parents[2] / "docs" / "machine.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """Cells of the rows of the table whose first column is called ``heading``."""
    lines = TEXT.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows


def test_vocabulary() -> None:
    expected = [
        [k.name, str(k.first), str(k.count), ", ".join(f"{n} {size}" for n, size in k.fields) or "-", k.meaning]
        for k in tokens.KINDS
    ]
    assert table("kind") == expected
    assert f"Ids from {tokens.USED_IDS} to {tokens.VOCABULARY - 1} fill" in TEXT


@pytest.mark.parametrize("part", range(4))
def test_fields(part: int) -> None:
    expected = []
    for f in encoding.FIELDS:
        if f.part == part:
            bits = str(f.shift) if f.width == 1 else f"{f.shift}..{f.shift + f.width - 1}"
            choices = "as alu_a" if f.name == "alu_b" else " ".join(encoding.CHOICES.get(f.name, ())) or "-"
            expected.append([f.name, bits, choices, f.meaning])
    assert expected and table(f"part {part}") == expected


def test_alu_b_has_the_operations_of_alu_a() -> None:
    assert encoding.CHOICES["alu_b"] == encoding.CHOICES["alu_a"]


def test_causes() -> None:
    assert ", ".join(f"{number} {cause}" for number, cause in enumerate(tokens.CAUSES)) in TEXT


def test_every_operation_has_its_line() -> None:
    documented = " ".join(
        row[0] for name in ("operation", "unit M", "atomic | new value, n bits") for row in table(name)
    )
    words = set(re.findall(r"[a-z]+(?:\.[a-z]+)*", documented))
    for name in (*operations.ALU, *operations.UNIT_M, *operations.ATOMIC):
        stem = re.sub(r"\.(s|u|wrap|clamp)$", "", name)
        assert name in words or stem in words, name
    assert set(operations.ALU) == set(encoding.ALU_OPS) and set(operations.UNIT_M) == set(encoding.M_OPS)
    assert {"none", *operations.ATOMIC} == set(encoding.CHOICES["atomic"])
    assert tuple(operations.CONDITION) == encoding.CONDITIONS


def test_mask_pairs_of_the_page() -> None:
    spelled = {(1, 0): 0, (2, 1): 1, (3, 0): 2, (3, 1): 3, (4, 2): 4, (15, 3): 31}
    assert {pair: tokens.MASK_PAIRS.index(pair) for pair in spelled} == spelled
