"""How one Sum is written in neurons, given how far off its inputs may be and how far off it may be itself.

*Ramp*: one neuron a bend; errors pass, multiplied by the slope. *Step*: two neurons a change of value, flat around
every integer; errors end. *Sharp*, for a table that is zero but for one end (an AND): one neuron of twice the slope,
so that an argument that is one short of the end adds exactly nothing, whatever its error. In a sum of many ANDs, none
of them negative, only as many can be on as the sum's own range allows, and only their errors add up.

*Saw*, for n mod m and its like: one neuron of the commonest slope, and steps where it breaks.

Ramps or sharp neurons are taken first; then the tables that carry most become steps, one by one, until the sum is good
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .rows import FLAT_LIMIT, ONE, TAIL, Row, any_order_exact, row_reach, row_rounding, spread, sum_rounding
from .tables import Piece, Table, is_affine, ramps, slope_of, spike, steps, without_slope

Terms = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Part:
    """One table over the integer ``sum(coef * signal)``, whose terms have no common factor and start with a plus."""

    terms: Terms
    table: Table


@dataclass(frozen=True)
class Form:
    """Rows with their weights, the error of the sum, how large its partial sums can get, and the forms used."""

    error: float
    largest: float
    uses: dict[Row, int]
    kinds: frozenset[str]


@dataclass(frozen=True)
class _Way:
    """One way to write one part: rows, constant, the error it adds to the sum, and how large the sums of its positive
    and of its negative rows can get."""

    kind: str
    rows: tuple[tuple[Row, int], ...]
    const: int
    error: float
    positive: float
    negative: float


def _total(ways: Sequence[_Way]) -> float:
    """Error of the sum of several parts."""
    rounding = sum_rounding(
        sum(len(way.rows) for way in ways), sum(way.positive for way in ways), sum(way.negative for way in ways)
    )
    return rounding + sum(way.error for way in ways)


@dataclass(frozen=True)
class Chooser:
    """``lo``, ``hi``, ``error``: by signal; ``error`` grows as the circuit is walked. ``pivot``: of a part, for ramps,
    steps or a saw. ``scale``: see ``Allowance``. ``stepped``: whether steps take no more neurons than ramps, for all
    tables of an integer together."""

    lo: Sequence[int]
    hi: Sequence[int]
    error: Sequence[float]
    pivot: Callable[[Part, str], int]
    scale: float
    stepped: Callable[[Terms], bool] = lambda terms: False

    def choose(self, out: int, parts: Sequence[Part], const: int, target: float, top: int) -> Form:
        """The form with the fewest rows that keeps within ``target``; if none does, that with the least error.
        ``top``: the largest value of this sum."""
        base = 2 * self.scale * max(abs(self.lo[out]), abs(self.hi[out]))
        most_on = top - const
        tries = [self._added(parts, const, base, target)]
        if most_on > 0 and all(min(part.table[1]) >= 0 for part in parts):
            heights = [end[2] for part in parts if (end := spike(part.table)) is not None]
            if heights and len(heights) * min(heights) > 2 * most_on:
                tries.append(self._exclusive(parts, const, base, target, most_on))
        good = [form for form in tries if form.error <= target]
        return min(good or tries, key=lambda form: (len(form.uses) if good else 0, form.error))

    def _added(self, parts: Sequence[Part], const: int, base: float, target: float) -> Form:
        """Errors of all parts add up."""
        ways = [self._first(part) for part in parts]
        self._improve(parts, ways, target - base)
        return self._form(ways, const, base + _total(ways), 0)

    def _exclusive(self, parts: Sequence[Part], const: int, base: float, target: float, most_on: int) -> Form:
        """As ``_added``, but of the ANDs at most ``most_on`` are on at once."""
        ends = [part for part in parts if self._sharp(part) is not None]
        rest = [part for part in parts if self._sharp(part) is None]
        ways = [self._ramp(part) for part in rest]
        tails = TAIL * sum(max(part.table[1]) for part in ends)
        on = base + tails + sum_rounding(2 * len(ends), 2 * most_on, most_on)
        room = (target - on - _total(ways)) / most_on
        sharp = [self._end(part, room) for part in ends]
        on += most_on * max((way.error for way in sharp), default=0.0)
        self._improve(rest, ways, target - on)
        return self._form([*ways, *sharp], const, on + _total(ways), most_on if sharp else 0)

    def _improve(self, parts: Sequence[Part], ways: list[_Way], target: float) -> None:
        """Make parts saws, then steps, those that carry most first, until the total is within the target."""
        total = _total(ways)
        for change in (self._saw, self._step):
            for number in sorted(range(len(parts)), key=lambda n: -ways[n].error):
                if total <= target:
                    return
                before, changed = ways[number], change(parts[number])
                if changed is not None:
                    ways[number] = changed
                    better = _total(ways)
                    if better < total:
                        total = better
                    else:
                        ways[number] = before

    def _form(self, ways: Sequence[_Way], const: int, error: float, most_on: int) -> Form:
        """``most_on``: how many of the ANDs can be on, 0 if all can."""
        uses: dict[Row, int] = {}
        sums = [float(max(const, 0)), float(max(-const, 0))]
        for way in ways:
            const += way.const
            for row, weight in way.rows:
                add(uses, row, weight)
            if not most_on or len(way.rows) > 2:
                sums = [sums[0] + way.positive + max(way.const, 0), sums[1] + way.negative + max(-way.const, 0)]
        add(uses, ONE, const)
        return Form(error, max(sums) + 2 * most_on, uses, frozenset(way.kind for way in ways))

    def _rounding(self, row: Row) -> float:
        return row_rounding(row, self.lo, self.hi)

    def _exact(self, row: Row) -> bool:
        return any_order_exact(row, self.lo, self.hi)

    def _way(
        self, kind: str, sides: Sequence[Sequence[tuple[Row, int]]], const: int, part: Part, slope: int,
        tail: float = 0.0,
    ) -> _Way:  # fmt: skip
        """A way whose rows stand on two sides of a pivot, only one of which is on at a time; on one side the
        roundings of all rows add up, and at the pivot itself one row of each side can be near its bend. ``slope``:
        by how much the inputs' errors are multiplied, ``tail``: what each unit of a row adds."""
        sums = [(0.0, 0.0, 0.0)]
        most = 0.0
        for side in sides:
            found = positive = negative = 0.0
            for row, weight in side:
                one = abs(weight) * (self._rounding(row) + tail)
                found, most = found + one, max(most, one)
                top = max(row_reach(row, self.lo, self.hi)[2], 0.0)
                positive, negative = positive + max(weight, 0) * top, negative + max(-weight, 0) * top
            sums.append((found, positive, negative))
        found, positive, negative = (max(column) for column in zip(*sums, strict=True))
        both = most if all(sides) else 0.0
        return _Way(
            kind, tuple(pair for side in sides for pair in side), const,
            slope * spread(part.terms, self.error) + found + both, positive, negative,
        )  # fmt: skip

    def _first(self, part: Part) -> _Way:
        """Ramps; or steps, if all tables of the part's integer take no more neurons that way."""
        way = (self._saw(part) or self._step(part)) if self.stepped(part.terms) else None
        return way or self._ramp(part)

    def _ramp(self, part: Part) -> _Way:
        steepest = slope_of(part.table)
        first, values = part.table
        if is_affine(part.table) and values[0] and values[-1]:
            slope = values[1] - values[0] if len(values) > 1 else 0
            rows = [(Row(part.terms, 0, linear=True), slope)] if slope else []
            return self._way("linear", (rows, ()), values[0] - slope * first, part, steepest)
        const, pieces = ramps(part.table, self.pivot(part, "ramps"))
        sides = [[(ramp_row(part.terms, p), p[2]) for p in pieces if p[0] == side] for side in (1, -1)]
        return self._way("ramps", sides, const, part, steepest)

    def _sharp(self, part: Part) -> Row | None:
        """The sharp neuron of an AND; None for other tables, and where it is not exact."""
        end = spike(part.table)
        row = sharp_row(part.terms, end) if end is not None else None
        return row if row is not None and self._exact(row) else None

    def _end(self, part: Part, room: float) -> _Way:
        """An AND, sharp or as a step; the error is that of a unit of it while it is on."""
        end, row = spike(part.table), self._sharp(part)
        assert end is not None and row is not None
        found = 2 * spread(part.terms, self.error) + self._rounding(row)
        stepped = self._step(part) if found > room else None
        if stepped is not None and stepped.error / end[2] < found:
            return replace(stepped, error=stepped.error / end[2])
        return _Way("sharp", ((row, end[2]),), 0, found, end[2], 0)

    def _step(self, part: Part) -> _Way | None:
        """None where steps are not exact."""
        found = self._step_sides(part, part.table, "steps")
        return None if found is None else self._way("steps", found[0], found[1], part, 0, TAIL)

    def _saw(self, part: Part) -> _Way | None:
        """The part's commonest slope as one linear neuron, and steps for the rest: of n mod m as many neurons as bends,
        but an error passes once and not m times. None where steps are not exact, or as few without."""
        slope, rest = without_slope(part.table)
        if not slope:
            return None
        found = self._step_sides(part, rest, "saw")
        if found is None:
            return None
        sides, const = found
        linear = (Row(part.terms, 0, linear=True), slope)
        both = [[linear, *side] for side in sides]
        way = self._way("saw", both, const - slope * part.table[0], part, abs(slope), TAIL)
        return replace(way, rows=(linear, *(pair for side in sides for pair in side)))

    def _step_sides(self, part: Part, table: Table, kind: str) -> tuple[list[list[tuple[Row, int]]], int] | None:
        """Rows of ``table`` over the part's integer as steps, on either side of the pivot, and the constant."""
        if spread(part.terms, self.error) > FLAT_LIMIT:
            return None
        const, pieces = steps(table, self.pivot(part, kind))
        sides = [
            [pair for piece in pieces if piece[0] == side for pair in step_rows(part.terms, piece)] for side in (1, -1)
        ]
        return (sides, const) if all(self._exact(row) for rows in sides for row, _ in rows) else None


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
