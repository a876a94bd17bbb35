"""The operands of unit M and ALU B: chosen as their sources come, and complete with the stage registers' read.

What is early (registers, parameters, specials, the immediate, ALU A's result, what is collected) is chosen before the
load is there, and waits as one word. The load joins it in a word of buses, and a stage register is read straight onto
that, by gates: so neither the sources wait, nor do the stage registers cost a level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant
from qgpu.circuit.word import Word
from qgpu.machine.gates import Gated

Choice = tuple[tuple[Expr, ...], Word]


@dataclass(frozen=True, eq=False)
class LateOperand:
    """One operand of one lane. ``word``: buses, complete once stage registers are read; ``is_``: choice -> 1 if it is
    the operand; ``early``: conditions and words of the early choices but R and V; ``besides``: what must be 1 as well
    where R, V or L is chosen."""

    word: Word
    is_: Mapping[str, Expr]
    early: Sequence[Choice]
    besides: tuple[Expr, ...]

    def staged(self, register: str) -> list[Gated]:
        """Where stage register ``register`` (S1 or S2) is read to, if it can be this operand."""
        return [(self.is_[register], self.word)] if register in self.is_ else []

    def join(self, b: Builder, name: str, r: Word, load: Word, v: Word) -> None:
        """All choices but stage registers. Two levels, one from the load."""

        def one(choice: str, word: Word) -> list[Choice]:
            return [((*self.besides, self.is_[choice]), word)] if choice in self.is_ else []

        chosen = b.mux(f"{name}.early", [*self.early, *one("R", r), *one("V", v)])
        b.mux(name, [((constant(1),), chosen), *one("L", load)], into=self.word)


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

    def join(self, b: Builder, r: Word, load: Word, v: Word) -> tuple[Word, Word, Word]:
        """(m1, m2, c), 32 bits each."""
        for name, operand in (("m1", self.m1), ("m2", self.m2), ("c", self.c)):
            operand.join(b, name, r, load, v)
        return self.m1.word, self.m2.word, self.c.word
