"""The store address: base plus offset, in radix 16.

An adder asks only how much there is in a digit, base and offset together: so each digit's choices are added up in one
signal, where base and offset as bits would take eight. What is the same in all lanes is chosen once.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, constant, total
from qgpu.circuit.tables import Table
from qgpu.circuit.word import Word
from qgpu.isa import tokens

DIGIT = 4
LARGEST = (1 << DIGIT) - 1
ADDRESS_BITS = tokens.MEMORY_BYTES.bit_length() - 1


def chosen_digits(b: Builder, name: str, choices: Sequence[tuple[Expr, Word]], most: int) -> list[Expr]:
    """Digits of the sum of the words whose conditions are 1, at most ``most`` of them; no carries. One level."""
    found = []
    for low in range(0, choices[0][1].width, DIGIT):
        terms: list[tuple[Expr, Table]] = [
            (condition + word[low + i], {2: 1 << i})
            for condition, word in choices
            for i in range(DIGIT)
            if word[low + i].terms
        ]
        found.append(b.sum_of(f"{name}.digit{low // DIGIT}", terms, 0, most * LARGEST))
    return found


def store_address(b: Builder, name: str, digits: Sequence[Expr]) -> Word:
    """The low bits of the number whose digits these are, each up to twice the largest, and above them bits that are all
    zero exactly if the rest of it (modulo 2**32) is. Three levels."""
    with b.scope(name):
        generate, propagate = [], []
        for j, digit in enumerate(digits[:-1]):
            tells: dict[str, Table] = {"up": lambda n: int(n > LARGEST), "full": lambda n: int(n == LARGEST)}
            made = b.lookups(f"digit{j}", digit, tells)
            generate.append(made["up"])
            propagate.append(made["full"])
        bits: list[Expr] = []
        for j, digit in enumerate(digits):
            carry = w.carry_into(b, f"carry{j}", generate[:j], propagate[:j]) if j else constant(0)
            sum_ = total([digit, carry])
            low = max(0, min(DIGIT, ADDRESS_BITS - DIGIT * j))
            tables: dict[str, Table] = {f"bit{DIGIT * j + i}": _bit(i) for i in range(low)}
            made = b.lookups(f"sum{j}", sum_, tables) if low else {}
            bits += made.values()
            if low < DIGIT:
                bits.append(b.lookup(f"beyond{j}", sum_, _some(low)))
        return Word(b.path(""), tuple(bits))


def _bit(index: int) -> Table:
    return lambda n: n >> index & 1


def _some(low: int) -> Table:
    return lambda n: int((n & LARGEST) >> low > 0)
