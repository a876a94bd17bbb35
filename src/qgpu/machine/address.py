"""The store address: base plus offset, digit by digit.

An adder asks only how much there is in a digit, base and offset together: so each digit's choices are added up in one
signal, where base and offset as bits would take six or eight. What is the same in all lanes is chosen once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant, total
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.isa import tokens

ADDRESS_BITS = tokens.MEMORY_BYTES.bit_length() - 1
SIZES = (3, 3, 3, 3, 2, 4, 4, 4, 4, 2)
"""Bits of each digit. Those of the address itself, below the border, are small ones: their bits are asked for."""

STARTS = tuple(accumulate(SIZES, initial=0))
assert ADDRESS_BITS in STARTS and STARTS[-1] == 32


def chosen_digits(b: Builder, name: str, choices: Sequence[tuple[Expr, Word]]) -> list[Expr]:
    """Digits of the sum of the words whose conditions are 1, at most two of them; no carries. One level."""
    found = []
    for j, (low, size) in enumerate(zip(STARTS, SIZES, strict=False)):
        terms: list[tuple[Expr, Table]] = [
            (condition + word[low + i], {2: 1 << i}) for condition, word in choices for i in range(size)
        ]
        found.append(b.sum_of(f"{name}.digit{j}", terms, 0, 2 * _largest(j)))
    return found


def added_digits(x: Sequence[Expr], y: Sequence[Expr]) -> list[Expr]:
    """Digits of two words in all. Free."""
    return [(p + q).assume(0, 2 * _largest(j)) for j, (p, q) in enumerate(zip(x, y, strict=True))]


def store_address(b: Builder, name: str, digits: Sequence[Expr]) -> Word:
    """The low ``ADDRESS_BITS`` of the number whose digits these are, and above them bits that are all zero exactly if
    the rest of it (modulo 2**32) is. Three levels."""
    with b.scope(name):
        generate, propagate = [], []
        for j, digit in enumerate(digits[:-1]):
            tells: dict[str, Table] = {"up": _above(_largest(j)), "full": {_largest(j): 1}}
            made = b.lookups(f"digit{j}", digit, tells)
            generate.append(made["up"])
            propagate.append(made["full"])
        bits: list[Expr] = []
        for j, digit in enumerate(digits):
            carry = w.carry_into(b, f"carry{j}", generate[:j], propagate[:j]) if j else constant(0)
            sum_ = total([digit, carry])
            if STARTS[j] < ADDRESS_BITS:
                bits += b.lookups(f"sum{j}", sum_, {f"bit{i}": _bit(i) for i in range(SIZES[j])}).values()
            else:
                bits.append(b.lookup(f"beyond{j}", sum_, _nonzero(1 << SIZES[j])))
        return Word(b.path(""), tuple(bits))


def _largest(digit: int) -> int:
    return (1 << SIZES[digit]) - 1


def _above(value: int) -> Table:
    return lambda n: int(n > value)


def _bit(index: int) -> Table:
    return lambda n: n >> index & 1


def _nonzero(radix: int) -> Table:
    return lambda n: int(n % radix > 0)
