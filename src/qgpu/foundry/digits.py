"""Which signals may wait as one number, and who reads that number as well as its bits.

The bits of a word wait by fours, as a digit of 0 to 15. A digit does for who reads one of its bits alone (a table over
the digit instead of over the bit), and for who selects it: of a table over a bit and some conditions that depends on
the bit only where all of these hold, a table over the digit and those conditions is made. Where four such selections
make a digit again, their tables add up to a single ramp.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

from .netlist import Affine, Netlist, SumCell
from .plan import Plan

DIGIT = 4  # bits of a word in one number
VALUES = 1 << DIGIT
JOINT = 64  # values of a digit and the conditions it is selected by: steps over more are not exact
COPY = 7.5  # neurons that one bit's coming back takes
READING = {4: (1.85e-4, 9.9e-5, 4.9e-5, 2.1e-5), 2: (1.6e-5, 6e-6)}
"""Bits of a number -> how far off one of them is, by its place, when steps bring it back; rather more than less."""

HARD, UNARY, SELECT = range(3)
"""How a cell reads a signal: as a bit; alone; as the one bit that conditions select."""

_NUMBERED = re.compile(r"^(.*?)(\d+)$")

Digit = tuple[str, int]


def digit_of(name: str) -> tuple[Digit, int] | None:
    """The digit that a signal with this name belongs to (its word's name, number of the digit), and its place in it."""
    found = _NUMBERED.match(name)
    return ((found[1], int(found[2]) // DIGIT), int(found[2]) % DIGIT) if found else None


@dataclass(frozen=True, eq=False)
class Digits:
    """By signal. ``digit``: its digit and its place there, None if it is no bit of a word. ``capacity``: bits of the
    number that it may wait in, 1: it may not. ``size``: its own bits, 0 for a constant. By cell, ``ways``: how it reads
    its signals. ``refused``: signals that neither wait packed nor are made of what does."""

    digit: tuple[tuple[Digit, int] | None, ...]
    capacity: tuple[int, ...]
    size: tuple[float, ...]
    ways: tuple[Mapping[int, int], ...]
    refused: frozenset[int] = frozenset()

    def share(self, signal: int) -> float:
        """Of a dim, while it waits; 1: it cannot be packed."""
        fitting = int(self.capacity[signal] / self.size[signal]) if self.size[signal] else 1
        return 1 / fitting if fitting > 1 and signal not in self.refused else 1.0


def no_digits(plan: Plan) -> Digits:
    """Nothing waits packed."""
    count = len(plan.readers)
    return Digits((None,) * count, (1,) * count, (0.0,) * count, ({},) * len(plan.cells))


def digits_of(plan: Plan, refused: frozenset[int] = frozenset()) -> Digits:
    """What a circuit's signals may wait in."""
    lowered = plan.lowered
    netlist = lowered.netlist
    signals = range(len(netlist.names))
    found = [digit_of(netlist.names[s]) if (netlist.lo[s], netlist.hi[s]) == (0, 1) else None for s in signals]
    members = Counter(place[0] for place in found if place is not None)
    digit = tuple(place if place is not None and members[place[0]] > 1 else None for place in found)
    capacity = [fitting(lowered.bears[s], place[1] if place else 0) for s, place in enumerate(digit)]
    ways = _ways(plan, digit, capacity, refused)
    return Digits(
        digit=digit,
        capacity=tuple(capacity),
        size=tuple(log2(high - low + 1) for low, high in zip(netlist.lo, netlist.hi, strict=True)),
        ways=ways,
        refused=refused,
    )


def fitting(bears: float, place: int) -> int:
    """Bits of the largest number that one of its bits may be read from, 1: of none."""
    return next((bits for bits, errors in READING.items() if bears >= errors[place % bits]), 1)


def rest_of(netlist: Netlist, arg: Affine, signal: int) -> tuple[int, int, int]:
    """Of an expression that reads a bit: the bit's coefficient, and the least and the largest value of the rest."""
    coef = 0
    low = high = arg.const
    for other, factor in arg.terms:
        if other == signal:
            coef = factor
            continue
        ends = factor * netlist.lo[other], factor * netlist.hi[other]
        low, high = low + min(ends), high + max(ends)
    return coef, max(low, arg.lo - max(coef, 0)), min(high, arg.hi - min(coef, 0))


def selects(netlist: Netlist, arg: Affine, table: Sequence[int], signal: int) -> bool:
    """Whether a table depends on one of its bits for one value of the rest only."""
    coef, low, high = rest_of(netlist, arg, signal)
    if (high - low + 1) * VALUES > JOINT:
        return False
    depends = 0
    for rest in range(low, high + 1):
        if arg.lo <= rest and rest + coef <= arg.hi and arg.lo <= rest + coef and rest <= arg.hi:
            depends += table[rest - arg.lo] != table[rest + coef - arg.lo]
    return depends <= 1


def _ways(
    plan: Plan, digit: Sequence[tuple[Digit, int] | None], capacity: list[int], refused: frozenset[int]
) -> tuple[dict[int, int], ...]:
    """For each cell, how it reads its signals. Of the bits that a table may select, the one with the fewest readers is
    taken for data, the others for conditions. ``capacity`` is brought down to what those bear who read one bit."""
    netlist = plan.lowered.netlist
    ways: list[dict[int, int]] = []
    for cell in netlist.cells:
        way: dict[int, int] = {}
        ways.append(way)
        if not isinstance(cell, SumCell):
            continue
        for arg, table in cell.parts:
            chosen = None
            if len(arg.terms) > 1 and digit[cell.out] is not None:
                found = [s for s, _ in arg.terms if digit[s] is not None and selects(netlist, arg, table, s)]
                chosen = min(found, key=lambda s: len(plan.readers[s]), default=None)
            for signal, _ in arg.terms:
                alone = len(arg.terms) == 1 and digit[signal] is not None
                here = UNARY if alone else SELECT if signal == chosen else HARD
                before = way.get(signal, here)
                way[signal] = HARD if HARD in (before, here) or cell.out in refused else max(before, here)
        for signal, how in way.items():
            place = digit[signal]
            if how == UNARY and place is not None:
                fits = fitting(plan.lowered.bears[cell.out] / len(plan.drivers[cell.out]), place[1])
                if fits == 1:
                    way[signal] = HARD
                else:
                    capacity[signal] = min(capacity[signal], fits)
    return tuple(ways)


def through(
    netlist: Netlist, arg: Affine, table: tuple[int, ...], signal: int, number: int, values: tuple[int, ...]
) -> tuple[Affine, tuple[int, ...]]:
    """The expression and the table with a bit read off a number; ``values``: the bit, by what the number is."""
    coef, low, high = rest_of(netlist, arg, signal)
    count = len(values)

    def value(rest: int, bit: int) -> int:
        at = rest + coef * bit - arg.lo
        if not 0 <= at < len(table):  # cannot be: as the other bit would have it
            at = rest + coef * (1 - bit) - arg.lo
        return table[min(max(at, 0), len(table) - 1)]

    terms = [(other, count * factor) for other, factor in arg.terms if other != signal] + [(number, 1)]
    span = high - low + 1
    joint = Affine(tuple(sorted(terms)), count * (arg.const - low), 0, count * span - 1)
    return joint, tuple(value(low + at // count, values[at % count]) for at in range(count * span))
