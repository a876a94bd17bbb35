"""The netlist: what a circuit is made of, before anyone knows of layers.

A circuit is synchronous. One *token* is one clock tick: every signal has one integer value a token. There are four
kinds of cell, and nothing else:

``Token``   a signal whose value is a table over the vocabulary (an input: one embedding dim of the cast model).
``Sum``     out = sum of table_j(expr_j), each table a function of one small integer (gates, adders, decoders, muxes).
``Delay``   out = what a 0/1 expression was one to three tokens ago (zero before the first token).
``Memory``  up to 128 rows of up to 64 bits with one write port and one read port; the write of a token is seen by the
            read of the same token.

Several cells, and several columns of a memory, may drive one signal (tokens and delays apart): it is the sum of what
they give, which has to stay within the signal's bounds. Banks of one memory, and choices between words, need no gate
that way.

Between cells stand *expressions*: integer-affine combinations ``const + sum(coef * signal)``. They cost nothing in
hardware, which is why NOT (``1 - x``), OR of exclusive signals (``x + y``) and comparisons of small numbers are free.

All values here are immutable. ``circuit.builder`` makes them, ``circuit.evaluate`` runs them on plain integers,
``foundry`` casts them into layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class CircuitError(Exception):
    """A circuit that does not fit together. The text names the signals concerned and says what is expected."""


@dataclass(frozen=True, eq=False)
class Signal:
    """One named integer wire. ``lo`` and ``hi`` bound every value it can take, inclusive. Identity is the object."""

    name: str
    lo: int
    hi: int

    @property
    def expr(self) -> Expr:
        """The expression that is this signal alone."""
        return Expr({self: 1})

    def __repr__(self) -> str:
        return f"{self.name}[{self.lo}..{self.hi}]"


@dataclass(frozen=True, eq=False)
class Expr:
    """``const + sum(coef * signal)`` with integer coefficients, none of them zero.

    ``bound``, if given, is a range narrower than interval arithmetic finds, claimed by whoever built the expression
    (for instance that a sum of exclusive signals is at most 1). The evaluator checks every claim at every token, and
    the foundry lists the claims in its report.
    """

    terms: Mapping[Signal, int]
    const: int = 0
    bound: tuple[int, int] | None = None

    @property
    def lo(self) -> int:
        return self.bound[0] if self.bound else self.interval[0]

    @property
    def hi(self) -> int:
        return self.bound[1] if self.bound else self.interval[1]

    @property
    def interval(self) -> tuple[int, int]:
        """The range by interval arithmetic over the signals' own bounds."""
        low = high = self.const
        for signal, coef in self.terms.items():
            low += coef * (signal.lo if coef > 0 else signal.hi)
            high += coef * (signal.hi if coef > 0 else signal.lo)
        return low, high

    @property
    def weight(self) -> int:
        """The sum of the coefficients' magnitudes: how large a gate's partial sums can get."""
        return sum(abs(coef) for coef in self.terms.values())

    @property
    def is_bit(self) -> bool:
        """Whether the value is known to be 0 or 1."""
        return self.lo >= 0 and self.hi <= 1

    def assume(self, lo: int, hi: int) -> Expr:
        """The same expression with the claim that its value is always in lo..hi."""
        return Expr(self.terms, self.const, (lo, hi))

    def _combine(self, other: Expr | int, sign: int) -> Expr:
        if isinstance(other, int):
            bound = (self.bound[0] + sign * other, self.bound[1] + sign * other) if self.bound else None
            return Expr(self.terms, self.const + sign * other, bound)
        terms = dict(self.terms)
        for signal, coef in other.terms.items():
            total = terms.get(signal, 0) + sign * coef
            if total:
                terms[signal] = total
            else:
                del terms[signal]
        plain = Expr(terms, self.const + sign * other.const)
        if self.bound is None and other.bound is None:
            return plain
        ends = (other.lo, other.hi) if sign > 0 else (-other.hi, -other.lo)
        low, high = plain.interval
        return plain.assume(max(low, self.lo + ends[0]), min(high, self.hi + ends[1]))

    def __add__(self, other: Expr | int) -> Expr:
        return self._combine(other, 1)

    def __sub__(self, other: Expr | int) -> Expr:
        return self._combine(other, -1)

    def __radd__(self, other: int) -> Expr:
        return self + other

    def __rsub__(self, other: int) -> Expr:
        return -self + other

    def __mul__(self, factor: int) -> Expr:
        if factor == 0:
            return Expr({}, 0)
        ends = sorted((self.bound[0] * factor, self.bound[1] * factor)) if self.bound else None
        terms = {signal: coef * factor for signal, coef in self.terms.items()}
        return Expr(terms, self.const * factor, (ends[0], ends[1]) if ends else None)

    __rmul__ = __mul__

    def __neg__(self) -> Expr:
        return self * -1

    def __invert__(self) -> Expr:
        """NOT of a 0/1 expression: ``1 - x``. Free."""
        return 1 - self

    def __repr__(self) -> str:
        parts = [f"{coef:+d}*{signal.name}" for signal, coef in self.terms.items()]
        return " ".join(parts + [f"{self.const:+d}"] if self.const or not parts else parts)

    def short(self) -> str:
        """As text that stays readable when there are hundreds of terms."""
        text = repr(self)
        return text if len(text) <= 80 else f"{text[:60]}... ({len(self.terms)} terms)"


def constant(value: int) -> Expr:
    return Expr({}, value)


def total(parts: Iterable[Expr]) -> Expr:
    """Sum of many expressions. Free. The parts' own claims narrow the bound of the sum."""
    terms: dict[Signal, int] = {}
    const = low = high = 0
    claimed = False
    for part in parts:
        for signal, coef in part.terms.items():
            terms[signal] = terms.get(signal, 0) + coef
        const += part.const
        low, high = low + part.lo, high + part.hi
        claimed = claimed or part.bound is not None
    plain = Expr({signal: coef for signal, coef in terms.items() if coef}, const)
    if not claimed:
        return plain
    interval = plain.interval
    return plain.assume(max(low, interval[0]), min(high, interval[1]))


@dataclass(frozen=True, eq=False)
class Token:
    """``out`` is ``values[id]`` at a token ``id``. Values are small non-negative integers, one for each id."""

    out: Signal
    values: np.ndarray[Any, np.dtype[np.int16]]


@dataclass(frozen=True, eq=False)
class Term:
    """One table of a Sum: ``table[n - arg.lo]`` where n is the value of ``arg``; len(table) == arg.hi - arg.lo + 1."""

    arg: Expr
    table: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Sum:
    """``out = sum(term.table[term.arg - term.arg.lo])``. All terms of one Sum are computed in one layer."""

    out: Signal
    terms: tuple[Term, ...]


@dataclass(frozen=True, eq=False)
class Delay:
    """``out`` is the value that ``arg`` (0 or 1) had ``tokens`` (1 to 3) tokens ago; zero before the first token."""

    out: Signal
    arg: Expr
    tokens: int


@dataclass(frozen=True, eq=False)
class Port:
    """Which row, and whether at all.

    ``address``: 0 to 7 expressions, each 0 or 1, least significant first; the row is their binary number.
    ``enable``: 0/1 expressions that must all be 1, or the port does nothing this token (a read gives zero).
    """

    address: tuple[Expr, ...]
    enable: tuple[Expr, ...] = ()


@dataclass(frozen=True, eq=False)
class Column:
    """One bit column of a memory: what a write puts there, and the signals a read brings out.

    ``data``: 0/1 expression written. ``delay``: take the value it had 0 to 3 tokens ago.
    ``out``: receives the stored bit. ``out_not``: receives its complement; a row that was never written (or was wiped,
    or a disabled read) reads zero on both. ``select``: 0/1 expression; the outputs are zero unless it is 1 (free: the z
    gate). ``weight``: what a 1 adds to the outputs, a power of two. ``where``: 0/1 expressions, for a gather: a write
    puts zero there unless they are all 1 (free: the write's threshold takes them in).
    """

    data: Expr
    delay: int = 0
    out: Signal | None = None
    out_not: Signal | None = None
    select: Expr | None = None
    weight: int = 1
    where: tuple[Expr, ...] = ()


@dataclass(frozen=True, eq=False)
class Memory:
    """Up to 128 rows of up to 64 columns. Write first, then read, within one token.

    ``wipe``: 0/1 expression; 1 clears every row before this token's write. ``gather``: the read brings the *sum* of
    all rows whose highest address bits are ``read.address`` (of all rows, if that is empty): each column's out is then
    the count of those rows that hold a 1 there.
    """

    name: str
    write: Port
    read: Port
    columns: tuple[Column, ...]
    wipe: Expr | None = None
    gather: bool = False


Cell = Token | Sum | Delay | Memory


@dataclass(frozen=True, eq=False)
class Circuit:
    """A finished netlist.

    ``vocabulary``: number of token ids. ``code``: 0/1 expressions, the output word; the next token is the id whose
    ``code_of[id]`` (bits as an integer, one for each id, all distinct) equals it. ``probes``: named expressions that
    tests and reports may look at.
    """

    name: str
    vocabulary: int
    cells: tuple[Cell, ...]
    code: tuple[Expr, ...]
    code_of: np.ndarray[Any, np.dtype[np.int64]]
    probes: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
