"""The last step of building: forward wires are replaced by their drivers, and the netlist is checked and put in
order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .graph import inputs, ordered, outputs
from .ir import Cell, Circuit, CircuitError, Column, Delay, Expr, Memory, Port, Signal, Sum, Term, Token, total
from .tables import LARGEST_SUM


def resolve(
    name: str,
    vocabulary: int,
    cells: Sequence[Cell],
    code: tuple[Expr, ...],
    code_of: np.ndarray[Any, np.dtype[np.int64]],
    probes: Mapping[str, tuple[Expr, ...]],
    forwards: Mapping[Signal, Expr | None],
    buses: Sequence[Signal] = (),
) -> Circuit:
    """The finished Circuit. Raises CircuitError that lists every fault, one a line."""
    faults = [f"the forward wire '{wire.name}' is never driven" for wire, driver in forwards.items() if driver is None]
    driven = {signal for cell in cells for signal in outputs(cell)}
    faults += [f"nothing drives the bus '{bus.name}'" for bus in buses if bus not in driven]
    if not faults:
        faults += _wire_loop(forwards)
    faults += _code_faults(vocabulary, code, code_of)
    if faults:
        raise CircuitError("\n".join(f"circuit '{name}': {fault}" for fault in faults))
    put = _Substitution({wire: driver for wire, driver in forwards.items() if driver is not None})
    made = [_substituted(cell, put) for cell in cells]
    faults += _weight_faults(made)
    try:
        made = list(ordered(made))
    except CircuitError as loop:
        faults.append(str(loop))
    if faults:
        raise CircuitError("\n".join(f"circuit '{name}': {fault}" for fault in faults))
    shown = {label: tuple(put(part) for part in parts) for label, parts in probes.items()}
    return Circuit(name, vocabulary, tuple(made), tuple(put(bit) for bit in code), code_of, shown)


class _Substitution:
    """Replaces forward wires in expressions, to any depth; an expression keeps the range it was built with."""

    def __init__(self, drivers: Mapping[Signal, Expr]) -> None:
        self._drivers = drivers
        self._done: dict[Expr, Expr] = {}
        self._plain: dict[Signal, Expr] = {}

    def _wire(self, wire: Signal) -> Expr:
        if wire not in self._plain:
            self._plain[wire] = self(self._drivers[wire])
        return self._plain[wire]

    def __call__(self, arg: Expr) -> Expr:
        if not any(signal in self._drivers for signal in arg.terms):
            return arg
        if arg not in self._done:
            parts = [
                (self._wire(signal) if signal in self._drivers else signal.expr) * coef
                for signal, coef in arg.terms.items()
            ]
            plain = total(Expr(part.terms, part.const) for part in parts) + arg.const
            kept = (arg.lo, arg.hi)
            self._done[arg] = plain if plain.interval == kept else plain.assume(*kept)
        return self._done[arg]


def _substituted(cell: Cell, put: _Substitution) -> Cell:
    if isinstance(cell, Token):
        return cell
    if isinstance(cell, Sum):
        return Sum(cell.out, tuple(Term(put(term.arg), term.table) for term in cell.terms))
    if isinstance(cell, Delay):
        return Delay(cell.out, put(cell.arg), cell.tokens)
    columns = tuple(
        Column(put(c.data), c.delay, c.out, c.out_not, None if c.select is None else put(c.select), c.weight,
               tuple(map(put, c.where)))  # fmt: skip
        for c in cell.columns
    )
    ports = [Port(tuple(map(put, port.address)), tuple(map(put, port.enable))) for port in (cell.write, cell.read)]
    wipe = None if cell.wipe is None else put(cell.wipe)
    return Memory(cell.name, ports[0], ports[1], columns, wipe, cell.gather)


def _wire_loop(forwards: Mapping[Signal, Expr | None]) -> list[str]:
    """A loop of forward wires alone, with no cell on it."""
    done: set[Signal] = set()
    for start in forwards:
        path: dict[Signal, Iterator[Signal]] = {}
        wire: Signal | None = start
        while wire is not None or path:
            if wire is None:
                last = next(reversed(path))
                wire = next(path[last], None)
                if wire is None:
                    del path[last]
                    done.add(last)
                continue
            if wire in path:
                names = [signal.name for signal in path]
                loop = names[names.index(wire.name) :][::-1]
                return ["combinational loop of forward wires: " + " -> ".join([*loop, loop[0]])]
            driver = forwards.get(wire)
            if wire not in done and driver is not None:
                path[wire] = iter(driver.terms)
            wire = None
    return []


def _code_faults(vocabulary: int, code: tuple[Expr, ...], code_of: np.ndarray[Any, np.dtype[np.int64]]) -> list[str]:
    faults = [
        f"output code bit {i}: {bit!r} ranges over {bit.lo}..{bit.hi}, not 0..1"
        for i, bit in enumerate(code)
        if not bit.is_bit
    ]
    if code_of.shape != (vocabulary,):
        return [*faults, f"{code_of.size} codes for a vocabulary of {vocabulary}; give one for each id"]
    if vocabulary and (code_of.min() < 0 or int(code_of.max()) >> len(code)):
        faults.append(f"codes range over {code_of.min()}..{code_of.max()}, which {len(code)} bits cannot hold")
    ids, counts = np.unique(code_of, return_counts=True)
    for value in ids[counts > 1][:3]:
        faults.append(
            f"ids {np.flatnonzero(code_of == value)[:4].tolist()} share the code {value}; codes must be distinct"
        )
    return faults


def _weight_faults(cells: Sequence[Cell]) -> list[str]:
    return [
        f"'{cell.out.name}': with its forward wires resolved, the coefficients of an argument add up to {arg.weight}; "
        f"a gate is exact in bfloat16 up to {LARGEST_SUM}, so buffer() what drives the wire"
        for cell in cells
        if isinstance(cell, Sum)
        for arg in inputs(cell)
        if arg.weight > LARGEST_SUM
    ]
