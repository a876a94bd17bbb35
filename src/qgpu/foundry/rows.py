"""Rows: the neurons of an MLP before anyone knows which layer, and how far off a neuron can be.

The error model is that of float32 activations (in bfloat16 activations everything here is exact, see ``prove``). A
sum is taken to be rounded at most ``DEPTH`` times on the way of any of its terms, each time by half a unit in the
last place of the largest partial sum: kernels add in many lanes, and zeros are not rounded. An error is the largest
distance of a signal from its integer, by all that lies above: errors of the inputs grow with the coefficients and the
slope of the table; summing rounds at each addition; the scale of RMSNorm is off by a common factor, which multiplies
a neuron's argument, constant included, and so never moves a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ULP = 2.0**-24  # half a unit in the last place of a float32 at 1
DEPTH = 16
SCALE_ARITHMETIC = 2.0**-22  # relative error of RMSNorm's scale by its own arithmetic
CLEAR_ARITHMETIC = 2.0**-21  # relative error of a clear by its own arithmetic
FLAT = 0.25  # a step is flat this far around every integer
FLAT_LIMIT = 0.125  # errors that a step may meet: beyond, the far side of silu shows
TAIL = 2.0**-24  # what silu leaves of a step that is off, or lacks where it is on, at the limit of its inputs' errors
KEY_LIMIT = 0.25  # errors that the sum of a key's literals may have (1/2 is where a row would be missed)
CODE_LIMIT = 3 / 16  # errors of all code bits together: leaves 40 of 64 between best and second logit


@dataclass(frozen=True)
class Allowance:
    """Errors that later stages decide and earlier ones have to allow for; the proof checks that they did.

    ``scale``: relative error of RMSNorm's scale, by its arithmetic and by the signals' own energy. ``clear``: what the
    clear of a dim may leave in it.
    """

    scale: float = 1.25 * SCALE_ARITHMETIC
    clear: float = 2 * CLEAR_ARITHMETIC


@dataclass(frozen=True)
class Row:
    """One neuron: ``relu(sum(coef * signal) + bias2 / 2)``, or the same without relu if ``linear``."""

    terms: tuple[tuple[int, int], ...]
    bias2: int
    linear: bool = False


ONE = Row((), 2)
"""The neuron that is always 1."""


def row_reach(row: Row, lo: Sequence[int], hi: Sequence[int]) -> tuple[float, float, float]:
    """Largest magnitude of a partial sum of the argument, in any order; the sum of its terms' magnitudes; and the
    largest value of the argument."""
    positive = max(row.bias2, 0) / 2
    negative = max(-row.bias2, 0) / 2
    top = row.bias2 / 2
    for signal, coef in row.terms:
        low, high = coef * lo[signal], coef * hi[signal]
        if low > high:
            low, high = high, low
        positive += max(high, 0)
        negative -= min(low, 0)
        top += high
    return max(positive, negative), positive + negative, top


def any_order_exact(row: Row, lo: Sequence[int], hi: Sequence[int]) -> bool:
    """Whether every partial sum is a bfloat16 number: 8 bits, counted in halves where the row has halves."""
    return row_reach(row, lo, hi)[0] * (2 if row.bias2 % 2 else 1) <= 256


def row_rounding(row: Row, lo: Sequence[int], hi: Sequence[int]) -> float:
    """How far float32 rounding alone can move the neuron's output: its inputs', its sum's, and its own (SiLU and two
    products)."""
    reach, terms, top = row_reach(row, lo, hi)
    return ULP * (min(len(row.terms), DEPTH) * reach + terms + 3 * max(top, 0.0))


def sum_rounding(rows: int, positive: float, negative: float) -> float:
    """How far rounding can move a sum of so many neurons; ``positive``, ``negative``: largest sums of either sign."""
    return ULP * min(rows, DEPTH) * max(positive, negative)


def spread(terms: Sequence[tuple[int, int]], error: Sequence[float]) -> float:
    """Error of an integer combination of signals."""
    return sum(abs(coef) * error[signal] for signal, coef in terms)
