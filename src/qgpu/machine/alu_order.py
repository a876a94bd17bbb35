"""Which of two words is the smaller one: conditions of predicates, and the choice of min and max.

Two levels. Groups of neighbouring bits say whether they are less or the same; the highest group that differs decides,
and the condition's own lines enter those cases, so that every order and every condition is one sum of exclusive ANDs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr
from qgpu.circuit.word import Word
from qgpu.isa.encoding import CONDITIONS
from qgpu.machine.alu_terms import Term, conj, equals, line

GROUP = 6  # bits compared by one table; their numbers' difference is exact in bfloat16


@dataclass(frozen=True, eq=False)
class Order:
    """x against y. ``below``, ``same``: of each group of bits 0..30, lowest first; ``zero_one``, ``one_zero``: the two
    ways in which the top bits of x and y differ."""

    below: Sequence[Expr]
    same: Sequence[Expr]
    zero_one: Expr
    one_zero: Expr

    def less(self, *literals: Expr, signed: Expr, weight: int = 1) -> list[Term]:
        """Terms of "x < y", where all ``literals`` are 1."""
        return self._cases(self.below, self.one_zero, self.zero_one, literals, signed, weight)

    def greater(self, *literals: Expr, signed: Expr, weight: int = 1) -> list[Term]:
        """Terms of "x > y", where all ``literals`` are 1."""
        above = [(1 - less - same).assume(0, 1) for less, same in zip(self.below, self.same, strict=True)]
        return self._cases(above, self.zero_one, self.one_zero, literals, signed, weight)

    def equal(self, *literals: Expr, weight: int = 1) -> list[Term]:
        """The term of "x = y", where all ``literals`` are 1."""
        return [conj(*self.same, self._top, *literals, weight=weight)]

    @property
    def _top(self) -> Expr:
        return (1 - self.zero_one - self.one_zero).assume(0, 1)

    def _cases(
        self, found: Sequence[Expr], signed_top: Expr, plain_top: Expr, literals: Sequence[Expr], signed: Expr,
        weight: int,
    ) -> list[Term]:  # fmt: skip
        terms = [conj(signed_top, signed, *literals, weight=weight), conj(plain_top, ~signed, *literals, weight=weight)]
        for j, one in enumerate(found):
            terms.append(conj(one, *self.same[j + 1 :], self._top, *literals, weight=weight))
        return terms


def order(b: Builder, name: str, x: Word, y: Word) -> Order:
    """One level, 26 neurons for words of 32 bits, 14 signals."""
    with b.scope(name):
        width = x.width - 1
        count = -(-width // GROUP)
        below, same = [], []
        for j in range(count):
            part = slice(width * j // count, width * (j + 1) // count)
            tables = {"less": lambda n: int(n < 0), "same": equals(0)}
            made = b.lookups(f"group{j}", x[part].value - y[part].value, tables)
            below.append(made["less"])
            same.append(made["same"])
        return Order(below, same, b.and_("zero.one", ~x.sign, y.sign), b.and_("one.zero", x.sign, ~y.sign))


_LINES: Mapping[str, Sequence[str]] = {
    "less": ("lt", "le"),
    "not.less": ("gt", "ge"),
    "equal": ("eq", "le"),
    "not.equal": ("ne", "gt"),
    "negated": ("ne", "gt", "ge"),
}
"""Every condition is the sum of "less", "equal" or both, or one less that sum."""


def condition_lines(b: Builder, rom: Mapping[str, Word], name: str, source: str) -> dict[str, Expr]:
    """What ``condition`` needs to know of a block that tests ``source`` (a choice of p_src). All zero where it tests
    something else. One level."""
    with b.scope(name):
        found = {}
        for key, conditions in _LINES.items():
            listed = [c for base in conditions for c in (base, f"{base}.s", f"{base}.u") if c in CONDITIONS]
            found[key] = line(b, rom, key, {"cond": listed, "p_src": (source,)})
        found["signed"] = line(b, rom, "signed", {"cond": [c for c in CONDITIONS if c.endswith(".s")]})
        return found


def condition(b: Builder, name: str, relation: Order, want: Mapping[str, Expr]) -> Expr:
    """Whether the condition holds; zero where none is asked. One level, about 20 neurons."""
    signed = want["signed"]
    terms: list[Term] = [
        *relation.less(want["less"], signed=signed),
        *relation.less(want["not.less"], signed=signed, weight=-1),
        *relation.equal(want["equal"]),
        *relation.equal(want["not.equal"], weight=-1),
        conj(want["negated"]),
    ]
    return b.sum_of(name, terms, 0, 1)
