"""The operands of unit M and ALU B: chosen as their sources come, and complete with the stage registers' read.

What is early (registers, parameters, specials, the immediate, ALU A's result, what is collected) is chosen before the
load is there, and waits as one word. That goes to a word of buses with the load, and stage registers are read straight
onto it, by gates: so neither the sources wait, nor do the stage registers take signals of their own. One more level
makes the bits exact, as products ask for, and joins the load of the lane whose port is the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr
from qgpu.circuit.word import Word
from qgpu.machine.gates import Gated, any_of
from qgpu.machine.loads import Load

Choice = tuple[tuple[Expr, ...], Word]


@dataclass(frozen=True, eq=False)
class LateOperand:
    """One operand of one lane. ``word``: buses, complete once stage registers are read but for a late load; ``is_``:
    choice -> 1 if it is the operand; ``early``: conditions and words of the early choices but R and V; ``besides``:
    what must be 1 as well where R, V or L is chosen."""

    word: Word
    is_: Mapping[str, Expr]
    early: Sequence[Choice]
    besides: tuple[Expr, ...]

    def staged(self, register: str) -> list[Gated]:
        """Where stage register ``register`` (S1 or S2) is read to, if it can be this operand."""
        return [(self.is_[register], self.word)] if register in self.is_ else []

    def join(self, b: Builder, name: str, r: Word, load: Load, v: Word) -> Word:
        """The operand, 32 bits. Three levels, of which the last one follows the stage registers' read; a late load
        needs that one alone, others the last two."""
        others = (("R", r), ("V", v))
        more = [((*self.besides, self.is_[choice]), word) for choice, word in others if choice in self.is_]
        chosen = b.mux(f"{name}.early", [*self.early, *more])
        bits = []
        for k, bus in enumerate(self.word):
            loaded = (*self.besides, self.is_["L"], load.word[k])
            any_of(b, f"{name}.soon{k}", (chosen[k],), *([] if load.row else [loaded]), into=bus)
            bits.append(any_of(b, f"{name}.bit{k}", (bus,), loaded) if load.row else b.buffer(f"{name}.bit{k}", bus))
        return Word(b.path(name), tuple(bits))


@dataclass(frozen=True, eq=False)
class LateOperands:
    """``m1``, ``m2`` of unit M, ``c`` of ALU B, of one lane: m2 is zero unless unit M multiplies, c in lanes that are
    not active. ``amount``: m2 where unit M shifts, else zero; ``third``: register C, for funnel shifts and what
    stores take beyond D."""

    m1: LateOperand
    m2: LateOperand
    c: LateOperand
    amount: Word
    third: Word

    def staged(self, register: str) -> list[Gated]:
        return [gated for operand in (self.m1, self.m2, self.c) for gated in operand.staged(register)]

    def join(self, b: Builder, r: Word, load: Load, v: Word) -> tuple[Word, Word, Word]:
        """(m1, m2, c), 32 bits each."""
        m1, m2, c = (
            operand.join(b, name, r, load, v) for name, operand in (("m1", self.m1), ("m2", self.m2), ("c", self.c))
        )
        return m1, m2, c
