"""Which of a head's 128 rows a key or a query can select, as bit masks.

A row is (before SiLU) a constant plus weighted inputs; inputs that enter all 128 rows in the same proportions are
summed into one *term* first. With every term 0 or 1, a single wrong term holds most rows so low that SiLU
underflows. For each term the rows that it rules out when it is 0, and when it is 1, are found from the weights; what
is left over is computed in full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qgpu.engines.native_plan import PARTS, Plan, pointers
from qgpu.engines.protocol import Array

ORDINARY = -1e9
MOST_TERMS = 24  # of a part whose levels fit three words, eight bits each
NO_KEY = -50.0  # SiLU below this is 1e-20 of a key entry and less


class Masks(NamedTuple):
    """Part 2 * cell is the cell's key, 2 * cell + 1 its query. Term t sums ratio[e] * x[dim[e]], e in term_ptr[t:t+2].

    Heads of a layer share terms (an address that several lanes read), so terms are numbered by layer, each once.
    """

    layer_ptr: Array  # int32 [layers + 1], terms of a layer
    term_ptr: Array
    dim: Array
    ratio: Array  # float32
    ptr: Array  # int32 [2C + 1], uses of a part
    term: Array  # int32 [uses]
    need: Array  # float32 [uses]: ORDINARY, or the term is a condition: 0 up to need - 1, 1 at need
    on: Array  # uint64 [uses, 2]: rows that are zero when the term is 1
    off: Array  # uint64 [uses, 2]: rows that are zero when the term is 0
    never: Array  # uint64 [2C, 2]
    live: Array  # uint8 [2C]: the part has rows at all
    settled: Array  # uint8 [2C]: with whole inputs the levels of its terms decide its rows, to the bit
    slack: float  # of a term


def _packed(rows: Array) -> Array:
    """uint64 [..., 2] of bool [..., 128]."""
    return np.ascontiguousarray(np.packbits(rows, axis=-1, bitorder="little")).view(np.uint64)


def _terms(weights: Array) -> list[list[int]]:
    """Dims whose columns [dims, 128] are proportional."""
    groups: dict[bytes, list[int]] = {}
    lead = np.argmax(weights != 0, axis=1)
    unit = (weights / weights[np.arange(len(weights)), lead][:, None]).astype(np.float32) + 0.0
    for i in range(len(weights)):
        groups.setdefault(unit[i].tobytes(), []).append(i)
    return list(groups.values())


def _exact(values: Array) -> bool:
    """Whether sums of the values, each times up to 128, are exact in float32 in any order."""
    if not len(values):
        return True
    fraction, exponent = np.frexp(values.astype(np.float64))
    whole = (np.abs(fraction) * 2.0**24).astype(np.int64)
    unit = 2.0 ** (int(exponent.min()) - 24) * float(np.min(whole & -whole))
    return bool(np.all(values % unit == 0) and np.abs(values).sum() * 128 <= unit * 2.0**24)


def make_masks(p: Plan, slack: float) -> Masks:
    """``slack``: how far from 0 or 1 an input may be."""
    slack *= 4  # a term has several inputs
    numbers: dict[tuple[int, bytes, bytes], int] = {}
    layers, term_ptr, dims, ratios = [], [0], [], []
    ptr, used, on, off, never, live_parts, needed = [0], [], [], [], [], [], []
    settled = []
    layer_of = np.repeat(np.arange(p.layers), np.diff(p.cell_ptr))
    rows = p.rows
    for part in range(2 * len(p.cell_rows)):
        cell, which = part // 2, 1 - part % 2
        first = p.cell_rows[cell, which]
        span = slice(rows.rptr[first], rows.rptr[first + PARTS])
        row = np.repeat(np.arange(PARTS), np.diff(rows.rptr[first : first + PARTS + 1]))
        live, place = np.unique(rows.rdim[span], return_inverse=True)
        weights = np.zeros((len(live), PARTS))
        weights[place, row] = rows.rval[span]
        taps = p.conv[cell, which].astype(np.float64)
        tap = taps[:, 3]
        # a row that depends on earlier tokens, or on how low it is, is always computed
        simple = np.all(taps[:, :3] == 0, axis=1) & (tap >= 0)
        const = rows.const[first : first + PARTS].astype(np.float64)
        zero = simple & ((tap == 0) | ((const == 0) & ~np.any(weights, axis=0)))
        terms = _terms(weights)
        whole = len(terms) <= MOST_TERMS and not np.any(taps[:, :3]) and _exact(weights[weights != 0])
        columns = np.array([weights[group[0]] for group in terms]).reshape(len(terms), PARTS)
        gate = next((t for t, c in enumerate(columns) if np.all((c == c[0]) | zero)), None)
        highest = const + np.maximum(columns, 0).sum(0) + slack * np.abs(columns).sum(0)
        needs = np.full(len(terms), ORDINARY)
        if gate is not None and not np.all(zero):
            # inputs that all rows share are conditions: so many must be on together, unlike the alternatives of an
            # address
            columns[gate] = size = np.abs(columns[gate]).max()
            highest = const + np.maximum(np.delete(columns, gate, 0), 0).sum(0) + slack * np.abs(columns).sum(0)
            needs[gate] = np.floor((NO_KEY - np.max((highest * tap)[~zero], initial=-np.inf)) / size) + 1
            columns[gate] *= ~zero
            highest = highest + needs[gate] * columns[gate]
        top = highest
        live_parts.append(not np.all(zero))
        never.append(_packed(zero | (simple & (top * tap <= NO_KEY))))
        for group, column, need in zip(terms, columns, needs, strict=True):
            needed.append(need)
            off.append(_packed(simple & (column > 0) & ((top - column) * tap <= NO_KEY)))
            on.append(_packed(simple & (column < 0) & ((top + column) * tap <= NO_KEY)))
            first_of = np.argmax(weights[group] != 0, axis=1)
            lead = weights[group[0], first_of[0]]
            ratio = (weights[group, first_of] / (lead if need == ORDINARY else abs(lead))).astype(np.float32)
            whole = whole and bool(np.all(ratio == np.round(ratio)))
            number = numbers.setdefault((int(layer_of[cell]), live[group].tobytes(), ratio.tobytes()), len(numbers))
            used.append(number)
            if number == len(term_ptr) - 1:
                dims += live[group].tolist()
                ratios += ratio.tolist()
                term_ptr.append(len(dims))
                layers.append(int(layer_of[cell]))
        ptr.append(len(off))
        settled.append(whole)
    pack = lambda parts: np.array(parts, np.uint64).reshape(len(parts), 2)  # noqa: E731
    return Masks(
        pointers(np.array(layers, np.int64), p.layers), np.array(term_ptr, np.int32), np.array(dims, np.int32),
        np.array(ratios, np.float32), np.array(ptr, np.int32), np.array(used, np.int32),
        np.array(needed, np.float32),        pack(on), pack(off), pack(never), np.array(live_parts, np.uint8),
        np.array(settled, np.uint8), slack,
    )  # fmt: skip
