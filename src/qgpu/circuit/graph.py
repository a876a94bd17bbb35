"""Who depends on whom within one token: the order of a netlist's cells, their levels, and what they cost.

A Delay, and a memory column with a delay, looks at earlier tokens only, so it breaks a loop in time. A Memory does not:
its read sees the write of the same token.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .ir import Cell, CircuitError, Delay, Expr, Memory, Signal, Sum, Token
from .tables import kinks


def inputs(cell: Cell) -> Iterator[Expr]:
    """Expressions whose value at this token decides the cell's output at this token."""
    if isinstance(cell, Sum):
        yield from (term.arg for term in cell.terms)
    elif isinstance(cell, Memory):
        for port in (cell.write, cell.read):
            yield from port.address
            yield from port.enable
        if cell.wipe is not None:
            yield cell.wipe
        for column in cell.columns:
            if column.delay == 0:
                yield column.data
            if column.select is not None:
                yield column.select
            yield from column.where


def past_inputs(cell: Cell) -> Iterator[Expr]:
    """Expressions that the cell will look at in a later token."""
    if isinstance(cell, Delay):
        yield cell.arg
    elif isinstance(cell, Memory):
        yield from (column.data for column in cell.columns if column.delay)


def outputs(cell: Cell) -> tuple[Signal, ...]:
    if isinstance(cell, Memory):
        pairs = [(column.out, column.out_not) for column in cell.columns]
        return tuple(signal for pair in pairs for signal in pair if signal is not None)
    return (cell.out,)


def _drivers(cells: Iterable[Cell]) -> dict[Signal, list[Cell]]:
    drivers: dict[Signal, list[Cell]] = {}
    for cell in cells:
        for signal in outputs(cell):
            drivers.setdefault(signal, []).append(cell)
    return drivers


def ordered(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells, each after all cells it depends on within a token.

    Raises CircuitError for a combinational loop and prints it by names, each signal feeding the next.
    """
    drivers = _drivers(cells)
    reads = {cell: tuple({signal: None for arg in inputs(cell) for signal in arg.terms}) for cell in cells}
    done: set[Cell] = set()
    result: list[Cell] = []
    for start in cells:
        if start in done:
            continue
        path: list[tuple[Cell, Signal | None, Iterator[tuple[Signal, Cell]]]] = []
        on_path: set[Cell] = set()

        def enter(cell: Cell, via: Signal | None) -> None:
            edges = ((signal, driver) for signal in reads[cell] for driver in drivers.get(signal, ()))
            path.append((cell, via, edges))  # noqa: B023 - path and on_path belong to this pass of the loop
            on_path.add(cell)  # noqa: B023

        enter(start, None)
        while path:
            cell, _, edges = path[-1]
            step = next(edges, None)
            if step is None:
                path.pop()
                on_path.discard(cell)
                done.add(cell)
                result.append(cell)
                continue
            signal, driver = step
            if driver in on_path:
                first = next(i for i, entry in enumerate(path) if entry[0] is driver)
                raise CircuitError(_loop([via for _, via, _ in path[first + 1 :] if via is not None] + [signal]))
            if driver not in done:
                enter(driver, signal)
    return tuple(result)


def _loop(signals: Sequence[Signal]) -> str:
    names = [signal.name for signal in reversed(signals)]
    return (
        "combinational loop: "
        + " -> ".join([*names, names[0]])
        + "; a delay of one token somewhere on it would break it"
    )


def levels(cells: Sequence[Cell]) -> dict[Signal, int]:
    """For each signal the number of Sum cells on the longest path to it within a token. Memories add none."""
    level: dict[Signal, int] = {}
    for cell in ordered(cells):
        depth = max((level.get(signal, 0) for arg in inputs(cell) for signal in arg.terms), default=0)
        for signal in outputs(cell):
            level[signal] = max(level.get(signal, 0), depth + isinstance(cell, Sum))
    return level


@dataclass(frozen=True)
class Cost:
    """``depth``: levels of Sum cells. ``sums``: Sum cells (= signals they make). ``terms``: tables in them.
    ``neurons``: ramps, those that several tables share counted once. ``tokens``, ``delays``, ``memories``: cells of the
    other kinds."""

    depth: int
    sums: int
    terms: int
    neurons: int
    reach: int = 0
    tokens: int = 0
    delays: int = 0
    memories: int = 0


def cost(cells: Sequence[Cell]) -> Cost:
    """What the cells come to once cast, before scheduling. Signals that no cell drives count as inputs."""
    ramps: set[tuple[Hashable, int]] = set()
    kinds: Mapping[type, list[Cell]] = {kind: [] for kind in (Token, Sum, Delay, Memory)}
    terms = 0
    for cell in cells:
        kinds[type(cell)].append(cell)
        if isinstance(cell, Sum):
            terms += len(cell.terms)
            for term in cell.terms:
                key = frozenset(term.arg.terms.items())
                ramps.update((key, j + term.arg.lo - term.arg.const) for j in kinks(term.table))
    depth = max(levels(cells).values(), default=0)
    counts = {kind: len(found) for kind, found in kinds.items()}
    reach = max((_reach(cell) for cell in cells if isinstance(cell, Sum)), default=0)
    return Cost(depth, counts[Sum], terms, len(ramps), reach, counts[Token], counts[Delay], counts[Memory])


def _reach(cell: Sum) -> int:
    """A bound for every partial sum: terms apart, but of a table that is split at an anchor only one side is ever
    active."""
    sides: dict[Hashable, tuple[int, int]] = {}
    for term in cell.terms:
        ramps = [change * (len(term.table) - 1 - j) for j, change in kinks(term.table).items()]
        up, down = sum(r for r in ramps if r > 0), -sum(r for r in ramps if r < 0)
        both = frozenset(frozenset(arg.terms.items()) for arg in (term.arg, -term.arg))
        before = sides.get((both, abs(term.arg.const)), (0, 0))
        sides[both, abs(term.arg.const)] = max(before[0], up), max(before[1], down)
    return max(sum(up for up, _ in sides.values()), sum(down for _, down in sides.values()), 0)
