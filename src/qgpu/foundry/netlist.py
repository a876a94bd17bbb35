"""A validated circuit by integer index: what every later stage works on.

Signals are numbered; their names are only looked up for reports and messages. Cells stand in topological order. Nothing
here knows of layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Affine:
    """``const + sum(coef * signal)``. ``terms``: (signal, coef), by signal; ``lo``, ``hi``: bounds of the value."""

    terms: tuple[tuple[int, int], ...]
    const: int
    lo: int
    hi: int

    def inverted(self) -> Affine:
        """``1 - self``."""
        return Affine(tuple((s, -c) for s, c in self.terms), 1 - self.const, 1 - self.hi, 1 - self.lo)


@dataclass(frozen=True)
class SumCell:
    """``out = sum of table[arg - arg.lo]`` over ``parts`` of (arg, table). ``most``: the largest value of that sum,
    None: what is left of ``out``'s range."""

    out: int
    parts: tuple[tuple[Affine, tuple[int, ...]], ...]
    most: int | None = None


@dataclass(frozen=True)
class DelayCell:
    """``out`` is ``arg`` (0/1) as it was ``tokens`` tokens ago."""

    out: int
    arg: Affine
    tokens: int


@dataclass(frozen=True)
class PortSpec:
    """Address bits, least significant first, and the enables that must all be 1."""

    address: tuple[Affine, ...]
    enable: tuple[Affine, ...]


@dataclass(frozen=True)
class ColumnSpec:
    """One column; ``out`` and ``out_not`` are signals or None, ``select`` an expression or None. ``weight``, ``where``:
    see ``circuit.ir.Column``."""

    data: Affine
    delay: int
    out: int | None
    out_not: int | None
    select: Affine | None
    weight: int = 1
    where: tuple[Affine, ...] = ()


@dataclass(frozen=True)
class MemoryCell:
    """One memory, see ``circuit.ir.Memory``."""

    name: str
    write: PortSpec
    read: PortSpec
    columns: tuple[ColumnSpec, ...]
    wipe: Affine | None
    gather: bool


LayerCell = SumCell | DelayCell | MemoryCell


@dataclass(frozen=True, eq=False)
class Netlist:
    """``names``, ``lo``, ``hi``: by signal. ``tokens``: (signal, values by id). ``cells``: in topological order: each
    after all that drive what it reads (sums and columns of memories may share a signal: it is what they add up to).
    ``code``: the output word; ``code_of``: int64 [vocabulary]. ``claims``: ranges that whoever built the circuit
    vouches for, as text.
    """

    name: str
    vocabulary: int
    names: tuple[str, ...]
    lo: tuple[int, ...]
    hi: tuple[int, ...]
    tokens: tuple[tuple[int, Array], ...]
    cells: tuple[LayerCell, ...]
    code: tuple[Affine, ...]
    code_of: Array
    claims: tuple[str, ...]


def expressions(cell: LayerCell) -> Iterator[Affine]:
    """Every expression a cell reads."""
    if isinstance(cell, SumCell):
        for arg, _ in cell.parts:
            yield arg
    elif isinstance(cell, DelayCell):
        yield cell.arg
    else:
        for port in (cell.write, cell.read):
            yield from port.address
            yield from port.enable
        for column in cell.columns:
            yield column.data
            if column.select is not None:
                yield column.select
            yield from column.where
        if cell.wipe is not None:
            yield cell.wipe


def inputs(cell: LayerCell) -> frozenset[int]:
    """Signals a cell reads."""
    return frozenset(signal for arg in expressions(cell) for signal, _ in arg.terms)


def outputs(cell: LayerCell) -> tuple[int, ...]:
    """Signals a cell drives, each once."""
    if isinstance(cell, MemoryCell):
        outs = [out for column in cell.columns for out in (column.out, column.out_not) if out is not None]
        return tuple(dict.fromkeys(outs))
    return (cell.out,)


def prune(netlist: Netlist) -> Netlist:
    """Without the Sum and Delay cells that nothing depends on, and without memory outputs that nobody reads.

    Memories stay, read or not: a host may look at their state.
    """
    used = {signal for arg in netlist.code for signal, _ in arg.terms}
    kept: list[LayerCell] = []
    for cell in reversed(netlist.cells):
        if not isinstance(cell, MemoryCell):
            if cell.out not in used:
                continue
        else:
            columns = tuple(
                replace(
                    column,
                    out=column.out if column.out in used else None,
                    out_not=column.out_not if column.out_not in used else None,
                    select=column.select if column.out in used or column.out_not in used else None,
                )
                for column in cell.columns
            )
            cell = replace(cell, columns=columns)
        kept.append(cell)
        used |= inputs(cell)
    tokens = tuple((signal, values) for signal, values in netlist.tokens if signal in used)
    return replace(netlist, cells=tuple(reversed(kept)), tokens=tokens)
