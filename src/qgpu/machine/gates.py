"""Gates that all parts of the machine use beside the builder's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word

Gated = tuple[Expr, Word]
"""A gate, and the buses that a word is read to where it is 1."""


def equals(value: int) -> Callable[[int], int]:
    return lambda n: int(n == value)


def possible(bits: Sequence[Expr]) -> bool:
    """Whether an AND of these can be 1: none is the constant zero."""
    return all(bit.terms or bit.const for bit in bits)


def any_of(b: Builder, name: str, *cases: tuple[Expr, ...], into: Expr | None = None) -> Expr:
    """OR of ANDs that exclude each other. One level, a neuron a case. ``into``: a bus to add it to."""
    terms = [(total(case), equals(len(case))) for case in cases if possible(case)]
    return b.sum_of(name, terms, 0, 1, into)
