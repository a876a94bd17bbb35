"""How large an error each signal's readers can bear, and restoring levels where that would be less than none.

Reads of memories pass errors on (a sum can end them, a read cannot), so a chain of reads with no sum between asks for
less and less. Where a read would ask for less than a sum can promise, a sum of its own is put in front of it, 1 where
the bit is 1, in steps: that costs a level, and happens in no circuit but such a chain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .netlist import Affine, DelayCell, LayerCell, MemoryCell, Netlist, SumCell
from .numbers import READ_ERROR
from .rows import CODE_LIMIT, FLAT_LIMIT, KEY_LIMIT, ULP, Allowance
from .shared import cases_of
from .tables import slope_of, spike

MANY = 24  # parts of a sum
STRICT = 8  # of what a sum of many parts bears, its inputs get so small a part: who reads it is the cheaper for it
PROMISE = 2.0**-17  # a sum in steps, of one bit, is never further off than this, its dim's past not counted


def _weight(arg: Affine) -> int:
    return sum(abs(coef) for _, coef in arg.terms)


def restore(
    netlist: Netlist, allowance: Allowance, packed: frozenset[int] | None = None
) -> tuple[Netlist, list[float]]:
    """The netlist with restoring sums where chains of reads need them (if they may be put in: ``packed`` is None), and
    by signal the error that all its readers can bear, if the other signals they read are as far off."""
    walk = _Walk(netlist, READ_ERROR + allowance.scale + allowance.clear, packed)
    cells: list[LayerCell] = []
    for cell in reversed(netlist.cells):
        cells.append(walk.visit(cell))
        cells += walk.fresh
        walk.fresh = []
    names = netlist.names + tuple(walk.names)
    low = netlist.lo + (0,) * len(walk.names)
    high = netlist.hi + (1,) * len(walk.names)
    return replace(netlist, names=names, lo=low, hi=high, cells=tuple(reversed(cells))), walk.bears


class _Walk:
    """From the end of the circuit to its start. ``spare``: what a read adds to an error."""

    def __init__(self, netlist: Netlist, spare: float, packed: frozenset[int] | None) -> None:
        self.netlist = netlist
        self.insert = packed is None
        self.packed = packed or frozenset()
        self.spare = spare
        self.bears = [1.0] * len(netlist.names)
        self.names: list[str] = []
        self.fresh: list[LayerCell] = []
        self.cases = cases_of(netlist)
        self.sums: dict[int, list[SumCell]] = {}
        for cell in netlist.cells:
            if isinstance(cell, SumCell):
                self.sums.setdefault(cell.out, []).append(cell)
        # tokens' own signals come with the embedding, off by no more than the scale: ``spare`` is more than that
        lo, hi = netlist.lo, netlist.hi
        self.least = {signal: spare * max(abs(lo[signal]), abs(hi[signal])) for signal, _ in netlist.tokens}
        self._limit(netlist.code, CODE_LIMIT)

    def visit(self, cell: LayerCell) -> LayerCell:
        """Notes what the cell asks of its inputs; returns it, or what it has become."""
        if isinstance(cell, SumCell):
            for arg, _ in cell.parts:
                self._limit((arg,), FLAT_LIMIT)
            self._ramps(cell)
            return cell
        if isinstance(cell, DelayCell):
            return replace(cell, arg=self._read(cell.arg, self.bears[cell.out] - self.spare, {}))
        return self._memory(cell)

    def _ramps(self, cell: SumCell) -> None:
        """Where a table's argument is too large for exact steps, its errors pass: all of them together may be half of
        what the sum's own readers bear. ANDs that exclude each other (see ``forms``) pass those of a few only."""
        netlist = self.netlist
        lowest = sum(min(table) for _, table in cell.parts)
        most_on = (netlist.hi[cell.out] if cell.most is None else cell.most) - lowest
        spikes = _heights(cell.parts)
        # steps take twice the neurons: a sum of many parts asks its inputs to be exact instead, unless they exclude
        # each other
        # what packing has put together has as many for each of its bits
        bits = (netlist.hi[cell.out] + 1).bit_length() - 1 if cell.out in self.packed else 1
        many = len(cell.parts) >= MANY * bits and not (lowest == 0 and spikes > 2 * most_on)
        passing = [(arg, table) for arg, table in cell.parts if many or not self._steps_are_exact(arg, table)]
        if not passing:
            return
        ends = [arg for arg, table in passing if spike((0, table)) is not None]
        exclusive = lowest == 0 and _heights(passing) > 2 * most_on
        weight = 0
        for arg, table in passing:
            if not exclusive or spike((0, table)) is None:
                weight += slope_of((0, table)) * _weight(arg)
        if exclusive:
            weight += 2 * most_on * max(_weight(arg) for arg in ends)
        room = (self.bears[cell.out] - self.spare) / self.cases.of(cell.out).cases / (STRICT if many else 2)
        for signal in {signal for arg, table in passing for signal, _ in arg.terms if self._asked(signal, arg, table)}:
            # what nothing can promise is not asked for: then the sum itself is refused, not all that it reads
            self.bears[signal] = min(self.bears[signal], max(room / max(weight, 1), self._least(signal)))

    def _asked(self, signal: int, arg: Affine, table: tuple[int, ...]) -> bool:
        """Reads are not asked for what steps can mend."""
        return signal in self.sums or not self._steps_are_exact(arg, table)

    def _steps_are_exact(self, arg: Affine, table: tuple[int, ...]) -> bool:
        """Whether steps where the table changes are exact in bfloat16, from either side (``rows.any_order_exact``)."""
        changes = [n for n in range(1, len(table)) if table[n] != table[n - 1]]
        if not changes:
            return True
        lo, hi = self.netlist.lo, self.netlist.hi
        positive = sum(max(coef * lo[s], coef * hi[s], 0) for s, coef in arg.terms)
        negative = -sum(min(coef * lo[s], coef * hi[s], 0) for s, coef in arg.terms)
        first, last = (end + arg.lo - arg.const for end in (changes[0], changes[-1]))
        return max(2 * positive + max(0.0, 1.5 - 2 * first), 2 * negative + max(0.0, 2 * last - 0.5)) <= 128

    def _memory(self, cell: MemoryCell) -> MemoryCell:
        for port in (cell.write, cell.read):
            self._limit((*port.address, *port.enable), KEY_LIMIT)
        if cell.wipe is not None:
            self._limit((cell.wipe,), FLAT_LIMIT)
        outs = [out for column in cell.columns for out in (column.out, column.out_not) if out is not None]
        # a bit's own error, that of the others through the shared norm, and the gate's; all that drive a signal share
        room = min((self._room(out) for out in outs), default=1.0)
        if cell.gather:
            for column in cell.columns:
                self._limit([column.data, *column.where, *cell.write.enable], room)
        known: dict[Affine, Affine] = {}
        columns = tuple(
            replace(
                column,
                data=column.data if cell.gather else self._read(column.data, room, known),
                select=None if column.select is None else self._read(column.select, room, known),
            )
            for column in cell.columns
        )
        return replace(cell, columns=columns)

    def _room(self, out: int) -> float:
        """For each error of an input of the signal's reads."""
        weights = self.cases.of(out)
        return (self.bears[out] - 2 * weights.cases * self.spare) / weights.inputs

    def _limit(self, args: Iterable[Affine], total: float) -> None:
        """Together, the expressions may be off by ``total``. A gate's literals, pushed far, do not ask of what they
        gate to be as exact as they are."""
        terms = [term for arg in args for term in arg.terms]
        share = _shares(abs(coef) for _, coef in terms)
        whole = sum(share[abs(coef)] for _, coef in terms)
        for signal, coef in terms:
            self.bears[signal] = min(self.bears[signal], total * share[abs(coef)] / whole / abs(coef))

    def _read(self, arg: Affine, room: float, known: dict[Affine, Affine]) -> Affine:
        """The expression, or a restored copy if it would have to be better than a sum can promise."""
        weight = sum(abs(coef) for _, coef in arg.terms)
        enough = not weight or room / weight >= max(self._least(signal) for signal, _ in arg.terms)
        if enough or not self.insert:
            self._limit((arg,), room)
            return arg
        if arg not in known:
            signal = len(self.bears)
            self.bears.append(room)
            self.names.append(f"restored {len(self.names)}: {self._text(arg)}")
            self.fresh.append(SumCell(signal, ((arg, tuple(range(arg.lo, arg.hi + 1))),)))
            self._limit((arg,), FLAT_LIMIT)
            known[arg] = Affine(((signal, 1),), 0, arg.lo, arg.hi)
        return known[arg]

    def _least(self, signal: int) -> float:
        """An error that the signal can surely be kept within: a sum by steps alone; a read by restoring what it reads,
        which leaves three errors of a sum, and what reads add."""
        if signal not in self.least:
            cells = self.sums.get(signal, [])
            total = len(cells) * (PROMISE + self.spare)
            total += 4 * (self.cases.of(signal).cases - len(cells)) * (PROMISE + self.spare)
            for arg, table in (part for cell in cells for part in cell.parts):
                jumps = sum(abs(b - a) for a, b in zip(table, table[1:], strict=False))
                largest = sum(abs(c) * max(abs(self.netlist.lo[s]), abs(self.netlist.hi[s])) for s, c in arg.terms)
                reach = 2 * (largest + abs(arg.const)) + 2
                total += 2 * jumps * ULP * (len(arg.terms) + 4) * reach
            self.least[signal] = total
        return self.least[signal]

    def _text(self, arg: Affine) -> str:
        names = [self.netlist.names[signal] for signal, _ in arg.terms[:3] if signal < len(self.netlist.names)]
        return "+".join(names)


def _heights(parts: Iterable[tuple[Affine, tuple[int, ...]]]) -> int:
    """How many ANDs there are, times the lowest one's value."""
    ends = [abs(end[2]) for _, table in parts if (end := spike((0, table))) is not None]
    return len(ends) * min(ends, default=0)


def _shares(coefs: Iterable[int]) -> dict[int, float]:
    """Coefficient -> its share of an error. The digits of a number, each coefficient at most twice the one before, have
    theirs by weight, so that all may be off alike; what stands far above is a gate's, and takes little."""
    found: dict[int, float] = {}
    before = 0
    for coef in sorted(set(coefs)):
        gates = bool(found) and (before == 0 or coef > 2 * before)
        found[coef] = float(coef ** (-1 / 3)) if gates else float(coef)
        before = 0 if gates else coef
    return found
