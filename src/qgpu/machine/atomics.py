"""The read-modify-write unit: what an atomic makes of a memory row. Three levels.

It works on whole rows. Where the atomic's operand goes, ``row`` holds the operand and ``old`` what the memory had; in
the other word ``row`` holds the memory and ``old`` is zero. So a sum of the two is right in both words, and all other
operations take ``row`` where the word is not changed. One chain of groups serves the sum, where it carries, and the
order of old value and operand, where the highest group that differs decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant, total
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of, equals
from qgpu.machine.parts import Bits

Terms = list[tuple[Expr, Table]]

GROUP = 4  # bits: so that gated tables of two groups are exact in bfloat16 even as steps
GROUPS = tuple(range(0, 32, GROUP))
FULL = (1 << GROUP) - 1

BITWISE = {"and": (0, 0, 1), "or": (0, 1, 1), "xor": (0, 1, 0)}


@dataclass(frozen=True, eq=False)
class Chain:
    """Groups of a word, lowest first. Of a sum: ``up``: the group carries, ``through``: it would pass a carry on. Of an
    order: the old value's group is larger; it is equal."""

    up: Bits
    through: Bits

    def cases(self, below: int | None = None) -> list[list[Expr]]:
        """The exclusive ways in which a carry comes into group ``below`` (or out of the word), each an AND."""
        top = len(self.up) if below is None else below
        return [[self.up[t], *self.through[t + 1 : top]] for t in range(top)]


def modified(
    b: Builder, is_: Mapping[str, Expr], hit: Expr, changed: Sequence[Expr], old: Word, row: Word
) -> Word:  # fmt: skip
    """The row (64) as it goes out. ``is_``: choice of the field ``atomic`` -> 1 if it is that; ``hit``: a
    compare-and-swap found what it looked for; ``changed[w]``: the atomic changes word w (both: 64 bits), all zero where
    there is none. inc and dec are of 32 bits only."""
    with b.scope("modify"):
        low, high = changed
        signed = (is_["min.s"] + is_["max.s"]).assume(0, 1)
        # what gates a table is one signal, so that its weight is small
        orders = (~is_["add"] - signed).assume(0, 1)
        turned = b.and_("turned0", signed, ~high), b.buffer("turned1", signed)
        plain = any_of(b, "plain0", (orders,), (signed, high)), b.buffer("plain1", orders)
        chains = [
            _chain(b, f"word{w}", is_["add"], plain[w], turned[w], old[32 * w : 32 * w + 32], row[32 * w : 32 * w + 32])
            for w in range(2)
        ]
        zero = b.nor("old.zero", old)
        carries = _steps(b, is_, changed, old)
        words = []
        for w in range(2):
            with b.scope(f"word{w}"):
                part = slice(32 * w, 32 * w + 32)
                words.append(_word(b, is_, hit, zero, w, changed, chains, carries, old[part], row[part]))
        return words[0] + words[1]


def _chain(b: Builder, name: str, adds: Expr, plain: Expr, turned: Expr, old: Word, row: Word) -> Chain:
    """One level. Where it does not add, the order is that of signed numbers (``turned``) or of unsigned ones."""
    up, through = [], []
    with b.scope(name):
        for j, start in enumerate(GROUPS):
            x, y = old[start : start + GROUP], row[start : start + GROUP]
            count, difference = x.value + y.value, x.value - y.value
            orders: list[tuple[Expr, Expr]] = [(~adds, difference)]
            if start == GROUPS[-1]:
                orders = [(plain, difference), (turned, difference - (x.sign - y.sign) * (FULL + 1))]
            terms = {
                "up": b.gated(adds, count, lambda n: int(n > FULL)), "through": b.gated(adds, count, equals(FULL)),
            }  # fmt: skip
            for condition, order in orders:
                terms["up"] += b.gated(condition, order, lambda n: int(n > 0))
                terms["through"] += b.gated(condition, order, equals(0))
            made = b.sums({f"{kind}{j}": t for kind, t in terms.items()}, {f"{kind}{j}": (0, 1) for kind in terms})
            up.append(made[f"up{j}"])
            through.append(made[f"through{j}"])
    return Chain(up, through)


def _steps(b: Builder, is_: Mapping[str, Expr], changed: Sequence[Expr], old: Word) -> list[Expr]:
    """What comes into each group of the changed word if 1 is added to the old value (inc), or to its complement (dec):
    all lower bits are 1. Two levels."""
    full, carries = [], [constant(1)]
    for j, start in enumerate(GROUPS[:-1]):
        words = [old[32 * w + start : 32 * w + start + GROUP] for w in range(2)]
        cases = [(is_["inc"], here, *word) for here, word in zip(changed, words, strict=True)]
        cases += [(is_["dec"], here, *~word) for here, word in zip(changed, words, strict=True)]
        full.append(any_of(b, f"full{j}", *cases))
        carries.append(b.and_(f"step{j}", *full))
    return carries


def _and(*bits: Expr, sign: int = 1) -> tuple[Expr, Table]:
    return total(bits), {len(bits): sign}


def _word(
    b: Builder, is_: Mapping[str, Expr], hit: Expr, zero: Expr, w: int, changed: Sequence[Expr],
    chains: Sequence[Chain], carries: Sequence[Expr], old: Word, row: Word,
) -> Word:  # fmt: skip
    """Word w of the result. Two levels."""
    here, other = changed[w], changed[1 - w]
    alone, both = (here, ~other), (here, other)
    low, high = chains
    # the old value is larger: in this word alone, or in 64 bits
    larger = [(*alone, *case) for case in chains[w].cases()]
    larger += [(*both, *case) for case in high.cases()] + [(*both, *case, *high.through) for case in low.cases()]
    same = [(*alone, *chains[w].through), (*both, *low.through, *high.through)]
    lower = (is_["min.s"] + is_["min.u"]).assume(0, 1)
    upper = (is_["max.s"] + is_["max.u"]).assume(0, 1)
    takes_larger = (lower + is_["dec"]).assume(0, 1)
    take_row = [
        (here, {0: 1}), _and(here, is_["exch"]), _and(here, is_["cas"], hit), _and(here, is_["dec"], zero),
        *(_and(*case, takes_larger) for case in larger), _and(here, upper), *(_and(*c, upper, sign=-1) for c in larger),
    ]  # fmt: skip
    take_old = [
        _and(here, is_["cas"], ~hit),
        *(_and(*case, upper) for case in larger), _and(here, lower), *(_and(*c, lower, sign=-1) for c in larger),
    ]  # fmt: skip
    up = [_and(here, is_["inc"]), *(_and(*case, is_["inc"], sign=-1) for case in (*larger, *same))]
    down = [_and(here, is_["dec"]), *(_and(*case, is_["dec"], sign=-1) for case in larger),
            _and(here, is_["dec"], zero, sign=-1)]  # fmt: skip
    choice = {
        name: b.sum_of(f"take.{name}", terms, 0, 1)
        for name, terms in (("row", take_row), ("old", take_old), ("up", up), ("down", down))
    }
    bitwise = {name: b.and_(f"take.{name}", here, is_[name]) for name in BITWISE}
    adds = b.and_("take.sum", here, is_["add"])
    bits: list[Expr] = []
    for j, start in enumerate(GROUPS):
        ways = [tuple(case) for case in chains[w].cases(j)]
        if w:
            ways += [(*both, *case, *high.through[:j]) for case in low.cases()]
        carry = any_of(b, f"carry{j}", *ways) if ways else total([])
        for i in range(start, start + GROUP):
            x, y = old[start : i + 1], row[start : i + 1]
            place = i - start
            terms = [_and(choice["row"], row[i]), _and(choice["old"], old[i])]
            terms += b.gated(adds, x.value + y.value + carry, lambda n, k=place: n >> k & 1)  # type: ignore[misc]
            terms += b.gated(choice["up"], x.value + carries[j], lambda n, k=place: n >> k & 1)  # type: ignore[misc]
            terms += b.gated(choice["down"], (~x).value + carries[j], lambda n, k=place: ~n >> k & 1)  # type: ignore[misc]
            for name, table in BITWISE.items():
                terms += b.gated(bitwise[name], old[i] + row[i], table)
            bits.append(b.sum_of(f"bit{i}", terms, 0, 1))
    return Word(b.path(""), tuple(bits))
