"""What each operand of a machine block can be read from, and which field says so: the tables of the matcher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qgpu.cuda.lower_nodes import COMMUTED, Node

Fields = Mapping[str, object]
"""Field name (isa.encoding) -> number, choice name, or what stands for a number not yet known: a Reg for registers and
predicates, a Word for parameter words, a Stage, a label for branch targets."""

SIDES: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "a": {
        "reg": (("A", "ra"),), "word": (("P", "pa"),), "y": (("Y", "y"),), "x": (("X", "x"),), "imm": (("I", "imm"),),
    },
    "b": {"reg": (("B", "rb"),), "word": (("P", "pa"),), "x": (("X", "x"),), "imm": (("I", "imm"),)},
    "sa": {"reg": (("A", "ra"), ("B", "rb")), "word": (("T", "pt"),)},
    "m1": {
        "reg": (("A", "ra"), ("B", "rb")), "word": (("Q", "pq"),), "stage": (("S1", "stage_1"),),
        "shuffled": (("V", "collected"),),
    },
    "m2": {
        "reg": (("B", "rb"), ("A", "ra")), "imm": (("I", "imm"),), "word": (("Q", "pq"),),
        "stage": (("S2", "stage_2"),),
    },
    "amount": {"reg": (("B", "rb"), ("A", "ra")), "imm": (("I", "imm"),), "word": (("Q", "pq"),)},
    "c": {
        "reg": (("C", "rc"),), "stage": (("S2", "stage_2"),), "x": (("X", "x"),), "imm": (("I", "imm"),),
        "word": (("Q", "pq"),), "shuffled": (("V", "collected"),),
    },
}  # fmt: skip
"""Operand -> kind of place -> (choice, field that says which one)."""

FIELD = {"amount": "m2_sel"}
"""Operand -> the field that says what it is, where that is not its own name's: a shift's amount is known early."""
TAKES_R = frozenset({"m1", "m2"})
TAKES_L = frozenset({"m1", "m2", "c"})


def orders(op: str, x: Node, y: Node) -> list[tuple[str, Node, Node]]:
    """An ALU operation with its operands in both orders, if it has both."""
    return [(op, x, y)] + ([(COMMUTED[op], y, x)] if op in COMMUTED else [])


def put(fields: Fields, **content: object) -> Iterator[Fields]:
    """The fields with more in them, if they say nothing else there."""
    for name, value in content.items():
        if fields.get(name, value) != value:
            return
    yield {**fields, **content}
