"""How one Sum is written in neurons, given how far off its inputs may be and how far off it may be itself.

*Ramp*: one neuron a bend; errors pass, multiplied by the slope. *Step*: two neurons a change of value, flat around
every integer; errors end. *Sharp*, for a table that is zero but for one end (an AND): one neuron of twice the slope,
so that an argument that is one short of the end adds exactly nothing, whatever its error. In a sum of many ANDs, none
of them negative, only as many can be on as the sum's own range allows, and only their errors add up.

Ramps or sharp neurons are taken first; then the tables that carry most become steps, one by one, until the sum is good
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .rows import FLAT_LIMIT, ONE, Row, any_order_exact, row_rounding, spread
from .tables import Piece, Table, is_affine, ramps, slope_of, spike, steps

Terms = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Part:
    """One table over the integer ``sum(coef * signal)``, whose terms have no common factor and start with a plus."""

    terms: Terms
    table: Table


@dataclass(frozen=True)
class Form:
    """Rows with their weights, the error of the sum, and the names of the forms used."""

    error: float
    uses: dict[Row, int]
    kinds: frozenset[str]


@dataclass(frozen=True)
class _Way:
    """One way to write one part: rows, constant, and the error it adds to the sum."""

    kind: str
    rows: tuple[tuple[Row, int], ...]
    const: int
    error: float


@dataclass(frozen=True)
class Chooser:
    """``lo``, ``hi``, ``error``: by signal; ``error`` grows as the circuit is walked. ``pivot``: of a part, for ramps
    (False) or steps (True). ``scale``: see ``Allowance``."""

    lo: Sequence[int]
    hi: Sequence[int]
    error: Sequence[float]
    pivot: Callable[[Part, bool], int]
    scale: float

    def choose(self, out: int, parts: Sequence[Part], const: int, target: float) -> Form:
        """The form with the fewest rows that keeps within ``target``; if none does, that with the least error."""
        base = 2 * self.scale * max(abs(self.lo[out]), abs(self.hi[out]))
        most_on = self.hi[out] - const
        tries = [self._added(parts, const, base, target)]
        if most_on > 0 and all(min(part.table[1]) >= 0 for part in parts):
            ends = sum(spike(part.table) is not None for part in parts)
            if ends > 2 * most_on:
                tries.append(self._exclusive(parts, const, base, target, most_on))
        good = [form for form in tries if form.error <= target]
        return min(good, key=lambda form: len(form.uses)) if good else min(tries, key=lambda form: form.error)

    def _added(self, parts: Sequence[Part], const: int, base: float, target: float) -> Form:
        """Errors of all parts add up."""
        ways = [self._ramp(part) for part in parts]
        self._improve(parts, ways, target, base + sum(way.error for way in ways))
        return self._form(ways, const, base + sum(way.error for way in ways))

    def _exclusive(self, parts: Sequence[Part], const: int, base: float, target: float, most_on: int) -> Form:
        """As ``_added``, but of the ANDs at most ``most_on`` are on at once."""
        ends = [part for part in parts if spike(part.table) is not None]
        rest = [part for part in parts if spike(part.table) is None]
        ways = [self._ramp(part) for part in rest]
        room = (target - base - sum(way.error for way in ways)) / most_on
        sharp = [self._end(part, room) for part in ends]
        total = base + most_on * max(way.error for way in sharp)
        self._improve(rest, ways, target, total + sum(way.error for way in ways))
        return self._form([*ways, *sharp], const, total + sum(way.error for way in ways))

    def _improve(self, parts: Sequence[Part], ways: list[_Way], target: float, total: float) -> None:
        """Make parts steps, those that carry most first, until the total is within the target."""
        for number in sorted(range(len(parts)), key=lambda n: -ways[n].error):
            if total <= target:
                return
            stepped = self._step(parts[number])
            if stepped is not None and stepped.error < ways[number].error:
                total += stepped.error - ways[number].error
                ways[number] = stepped

    def _form(self, ways: Sequence[_Way], const: int, error: float) -> Form:
        uses: dict[Row, int] = {}
        for way in ways:
            const += way.const
            for row, weight in way.rows:
                add(uses, row, weight)
        add(uses, ONE, const)
        return Form(error, uses, frozenset(way.kind for way in ways))

    def _rounding(self, row: Row) -> float:
        return row_rounding(row, self.lo, self.hi)

    def _exact(self, row: Row) -> bool:
        return any_order_exact(row, self.lo, self.hi)

    def _ramp(self, part: Part) -> _Way:
        carried = slope_of(part.table) * spread(part.terms, self.error)
        first, values = part.table
        if is_affine(part.table) and values[0] and values[-1]:
            slope = values[1] - values[0] if len(values) > 1 else 0
            row = Row(part.terms, 0, linear=True)
            scaled = ((row, slope),) if slope else ()
            return _Way("linear", scaled, values[0] - slope * first, carried + abs(slope) * self._rounding(row))
        const, pieces = ramps(part.table, self.pivot(part, False))
        rows = tuple((ramp_row(part.terms, piece), piece[2]) for piece in pieces)
        return _Way("ramps", rows, const, carried + sum(abs(weight) * self._rounding(row) for row, weight in rows))

    def _end(self, part: Part, room: float) -> _Way:
        """An AND, sharp or as a step; the error is that of a unit of it while it is on."""
        end = spike(part.table)
        assert end is not None
        row = sharp_row(part.terms, end)
        found = 2 * spread(part.terms, self.error) + self._rounding(row)
        if found > room or not self._exact(row):
            stepped = self._step(part)
            if stepped is not None and stepped.error / end[2] < found:
                return _Way("steps", stepped.rows, stepped.const, stepped.error / end[2])
        if not self._exact(row):
            ramp = self._ramp(part)
            return _Way("ramps", ramp.rows, ramp.const, ramp.error)
        return _Way("sharp", ((row, end[2]),), 0, found)

    def _step(self, part: Part) -> _Way | None:
        """None where steps are not exact."""
        if spread(part.terms, self.error) > FLAT_LIMIT:
            return None
        const, pieces = steps(part.table, self.pivot(part, True))
        rows = tuple(pair for piece in pieces for pair in step_rows(part.terms, piece))
        if not all(self._exact(row) for row, _ in rows):
            return None
        return _Way("steps", rows, const, sum(abs(weight) * self._rounding(row) for row, weight in rows))


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
