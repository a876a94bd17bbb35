"""Word: a named bundle of 0/1 expressions, least significant bit first, and what one may do to it for free.

Everything here is wiring: slices, concatenation, extension, NOT and shifts by constants cost no cell. What costs cells
is in ``builder`` and ``words``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import overload

from .ir import CircuitError, Expr, constant, total


@dataclass(frozen=True, eq=False)
class Word:
    """``bits[i]`` has weight ``2**i``. Raises CircuitError if a bit is not known to be 0 or 1."""

    name: str
    bits: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for index, bit in enumerate(self.bits):
            if not bit.is_bit:
                raise CircuitError(
                    f"word '{self.name}', bit {index}: the expression {bit!r} ranges over {bit.lo}..{bit.hi}, "
                    f"a bit must be 0..1; use lookup() on it, or assume(0, 1) if it can be nothing else"
                )

    @staticmethod
    def constant(value: int, width: int) -> Word:
        """``value`` modulo ``2**width``; negative values are two's complement."""
        return Word(f"#{value}", tuple(constant((value >> i) & 1) for i in range(width)))

    @staticmethod
    def of(name: str, bits: Iterable[Expr]) -> Word:
        return Word(name, tuple(bits))

    @property
    def width(self) -> int:
        return len(self.bits)

    @property
    def sign(self) -> Expr:
        """The most significant bit."""
        return self.bits[-1]

    @property
    def value(self) -> Expr:
        """The unsigned number as one expression: the sum of ``2**i * bit i``."""
        return total(bit * (1 << i) for i, bit in enumerate(self.bits))

    def __len__(self) -> int:
        return len(self.bits)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.bits)

    @overload
    def __getitem__(self, index: int) -> Expr: ...
    @overload
    def __getitem__(self, index: slice) -> Word: ...
    def __getitem__(self, index: int | slice) -> Expr | Word:
        """``w[3]`` is a bit, ``w[0:8]`` the word of bits 0 to 7."""
        if isinstance(index, slice):
            start, stop, step = index.indices(self.width)
            label = f"{start}:{stop}" if step == 1 else f"{start}:{stop}:{step}"
            return Word(f"{self.name}[{label}]", self.bits[index])
        if not -self.width <= index < self.width:
            raise CircuitError(f"word '{self.name}' has {self.width} bits, there is no bit {index}")
        return self.bits[index]

    def __invert__(self) -> Word:
        return Word(f"~{self.name}", tuple(~bit for bit in self.bits))

    def __add__(self, high: Word) -> Word:
        """Concatenation: ``high`` on top of this word."""
        return Word(f"{{{high.name},{self.name}}}", self.bits + high.bits)

    def named(self, name: str) -> Word:
        return Word(name, self.bits)

    def zero_extend(self, width: int) -> Word:
        self._at_least(width)
        return Word(self.name, self.bits + (constant(0),) * (width - self.width))

    def sign_extend(self, width: int) -> Word:
        self._at_least(width)
        return Word(self.name, self.bits + (self.sign,) * (width - self.width))

    def shift_left(self, count: int) -> Word:
        """Same width; zeros come in."""
        kept = self.bits[: max(self.width - count, 0)]
        return Word(f"{self.name}<<{count}", (constant(0),) * (self.width - len(kept)) + kept)

    def shift_right(self, count: int, fill: Expr | None = None) -> Word:
        """Same width; ``fill`` (zero by default, ``w.sign`` for an arithmetic shift) comes in."""
        kept = self.bits[count:]
        return Word(f"{self.name}>>{count}", kept + (fill or constant(0),) * (self.width - len(kept)))

    def _at_least(self, width: int) -> None:
        if width < self.width:
            raise CircuitError(
                f"word '{self.name}' has {self.width} bits and cannot be extended to {width}; slice it instead"
            )

    def __repr__(self) -> str:
        return f"{self.name}<{self.width}>"


def same_width(where: str, first: Word, *others: Word) -> int:
    """The common width; raises CircuitError with both names and both widths if there is none."""
    for other in others:
        if other.width != first.width:
            raise CircuitError(
                f"{where}: '{first.name}' has {first.width} bits and '{other.name}' has {other.width}; "
                f"extend or slice one of them"
            )
    return first.width
