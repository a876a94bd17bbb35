"""Signals that only wait share a dim.

Where more signals are alive than there are dims, bits (and other small numbers) that nobody reads for a while are
*packed*: what drives them drives one number of several of them instead, or a linear neuron makes it of them later. The
number waits, and just before one of them is read a table of the number brings it back as a signal of its own; some
readers do with the number itself (see ``digits``). That costs neurons, no level.

``pack`` looks at a schedule, rewrites its netlist, and leaves all stages as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from .digits import HARD, SELECT, Digits, digits_of, through
from .errors import TooFarOff
from .lower import lower
from .netlist import Affine, Array, ColumnSpec, DelayCell, LayerCell, MemoryCell, Netlist, PortSpec, SumCell
from .plan import Plan
from .schedule import Schedule, finished, resumed

MANY = 12  # parts of a sum: a number takes them in steps, which are twice the neurons
Parts = Sequence[tuple[Affine, tuple[int, ...]]]


@dataclass(frozen=True)
class Life:
    """When a signal is what. ``bits``: (first, last) stages between which the bit itself stands in a dim, later ones
    copies that are brought back at ``first``; ``packed``: (first, last) of its number, None if it never waits in
    one; ``direct``: whether its drivers drive that number."""

    bits: tuple[tuple[int, int], ...]
    packed: tuple[int, int] | None
    direct: bool


@dataclass(frozen=True)
class Number:
    """``members``, each so many values (``counts``) at its ``weights``; 0 to ``top``."""

    signal: int
    members: tuple[int, ...]
    weights: tuple[int, ...]
    counts: tuple[int, ...]
    top: int
    first: int
    last: int
    direct: bool

    def values(self, member: int) -> tuple[int, ...]:
        """A member less its least value, by what the number is."""
        at = self.members.index(member)
        return tuple(n // self.weights[at] % self.counts[at] for n in range(self.top + 1))


def pack(plan: Plan, digits: Digits) -> Schedule:
    """The schedule with its idle signals packed: but for those that, by what float32 rounds, would be too far off."""
    while True:
        packing = _Packing(plan, digits)
        netlist, stages = packing.rewritten()
        try:
            lowered = lower(netlist, plan.lowered.allowance, packing.packed)
            return finished(resumed(lowered, plan.room, plan.layers, stages))
        except TooFarOff as error:  # refuse them, or what they are made of, or what asks so much of them
            found = packing.origins(error.signals)
            more = found | packing.read_for(found)
            while more <= digits.refused and not packing.made_of(more) <= more:
                more |= packing.made_of(more)
            if more <= digits.refused:
                raise
            digits = digits_of(plan, digits.refused | (found - digits.refused or more))


class _Packing:
    """New signals and cells, and what stands for each packed signal at each stage."""

    def __init__(self, plan: Plan, digits: Digits) -> None:
        self.plan = plan
        self.digits = digits
        self.netlist = plan.lowered.netlist
        self.end = 2 * plan.layers
        self.ways = digits.ways
        signals = range(len(self.netlist.names))
        self.starts_packed = [self._starts_packed(signal) for signal in signals]
        while True:  # who finds no company is no number, and those that it is made of are read as bits
            self.lives = [self._life(signal) for signal in signals]
            self.names: list[str] = []
            self.lo: list[int] = []
            self.hi: list[int] = []
            self.known = set(self.netlist.names)
            self.number_of: dict[int, Number] = {}
            for number in self._numbers():
                self.number_of.update(dict.fromkeys(number.members, number))
            alone = [s for s in signals if self.starts_packed[s] and not self._made_direct(s)]
            if not alone:
                break
            for signal in alone:
                self.starts_packed[signal] = False
        self.packed = frozenset(number.signal for number in self.number_of.values())
        self.copies: dict[tuple[int, int], int] = {}  # (signal, first stage) -> its copy

    def _made_direct(self, signal: int) -> bool:
        return signal in self.number_of and self.number_of[signal].direct

    def origins(self, signals: frozenset[int]) -> frozenset[int]:
        """The signals that new ones were made of or for."""
        found = set(signals)
        for number in self.number_of.values():
            if number.signal in signals:
                found.update(number.members)
        found.update(signal for (signal, _), copy in self.copies.items() if copy in signals)
        return frozenset(signal for signal in found if signal < len(self.netlist.names))

    def read_for(self, signals: frozenset[int]) -> frozenset[int]:
        """What is read to make signals."""
        drivers = (driver for signal in signals for driver in self.plan.drivers[signal])
        return frozenset(source for driver in drivers for source in self.plan.inputs[driver])

    def made_of(self, signals: frozenset[int]) -> frozenset[int]:
        """What signals are read to make."""
        readers = (reader for signal in signals for reader in self.plan.readers[signal])
        return frozenset(out for reader in readers for out in self.plan.outputs[reader])

    # what is packed when

    def _starts_packed(self, signal: int) -> bool:
        """As ``anneal._starts_packed``."""
        if not self._direct(signal) or signal in self.plan.token_signals:
            return False
        ready = self.plan.ready(signal)
        return not any(
            self.plan.stage[cell] <= ready + 2 and self.ways[cell].get(signal, HARD) in (HARD, SELECT)
            for cell in self.plan.readers[signal]
        )

    def _direct(self, signal: int) -> bool:
        return self.digits.share(signal) < 1 and directable(self.plan, signal)

    def _life(self, signal: int) -> Life:
        """As ``anneal._count``."""
        plan, packs = self.plan, self.digits.share(signal) < 1
        birth, ready = plan.birth(signal), plan.ready(signal)
        if birth is None:
            return Life((), None, False)
        reads: dict[int, bool] = {self.end: True} if signal in plan.code_signals else {}
        for cell in plan.readers[signal]:
            hard = not self._reads_number(cell, signal)
            reads[plan.stage[cell]] = reads.get(plan.stage[cell], False) or hard
        end, first, last = ready, None, -1
        bits: list[tuple[int, int]] = []

        def there(start: int, until: int) -> None:
            if bits and bits[-1][1] == start:
                start = bits.pop()[0]
            bits.append((start, until))

        for at in sorted(reads):
            done = min(at | 1, self.end)
            back = at - 1 - at % 2 if reads[at] else done
            if packs and back > end and first is None and not self._direct(signal):
                there(end, (end + 1) | 1)
                end = (end + 1) | 1
            if packs and back > end:
                first = end if first is None else first
                last = max(last, back)
            else:
                back = end
            if reads[at] or not packs:
                there(back, max(end, done))
                end = max(end, done)
        if first is None:
            return Life(((birth, self.end),), None, False)
        return Life(tuple(bits), (first, last), first == ready and self._direct(signal))

    def _reads_number(self, cell: int, signal: int) -> bool:
        how = self.ways[cell].get(signal, HARD)
        return how != HARD and (how != SELECT or self.starts_packed[self.plan.outputs[cell][0]])

    def _numbers(self) -> Iterator[Number]:
        """Bits of a word by their places; then whatever else waits from the same stage on, in the order in which it is
        needed."""
        together: dict[tuple[object, ...], list[int]] = {}
        for signal, life in enumerate(self.lives):
            if life.packed is not None:
                birth = self.plan.birth(signal) if life.direct else None
                place, capacity = self.digits.digit[signal], self._capacity(signal)
                which = (place[0], place[1] // capacity) if place else None
                together.setdefault((life.packed[0], life.direct, birth, capacity, which), []).append(signal)
        loose: dict[tuple[object, ...], list[int]] = {}
        for key, members in together.items():
            capacity = self._capacity(members[0])
            if len(members) > capacity / 2 and key[-1] is not None:
                places = [place[1] % capacity for place in map(self.digits.digit.__getitem__, members) if place]
                top = (2 << max(places)) - 1
                yield self._number(members, [1 << place for place in places], [2] * len(members), top)
            else:
                loose.setdefault(key[:-1], []).extend(members)
        for members in loose.values():
            filling: list[int] = []
            for signal in sorted(members, key=self._last):
                if prod(map(self._count, [*filling, signal])) > 1 << self._capacity(signal):
                    yield from self._filled(filling)
                    filling = []
                filling.append(signal)
            yield from self._filled(filling)

    def _last(self, signal: int) -> int:
        packed = self.lives[signal].packed
        return packed[1] if packed else 0

    def _filled(self, members: Sequence[int]) -> Iterator[Number]:
        if len(members) > 1:
            counts = [self._count(signal) for signal in members]
            yield self._number(members, [prod(counts[:i]) for i in range(len(counts))], counts, prod(counts) - 1)

    def _number(self, members: Sequence[int], weights: Sequence[int], counts: Sequence[int], top: int) -> Number:
        spans = [life.packed for life in map(self.lives.__getitem__, members) if life.packed]
        signal = self._signal(f"packed.{self.netlist.names[members[0]]}", 0, top)
        return Number(
            signal, tuple(members), tuple(weights), tuple(counts), top, spans[0][0], max(last for _, last in spans),
            self.lives[members[0]].direct,
        )  # fmt: skip

    def _capacity(self, signal: int) -> int:
        return self.digits.capacity[signal]

    def _count(self, signal: int) -> int:
        return self.netlist.hi[signal] - self.netlist.lo[signal] + 1

    def _signal(self, name: str, low: int, high: int) -> int:
        turn = next(n for n in range(1, len(self.known) + 2) if f"{name}~{n}" not in self.known)
        self.known.add(f"{name}~{turn}")
        self.names.append(f"{name}~{turn}")
        self.lo.append(low)
        self.hi.append(high)
        return len(self.netlist.names) + len(self.names) - 1

    # what is read

    def _bit(self, signal: int, stage: int) -> int | None:
        """The bit as it stands before a stage: itself, or a copy; None if it is packed then."""
        if signal not in self.number_of:
            return signal
        life = self.lives[signal]
        for first, last in reversed(life.bits):
            if first < stage <= last:
                return signal if first <= self.plan.ready(signal) and not life.direct else self._copy(signal, first)
        return None

    def _copy(self, signal: int, first: int) -> int:
        if (signal, first) not in self.copies:
            low, high = self.netlist.lo[signal], self.netlist.hi[signal]
            self.copies[signal, first] = self._signal(self.netlist.names[signal], low, high)
        return self.copies[signal, first]

    def affine(self, arg: Affine, stage: int) -> Affine:
        """An expression as it is read at a stage, all of it bits."""
        terms = []
        for signal, coef in arg.terms:
            bit = self._bit(signal, stage)
            assert bit is not None, (self.netlist.names[signal], stage)
            terms.append((bit, coef))
        return replace(arg, terms=tuple(sorted(terms)))

    def part(self, cell: int, out: int, arg: Affine, table: tuple[int, ...]) -> tuple[Affine, tuple[int, ...]]:
        """A table as it is read at its cell's stage: through a number where the bit is packed, or where a number comes
        out."""
        stage = self.plan.stage[cell]
        signal = next((s for s, _ in arg.terms if self.ways[cell][s] != HARD), None)
        number = None if signal is None else self.number_of.get(signal)
        if signal is None or number is None or not number.first < stage <= number.last:
            return self.affine(arg, stage), table
        into = self.number_of.get(out)
        if self._bit(signal, stage) is not None and not (into is not None and into.direct):
            return self.affine(arg, stage), table
        found, joint = through(self.netlist, arg, table, signal, number.signal, number.values(signal))
        others = replace(found, terms=tuple(term for term in found.terms if term[0] != number.signal))
        rest = self.affine(others, stage)
        return replace(found, terms=tuple(sorted((*rest.terms, (number.signal, 1))))), joint

    # what is written

    def rewritten(self) -> tuple[Netlist, list[int]]:
        """The netlist with its cells by stage, and the stages."""
        netlist, plan = self.netlist, self.plan
        cells: list[tuple[int, LayerCell]] = []
        driven: dict[tuple[int, int], list[tuple[Affine, tuple[int, ...]]]] = {}  # (stage, number) -> parts
        for index, (cell, stage) in enumerate(zip(netlist.cells, plan.stage, strict=True)):
            if isinstance(cell, SumCell):
                parts = tuple(self.part(index, cell.out, arg, table) for arg, table in cell.parts)
                number, weight = self._driven(cell.out)
                if number is None:
                    cells.append((stage, SumCell(cell.out, parts)))
                else:
                    cells += self._driving(number, weight, cell, parts, stage, driven)
            elif isinstance(cell, DelayCell):
                cells.append((stage, replace(cell, arg=self.affine(cell.arg, stage))))
            else:
                cells.append((stage, self._memory(cell, stage)))
        code = tuple(self.affine(bit, self.end) for bit in netlist.code)
        for made in dict.fromkeys(self.number_of.values()):
            if not made.direct:
                cells.append((made.first, self._made(made)))
        cells += [(stage, SumCell(number, tuple(parts))) for (stage, number), parts in driven.items()]
        done: set[tuple[int, int]] = set()
        while len(done) < len(self.copies):
            for key in [key for key in self.copies if key not in done]:
                cells.append((key[1], self._brought_back(*key)))
                done.add(key)
        cells.sort(key=lambda item: item[0])  # stable, and what reads stands at a later stage than what it reads
        packed = replace(
            netlist,
            names=(*netlist.names, *self.names),
            lo=(*netlist.lo, *self.lo),
            hi=(*netlist.hi, *self.hi),
            tokens=self._tokens(),
            cells=tuple(cell for _, cell in cells),
            code=code,
        )
        return packed, [stage for stage, _ in cells]

    def _driven(self, out: int | None) -> tuple[int | None, int]:
        """The number that an output's drivers drive instead, and its weight there."""
        number = None if out is None else self.number_of.get(out)
        if number is None or not number.direct or out is None:
            return None, 1
        return number.signal, number.weights[number.members.index(out)]

    def _driving(
        self, number: int, weight: int, cell: SumCell, parts: Parts, stage: int,
        together: dict[tuple[int, int], list[tuple[Affine, tuple[int, ...]]]],
    ) -> Iterator[tuple[int, LayerCell]]:  # fmt: skip
        """The cell as one that drives a number. Tables over numbers join those of the number's other places, which
        may make a ramp of them; of the others it is known, so, how large they can get."""
        own: list[tuple[Affine, tuple[int, ...]]] = []
        for arg, table in parts:
            scaled = arg, tuple(weight * value for value in table)
            if any(signal in self.packed for signal, _ in arg.terms):
                together.setdefault((stage, number), []).append(scaled)
            else:
                own.append(scaled)
        if own:
            bounded = all(min(table) >= 0 for _, table in parts)
            yield stage, SumCell(number, tuple(own), weight * self.netlist.hi[cell.out] if bounded else None)

    def _made(self, number: Number) -> SumCell:
        """The number of bits that stand in dims of their own."""
        bits = [self._bit(member, number.first) for member in number.members]
        low = [self.netlist.lo[member] for member in number.members]
        const = -sum(weight * least for weight, least in zip(number.weights, low, strict=True))
        pairs = zip(bits, number.weights, strict=True)
        terms = tuple(sorted((bit, weight) for bit, weight in pairs if bit is not None))
        return SumCell(number.signal, ((Affine(terms, const, 0, number.top), tuple(range(number.top + 1))),))

    def _brought_back(self, signal: int, first: int) -> SumCell:
        number = self.number_of[signal]
        values = number.values(signal)
        arg = Affine(((number.signal, 1),), 0, 0, len(values) - 1)
        low = self.netlist.lo[signal]
        return SumCell(self.copies[signal, first], ((arg, tuple(low + value for value in values)),))

    def _tokens(self) -> tuple[tuple[int, Array], ...]:
        found: dict[int, Array] = {}
        for signal, values in self.netlist.tokens:
            number, weight = self._driven(signal)
            target = signal if number is None else number
            found[target] = found.get(target, np.zeros_like(values)) + weight * values
        return tuple(found.items())

    def _memory(self, cell: MemoryCell, stage: int) -> MemoryCell:
        def put(arg: Affine) -> Affine:
            return self.affine(arg, stage)

        def port(spec: PortSpec) -> PortSpec:
            return PortSpec(tuple(map(put, spec.address)), tuple(map(put, spec.enable)))

        def column(spec: ColumnSpec) -> ColumnSpec:
            number, weight = self._driven(spec.out)
            other, other_weight = self._driven(spec.out_not)
            return replace(
                spec,
                data=put(spec.data),
                out=spec.out if number is None else number,
                out_not=spec.out_not if other is None else other,
                weight=spec.weight * weight * other_weight,
                select=None if spec.select is None else put(spec.select),
                where=tuple(map(put, spec.where)),
            )

        wipe = None if cell.wipe is None else put(cell.wipe)
        columns = tuple(map(column, cell.columns))
        return replace(cell, write=port(cell.write), read=port(cell.read), columns=columns, wipe=wipe)


def directable(plan: Plan, signal: int) -> bool:
    """Whether all that drives a signal could drive a number instead: sums of not too many parts, and columns that drive
    nothing else."""
    netlist = plan.lowered.netlist
    if netlist.lo[signal]:
        return False
    for driver in plan.drivers[signal]:
        cell = plan.cells[driver]
        if isinstance(cell, DelayCell) or (isinstance(cell, SumCell) and len(cell.parts) > MANY):
            return False
        if isinstance(cell, MemoryCell):
            for column in cell.columns:
                if signal in (column.out, column.out_not) and None not in (column.out, column.out_not):
                    return False
    return True
