"""What the circuits implement of the block encoding: the one switch that the compiler obeys.

``PRESENT`` lists the choices that stand in weights today, ``REVISED`` those that revision 2 of the contract gives the
circuits in the end, ``COMPLETE`` what the interpreter runs. ``rules`` are the combinations of choices that no circuit
has, whatever the table: unit M, ALU B and the exchange lie where their inputs are there in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from qgpu.isa.encoding import CHOICES, CONDITIONS
from qgpu.isa.program import Program, in_words

QUICK: Final = frozenset(
    {"add", "sub", "rsub", "and", "or", "xor", "andn", "orn", "first", "second", "min.s", "max.s", "min.u", "max.u"}
)
"""Operations of ALU A whose result may be an address; all that ALU B has."""

SLOW: Final = frozenset({"addc", "clz", "popc", "brev", "bfind.s", "bfind.u", "prmt", "byte.s", "byte.u", "half.s",
                         "half.u", "cnot", "slct"})  # fmt: skip
"""What ALU A has besides; bfe, place and sad are written in shifts, masks, min and max."""

BOUNDS: Final = frozenset({"min.s", "max.s", "min.u", "max.u"})
AFTER_PRODUCT: Final = frozenset({"add", "sub", "rsub", "first", "second"})
"""What ALU B does with a product: all of it is one sum of columns."""

PRODUCTS: Final = frozenset({"mul.lo", "mulhi.s", "mulhi.u"})
AMOUNTS: Final = frozenset({"zero", "B", "I", "Q", "A"})
"""Where the amount of a shift may come from: what is known early."""

PRESENT: Final[dict[str, frozenset[str]]] = {
    "x": frozenset(CHOICES["x"]),
    "y": frozenset(CHOICES["y"]),
    "a_sel": frozenset(CHOICES["a_sel"]),
    "b_sel": frozenset(CHOICES["b_sel"]),
    "sa_sel": frozenset(CHOICES["sa_sel"]),
    "sb_sel": frozenset(CHOICES["sb_sel"]),
    "m1_sel": frozenset(CHOICES["m1_sel"]),
    "m2_sel": frozenset(CHOICES["m2_sel"]),
    "c_sel": frozenset(CHOICES["c_sel"]),
    "alu_a": QUICK | SLOW,
    "alu_b": QUICK,
    "m_op": frozenset(CHOICES["m_op"]),
    "load": frozenset(CHOICES["load"]),
    "store": frozenset(CHOICES["store"]),
    "atomic": frozenset(CHOICES["atomic"]),
    "e_sel": frozenset(CHOICES["e_sel"]),
    "stage_w": frozenset(CHOICES["stage_w"]),
    "cond": frozenset(CONDITIONS),
    "p_src": frozenset(CHOICES["p_src"]),
    "branch": frozenset(CHOICES["branch"]),
    "collect": frozenset(CHOICES["collect"]),
    "member": frozenset(CHOICES["member"]),
}
"""Enumerated field -> the choices that the circuits implement."""

COMPLETE: Final[dict[str, frozenset[str]]] = {name: frozenset(choices) for name, choices in CHOICES.items()}
"""The whole contract: what the interpreter runs."""

REVISED: Final[dict[str, frozenset[str]]] = {**COMPLETE, "alu_a": QUICK | SLOW, "alu_b": QUICK}
"""What the circuits are to implement, together with ``rules``."""

ABSENT_FIELDS: Final[frozenset[str]] = frozenset()
"""Fields that must be zero in a block the circuits are to run today."""


def _choice(fields: Mapping[str, int], name: str) -> str:
    return CHOICES[name][fields.get(name, 0)]


def _slow_address(f: Mapping[str, int]) -> bool:
    return _choice(f, "load") != "none" and _choice(f, "alu_a") not in QUICK


def _product_logic(f: Mapping[str, int]) -> bool:
    return _choice(f, "m_op") in PRODUCTS and _choice(f, "alu_b") not in AFTER_PRODUCT


def _late_order(f: Mapping[str, int]) -> bool:
    compares = f.get("p_write", 0) and _choice(f, "p_src") == "b"
    return bool(compares or _choice(f, "alu_b") in BOUNDS) and _choice(f, "m_op") != "first"


def _late_amount(f: Mapping[str, int]) -> bool:
    op = _choice(f, "m_op")
    return op != "first" and op not in PRODUCTS and _choice(f, "m2_sel") not in AMOUNTS


def _ballot_elsewhere(f: Mapping[str, int]) -> bool:
    if _choice(f, "collect") != "ballot":
        return False
    uses = _choice(f, "m1_sel") == "V" or _choice(f, "c_sel") == "V"
    compares = f.get("p_write", 0) and _choice(f, "p_src") == "b"
    result = (_choice(f, "alu_b"), _choice(f, "m_op"))
    plain = _choice(f, "m1_sel") != "V" and (result[0] == "second" or result == ("and", "first")) and not compares
    return uses and not plain


def _old_elsewhere(f: Mapping[str, int]) -> bool:
    return bool(f.get("d_o", 0)) and (f.get("rc", 0) != f["d_o"] or _choice(f, "store") == "b64")


def _odd_atomic(f: Mapping[str, int]) -> bool:
    op, size = _choice(f, "atomic"), _choice(f, "store")
    return op != "none" and (size in {"b8", "b16"} or (size == "b64" and op in {"inc", "dec"}))


def _overwritten_compare(f: Mapping[str, int]) -> bool:
    """B above E is read at the MEM, when the first destination has been sent."""
    swaps = _choice(f, "atomic") == "cas" and _choice(f, "store") == "b64"
    return bool(swaps and f.get("rb", 0)) and f.get("rb", 0) == (f.get("d_e", 0) or f.get("d_b", 0))


_RULES: Final[tuple[tuple[Callable[[Mapping[str, int]], bool], str], ...]] = (
    (_slow_address, "load at the result of a slow operation of ALU A"),
    (_product_logic, "operation of ALU B on a product but add, sub, rsub, first and second"),
    (_late_order, "comparison, min or max of a product or shift in the block that computes it"),
    (_late_amount, "shift by a value that is loaded, computed or staged in the same block"),
    (_ballot_elsewhere, "use of a ballot but as the late result (c_sel V, alu_b second, or and with m_op first)"),
    (_old_elsewhere, "old value of an atomic but with rc = d_o and 32 bits or less"),
    (_odd_atomic, "atomic of 8 or 16 bits, nor inc and dec of 64"),
    (_overwritten_compare, "compare-and-swap of 64 bits whose rb is the block's first destination"),
)


def rules(fields: Mapping[str, int]) -> list[str]:
    """Which combinations of a block's fields (numbers) no circuit has, one text each. docs/machine.md, "What the
    circuits implement"."""
    return [text for broken, text in _RULES if broken(fields)]


def faults(fields: Mapping[str, int]) -> list[str]:
    """What of a block's fields (numbers) the circuits do not implement, one text each."""
    found = [
        f"{name} {CHOICES[name][value]}"
        for name, value in fields.items()
        if name in PRESENT and CHOICES[name][value] not in PRESENT[name]
    ]
    found += [name for name in sorted(ABSENT_FIELDS) if fields.get(name)]
    return found + rules(fields)


def program_faults(program: Program) -> list[str]:
    """What of a program the circuits do not implement, one text each, with its block and source line."""
    return [
        f"{program.name}: block {index}{in_words(block)}: the circuits have no {text}"
        for index, block in enumerate(program.blocks)
        for text in faults(block.fields)
    ]
