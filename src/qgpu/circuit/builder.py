"""Builder: writes a netlist by names, one gate, table, mux, delay or memory at a time.

Names are hierarchical (``with b.scope("alu"):``) and unique. Every method checks what it is given and raises
CircuitError with the full names concerned. A method that needs no cell makes none: constants fold, affine tables stay
expressions. Cost is told in *neurons* (ramps, see ``tables``) and levels (Sum cells in a row); what is not said to cost
is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, overload

import numpy as np

from .finish import resolve
from .ir import (
    Cell,
    Circuit,
    CircuitError,
    Delay,
    Expr,
    Memory,
    Port,
    Signal,
    Token,
    total,
)
from .memory import Field, check_port, columns_of, signal_of
from .sums import Part, affine_sum, parts_of, sum_cell, sum_into
from .tables import LARGEST_SUM, Table, values
from .word import Word, same_width


class Builder:
    """``name``: the circuit's; ``vocabulary``: number of token ids."""

    def __init__(self, name: str, vocabulary: int) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self.cells: list[Cell] = []
        self._scopes: list[str] = []
        self._names: set[str] = set()
        self._forwards: dict[Signal, Expr | None] = {}
        self._buses: list[Signal] = []
        self._probes: dict[str, tuple[Expr, ...]] = {}

    # names

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Within the ``with``, every name gets ``name.`` in front."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def path(self, name: str) -> str:
        """The full name that ``name`` has in the present scope."""
        return ".".join([*self._scopes, name])

    def _reserve(self, name: str) -> str:
        full = self.path(name)
        if full in self._names:
            raise CircuitError(f"circuit '{self.name}': the name '{full}' is taken; names are unique, use a scope")
        self._names.add(full)
        return full

    def _signal(self, name: str, lo: int, hi: int) -> Signal:
        return Signal(self._reserve(name), lo, hi)

    # inputs

    def token(self, name: str, table: Callable[[int], int] | Sequence[int] | np.ndarray[Any, Any]) -> Expr:
        """A signal that is ``table[id]`` (or ``table(id)``) at a token ``id``: a small non-negative integer."""
        entries = [table(i) for i in range(self.vocabulary)] if callable(table) else table
        data = np.asarray(entries, dtype=np.int64)
        if data.shape != (self.vocabulary,):
            raise CircuitError(
                f"token '{self.path(name)}': {data.size} values for a vocabulary of {self.vocabulary}; give one an id"
            )
        if data.size and (data.min() < 0 or data.max() > LARGEST_SUM):
            raise CircuitError(
                f"token '{self.path(name)}': values range over {data.min()}..{data.max()}, not 0..{LARGEST_SUM}"
            )
        signal = self._signal(name, int(data.min()), int(data.max()))
        self.cells.append(Token(signal, data.astype(np.int16)))
        return signal.expr

    def token_word(
        self, name: str, table: Callable[[int], int] | Sequence[int] | np.ndarray[Any, Any], width: int
    ) -> Word:
        """The low ``width`` bits of ``table[id]``, one token signal ``name.bit<i>`` each."""
        entries = [table(i) for i in range(self.vocabulary)] if callable(table) else table
        data = np.asarray(entries, dtype=np.int64)
        return Word(self.path(name), tuple(self.token(f"{name}.bit{i}", (data >> i) & 1) for i in range(width)))

    def forward(self, name: str, lo: int = 0, hi: int = 1) -> Expr:
        """A wire to be driven later with ``drive``; finish() puts the driver in its place."""
        signal = self._signal(name, lo, hi)
        self._forwards[signal] = None
        return signal.expr

    def forward_word(self, name: str, width: int) -> Word:
        return Word(self.path(name), tuple(self.forward(f"{name}.bit{i}") for i in range(width)))

    def bus(self, name: str, lo: int = 0, hi: int = 1) -> Expr:
        """A signal for several drivers: whatever goes ``into`` it (sums, fields of memories) adds up. That the total
        stays within ``lo`` and ``hi`` is a claim, which the evaluator checks. It is read once all have driven it."""
        signal = self._signal(name, lo, hi)
        self._buses.append(signal)
        return signal.expr

    def bus_word(self, name: str, width: int) -> Word:
        """A word of buses ``name.bit<i>``, each 0 or 1."""
        return Word(self.path(name), tuple(self.bus(f"{name}.bit{i}") for i in range(width)))

    @overload
    def drive(self, wire: Expr, driver: Expr) -> None: ...
    @overload
    def drive(self, wire: Word, driver: Word) -> None: ...
    def drive(self, wire: Expr | Word, driver: Expr | Word) -> None:
        """Says what a forward wire (or word) is."""
        if isinstance(wire, Word) and isinstance(driver, Word):
            same_width("drive", wire, driver)
            for target, source in zip(wire, driver, strict=True):
                self.drive(target, source)
            return
        if not isinstance(wire, Expr) or not isinstance(driver, Expr):
            raise CircuitError("drive: a word is driven by a word, a wire by an expression")
        signals = [signal for signal in wire.terms if signal in self._forwards]
        if len(signals) != 1 or len(wire.terms) != 1 or wire.terms[signals[0]] != 1 or wire.const:
            raise CircuitError(f"drive: {wire!r} is not a wire made by forward()")
        signal = signals[0]
        if self._forwards[signal] is not None:
            raise CircuitError(f"drive: the wire '{signal.name}' is driven already")
        if driver.lo < signal.lo or driver.hi > signal.hi:
            raise CircuitError(
                f"drive: the wire '{signal.name}' holds {signal.lo}..{signal.hi}, its driver {driver!r} ranges over "
                f"{driver.lo}..{driver.hi}; widen the wire, or assume() the range"
            )
        self._forwards[signal] = driver

    # tables

    def lookup(self, name: str, arg: Expr, table: Table) -> Expr:
        """``table`` of one small integer. Free if the table is affine; else one level."""
        return self.sum_of(name, [(arg, table)])

    def lookups(self, name: str, arg: Expr, tables: Mapping[str, Table]) -> dict[str, Expr]:
        """Several tables of the same integer, ``name.<key>`` each, made to share their neurons. One level."""
        return self.sums({f"{name}.{key}": [(arg, table)] for key, table in tables.items()}, strip=f"{name}.")

    def lookup_word(self, name: str, arg: Expr, table: Callable[[int], int], width: int) -> Word:
        """The low ``width`` bits of ``table(arg)``, sharing their neurons. One level."""
        bits = self.lookups(name, arg, {f"bit{i}": _bit_of(table, i) for i in range(width)})
        return Word(self.path(name), tuple(bits.values()))

    def sum_of(
        self,
        name: str,
        terms: Iterable[tuple[Expr, Table]],
        lo: int | None = None,
        hi: int | None = None,
        into: Expr | None = None,
    ) -> Expr:
        """The sum of many tables, each of its own expression: one signal, one level.

        ``lo``, ``hi`` (both or none): a range of the sum that is narrower than its tables show (say, because the terms
        exclude each other); a claim, which the evaluator checks. ``into``: a signal (a ``bus``, or what a memory reads)
        to add the sum to, instead of a signal of its own.
        """
        bounds = {} if lo is None or hi is None else {name: (lo, hi)}
        return self.sums({name: terms}, bounds, into=None if into is None else {name: into})[name]

    def sums(
        self,
        terms: Mapping[str, Iterable[tuple[Expr, Table]]],
        bounds: Mapping[str, tuple[int, int]] | None = None,
        strip: str = "",
        into: Mapping[str, Expr] | None = None,
    ) -> dict[str, Expr]:
        """Several sums at once, by name: tables of the same argument share their neurons across all of them. One level.

        ``bounds``: claimed ranges, as ``lo`` and ``hi`` of ``sum_of``. ``strip``: left off the names in the answer.
        ``into``: signals that sums are added to, as in ``sum_of``.
        """
        made = {}
        for name, parts in parts_of(self.path(""), terms).items():
            if into is not None and name in into:
                self.cells.append(sum_into(self._reserve(name), parts, signal_of(f"'{self.path(name)}'", into[name])))
                made[name.removeprefix(strip)] = into[name]
                continue
            bound = (bounds or {}).get(name)
            free = affine_sum(parts, bound)
            if free is None:
                made[name.removeprefix(strip)] = self._sum(name, parts, bound)
            else:
                self._reserve(name)
                made[name.removeprefix(strip)] = free
        return made

    def _sum(self, name: str, parts: Sequence[Part], bound: tuple[int, int] | None) -> Expr:
        cell, result = sum_cell(self.path(name), parts, bound, lambda lo, hi: self._signal(name, lo, hi))
        self.cells.append(cell)
        return result

    def buffer(self, name: str, arg: Expr, into: Expr | None = None) -> Expr:
        """``arg`` as one signal of its own (useful where a wide expression is used deep down), or added to the signal
        ``into``. One level, one neuron."""
        if into is not None:
            return self.sum_of(name, [(arg, lambda n: n)], into=into)
        if not arg.terms:
            self._reserve(name)
            return arg
        return self._sum(name, [(arg, tuple(range(arg.lo, arg.hi + 1)), None)], None)

    def gated(self, condition: Expr, arg: Expr, table: Table) -> list[tuple[Expr, Table]]:
        """Terms for ``sum_of`` that are ``table(arg)`` where ``condition`` is 1 and zero elsewhere.

        No level and (for a table that is zero at one end) no neuron more than the table alone: the argument is pushed
        out of reach by the condition.
        """
        self._bits("gated", [condition])
        entries = values("gated table", arg, table)
        span = len(entries) - 1
        base = entries[-1] if entries[0] and entries[:1] != entries[1:2] else entries[0]
        rest = {arg.lo + i: entry - base for i, entry in enumerate(entries)}
        pushed = arg - span * (1 - condition) if entries[0] == base else arg + span * (1 - condition)
        return [(condition, _times(base)), (pushed, lambda n: rest.get(n, 0))]

    # gates

    def _bits(self, name: str, bits: Iterable[Expr | Word]) -> list[Expr]:
        flat = [bit for item in bits for bit in (item.bits if isinstance(item, Word) else (item,))]
        for index, bit in enumerate(flat):
            if not bit.is_bit:
                raise CircuitError(
                    f"'{self.path(name)}': input {index} ({bit.short()}) ranges over {bit.lo}..{bit.hi}, "
                    f"a bit (0..1) is needed"
                )
        return flat

    def and_(self, name: str, *bits: Expr | Word) -> Expr:
        """1 if all are 1. One level, one neuron."""
        flat = self._bits(name, bits)
        return self.lookup(name, total(flat), lambda n: int(n == len(flat)))

    def or_(self, name: str, *bits: Expr | Word) -> Expr:
        """1 if any is 1. One level, one neuron; free for bits that exclude each other: see ``words.merge``."""
        return self.lookup(name, total(self._bits(name, bits)), lambda n: int(n > 0))

    def nand(self, name: str, *bits: Expr | Word) -> Expr:
        return ~self.and_(name, *bits)

    def nor(self, name: str, *bits: Expr | Word) -> Expr:
        return ~self.or_(name, *bits)

    def xor(self, name: str, *bits: Expr | Word) -> Expr:
        """The parity of n bits. One level, n neurons."""
        return self.lookup(name, total(self._bits(name, bits)), lambda n: n & 1)

    def select(self, name: str, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """``then`` if ``condition`` is 1, else ``otherwise``; any small integers. One level, at most two neurons for
        bits."""
        return self.sum_of(
            name,
            [*self.gated(condition, then, lambda n: n), *self.gated(~condition, otherwise, lambda n: n)],
            min(then.lo, otherwise.lo),
            max(then.hi, otherwise.hi),
        )

    def select_word(self, name: str, condition: Expr, then: Word, otherwise: Word) -> Word:
        """One level, at most two neurons a bit."""
        return self.mux(name, [(condition, then), (~condition, otherwise)])

    def mux(self, name: str, choices: Sequence[tuple[Expr | Sequence[Expr], Word]], into: Word | None = None) -> Word:
        """The word whose condition is 1 (or all of whose conditions are); zero if there is none.

        At most one word may be chosen at a token (a claim). One level, one neuron for each choice and bit; constants
        cost less, and words of constants with single conditions nothing. ``into``: a word of signals to add the choice
        to (then at most one of all that drives it may be chosen).
        """
        if not choices:
            raise CircuitError(f"mux '{self.path(name)}': there is nothing to choose from")
        flat = [((cond,) if isinstance(cond, Expr) else tuple(cond), word) for cond, word in choices]
        self._bits(name, [bit for conditions, _ in flat for bit in conditions])
        targets = () if into is None else (into,)
        width = same_width(f"mux '{self.path(name)}'", *(word for _, word in flat), *targets)
        bits = []
        for i in range(width):
            pins = [
                (*conditions, word[i]) if word[i].terms else conditions
                for conditions, word in flat
                if _may_be_1(word[i])
            ]
            terms = [(total(group), _is(len(group))) for group in pins]
            if into is None or terms:
                target = None if into is None else into[i]
                bits.append(self.sum_of(f"{name}.bit{i}", terms, 0, 1, target))
        return Word(self.path(name), tuple(bits)) if into is None else into

    # time and memory

    @overload
    def delay(self, name: str, arg: Expr, tokens: int = 1) -> Expr: ...
    @overload
    def delay(self, name: str, arg: Word, tokens: int = 1) -> Word: ...
    def delay(self, name: str, arg: Expr | Word, tokens: int = 1) -> Expr | Word:
        """What a bit (or word) was ``tokens`` (1 to 3) tokens ago; zero before the first token."""
        if isinstance(arg, Word):
            return Word(self.path(name), tuple(self.delay(f"{name}.bit{i}", bit, tokens) for i, bit in enumerate(arg)))
        if not 1 <= tokens <= 3:
            raise CircuitError(f"delay '{self.path(name)}': {tokens} tokens; a delay is 1 to 3 tokens")
        self._bits(name, [arg])
        signal = self._signal(name, 0, 1)
        self.cells.append(Delay(signal, arg, tokens))
        return signal.expr

    def memory(
        self,
        name: str,
        fields: Sequence[Field],
        write: Port,
        read: Port,
        *,
        wipe: Expr | None = None,
        gather: bool = False,
        into: Mapping[str, Word | Expr] | None = None,
    ) -> dict[str, Word]:
        """Up to 128 rows of up to 64 bits; returns what is read, a word for each field that is read.

        A field ``f`` with ``complement`` also gives ``f.not``, its complement, which like the field itself is zero
        where the row was never written. ``into``: by field, the word that it is added to instead of one of its own:
        what another memory reads (banks; the whole answer of that one may be given), or buses. Two fields may share a
        word if their selects exclude each other. A field whose target is one bus and no word is added to it as a
        number, bit i as ``2**i``; it is not in the answer. See ``ir.Memory`` for ``wipe`` and ``gather``.
        """
        full = self._reserve(name)
        for label, port in (("write", write), ("read", read)):
            check_port(f"memory '{full}', {label} port", port)
        if wipe is not None:
            self._bits(f"{name}.wipe", [wipe])
        columns, words = columns_of(
            full, fields, gather, into, lambda part: Signal(self._taken(f"{full}.{part}"), 0, 1)
        )
        self.cells.append(Memory(full, write, read, columns, wipe, gather))
        return words

    def _taken(self, full: str) -> str:
        if full in self._names:
            raise CircuitError(f"circuit '{self.name}': the name '{full}' is taken; names are unique, use a scope")
        self._names.add(full)
        return full

    # the end

    def probe(self, name: str, what: Expr | Word | Iterable[Expr]) -> None:
        """Lets tests and reports look at expressions by name; costs nothing."""
        full = self.path(name)
        if full in self._probes:
            raise CircuitError(f"circuit '{self.name}': there is a probe '{full}' already")
        self._probes[full] = (what,) if isinstance(what, Expr) else tuple(what)

    def finish(self, code: Word | Sequence[Expr], code_of: Callable[[int], int] | Sequence[int]) -> Circuit:
        """The netlist, cells in order of dependence, forward wires gone.

        ``code``: the output word; ``code_of``: the code of each id, all distinct. Raises CircuitError with every fault
        found: forward wires that nothing drives, combinational loops, codes that are not bits, not distinct or do not
        fit.
        """
        entries = [code_of(i) for i in range(self.vocabulary)] if callable(code_of) else code_of
        return resolve(
            self.name,
            self.vocabulary,
            self.cells,
            tuple(code),
            np.asarray(entries, np.int64),
            self._probes,
            self._forwards,
            self._buses,
        )


def _is(value: int) -> Callable[[int], int]:
    return lambda n: int(n == value)


def _may_be_1(bit: Expr) -> bool:
    return bool(bit.terms or bit.const)


def _bit_of(table: Callable[[int], int], index: int) -> Callable[[int], int]:
    return lambda n: (table(n) >> index) & 1


def _times(factor: int) -> Callable[[int], int]:
    return lambda n: n * factor
