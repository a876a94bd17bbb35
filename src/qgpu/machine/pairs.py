"""Masks of a quad with their leaders, and the numbers that MASK has for them."""

from __future__ import annotations

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.gates import any_of
from qgpu.machine.operands import literals
from qgpu.machine.parts import Bits

PAIR_BITS = 5


def leads(b: Builder, name: str, lanes: Bits, leader: Word) -> list[Expr]:
    """One-hot: the leader if it is among the lanes, else the first of them cyclically after it; none of none. One
    level, four neurons a lane."""
    return [
        any_of(b, f"{name}{i}", *(
            (*literals(leader, old), lanes[i], *(~lanes[(old + n) % 4] for n in range((i - old) % 4)))
            for old in range(4)
        ))
        for i in range(4)
    ]  # fmt: skip


def pair(b: Builder, name: str, lanes: Bits, lead: Bits) -> Word:
    """The number of lanes with one of them as leader (one-hot), 0 of no lanes. One level, 32 neurons."""
    terms: dict[str, list[tuple[Expr, Table]]] = {f"{name}.bit{t}": [] for t in range(PAIR_BITS)}
    for number, (mask, leader) in enumerate(tokens.MASK_PAIRS):
        case = total([lead[leader], *(bit if mask >> i & 1 else ~bit for i, bit in enumerate(lanes))])
        for t in range(PAIR_BITS):
            if number >> t & 1:
                terms[f"{name}.bit{t}"].append((case, {5: 1}))
    return Word(b.path(name), tuple(b.sums(terms, {key: (0, 1) for key in terms}).values()))
