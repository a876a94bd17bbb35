"""What a load makes of the memory row it reads: word choice, bytes and halves, sign extension. One level.

The row's words come as they are. L's bits are chosen by the size and the three lowest address bits in one sum, so that
lane 0, whose port is read as soon as its address is there, needs no gate before the port. H is the row's high word: who
reads it asks whether the load is one of 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.machine.gates import any_of

BYTES: Mapping[str, int] = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "b32": 4, "b64": 8}
"""Choice of the field ``load`` -> bytes. The same as the contract's; a test compares them."""

Conjunction = tuple[Expr, ...]


def sized(is_: Mapping[str, Expr], *names: str) -> Expr:
    return total(is_[name] for name in names).assume(0, 1)


def load_cases(
    is_: Mapping[str, Expr], address: Word, low: Word, high: Word
) -> list[list[Conjunction]]:  # fmt: skip
    """For each of the 32 bits of L, conjunctions of which one is 1 where the bit is; none is if no choice of ``is_`` is
    1. ``address``: at least the three lowest bits; ``low``, ``high``: the row's words. At most 17 a bit, of which those
    of the signs are shared.

    A half at byte 3 has zeros above, and a word of 32 bits ignores the two lowest address bits: what the contract says
    of loads that are misaligned and whose fault the guard has removed.
    """
    words = ((~address[2], low), (address[2], high))
    narrow = sized(is_, "u8", "s8", "u16", "s16")
    half = sized(is_, "u16", "s16")

    def at(byte: int) -> Conjunction:
        return tuple(address[i] if byte >> i & 1 else ~address[i] for i in range(2))

    def bits_of(offset: int, kind: Expr) -> Iterator[Conjunction]:
        """Bit ``offset`` of the word shifted right by its address, of loads of that kind."""
        for here, word in words:
            for byte in range(4):
                if 8 * byte + offset < 32:
                    yield (kind, here, *at(byte), word[8 * byte + offset])

    found: list[list[Conjunction]] = []
    for k in range(32):
        cases: list[Conjunction] = [(is_["b64"], low[k]), *((is_["b32"], here, word[k]) for here, word in words)]
        if k < 8:
            cases += bits_of(k, narrow)
        elif k < 16:
            cases += [*bits_of(k, half), *bits_of(7, is_["s8"])]
        else:
            cases += [*bits_of(15, is_["s16"]), *bits_of(7, is_["s8"])]
        found.append(cases)
    return found


def load_value(b: Builder, name: str, is_: Mapping[str, Expr], address: Word, low: Word, high: Word) -> Word:
    """L (32 bits) of a lane, zero if no choice of ``is_`` is 1: see ``load_cases``. One level."""
    cases = load_cases(is_, address, low, high)
    return Word(b.path(name), tuple(any_of(b, f"{name}.bit{k}", *of) for k, of in enumerate(cases)))


@dataclass(frozen=True, eq=False)
class Load:
    """What a lane loads. ``word``: L. ``row``: choices, address, low and high word to make L of anew, in the same
    level, for the lane whose port is the last one; None where L is there early enough."""

    word: Word
    row: tuple[Mapping[str, Expr], Word, Word, Word] | None

    def cases(self, b: Builder, name: str, enable: Conjunction) -> list[list[Conjunction]]:
        """As ``load_cases``, where all of ``enable`` are 1. One level from L, or from the port, to what they make."""
        if self.row is None:
            return [[(*enable, bit)] for bit in self.word]
        is_, *rest = self.row
        gated = {choice: b.and_(f"{name}.{choice}", hot, *enable) for choice, hot in is_.items() if choice != "none"}
        return load_cases(gated, *rest)
