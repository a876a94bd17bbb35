"""The netlist's meaning, spelled out: a slow evaluator to test everything else against."""

from __future__ import annotations

from .graph import ordered
from .ir import Circuit, Delay, Expr, Memory, Port, Signal, Sum, Token

Row = dict[int, int]
"""Column -> stored bit; a row that was never written is absent."""


class Naive:
    """One instance of ``circuit``, a token at a time. Raises AssertionError where a range does not hold."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.cells = ordered(circuit.cells)
        self.now: dict[Signal, int] = {}
        self.before: list[dict[Signal, int]] = []  # most recent first
        self.rows: dict[Memory, dict[int, Row]] = {cell: {} for cell in self.cells if isinstance(cell, Memory)}

    def value(self, arg: Expr, ago: int = 0) -> int:
        """The value of ``arg`` at the last token, or ``ago`` tokens before it."""
        if ago > len(self.before):
            return 0
        signals = self.now if ago == 0 else self.before[ago - 1]
        result = arg.const + sum(coef * signals[signal] for signal, coef in arg.terms.items())
        assert arg.lo <= result <= arg.hi, f"{arg!r} is {result}"
        return result

    def step(self, token: int) -> int | None:
        self.before = [self.now, *self.before[:2]] if self.now else self.before
        self.now = {}
        for cell in self.cells:
            if isinstance(cell, Token):
                self._put(cell.out, int(cell.values[token]))
            elif isinstance(cell, Sum):
                self._put(cell.out, sum(term.table[self.value(term.arg) - term.arg.lo] for term in cell.terms))
            elif isinstance(cell, Delay):
                self._put(cell.out, self.value(cell.arg, cell.tokens))
            else:
                self._memory(cell)
        for signal, result in self.now.items():
            assert signal.lo <= result <= signal.hi, f"{signal!r} is {result}"
        code = sum(self.value(bit) << i for i, bit in enumerate(self.circuit.code))
        return {int(c): i for i, c in enumerate(self.circuit.code_of)}.get(code)

    def _put(self, signal: Signal, result: int) -> None:
        self.now[signal] = self.now.get(signal, 0) + result

    def _row(self, port: Port) -> int | None:
        """The row that the port addresses; None if it is not enabled."""
        if not all(self.value(bit) for bit in port.enable):
            return None
        return sum(self.value(bit) << i for i, bit in enumerate(port.address))

    def _memory(self, cell: Memory) -> None:
        rows = self.rows[cell]
        if cell.wipe is not None and self.value(cell.wipe):
            rows.clear()
        written = self._row(cell.write)
        if written is not None:
            rows[written] = {
                i: self.value(column.data, column.delay) * all(self.value(bit) for bit in column.where)
                for i, column in enumerate(cell.columns)
            }
        wanted = self._row(cell.read)
        summed = len(cell.write.address) - len(cell.read.address) if cell.gather else 0
        found = [] if wanted is None else [rows[row] for row in rows if row >> summed == wanted]
        for i, column in enumerate(cell.columns):
            shown = column.weight * (1 if column.select is None else self.value(column.select))
            if column.out is not None:
                self._put(column.out, shown * sum(row[i] for row in found))
            if column.out_not is not None:
                self._put(column.out_not, shown * sum(1 - row[i] for row in found))
