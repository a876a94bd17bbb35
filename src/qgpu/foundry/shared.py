"""How the errors of all that drive one signal add up.

A sum always adds its error. A read whose port is off adds exactly nothing; a column whose select is off, no more than
the select is off. So of memories whose ports exclude each other for certain (one has an enable whose opposite the other
has) only the worst counts: they form a *case*; and so do, within one memory, columns whose selects are opposites, but
for the errors of their selects, which all add up. Every sum is a case of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from .netlist import Affine, LayerCell, MemoryCell, Netlist

Driver = tuple[int, int]
"""Cell number, signal."""


@dataclass(frozen=True)
class Weights:
    """How many errors one signal can have at once: of drivers as a whole (``cases``), and of single inputs of reads
    (``inputs``: a bit's own, that of the others through the shared norm, and a select's). A column counts as often as
    its weight."""

    cases: int = 1
    inputs: int = 2


ALONE = Weights()


@dataclass(frozen=True)
class Cases:
    """``case_of``: of each driver, for signals with several. ``weights``: by signal, for those that memories read."""

    case_of: dict[Driver, int]
    weights: dict[int, Weights]

    def of(self, signal: int) -> Weights:
        """The weights of a signal."""
        return self.weights.get(signal, ALONE)


def columns_of(cell: MemoryCell) -> dict[int, list[int]]:
    """By signal: the numbers of the columns that are read into it."""
    found: dict[int, list[int]] = {}
    for number, column in enumerate(cell.columns):
        for out in (column.out, column.out_not):
            if out is not None:
                found.setdefault(out, []).append(number)
    return found


def select_cases(cell: MemoryCell, columns: Sequence[int]) -> list[list[int]]:
    """Columns of a memory, together those whose selects exclude each other."""
    selects = [cell.columns[number].select for number in columns]
    return [[columns[i] for i in case] for case in _exclusive([[] if s is None else [s] for s in selects])]


def cases_of(netlist: Netlist) -> Cases:
    """Sorts the drivers of each signal into cases."""
    drivers: dict[int, list[int]] = {}
    weights: dict[Driver, Weights] = {}
    for number, cell in enumerate(netlist.cells):
        for out, weight in _weights(cell):
            drivers.setdefault(out, []).append(number)
            weights[number, out] = weight
    case_of: dict[Driver, int] = {}
    total: dict[int, Weights] = {}
    for signal, numbers in drivers.items():
        if len(numbers) == 1:
            total[signal] = weights[numbers[0], signal]
            continue
        cases = list(_exclusive([_enables(netlist.cells[number]) for number in numbers]))
        for case, members in enumerate(cases):
            case_of |= {(numbers[i], signal): case for i in members}
        worst = [[weights[numbers[i], signal] for i in members] for members in cases]
        total[signal] = Weights(
            sum(max(weight.cases for weight in case) for case in worst),
            sum(max(weight.inputs for weight in case) for case in worst),
        )
    return Cases(case_of, total)


def _weights(cell: LayerCell) -> Iterator[tuple[int, Weights]]:
    if not isinstance(cell, MemoryCell):
        yield cell.out, ALONE
        return
    for out, columns in columns_of(cell).items():
        cases = sum(max(cell.columns[number].weight for number in case) for case in select_cases(cell, columns))
        selects = sum(cell.columns[number].weight for number in columns if cell.columns[number].select is not None)
        yield out, Weights(cases, 2 * cases + selects)


def _enables(cell: LayerCell) -> Sequence[Affine]:
    return cell.read.enable if isinstance(cell, MemoryCell) else ()


def _exclusive(conditions: Sequence[Sequence[Affine]]) -> Iterator[list[int]]:
    """Items (each with conditions that hold when it is on) in groups of which only one item can be on."""
    groups: list[tuple[list[int], list[frozenset[Hashable]]]] = []
    for item, args in enumerate(conditions):
        literals = frozenset((arg.terms, arg.const) for arg in args)
        opposites = frozenset((arg.inverted().terms, arg.inverted().const) for arg in args)
        for members, others in groups:
            if literals and all(literals & other for other in others):
                members.append(item)
                others.append(opposites)
                break
        else:
            groups.append(([item], [opposites]))
    return (members for members, _ in groups)


class Errors:
    """Errors by signal, while a circuit is walked in order. ``error``: the list to add to."""

    def __init__(self, cases: Cases, error: list[float]) -> None:
        self._cases = cases
        self._worst: dict[tuple[int, int], float] = {}  # (signal, case)
        self.error = error

    def more(self, driver: Driver, found: float) -> float:
        """By how much a driver with that error raises its signal's."""
        case = self._cases.case_of.get(driver)
        return found if case is None else max(0.0, found - self._worst.get((driver[1], case), 0.0))

    def add(self, driver: Driver, found: float) -> None:
        """Raises it."""
        self.error[driver[1]] += self.more(driver, found)
        case = self._cases.case_of.get(driver)
        if case is not None:
            self._worst[driver[1], case] = max(found, self._worst.get((driver[1], case), 0.0))
