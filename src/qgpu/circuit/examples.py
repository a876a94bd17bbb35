"""Two circuits that are no GPU: what the language looks like, and what the foundry is tested on.

``fibonacci`` has a delay and an adder. ``accumulator`` is a small machine with registers, faults and a wipe. Each comes
with its meaning on integers: the id that follows each id of a sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import words as w
from .builder import Builder
from .ir import Circuit
from .memory import Field
from .word import Word
from .words import Access


def fibonacci(bits: int = 16) -> Circuit:
    """The next token is the sum of the last two modulo ``2**bits``; the vocabulary is all numbers of that many bits."""
    b = Builder("fibonacci", 1 << bits)
    current = b.token_word("current", range(1 << bits), bits)
    previous = b.delay("previous", current)
    total = w.add(b, "sum", current, previous)
    b.probe("sum", total)
    return b.finish(total, range(1 << bits))


def fibonacci_reference(ids: Iterable[int], bits: int = 16) -> list[int]:
    answers, previous = [], 0
    for current in ids:
        answers.append((current + previous) % (1 << bits))
        previous = current
    return answers


@dataclass(frozen=True)
class AccumulatorIds:
    """Token ids of the accumulator, for ``register_bits`` bits of register number.

    A value 0..255 is its own id and loads the accumulator; the machine answers READY. ``store(r)`` puts the accumulator
    into register r and answers with it; ``load``, ``add`` and ``subtract`` answer with register r, or with the
    accumulator plus or minus it (modulo 256), or with FAULT if r was never stored to. Whoever appends an answer that is
    a value loads the accumulator with it. CLEAR forgets all registers. CLEAR, READY and FAULT are answered with READY.
    """

    register_bits: int = 4

    VALUES = 256
    OPERATIONS = ("store", "load", "add", "subtract")

    @property
    def registers(self) -> int:
        return 1 << self.register_bits

    def operation(self, name: str, register: int) -> int:
        return self.VALUES + self.OPERATIONS.index(name) * self.registers + register

    @property
    def clear(self) -> int:
        return self.VALUES + len(self.OPERATIONS) * self.registers

    @property
    def ready(self) -> int:
        return self.clear + 1

    @property
    def fault(self) -> int:
        return self.clear + 2

    @property
    def vocabulary(self) -> int:
        return self.clear + 3

    def split(self, token: int) -> tuple[str, int]:
        """Name and register number (or value) of an id."""
        if token < self.VALUES:
            return "value", token
        if token < self.clear:
            kind, register = divmod(token - self.VALUES, self.registers)
            return self.OPERATIONS[kind], register
        return ("clear", "ready", "fault")[token - self.clear], 0


def accumulator(register_bits: int = 4) -> Circuit:
    """The machine that ``AccumulatorIds`` describes. Depth 3; more than 7 register bits make banks."""
    ids = AccumulatorIds(register_bits)
    b = Builder("accumulator", ids.vocabulary)
    parts = [ids.split(token) for token in range(ids.vocabulary)]
    number = b.token_word("number", [value for _, value in parts], max(8, register_bits))

    def is_(*names: str) -> list[int]:
        return [int(name in names) for name, _ in parts]

    loads = b.token("is.value", is_("value"))
    store, load, subtract = (b.token(f"is.{name}", is_(name)) for name in ("store", "load", "subtract"))
    computes = b.token("is.computing", is_("add", "subtract"))
    other = b.token("is.other", is_("value", "clear", "ready", "fault"))
    clear = b.token("is.clear", is_("clear"))
    everything = Word("row", ())
    accumulator = w.register_file(
        b, "accumulator", [Field("value", number[:8])], Access(everything, (loads,)), [Access(everything)]
    )[0]["value"]
    register = number[:register_bits]
    found = w.register_file(
        b,
        "registers",
        [Field("value", accumulator, complement=True)],
        Access(register, (store,)),
        [Access(register, (w.merge(load, computes),))],
        wipe=clear,
    )[0]
    # A row that was never written reads as zero on both rails.
    written = w.merge(found["value"][0], found["value.not"][0])
    with b.scope("result"):
        total = w.add_subtract(b, "sum", accumulator, found["value"], subtract)
        fault = b.and_("fault", w.merge(load, computes), ~written)
        width = (ids.vocabulary - 1).bit_length()
        answer = b.mux(
            "code",
            [
                (store, accumulator.zero_extend(width)),
                ((load, ~fault), found["value"].zero_extend(width)),
                ((computes, ~fault), total.zero_extend(width)),
                (fault, Word.constant(ids.fault, width)),
                (other, Word.constant(ids.ready, width)),
            ],
        )
    b.probe("accumulator", accumulator)
    b.probe("fault", fault)
    return b.finish(answer, range(ids.vocabulary))


def accumulator_reference(ids: Sequence[int], register_bits: int = 4) -> list[int]:
    names = AccumulatorIds(register_bits)
    answers, accumulator = [], 0
    registers: dict[int, int] = {}
    for token in ids:
        name, number = names.split(token)
        answer = names.ready
        if name == "value":
            accumulator = number
        elif name == "clear":
            registers.clear()
        elif name == "store":
            answer = registers[number] = accumulator
        elif name in names.OPERATIONS:
            stored = registers.get(number)
            if stored is None:
                answer = names.fault
            else:
                answer = {"load": stored, "add": accumulator + stored, "subtract": accumulator - stored}[
                    name
                ] % names.VALUES
        answers.append(answer)
    return answers
