"""Sixth stage: the certificate. Walks the placed circuit once more and measures how far every decision is from failing.

Two models of rounding, both on top of the same integers.

bfloat16 activations: nothing may be off at all. Every signal enters a layer as exactly 2^-12 (the energy of the
signals is too small to show in 8 bits), and every sum that a layer makes consists of bfloat16 numbers in whatever
order it is made. Then each value is the integer it stands for, and a decision's margin is its distance from the next
integer's side: 1/2 for a ramp, a key or an output bit, 1/4 for a step.

float32 activations: every signal is off by what lies above it (see ``rows``), and the margin is what is left.

A margin below ``LEAST`` is refused. Claimed ranges (``Expr.assume``) are taken on trust and listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .emit import Frame, neurons_a_layer
from .errors import FoundryError
from .heads import stored
from .lower import delay_error, memory_errors, port_errors
from .netlist import Affine, ColumnSpec, DelayCell, MemoryCell, Netlist, SumCell
from .numbers import LOGIT, SCALE_BITS
from .place import Placement
from .rows import CLEAR_ARITHMETIC, FLAT, SCALE_ARITHMETIC, Allowance, Row, any_order_exact, row_rounding, spread
from .shared import Errors, cases_of

LEAST = 1 / 16
LEAST_GAP = 40.0


@dataclass(frozen=True)
class Decision:
    """Something a layer decides: what, and how far it is from failing, in units of the signals."""

    what: str
    bf16: float
    float32: float


def prove(placement: Placement, frame: Frame) -> dict[str, Any]:
    """The certificate, plain JSON values. Raises FoundryError naming every decision that is too close, with its
    inputs."""
    proof = _Proof(placement, frame)
    proof.walk()
    if proof.faults:
        raise FoundryError(proof.netlist.name, "proof", proof.faults)
    return proof.certificate()


def leftovers(placement: Placement) -> list[float]:
    """By signal: the error that clearing its dim leaves, at most. A clear takes all that stands there, so only the last
    one counts."""
    rate = 2 * placement.schedule.lowered.allowance.scale + CLEAR_ARITHMETIC
    return [rate * size for size in placement.cleared]


def largest_occupants(placement: Placement) -> dict[int, float]:
    """By slot: the largest magnitude it ever holds."""
    netlist = placement.schedule.lowered.netlist
    largest: dict[int, float] = {}
    for signal, slot in enumerate(placement.slot):
        if slot is not None:
            size = max(abs(netlist.lo[signal]), abs(netlist.hi[signal]))
            largest[slot] = max(largest.get(slot, 0.0), float(size))
    return largest


def energy(placement: Placement, hidden: int) -> float:
    """By how much, relatively, the signals' own energy moves RMSNorm's scale, at most."""
    total = sum(size**2 for size in largest_occupants(placement).values())
    return total / (2 * hidden * 4.0**SCALE_BITS)


def needed_allowance(placement: Placement, hidden: int) -> Allowance:
    """What the sums should have allowed for, now that dims and hidden size are known."""
    scale = SCALE_ARITHMETIC + energy(placement, hidden)
    allowed = placement.schedule.lowered.allowance.scale
    return Allowance(scale, max(leftovers(placement), default=0.0) * max(1.0, scale / allowed))


class _Proof:
    """One walk; errors are computed anew, from the rows alone."""

    def __init__(self, placement: Placement, frame: Frame) -> None:
        self.placement = placement
        self.frame = frame
        self.plan = placement.schedule
        self.lowered = self.plan.lowered
        self.netlist: Netlist = self.lowered.netlist
        self.scale = self.lowered.allowance.scale
        self.left = leftovers(placement)
        self.error = list(self.left)
        self.errors = Errors(cases_of(self.netlist), self.error)
        self.faults: list[str] = []
        self.weakest: Decision | None = None
        self.decisions = {"neurons": 0, "keys": 0, "reads": 0, "outputs": 0}

    def walk(self) -> None:
        self._energy()
        for signal, _ in self.netlist.tokens:
            self.error[signal] = self.scale * self._size(signal)
        for number, cell in enumerate(self.netlist.cells):
            if isinstance(cell, SumCell):
                self._sum(number, cell)
            elif isinstance(cell, DelayCell):
                self._bit(f"delay '{self.netlist.names[cell.out]}'", cell.arg, "reads")
                self.errors.add((number, cell.out), delay_error(cell, self.error, self.scale))
            else:
                self._memory(number, cell)
        self._output()

    def _size(self, signal: int) -> int:
        return max(abs(self.netlist.lo[signal]), abs(self.netlist.hi[signal]))

    def _names(self, terms: Iterable[tuple[int, int]]) -> str:
        names = [self.netlist.names[signal] for signal, _ in terms]
        return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")

    def _decide(self, kind: str, what: str, terms: Sequence[tuple[int, int]], room: float, error: float) -> None:
        self.decisions[kind] += 1
        margin = room - error
        if self.weakest is None or margin < self.weakest.float32:
            self.weakest = Decision(f"{what} reads {self._names(terms)}", room, margin)
        if margin < LEAST:
            self.faults.append(
                f"{what}: margin {margin:.3g} in float32, {LEAST:.3g} is the least; it reads {self._names(terms)}"
            )

    def _energy(self) -> None:
        """The signals' own energy must neither show in bfloat16 nor pass what the error model allows the scale."""
        off = energy(self.placement, self.frame.hidden)
        if off + SCALE_ARITHMETIC > self.scale:
            self.faults.append(f"the signals' energy moves RMSNorm by {off:.3g}; use fewer or smaller signals")
        self.energy = off

    def _exact(self, what: str, row: Row) -> None:
        if not any_order_exact(row, self.netlist.lo, self.netlist.hi):
            self.faults.append(f"{what}: partial sums that bfloat16 rounds; it reads {self._names(row.terms)}")

    def _sum(self, number: int, cell: SumCell) -> None:
        """A row's error moves the sum by at most the slopes of the tables it is part of; see ``forms``."""
        name = self.netlist.names[cell.out]
        lowered = self.lowered.sums[number]
        for index, _ in lowered.uses:
            row = self.lowered.rows[index]
            what = f"a neuron of '{name}'"
            self._exact(what, row)
            if row.linear or not row.terms:
                continue
            halves = row.bias2 % 2
            doubled = 2 if halves or all(coef % 2 == 0 for _, coef in row.terms) else 1
            off = spread(row.terms, self.error) / doubled
            off += row_rounding(row, self.netlist.lo, self.netlist.hi) / doubled
            self._decide("neurons", what, row.terms, FLAT if halves else 0.5, off)
        # forms were chosen under errors at least as large as these, so the bound found there holds here
        self.errors.add((number, cell.out), lowered.error)
        if self.left[cell.out] > self.lowered.allowance.clear:
            self.faults.append(f"'{name}': earlier occupants of its dim leave {self.left[cell.out]:.3g}")

    def _bit(self, what: str, arg: Affine, kind: str) -> None:
        self._exact(what, Row(arg.terms, 2 * arg.const))
        self._decide(kind, what, arg.terms, 0.5, spread(arg.terms, self.error))

    def _memory(self, number: int, cell: MemoryCell) -> None:
        where = f"memory '{cell.name}'"
        for label, found, _, args in port_errors(cell, self.error):
            terms = tuple(term for arg in args for term in arg.terms)
            self._exact(f"{where}, {label}", Row(terms, 2 * sum(abs(arg.const) for arg in args) + 2 * len(args) + 1))
            self._decide("keys", f"{where}, {label}", terms, 0.5, found)
        for place, column in enumerate(cell.columns):
            self._bit(f"{where}, data of column {place}", column.data, "reads")
            if column.select is not None:
                self._bit(f"{where}, select of column {place}", column.select, "reads")
            if cell.gather:
                self._loud_row(f"{where}, column {place} while nothing is written", cell, column)
        for out, found in memory_errors(cell, self.error, self.scale).items():
            self.errors.add((number, out), found)

    def _loud_row(self, what: str, cell: MemoryCell, column: ColumnSpec) -> None:
        """A gather's constant has a row of its own, read millions of times louder than the others and written while the
        port is off: what else is written there has to be below zero by a whole unit, where SiLU leaves nothing."""
        asked = (*cell.write.enable, *column.where)
        found = stored(cell, column)
        # data + factor * (all that is asked - its number): one that is off takes the factor away
        terms = Counter(dict(found.terms))
        terms.subtract(dict(column.data.terms))
        wanted: Counter[int] = Counter()
        for arg in asked:
            for signal, coef in arg.terms:
                wanted[signal] += coef
        factor = next((terms[signal] // coef for signal, coef in sorted(wanted.items()) if coef), 0)
        const = column.data.const + factor * (sum(arg.const for arg in asked) - len(asked))
        same = found.const == const and all(terms[s] == factor * wanted[s] for s in terms.keys() | wanted.keys())
        below = factor - column.data.hi if same else 0
        self._decide("reads", what, found.terms, below - 0.5, spread(found.terms, self.error))

    def _output(self) -> None:
        bits = self.netlist.code
        for number, bit in enumerate(bits):
            self._bit(f"code bit {number}", bit, "outputs")
        self.gap = LOGIT * (1 - 2 * sum(spread(bit.terms, self.error) for bit in bits))
        if self.gap < LEAST_GAP:
            self.faults.append(f"the best logit is only {self.gap:.3g} above the second, {LEAST_GAP} is the least")

    def certificate(self) -> dict[str, Any]:
        weakest = self.weakest
        kinds = [kind for lowered in self.lowered.sums.values() for kind in lowered.kinds]
        return {
            "min_margin_bf16": FLAT if "steps" in kinds else 0.5,
            "min_margin_float32": weakest.float32 if weakest else 0.5,
            "weakest": weakest.what if weakest else "",
            "min_gap_bf16": LOGIT,
            "min_gap_float32": self.gap,
            "largest_error_float32": max(self.error, default=0.0),
            "scale_error": self.energy,
            "decisions": self.decisions,
            "neurons": sum(neurons_a_layer(self.placement)),
            "sums": len(self.lowered.sums),
            "sums_in_steps": kinds.count("steps"),
            # exact wherever sums are kept in float32; kernels that split sums and add the parts in bfloat16 round these
            "sums_beyond_8_bits": sum(lowered.largest > 256 for lowered in self.lowered.sums.values()),
            "largest_partial_sum": max((lowered.largest for lowered in self.lowered.sums.values()), default=0.0),
            "assumptions": list(self.netlist.claims) + list(_assumptions(self.netlist)),
        }


def _assumptions(netlist: Netlist) -> Iterable[str]:
    """What memories need of the tokens, beyond the claimed ranges."""
    for cell in netlist.cells:
        if not isinstance(cell, MemoryCell):
            continue
        if cell.gather:
            yield (
                f"memory '{cell.name}' is read only after a token since the start (or the last wipe) that did not write"
            )
        delay = max(column.delay for column in cell.columns)
        whole = len(cell.columns) == 64
        if delay and (whole or any(column.delay and column.out_not is not None for column in cell.columns)):
            yield f"memory '{cell.name}' is not written in the first {delay} tokens"
