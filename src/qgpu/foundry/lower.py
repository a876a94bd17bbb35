"""Second stage: tables become neurons.

Each Sum's tables are written as *ramps*, one neuron a bend, as long as the error that float32 activations would carry
through them stays small; where it would not, as *steps*, two neurons a change of value, flat around every integer, so
that errors end there. A sum of many ANDs (a mux) is written *sharp*, one neuron a term with twice the slope: terms
that are off by one then add exactly nothing, and only as many errors add up as terms can be on.

The choice is made in topological order. If a reader finds an error too large even for steps (or for the key of a
memory), the sums above it are made steps as well, and the pass is run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from .errors import FoundryError
from .netlist import Affine, DelayCell, LayerCell, MemoryCell, Netlist, SumCell
from .numbers import GATHER_RATIO, READ_ERROR
from .rows import (
    CLEAR_ALLOWANCE,
    FLAT_LIMIT,
    KEY_LIMIT,
    ONE,
    PASS_LIMIT,
    SCALE_ERROR,
    Row,
    any_order_exact,
    row_rounding,
    spread,
)
from .tables import Piece, Table, is_affine, pivots, ramps, slope_of, spike, steps

Terms = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Part:
    """One table over the integer ``sum(coef * signal)``, whose terms have no common factor and start with a plus."""

    terms: Terms
    table: Table


@dataclass(frozen=True)
class LoweredSum:
    """A Sum as neurons: ``out = sum(weight * row)``. ``form``: "ramps", "sharp" or "steps"."""

    out: int
    parts: tuple[Part, ...]
    const: int
    form: str
    uses: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Lowered:
    """``rows``: all different neurons; ``sums``: by cell number; ``error``: by signal, in float32 activations."""

    netlist: Netlist
    rows: tuple[Row, ...]
    sums: Mapping[int, LoweredSum]
    error: tuple[float, ...]


def lower(netlist: Netlist) -> Lowered:
    """Rows and forms for every Sum. Raises FoundryError where no form is exact."""
    pass_ = _Lowering(netlist)
    while pass_.run():
        pass
    if pass_.faults:
        raise FoundryError(netlist.name, "lowering", list(dict.fromkeys(pass_.faults)))
    return Lowered(netlist, tuple(pass_.row_ids), pass_.sums, tuple(pass_.error))


def memory_error(cell: MemoryCell, data: Affine, select: Affine | None, error: Sequence[float]) -> float:
    """Error of one read: the stored bit's own, once more through the shared norm, the gate's, and the read-out's."""
    worst = max(spread(column.data.terms, error) for column in cell.columns)
    gate = spread(select.terms, error) if select is not None else 0.0
    summed = 2.0 ** len(cell.write.address) / GATHER_RATIO if cell.gather else 0.0
    return spread(data.terms, error) + worst + gate + summed + READ_ERROR


def port_errors(cell: MemoryCell, error: Sequence[float]) -> Iterable[tuple[str, float]]:
    """What, and the error of the sum that decides it, for each decision of a memory."""
    for label, port in (("write key", cell.write), ("read key", cell.read)):
        yield label, sum(spread(bit.terms, error) for bit in (*port.address, *port.enable))
    if cell.wipe is not None:
        yield "wipe", spread(cell.wipe.terms, error)


class _Lowering:
    """The state of the passes: which sums were told to be steps, and what the last pass found."""

    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.forced: set[int] = set()
        self.drivers: dict[int, list[int]] = {}
        self.parts: dict[int, tuple[tuple[Part, ...], int]] = {}
        groups: dict[Terms, dict[Table, None]] = {}
        for number, cell in enumerate(netlist.cells):
            if isinstance(cell, SumCell):
                self.drivers.setdefault(cell.out, []).append(number)
                self.parts[number] = parts_of(cell)
                for part in self.parts[number][0]:
                    groups.setdefault(part.terms, {})[part.table] = None
            elif isinstance(cell, DelayCell):
                self.drivers.setdefault(cell.out, []).append(number)
            else:
                for column in cell.columns:
                    for out in (column.out, column.out_not):
                        if out is not None:
                            self.drivers.setdefault(out, []).append(number)
        self.groups = groups
        self.pivot_of: dict[tuple[Terms, bool], dict[Table, int]] = {}

    def run(self) -> bool:
        """One pass in topological order; True if it has to be run again."""
        netlist = self.netlist
        self.error = [0.0] * len(netlist.names)
        self.row_ids: dict[Row, int] = {}
        self.sums: dict[int, LoweredSum] = {}
        self.faults: list[str] = []
        before = len(self.forced)
        for signal, _ in netlist.tokens:
            self.error[signal] = self._floor(signal)
        for number, cell in enumerate(netlist.cells):
            if isinstance(cell, SumCell):
                self.sums[number] = self._sum(number, cell)
            else:
                self._stateful(cell)
        return len(self.forced) > before

    def _floor(self, signal: int) -> float:
        largest = max(abs(self.netlist.lo[signal]), abs(self.netlist.hi[signal]))
        return CLEAR_ALLOWANCE + SCALE_ERROR * largest

    def _stateful(self, cell: LayerCell) -> None:
        error = self.error
        if isinstance(cell, DelayCell):
            error[cell.out] = 2 * spread(cell.arg.terms, error) + READ_ERROR + CLEAR_ALLOWANCE
            return
        assert isinstance(cell, MemoryCell)
        for label, found in port_errors(cell, error):
            if found > KEY_LIMIT:
                ports = {"write key": cell.write, "read key": cell.read}
                port = ports.get(label)
                args = (*port.address, *port.enable) if port else ()
                wipe = (cell.wipe,) if cell.wipe is not None and not port else ()
                self._blame(f"memory '{cell.name}', {label}", found, (a.terms for a in (*args, *wipe)))
        fresh: dict[int, float] = {}
        for column in cell.columns:
            for out in (column.out, column.out_not):
                if out is not None:
                    fresh[out] = memory_error(cell, column.data, column.select, error)
        for out, found in fresh.items():
            if found > KEY_LIMIT:
                args = tuple(a for c in cell.columns for a in (c.data, c.select) if a is not None)
                self._blame(f"memory '{cell.name}', data", found, (a.terms for a in args))
            error[out] = max(error[out], CLEAR_ALLOWANCE) + found

    def _blame(self, where: str, found: float, args: Iterable[Terms]) -> None:
        """Have the sums that these signals come from made in steps; a fault if all of them are already."""
        seen: set[int] = set()
        todo = [signal for terms in args for signal, _ in terms]
        told = False
        while todo:
            signal = todo.pop()
            if signal in seen:
                continue
            seen.add(signal)
            for number in self.drivers.get(signal, ()):
                cell = self.netlist.cells[number]
                if isinstance(cell, SumCell):
                    if number not in self.forced and self.sums[number].form != "steps":
                        self.forced.add(number)
                        told = True
                elif isinstance(cell, DelayCell):
                    todo += [s for s, _ in cell.arg.terms]
                else:
                    for column in cell.columns:
                        todo += [s for s, _ in column.data.terms]
                        todo += [s for s, _ in column.select.terms] if column.select is not None else []
        if not told:
            names = ", ".join(sorted(self.netlist.names[s] for s in seen)[:8])
            self.faults.append(
                f"{where}: float32 errors of its inputs add up to {found:.3g}; put a level between, or use fewer "
                f"inputs: {names}"
            )

    def _sum(self, number: int, cell: SumCell) -> LoweredSum:
        parts, const = self.parts[number]
        name = self.netlist.names[cell.out]
        found, form, uses = self._ramps(cell, parts, const)
        if found > PASS_LIMIT or number in self.forced:
            worst = max((spread(part.terms, self.error) for part in parts), default=0.0)
            stepped, step_uses = self._steps(cell, parts, const)
            if worst > FLAT_LIMIT:
                guilty = [p.terms for p in parts if spread(p.terms, self.error) > FLAT_LIMIT]
                self._blame(f"sum '{name}'", worst, guilty)
            elif stepped < found and all(self._exact(row) for row in step_uses):
                found, form, uses = stepped, "steps", step_uses
            elif found > PASS_LIMIT:
                self._blame(f"sum '{name}'", found, (p.terms for p in parts))
        for row in uses:
            if not self._exact(row):
                names = ", ".join(self.netlist.names[s] for s, _ in row.terms[:8])
                self.faults.append(
                    f"sum '{name}': partial sums of a neuron over {names} pass 256, bfloat16 would round them; "
                    f"split the sum into two levels"
                )
        self.error[cell.out] = found + CLEAR_ALLOWANCE
        numbered = tuple((self.row_ids.setdefault(row, len(self.row_ids)), weight) for row, weight in uses.items())
        return LoweredSum(cell.out, parts, const, form, numbered)

    def _exact(self, row: Row) -> bool:
        return any_order_exact(row, self.netlist.lo, self.netlist.hi)

    def _pivot(self, part: Part, stepped: bool) -> int:
        known = self.pivot_of.get((part.terms, stepped))
        if known is None:
            shapes = tuple(self.groups[part.terms])
            found = pivots(shapes, steps if stepped else ramps)
            known = self.pivot_of[part.terms, stepped] = dict(zip(shapes, found, strict=True))
        return known[part.table]

    def _ramps(
        self, cell: SumCell, parts: Sequence[Part], const: int
    ) -> tuple[float, str, dict[Row, int]]:
        """Error, form and rows with one neuron a bend, sharp where that carries less."""
        lo, hi = self.netlist.lo, self.netlist.hi
        uses: dict[Row, int] = {}
        carried = [slope_of(part.table) * spread(part.terms, self.error) for part in parts]
        ends = [spike(part.table) for part in parts]
        most = hi[cell.out] - const
        never_negative = all(min(part.table[1]) >= 0 for part in parts)
        sharp = never_negative and sum(end is not None for end in ends) > 2 * most > 0
        sharp = sharp and all(self._exact(sharp_row(p.terms, e)) for p, e in zip(parts, ends, strict=True) if e)
        total = 0.0
        worst_sharp = 0.0
        for part, end, growth in zip(parts, ends, carried, strict=True):
            if sharp and end is not None:
                row = sharp_row(part.terms, end)
                add(uses, row, end[2])
                worst_sharp = max(worst_sharp, 2 * spread(part.terms, self.error) + row_rounding(row, lo, hi))
                continue
            total += growth
            if is_affine(part.table) and part.table[1][0] and part.table[1][-1]:
                first, values = part.table
                slope = values[1] - values[0] if len(values) > 1 else 0
                const += values[0] - slope * first
                row = Row(part.terms, 0, linear=True)
                if slope:
                    add(uses, row, slope)
                    total += abs(slope) * row_rounding(row, lo, hi)
                continue
            base, pieces = ramps(part.table, self._pivot(part, False))
            const += base
            for piece in pieces:
                row = ramp_row(part.terms, piece)
                add(uses, row, piece[2])
                total += abs(piece[2]) * row_rounding(row, lo, hi)
        add(uses, ONE, const)
        scale = 2 * SCALE_ERROR * max(abs(lo[cell.out]), abs(hi[cell.out]))
        return total + most * worst_sharp + scale, "sharp" if sharp else "ramps", uses

    def _steps(self, cell: SumCell, parts: Sequence[Part], const: int) -> tuple[float, dict[Row, int]]:
        lo, hi = self.netlist.lo, self.netlist.hi
        uses: dict[Row, int] = {}
        total = 2 * SCALE_ERROR * max(abs(lo[cell.out]), abs(hi[cell.out]))
        for part in parts:
            base, pieces = steps(part.table, self._pivot(part, True))
            const += base
            for piece in pieces:
                for row, weight in step_rows(part.terms, piece):
                    add(uses, row, weight)
                    total += abs(weight) * row_rounding(row, lo, hi)
        add(uses, ONE, const)
        return total, uses


def add(uses: dict[Row, int], row: Row, weight: int) -> None:
    """``uses[row] += weight``, without entries of zero."""
    total = uses.get(row, 0) + weight
    if total:
        uses[row] = total
    else:
        uses.pop(row, None)


def _scaled(terms: Terms, factor: int) -> Terms:
    return tuple((signal, factor * coef) for signal, coef in terms)


def ramp_row(terms: Terms, piece: Piece) -> Row:
    """relu(n - position), or relu(position - n)."""
    side, position, _ = piece
    return Row(_scaled(terms, side), -2 * side * position)


def sharp_row(terms: Terms, piece: Piece) -> Row:
    """1 at the position, and -1 (so nothing) one away from it."""
    side, position, _ = piece
    return Row(_scaled(terms, 2 * side), 2 - 4 * side * position)


def step_rows(terms: Terms, piece: Piece) -> tuple[tuple[Row, int], tuple[Row, int]]:
    """relu(2 (n - position) + 3/2) - relu(2 (n - position) + 1/2), or its mirror image."""
    side, position, weight = piece
    doubled, start = _scaled(terms, 2 * side), -4 * side * position
    return (Row(doubled, start + 3), weight), (Row(doubled, start + 1), -weight)


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
