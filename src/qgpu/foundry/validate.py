"""First stage: is this circuit one that layers can hold? Every fault is found before anything is reported.

The law of the machine shows here as a plain cycle: a layer's state is written from that layer's input and read after
the write, so whatever a memory's write depends on must stand *above* it, and whatever depends on its read stands
below. A value that depends on an old value of the same memory has to come back in a token.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from qgpu.circuit.ir import Circuit, Column, Delay, Expr, Memory, Port, Signal, Sum, Token

from .errors import FoundryError
from .netlist import (
    Affine,
    ColumnSpec,
    DelayCell,
    LayerCell,
    MemoryCell,
    Netlist,
    PortSpec,
    SumCell,
    inputs,
    outputs,
)

LARGEST = 256  # integers up to here are exact in bfloat16
ADDRESS_BITS = 7
COLUMNS = 64
WEIGHTS = (1, 2, 4, 8, 16, 32, 64)  # of a column: a number of up to seven bits
SELECT_COEFFICIENT = 4  # the read gate has six bits of the eight


def validate(circuit: Circuit) -> Netlist:
    """The circuit by index, cells in topological order. Raises FoundryError with every fault."""
    return _Reader(circuit).netlist()


class _Reader:
    """Collects faults while it numbers signals; one use."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.faults: list[str] = []
        self.claims: dict[str, None] = {}
        self.index: dict[Signal, int] = {}
        self.alone_of: dict[Signal, bool] = {}  # by driven signal: whether it takes no other driver
        self.affine_of: dict[int, Affine] = {}

    def netlist(self) -> Netlist:
        circuit = self.circuit
        for cell in circuit.cells:
            self._drivers(cell)
        self._signals()
        tokens = [(self.index[c.out], self._token(c)) for c in circuit.cells if isinstance(c, Token)]
        cells: list[LayerCell] = []
        for cell in circuit.cells:
            if isinstance(cell, Sum):
                cells.append(self._sum(cell))
            elif isinstance(cell, Delay):
                cells.append(self._delay(cell))
            elif isinstance(cell, Memory):
                cells.append(self._memory(cell))
        code = tuple(self._bit(bit, f"code bit {i}") for i, bit in enumerate(circuit.code))
        self._codes()
        names = tuple(signal.name for signal in self.index)
        ordered = self._order(cells, names)
        if self.faults:
            raise FoundryError(circuit.name, "validation", self.faults)
        return Netlist(
            name=circuit.name,
            vocabulary=circuit.vocabulary,
            names=names,
            lo=tuple(signal.lo for signal in self.index),
            hi=tuple(signal.hi for signal in self.index),
            tokens=tuple(tokens),
            cells=tuple(ordered),
            code=code,
            code_of=circuit.code_of,
            claims=tuple(self.claims),
        )

    def _drivers(self, cell: Token | Sum | Delay | Memory) -> None:
        if isinstance(cell, Memory):
            driven = [out for c in cell.columns for out in (c.out, c.out_not) if out is not None]
        else:
            driven = [cell.out]
        alone = isinstance(cell, Token | Delay)
        for out in driven:
            if out in self.alone_of:
                if alone or self.alone_of[out]:
                    self.faults.append(f"'{out.name}' is driven twice; only sums and memories may share a signal")
                self.claims[f"what drives '{out.name}' adds up to {out.lo}..{out.hi}"] = None
            self.alone_of[out] = alone
            self.index.setdefault(out, len(self.index))

    def _signals(self) -> None:
        seen: dict[str, Signal] = {}
        for signal in self.index:
            if signal.lo > signal.hi or max(abs(signal.lo), abs(signal.hi)) > LARGEST:
                self.faults.append(
                    f"'{signal.name}' ranges over {signal.lo}..{signal.hi}; it has to be within -{LARGEST}..{LARGEST}"
                )
            if seen.setdefault(signal.name, signal) is not signal:
                self.faults.append(f"two signals are called '{signal.name}'; names are unique")

    def _token(self, cell: Token) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
        values, out = cell.values, cell.out
        if values.shape != (self.circuit.vocabulary,):
            self.faults.append(f"token '{out.name}': {values.size} values for {self.circuit.vocabulary} ids")
        elif values.size and (values.min() < out.lo or values.max() > out.hi):
            self.faults.append(
                f"token '{out.name}': values range over {values.min()}..{values.max()}, not {out.lo}..{out.hi}"
            )
        if out.hi - out.lo > 255:
            self.faults.append(f"token '{out.name}': a range of more than 256 values; split it into several signals")
        return np.asarray(values, np.int16)

    def _affine(self, expr: Expr, where: str) -> Affine:
        known = self.affine_of.get(id(expr))
        if known is not None:
            return known
        terms: dict[int, int] = {}
        for signal, coef in expr.terms.items():
            if signal not in self.index:
                self.faults.append(f"{where}: nothing drives '{signal.name}'")
            elif coef:
                terms[self.index[signal]] = coef
        low, high = expr.interval
        lo, hi = (low, high) if expr.bound is None else (max(expr.bound[0], low), min(expr.bound[1], high))
        if lo > hi:
            self.faults.append(f"{where}: {expr!r} is claimed to be in {expr.bound}, but ranges over {low}..{high}")
        elif (lo, hi) != (low, high):
            self.claims[f"{_short(expr)} is in {lo}..{hi}"] = None
        reach = sum(abs(coef) * max(abs(signal.lo), abs(signal.hi)) for signal, coef in expr.terms.items())
        if reach > LARGEST:
            self.faults.append(
                f"{where}: the terms of {_short(expr)} add up to {reach}; "
                f"at most {LARGEST} is exact in bfloat16, use two levels"
            )
        affine = Affine(tuple(sorted(terms.items())), expr.const, lo, hi)
        self.affine_of[id(expr)] = affine
        return affine

    def _bit(self, expr: Expr, where: str) -> Affine:
        affine = self._affine(expr, where)
        if affine.lo < 0 or affine.hi > 1:
            self.faults.append(f"{where}: {_short(expr)} ranges over {affine.lo}..{affine.hi}, a bit (0..1) is needed")
        return affine

    def _sum(self, cell: Sum) -> SumCell:
        where = f"sum '{cell.out.name}'"
        parts: list[tuple[Affine, tuple[int, ...]]] = []
        low = high = 0
        for number, term in enumerate(cell.terms):
            arg = self._affine(term.arg, f"{where}, term {number}")
            span = term.arg.hi - term.arg.lo + 1
            table = tuple(int(entry) for entry in term.table)
            if len(table) != span or not table:
                self.faults.append(
                    f"{where}, term {number}: {len(table)} entries for {term.arg.lo}..{term.arg.hi}, {span} are needed"
                )
                continue
            # a claim wider than the interval is cut to it: the entries beyond can never be asked for
            table = table[arg.lo - term.arg.lo : len(table) - (term.arg.hi - arg.hi)]
            if not table:
                continue
            low, high = low + min(table), high + max(table)
            parts.append((arg, table))
        if cell.out.lo > low or cell.out.hi < high:
            self.claims[f"'{cell.out.name}' is in {cell.out.lo}..{cell.out.hi}"] = None
        return SumCell(self.index[cell.out], tuple(parts))

    def _delay(self, cell: Delay) -> DelayCell:
        where = f"delay '{cell.out.name}'"
        if not 1 <= cell.tokens <= 3:
            self.faults.append(f"{where}: {cell.tokens} tokens; 1 to 3 are possible")
        return DelayCell(self.index[cell.out], self._bit(cell.arg, where), cell.tokens)

    def _port(self, port: Port, where: str) -> PortSpec:
        if len(port.address) > ADDRESS_BITS:
            self.faults.append(f"{where}: {len(port.address)} address bits; at most {ADDRESS_BITS}, use banks")
        return PortSpec(
            tuple(self._bit(bit, f"{where}, address bit {i}") for i, bit in enumerate(port.address)),
            tuple(self._bit(bit, f"{where}, enable {i}") for i, bit in enumerate(port.enable)),
        )

    def _column(self, column: Column, where: str) -> ColumnSpec:
        if not 0 <= column.delay <= 3:
            self.faults.append(f"{where}: a delay of {column.delay}; 0 to 3 are possible")
        for out in (column.out, column.out_not):
            if out is not None and (out.lo > 0 or out.hi < column.weight):
                self.faults.append(
                    f"{where}: '{out.name}' ranges over {out.lo}..{out.hi}, a read is 0 or {column.weight}"
                )
        if column.weight not in WEIGHTS:
            self.faults.append(f"{where}: a weight of {column.weight}; powers of two up to {WEIGHTS[-1]} are possible")
        if column.select is not None:
            largest = max((abs(coef) for coef in (*column.select.terms.values(), column.select.const)), default=0)
            if largest > SELECT_COEFFICIENT:
                self.faults.append(f"{where}: select has a coefficient of {largest}, at most 4 is exact; use a level")
        return ColumnSpec(
            self._bit(column.data, f"{where}, data"),
            column.delay,
            None if column.out is None else self.index[column.out],
            None if column.out_not is None else self.index[column.out_not],
            None if column.select is None else self._bit(column.select, f"{where}, select"),
            column.weight,
            tuple(self._bit(bit, f"{where}, where") for bit in column.where),
        )

    def _memory(self, cell: Memory) -> MemoryCell:
        where = f"memory '{cell.name}'"
        if not 1 <= len(cell.columns) <= COLUMNS:
            self.faults.append(f"{where}: {len(cell.columns)} columns; 1 to {COLUMNS} are possible")
        if cell.gather:
            self._gather(cell, where)
        return MemoryCell(
            cell.name,
            self._port(cell.write, f"{where}, write"),
            self._port(cell.read, f"{where}, read"),
            tuple(self._column(column, f"{where}, column {i}") for i, column in enumerate(cell.columns)),
            None if cell.wipe is None else self._bit(cell.wipe, f"{where}, wipe"),
            cell.gather,
        )

    def _gather(self, cell: Memory, where: str) -> None:
        if len(cell.write.address) >= ADDRESS_BITS:
            self.faults.append(f"{where}: a gather needs a spare row, so at most {ADDRESS_BITS - 1} address bits")
        if not cell.write.enable:
            self.faults.append(f"{where}: a gather needs tokens that do not write; give its write port an enable")
        if len(cell.read.address) > len(cell.write.address):
            self.faults.append(f"{where}: a gather reads by the highest of its address bits, and it has fewer")
        if any(column.out_not is not None for column in cell.columns):
            self.faults.append(f"{where}: a gather has no complements; leave out_not away")
        if any(column.delay for column in cell.columns):
            self.faults.append(f"{where}: a gather has no delayed columns; use Delay cells in front")

    def _codes(self) -> None:
        circuit, codes = self.circuit, self.circuit.code_of
        if codes.shape != (circuit.vocabulary,):
            self.faults.append(f"code_of: {codes.size} codes for {circuit.vocabulary} ids")
        elif codes.size and (codes.min() < 0 or int(codes.max()) >> len(circuit.code)):
            self.faults.append(f"code_of: codes {codes.min()}..{codes.max()} do not fit {len(circuit.code)} bits")
        elif len(np.unique(codes)) != len(codes):
            values, counts = np.unique(codes, return_counts=True)
            self.faults.append(f"code_of: {int(values[counts > 1][0])} stands for several ids; codes are unique")

    def _order(self, cells: list[LayerCell], names: tuple[str, ...]) -> list[LayerCell]:
        """Topological order; every cell of a loop is reported."""
        drivers: dict[int, list[int]] = {}
        for number, cell in enumerate(cells):
            for out in outputs(cell):
                drivers.setdefault(out, []).append(number)
        before = [sorted({d for s in inputs(cell) for d in drivers.get(s, ())}) for cell in cells]
        after: list[list[int]] = [[] for _ in cells]
        for number, sources in enumerate(before):
            for source in sources:
                after[source].append(number)
        waiting = [len(sources) for sources in before]
        ready = [number for number, count in enumerate(waiting) if not count]
        for number in ready:  # grows while it is read
            for follower in after[number]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    ready.append(follower)
        if len(ready) < len(cells):
            stuck = {number for number, count in enumerate(waiting) if count}
            self.faults += _loops(cells, before, stuck, names)
        return [cells[number] for number in ready]


def _loops(cells: list[LayerCell], before: list[list[int]], stuck: set[int], names: tuple[str, ...]) -> Iterable[str]:
    """One line for each loop met when walking back from the cells that never became ready."""
    done: set[int] = set()
    for start in sorted(stuck):
        path: dict[int, None] = {}
        at = start
        while at not in path and at not in done:
            path[at] = None
            at = next(source for source in before[at] if source in stuck)
        if at in path:
            trail = list(path)
            loop = [_label(cells[number], names) for number in reversed(trail[trail.index(at) :])]
            yield (
                f"these depend on each other within one token: {' -> '.join([*loop, loop[0]])}; a state written in a "
                "layer cannot depend on a read of the same or a deeper layer, send the value in a token"
            )
        done |= set(path)


def _label(cell: LayerCell, names: tuple[str, ...]) -> str:
    return f"memory '{cell.name}'" if isinstance(cell, MemoryCell) else f"'{names[cell.out]}'"


def _short(expr: Expr) -> str:
    text = repr(expr)
    return text if len(text) <= 120 else text[:117] + "..."
