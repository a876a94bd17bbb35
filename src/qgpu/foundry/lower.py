"""Second stage: tables become neurons.

How large an error a signal's readers can bear is found first, from the end of the circuit to its start (``restore``);
then each sum gets its form (see ``forms``) and the errors are added up, from the start to the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from .errors import TooFarOff
from .forms import Chooser, Part, Terms
from .netlist import Affine, DelayCell, MemoryCell, Netlist, SumCell
from .numbers import GATHER_RATIO, READ_ERROR, is_bf16
from .restore import restore
from .rows import FLAT_LIMIT, KEY_LIMIT, Allowance, Row, any_order_exact, spread
from .shared import Driver, Errors, cases_of, columns_of, select_cases
from .tables import Table, pivots, ramps, steps, without_slope


@dataclass(frozen=True)
class LoweredSum:
    """A Sum as neurons: ``out = sum(weight * row)``. ``kinds``: the forms used, see ``forms``;
    ``largest``: how large the partial sums can get, in any order; ``error``: what it adds to its signal's."""

    out: int
    parts: tuple[Part, ...]
    const: int
    kinds: frozenset[str]
    largest: float
    error: float
    uses: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Lowered:
    """``rows``: all different neurons; ``sums``: by cell number; ``error``: by signal, in float32 activations, of which
    ``allowance.clear`` is for what the signal's dim held before; ``bears``: what its readers bear."""

    netlist: Netlist
    rows: tuple[Row, ...]
    sums: Mapping[int, LoweredSum]
    error: tuple[float, ...]
    bears: tuple[float, ...]
    allowance: Allowance


def lower(netlist: Netlist, allowance: Allowance | None = None, packed: frozenset[int] | None = None) -> Lowered:
    """Rows and forms for every Sum. ``packed``: signals that packing has put together; where it is given, no levels may
    be added (see ``restore``). Raises TooFarOff
    where no form is exact."""
    allowance = allowance or Allowance()
    netlist, bears = restore(netlist, allowance, packed)
    lowering = _Lowering(netlist, allowance, bears)
    lowering.run()
    if lowering.faults:
        raise TooFarOff(netlist.name, list(dict.fromkeys(lowering.faults)), frozenset(lowering.too_far_off))
    return Lowered(netlist, tuple(lowering.row_ids), lowering.sums, tuple(lowering.error), tuple(bears), allowance)


def delay_error(cell: DelayCell, error: Sequence[float], scale: float) -> float:
    """Error of a delayed bit, without what its dim held before."""
    return spread(cell.arg.terms, error) + READ_ERROR + scale


def memory_errors(cell: MemoryCell, error: Sequence[float], scale: float) -> dict[int, float]:
    """By output, without what its dim held before: the stored bit's own error, that of the others once more through the
    shared norm, the gate's, and the read-out's."""
    shared = 2 * sum(spread(arg.terms, error) for arg in cell.write.enable) if cell.gather else 0.0
    shared += 2 * max(sum(spread(arg.terms, error) for arg in column.where) for column in cell.columns)
    worst = max(spread(column.data.terms, error) for column in cell.columns) + shared
    read = READ_ERROR + scale + (2.0 ** len(cell.write.address) / GATHER_RATIO if cell.gather else 0.0)
    gates = [c.weight * spread(c.select.terms, error) if c.select is not None else 0.0 for c in cell.columns]
    own = [c.weight * (spread(c.data.terms, error) + shared + worst + read) for c in cell.columns]
    return {
        out: sum(gates[number] for number in columns)
        + sum(max(own[number] for number in case) for case in select_cases(cell, columns))
        for out, columns in columns_of(cell).items()
    }


def port_errors(cell: MemoryCell, error: Sequence[float]) -> Iterable[tuple[str, float, float, tuple[Affine, ...]]]:
    """For each decision of a memory: what, the error of the sum that decides it, how large it may be, what it reads."""
    for label, port in (("write key", cell.write), ("read key", cell.read)):
        args = (*port.address, *port.enable)
        yield label, sum(spread(arg.terms, error) for arg in args), KEY_LIMIT, args
    if cell.wipe is not None:
        yield "wipe", spread(cell.wipe.terms, error), FLAT_LIMIT, (cell.wipe,)


class _Lowering:
    """One pass in topological order: forms, rows, errors, faults."""

    def __init__(self, netlist: Netlist, allowance: Allowance, bears: Sequence[float]) -> None:
        self.netlist = netlist
        self.allowance = allowance
        self.bears = bears
        self.parts: dict[int, tuple[tuple[Part, ...], int]] = {}
        self.groups: dict[Terms, dict[Table, None]] = {}
        for number, cell in enumerate(netlist.cells):
            if isinstance(cell, SumCell):
                self.parts[number] = parts_of(cell)
                for part in self.parts[number][0]:
                    self.groups.setdefault(part.terms, {})[part.table] = None
        self.stepped: dict[Terms, bool] = {}
        self.pivot_of: dict[tuple[Terms, str], dict[Table, int]] = {}
        self.error = [allowance.clear] * len(netlist.names)
        self.cases = cases_of(netlist)
        self.errors = Errors(self.cases, self.error)
        self.lowest = _lowest(netlist)
        self.row_ids: dict[Row, int] = {}
        self.sums: dict[int, LoweredSum] = {}
        self.faults: list[str] = []
        self.too_far_off: set[int] = set()
        self.chooser = Chooser(netlist.lo, netlist.hi, self.error, self._pivot, allowance.scale, self._stepped)

    def run(self) -> None:
        netlist = self.netlist
        for signal, _ in netlist.tokens:
            self.error[signal] = self.allowance.scale * max(abs(netlist.lo[signal]), abs(netlist.hi[signal]))
        for number, cell in enumerate(netlist.cells):
            if isinstance(cell, SumCell):
                self.sums[number] = self._sum(number, cell)
            elif isinstance(cell, DelayCell):
                found = delay_error(cell, self.error, self.allowance.scale)
                self._add(f"delay '{netlist.names[cell.out]}'", (number, cell.out), found, [cell.arg])
            else:
                self._memory(number, cell)

    def _add(self, where: str, driver: Driver, found: float, args: Iterable[Affine]) -> None:
        """One more error of a signal; too large a one is reported here, and not by all that is below."""
        bears, total = self.bears[driver[1]], self.error[driver[1]] + self.errors.more(driver, found)
        if total <= bears:
            self.errors.add(driver, found)
            return
        self.too_far_off.add(driver[1])
        self.faults.append(
            f"{where}: float32 errors of its inputs add up to {total:.3g}, its readers bear {bears:.3g}; put a level "
            f"between, or use fewer inputs: {self._names(args)}"
        )

    def _names(self, args: Iterable[Affine]) -> str:
        names = sorted({self.netlist.names[signal] for arg in args for signal, _ in arg.terms})
        return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")

    def _memory(self, number: int, cell: MemoryCell) -> None:
        for label, found, most, args in port_errors(cell, self.error):
            if found > most:
                self.too_far_off.update(signal for arg in args for signal, _ in arg.terms)
                self.faults.append(
                    f"memory '{cell.name}', {label}: float32 errors of its inputs add up to {found:.3g}, at most "
                    f"{most:.3g} may; put a level between, or use fewer inputs: {self._names(args)}"
                )
        read = [arg for column in cell.columns for arg in (column.data, column.select) if arg is not None]
        for out, found in memory_errors(cell, self.error, self.allowance.scale).items():
            self._add(f"memory '{cell.name}'", (number, out), found, read)

    def _sum(self, number: int, cell: SumCell) -> LoweredSum:
        parts, const = self.parts[number]
        out, name = cell.out, self.netlist.names[cell.out]
        target = (self.bears[out] - self.allowance.clear) / self.cases.of(out).cases
        others = self.lowest[out] - _least(cell)
        top = self.netlist.hi[out] - others
        form = self.chooser.choose(out, parts, const, target, top if cell.most is None else min(top, cell.most))
        for row in form.uses:
            if not any_order_exact(row, self.netlist.lo, self.netlist.hi):
                self.too_far_off.add(out)
                names = ", ".join(self.netlist.names[signal] for signal, _ in row.terms[:8])
                self.faults.append(
                    f"sum '{name}': partial sums of a neuron over {names} pass 256, bfloat16 would round them; "
                    f"split the sum into two levels"
                )
        if any(not is_bf16(np.array([weight])) for weight in form.uses.values()):
            self.too_far_off.add(out)
            self.faults.append(f"sum '{name}': its table jumps by more than bfloat16 holds; split it in two")
        self._add(f"sum '{name}'", (number, out), form.error, [arg for arg, _ in cell.parts])
        ids = self.row_ids
        uses = tuple((ids.setdefault(row, len(ids)), weight) for row, weight in form.uses.items())
        return LoweredSum(out, parts, const, form.kinds, form.largest, form.error, uses)

    def _pivot(self, part: Part, kind: str) -> int:
        known = self.pivot_of.get((part.terms, kind))
        if known is None:
            tables = tuple(self.groups[part.terms])
            shapes = tuple(without_slope(table)[1] for table in tables) if kind == "saw" else tables
            found = pivots(shapes, ramps if kind == "ramps" else steps)
            known = self.pivot_of[part.terms, kind] = dict(zip(tables, found, strict=True))
        return known[part.table]

    def _stepped(self, terms: Terms) -> bool:
        """Whether all tables of an integer take about as few neurons as steps (and a slope) as they do as ramps."""
        known = self.stepped.get(terms)
        if known is None:
            bends: set[object] = set()
            breaks: set[object] = set()
            for table in self.groups[terms]:
                part = Part(terms, table)
                bends.update(piece[:2] for piece in ramps(table, self._pivot(part, "ramps"))[1])
                slope, rest = without_slope(table)
                for side, position, _ in steps(rest, self._pivot(part, "saw"))[1]:
                    breaks.update([(side, position, 0), (side, position, 1)])
                breaks.update(["slope"] if slope else [])
            known = self.stepped[terms] = 4 * len(breaks) <= 5 * len(bends)
        return known


def _least(cell: SumCell) -> int:
    """The least that a sum's tables could add up to."""
    return sum(min(table) for _, table in cell.parts)


def _lowest(netlist: Netlist) -> Counter[int]:
    """By signal: the least that all its sums could add up to (reads are never negative)."""
    lowest: Counter[int] = Counter()
    for cell in netlist.cells:
        if isinstance(cell, SumCell):
            lowest[cell.out] += _least(cell)
    return lowest


def parts_of(cell: SumCell) -> tuple[tuple[Part, ...], int]:
    """The cell's tables, those of the same integer made one, and the constant of those of none."""
    const = 0
    merged: dict[Terms, Table] = {}
    for arg, table in cell.parts:
        if not arg.terms:
            const += table[arg.const - arg.lo]
            continue
        divisor = gcd(*(coef for _, coef in arg.terms))
        step = divisor if arg.terms[0][1] > 0 else -divisor
        terms = tuple((signal, coef // step) for signal, coef in arg.terms)
        # arg = step * n + const, so n runs over what keeps arg within its bounds
        ends = (arg.lo - arg.const, arg.hi - arg.const)
        first, last = (ends[0], ends[1]) if step > 0 else (-ends[1], -ends[0])
        low, high = -(-first // divisor), last // divisor
        values = tuple(table[step * n + arg.const - arg.lo] for n in range(low, high + 1))
        merged[terms] = _sum_tables(merged.get(terms), (low, values))
    return tuple(Part(terms, table) for terms, table in merged.items() if table[1] and any(table[1])), const


def _sum_tables(a: Table | None, b: Table) -> Table:
    """Both tables hold, so the argument is where both are defined."""
    if a is None:
        return b
    low, high = max(a[0], b[0]), min(a[0] + len(a[1]), b[0] + len(b[1]))
    return low, tuple(a[1][n - a[0]] + b[1][n - b[0]] for n in range(low, high))
