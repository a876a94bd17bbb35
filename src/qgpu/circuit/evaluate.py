"""Simulator: runs a netlist on plain integers, many independent instances at once.

The netlist is compiled once into stages of numpy operations; an array of all signals' values, [signals, batch], is
filled stage by stage. Every signal's bounds and every claimed range (``Expr.assume``) are checked at every token.
``naive`` holds the short evaluator that this one is tested against.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from .graph import inputs, ordered, outputs, past_inputs
from .ir import Cell, Circuit, CircuitError, Delay, Expr, Memory, Signal, Sum, Token
from .stores import History, MemoryStage
from .vector import ExprBlock, SumStage, Violation, violation

Array = np.ndarray[Any, Any]

RESTS = -1
"""In ``step``: an instance with this id does not tick; its state stays. As a result: no id has the code."""


class EvaluationError(CircuitError):
    """A signal's bounds or a claimed range that did not hold at some token. Names the signal, the range and the
    value."""


class Simulator:
    """One circuit at work. ``batch``: number of independent instances, stepped together.

    State takes two bytes a signal and 9 bytes a memory row for each instance: choose ``batch`` so that it fits.
    """

    def __init__(self, circuit: Circuit, batch: int = 1) -> None:
        self.circuit = circuit
        self.batch = batch
        self.token = 0
        cells, shares = _private(ordered(circuit.cells))
        stages = _stages(cells, shares)
        dtype = _smallest_type(cells)
        sums = [[cell for cell in stage if isinstance(cell, Sum)] for stage in stages]
        sums = [sorted(stage, key=lambda cell: -len(cell.terms)) for stage in sums]
        finished = [_finished_by(stage, stages, shares) for stage in stages]
        self.signals = _layout(cells, finished, sums)
        self._index = {signal: row for row, signal in enumerate(self.signals)}
        late = [(arg, outputs(cell)[0].name if outputs(cell) else "") for cell in cells for arg in past_inputs(cell)]
        self._history = History([arg for arg, _ in late], [user for _, user in late], self._index, batch)
        self._tokens = [cell for cell in cells if isinstance(cell, Token)]
        self._token_values = np.array([cell.values for cell in self._tokens], dtype).reshape(len(self._tokens), -1)
        delays = [cell for cell in cells if isinstance(cell, Delay)]
        self._delay_ago = np.array([cell.tokens for cell in delays], np.intp)
        self._delay_row = np.array([self._history.row(cell.arg) for cell in delays], np.intp)
        self._stages: list[tuple[SumStage | None, list[MemoryStage], list[tuple[Array, Array]], slice, slice]] = []
        start = len(self._tokens) + len(delays)
        for stage, adders, ended in zip(stages, sums, finished, strict=True):
            memories = [cell for cell in stage if isinstance(cell, Memory)]
            groups = [[m for m in memories if m.gather == kind] for kind in (False, True)]
            stores = [MemoryStage(group, self._index, self._history, batch, dtype) for group in groups if group]
            middle = start + len(adders)
            end = middle + len(ended)
            summed = SumStage(adders, self._index, dtype) if adders else None
            added = [(self._index[shares[c.out]], self._index[c.out]) for c in adders if c.out in shares]
            self._stages.append((summed, stores, _once_each(added), slice(start, middle), slice(start, end)))
            start = end
        self._code = ExprBlock(circuit.code, ["the output code"] * len(circuit.code), self._index, np.int64)
        self._order = np.argsort(circuit.code_of, kind="stable")
        self._codes = circuit.code_of[self._order]
        self._low = np.array([signal.lo for signal in self.signals], dtype)[:, None]
        self._high = np.array([signal.hi for signal in self.signals], dtype)[:, None]
        self._values = np.zeros((len(self.signals), batch), dtype)

    @overload
    def step(self, ids: int) -> int | None: ...
    @overload
    def step(self, ids: Sequence[int] | Array) -> Array: ...
    def step(self, ids: int | Sequence[int] | Array) -> int | None | Array:
        """Takes one token; returns the next one that the circuit asks for.

        An int goes to every instance, and what instance 0 answers comes back (None: no id has that code). An array
        [batch] gives each its own; an array int64 [batch] comes back, ``RESTS`` (-1) where no id has the code.
        Instances whose id is ``RESTS`` do not tick. Raises EvaluationError at the first range that does not hold,
        CircuitError for ids outside the vocabulary.
        """
        given = np.broadcast_to(np.asarray(ids, np.int64), (self.batch,))
        if (given < RESTS).any() or (given >= self.circuit.vocabulary).any():
            raise CircuitError(
                f"circuit '{self.circuit.name}': ids range over {given.min()}..{given.max()}, "
                f"the vocabulary is 0..{self.circuit.vocabulary - 1}"
            )
        answer = self._step(given)
        if isinstance(ids, int):
            return None if answer[0] == RESTS else int(answer[0])
        return answer

    def _step(self, ids: Array) -> Array:
        active = None if (ids != RESTS).all() else ids != RESTS
        values = self._values
        count = len(self._tokens)
        values[:count] = self._token_values[:, np.maximum(ids, 0)]
        values[count : count + len(self._delay_ago)] = self._history.past[self._delay_ago, self._delay_row]
        self._check(slice(0, count + len(self._delay_ago)), ids, active)
        values[count + len(self._delay_ago) :] = 0
        for summed, stores, added, span, done in self._stages:
            if summed is not None:
                self._fail(summed.run(values, values[span], active), ids)
            for rows, sources in added:
                values[rows] += values[sources]
            for store in stores:
                self._fail(store.run(values, active), ids)
            self._check(done, ids, active)
        bits = self._code(values)
        self._fail(self._code.check(bits, active), ids)
        self._fail(self._history.record(values, active), ids)
        self.token += 1
        codes = np.zeros(self.batch, np.int64)
        for weight, row in enumerate(self._code.rows):
            codes += bits[row] << weight
        place = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        known = self._codes[place] == codes
        if active is not None:
            known &= active
        return np.where(known, self._order[place], RESTS)

    def _check(self, span: slice, ids: Array, active: Array | None) -> None:
        found = violation(self._values[span], self._low[span], self._high[span], active)
        if found is not None:
            row, instance = found[0] + span.start, found[1]
            signal = self.signals[row]
            value = int(self._values[row, instance])
            self._fail(Violation(f"signal '{signal.name}'", value, signal.lo, signal.hi, instance), ids)

    def _fail(self, found: Violation | None, ids: Array) -> None:
        if found is not None:
            raise EvaluationError(
                f"circuit '{self.circuit.name}', token {self.token} (id {ids[found.instance]}, "
                f"instance {found.instance}): {found.what} is {found.value}, outside {found.lo}..{found.hi}"
            )

    def probe(self, name: str) -> Array:
        """Values of a probe after the last step: int64 [expressions, batch]. Raises CircuitError if there is none."""
        if name not in self.circuit.probes:
            known = ", ".join(self.circuit.probes) or "none"
            raise CircuitError(f"circuit '{self.circuit.name}' has no probe '{name}'; it has {known}")
        return np.stack([self._value(part) for part in self.circuit.probes[name]])

    def probe_word(self, name: str) -> Array:
        """The bits of a probe as one number: uint64 [batch]."""
        result = np.zeros(self.batch, np.uint64)
        for weight, bits in enumerate(self.probe(name)):
            result |= bits.astype(np.uint64) << np.uint64(weight)
        return result

    def _value(self, arg: Expr) -> Array:
        result = np.full(self.batch, arg.const, np.int64)
        for signal, coef in arg.terms.items():
            result += coef * self._values[self._index[signal]].astype(np.int64)
        return result

    def memory(self, name: str) -> tuple[Array, Array]:
        """A memory's rows (uint64 [rows, batch], bit i is column i) and which were written (bool [rows, batch])."""
        for _, stores, _, _, _ in self._stages:
            for store in stores:
                span = store.row_of(name)
                if span is not None:
                    return store.words[span].copy(), store.written[span].copy()
        raise CircuitError(f"circuit '{self.circuit.name}' has no memory '{name}'")

    def _state(self) -> list[Array]:
        stores = [store for _, group, _, _, _ in self._stages for store in group]
        return [self._history.past, self._values, *(a for store in stores for a in (store.words, store.written))]

    def snapshot(self) -> tuple[int, list[Array]]:
        """All state, for ``restore``."""
        return self.token, [array.copy() for array in self._state()]

    def restore(self, saved: tuple[int, list[Array]]) -> None:
        self.token = saved[0]
        for array, copy in zip(self._state(), saved[1], strict=True):
            array[...] = copy

    def reset(self) -> None:
        """Back to before the first token."""
        self.token = 0
        for array in self._state():
            array[...] = 0


def _stages(cells: Sequence[Cell], shares: Mapping[Signal, Signal]) -> list[list[Cell]]:
    """Sum and Memory cells by the longest chain of cells before them."""
    ready: dict[Signal, int] = {}
    stages: list[list[Cell]] = []
    for cell in cells:
        if isinstance(cell, Sum | Memory):
            stage = max((ready.get(signal, 0) for arg in inputs(cell) for signal in arg.terms), default=0)
            if stage == len(stages):
                stages.append([])
            stages[stage].append(cell)
            for signal in (*outputs(cell), *_shared_outputs(cell, shares)):
                ready[signal] = max(ready.get(signal, 0), stage + 1)
    return stages


def _private(cells: Sequence[Cell]) -> tuple[tuple[Cell, ...], dict[Signal, Signal]]:
    """The cells, where each Sum that shares its signal with others has one of its own instead; and what each of those
    is added to."""
    drivers = Counter(signal for cell in cells for signal in dict.fromkeys(outputs(cell)))
    shares: dict[Signal, Signal] = {}
    made: list[Cell] = []
    for cell in cells:
        if isinstance(cell, Sum) and drivers[cell.out] > 1:
            low, high = (sum(end(term.table) for term in cell.terms) for end in (min, max))
            own = Signal(f"part {len(shares)} of {cell.out.name}", low, high)
            shares[own] = cell.out
            cell = Sum(own, cell.terms)
        made.append(cell)
    return tuple(made), shares


def _once_each(pairs: Sequence[tuple[int, int]]) -> list[tuple[Array, Array]]:
    """Pairs (row, row to add) as few array operations, none with a row twice."""
    left = list(pairs)
    groups = []
    while left:
        now = dict(reversed(left))
        left = [(row, source) for row, source in left if now[row] != source]
        groups.append((np.array(list(now), np.intp), np.array(list(now.values()), np.intp)))
    return groups


def _shared_outputs(cell: Cell, shares: Mapping[Signal, Signal]) -> tuple[Signal, ...]:
    """Signals that are added to: what memories read, and what Sums share with others."""
    if isinstance(cell, Memory):
        return outputs(cell)
    return (shares[cell.out],) if cell.out in shares else ()


def _finished_by(
    stage: Sequence[Cell], stages: Sequence[Sequence[Cell]], shares: Mapping[Signal, Signal]
) -> list[Signal]:
    """Signals that are added to, and that this stage is the last to drive."""
    later = stages[[other is stage for other in stages].index(True) + 1 :]
    driven = {signal for other in later for cell in other for signal in _shared_outputs(cell, shares)}
    made = dict.fromkeys(signal for cell in stage for signal in _shared_outputs(cell, shares))
    return [signal for signal in made if signal not in driven]


def _layout(
    cells: Sequence[Cell], finished: Sequence[Sequence[Signal]], sums: Sequence[Sequence[Sum]]
) -> tuple[Signal, ...]:
    """Rows of the value array: tokens, delays, then stage by stage the sums and the shared signals finished there."""
    result = [cell.out for cell in cells if isinstance(cell, Token)]
    result += [cell.out for cell in cells if isinstance(cell, Delay)]
    for adders, ended in zip(sums, finished, strict=True):
        result += [cell.out for cell in adders]
        result += ended
    return tuple(result)


def _smallest_type(cells: Sequence[Cell]) -> type[np.generic]:
    """int16 if every value and every partial sum of one fits, else int64."""
    largest = 0
    for cell in cells:
        for arg in (*inputs(cell), *past_inputs(cell)):
            ends = [max(abs(s.lo), abs(s.hi)) * abs(coef) for s, coef in arg.terms.items()]
            largest = max(largest, abs(arg.const) + sum(ends) + abs(arg.lo))
        if isinstance(cell, Sum):
            largest = max(largest, sum(max(map(abs, term.table)) for term in cell.terms))
    return np.int16 if largest < 1 << 14 else np.int64
