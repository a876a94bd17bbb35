"""What the circuits implement of the block encoding: the one switch that the compiler obeys.

A choice that is not listed may stand in no block that a compiler emits; the interpreter runs all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qgpu.isa.encoding import CHOICES, CONDITIONS
from qgpu.isa.program import Program

_ALU: Final = frozenset({"add", "sub", "rsub", "and", "or", "xor", "first", "second"})

PRESENT: Final[dict[str, frozenset[str]]] = {
    "x": frozenset({"zero", "tid.x", "tid.y", "tid.z", "laneid", "warpid"}),
    "y": frozenset(CHOICES["y"]),
    "a_sel": frozenset(CHOICES["a_sel"]),
    "b_sel": frozenset(CHOICES["b_sel"]),
    "sa_sel": frozenset(CHOICES["sa_sel"]),
    "sb_sel": frozenset(CHOICES["sb_sel"]),
    "m1_sel": frozenset(CHOICES["m1_sel"]) - {"V"},
    "m2_sel": frozenset(CHOICES["m2_sel"]),
    "c_sel": frozenset(CHOICES["c_sel"]) - {"V"},
    "alu_a": _ALU,
    "alu_b": _ALU,
    "m_op": frozenset({"first", "mul.lo"}),
    "load": frozenset({"none", "b32"}),
    "store": frozenset({"none", "b32"}),
    "atomic": frozenset({"none", "add"}),
    "e_sel": frozenset({"R", "L"}),
    "stage_w": frozenset(CHOICES["stage_w"]),
    "cond": frozenset(CONDITIONS),
    "p_src": frozenset({"a", "b"}),
    "branch": frozenset({"next", "bra", "exit", "trap"}),
    "collect": frozenset({"none"}),
    "member": frozenset({"Q"}),
}
"""Enumerated field -> the choices that the circuits implement."""

COMPLETE: Final[dict[str, frozenset[str]]] = {name: frozenset(choices) for name, choices in CHOICES.items()}
"""The whole contract: what the interpreter runs."""

ABSENT_FIELDS: Final = frozenset({"d_o", "load_wide", "store_wide", "yield", "collect_parity", "publish_parity"})
"""Fields that must be zero in a block the circuits are to run. One rule besides: a predicate written from ALU B's
operands (``p_src`` b) compares the first operand of unit M, so that ``m_op`` must be ``first`` there."""


def faults(fields: Mapping[str, int]) -> list[str]:
    """What of a block's fields (numbers) the circuits do not implement, one text each."""
    found = [
        f"{name} {CHOICES[name][value]}"
        for name, value in fields.items()
        if name in PRESENT and CHOICES[name][value] not in PRESENT[name]
    ]
    found += [name for name in sorted(ABSENT_FIELDS) if fields.get(name)]
    b_source, first = CHOICES["p_src"].index("b"), CHOICES["m_op"].index("first")
    if fields.get("p_write") and fields.get("p_src") == b_source and fields.get("m_op", 0) != first:
        found.append("a comparison of a product (p_src b with a unit M that multiplies)")
    return found


def program_faults(program: Program) -> list[str]:
    """What of a program the circuits do not implement, one text each, with its block and source line."""
    return [
        f"{program.name}: block {index}{f' (line {block.line})' if block.line else ''}: the circuits have no {text} yet"
        for index, block in enumerate(program.blocks)
        for text in faults(block.fields)
    ]
