"""The library of word circuits: comparators, decoders, priorities, counts, shifts, logic and register files.

Adders stand in ``adders`` and the multiplier in ``multiply``; this module offers them too, so that a circuit needs one
import. Every function takes the builder and a name, and says its depth (levels of Sum cells) and its neurons; signals
it makes are called ``name.<part>``. All raise CircuitError for widths that differ and inputs that are not bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .adders import (
    add,
    add_columns,
    add_subtract,
    add_variants,
    add_with_carry,
    carry_into,
    decrement,
    increment,
    negate,
    signed_overflow,
    subtract,
    subtract_with_borrow,
)
from .builder import Builder
from .ir import CircuitError, Expr, Port, total
from .memory import LARGEST_ADDRESS, Field
from .multiply import compress, multiply
from .tables import Table
from .word import Word, same_width

__all__ = [
    "Access",
    "Comparison",
    "Field",
    "add",
    "add_columns",
    "add_subtract",
    "add_variants",
    "add_with_carry",
    "and_words",
    "carry_into",
    "compare",
    "compress",
    "decode",
    "decrement",
    "encode",
    "equal",
    "increment",
    "is_constant",
    "is_zero",
    "logic_unit",
    "lowest_set",
    "lowest_set_after",
    "merge",
    "multiply",
    "negate",
    "or_words",
    "population_count",
    "register_file",
    "shift",
    "signed_overflow",
    "subtract",
    "subtract_with_borrow",
    "xor_words",
]

LARGEST_GROUP = 6
"""Bits that one comparison table takes: with coefficients up to 32 on both sides it stays exact in bfloat16."""


def merge(*bits: Expr) -> Expr:
    """OR of bits that exclude each other (a claim). Free."""
    return total(bits).assume(0, 1)


# comparisons


@dataclass(frozen=True, eq=False)
class Comparison:
    """x against y. ``lt`` and ``eq`` are made; the others are free."""

    lt: Expr
    eq: Expr

    @property
    def le(self) -> Expr:
        return merge(self.lt, self.eq)

    @property
    def gt(self) -> Expr:
        return ~self.le

    @property
    def ge(self) -> Expr:
        return ~self.lt

    @property
    def ne(self) -> Expr:
        return ~self.eq


def _groups(width: int) -> list[slice]:
    """As few groups as possible, all about as wide, lowest first."""
    count = -(-width // LARGEST_GROUP)
    edges = [width * i // count for i in range(count + 1)]
    return [slice(low, high) for low, high in zip(edges, edges[1:], strict=False)]


def compare(b: Builder, name: str, x: Word, y: Word, signed: bool | Expr = False) -> Comparison:
    """lt and eq, unsigned or two's complement; ``signed`` may be a bit that decides at run time.

    Two levels (one up to 6 bits), 4 neurons for each group of up to 6 bits, and 1: 25 for 32 bits, 6 more with a
    run-time ``signed``.
    """
    same_width(f"compare '{b.path(name)}'", x, y)
    if isinstance(signed, bool):
        if signed:
            x, y = x[:-1] + Word("sign", (~x.sign,)), y[:-1] + Word("sign", (~y.sign,))
        parts = [(x[s], y[s]) for s in _groups(x.width)]
    else:
        parts = [(x[s], y[s]) for s in _groups(x.width - 1)] if x.width > 1 else []
    below, same = [], []
    with b.scope(name):
        for j, (p, q) in enumerate(parts):
            found = b.lookups(f"group{j}", p.value - q.value, {"lt": lambda n: int(n < 0), "eq": lambda n: int(n == 0)})
            below.append(found["lt"])
            same.append(found["eq"])
        if not isinstance(signed, bool):
            difference = x.sign - y.sign
            less = [*b.gated(~signed, difference, _equals(-1)), *b.gated(signed, difference, _equals(1))]
            below.append(b.sum_of("top.lt", less, 0, 1))
            same.append(b.lookup("top.eq", difference, _equals(0)))
        # "Generated" here and equal in all groups above: the carry chain of an adder.
        return Comparison(carry_into(b, "lt", below, same), b.and_("eq", *same))


def equal(b: Builder, name: str, x: Word, y: Word) -> Expr:
    """Two levels (one up to 6 bits), 3 neurons for each group of up to 6 bits, and 1: 19 for 32 bits."""
    same_width(f"equal '{b.path(name)}'", x, y)
    with b.scope(name):
        same = [
            b.lookup(f"group{j}", x[s].value - y[s].value, lambda n: int(n == 0))
            for j, s in enumerate(_groups(x.width))
        ]
        return b.and_("eq", *same)


def is_zero(b: Builder, name: str, x: Word) -> Expr:
    """One level, one neuron."""
    return b.nor(name, x)


def is_constant(b: Builder, name: str, x: Word, value: int) -> Expr:
    """x == value. One level, one neuron."""
    return b.and_(name, *_literals(x, value))


def _literals(x: Word, value: int) -> list[Expr]:
    """Bits that are all 1 if and only if x == value."""
    if value >> x.width:
        raise CircuitError(f"'{x.name}' has {x.width} bits and cannot be {value}")
    return [bit if (value >> i) & 1 else ~bit for i, bit in enumerate(x)]


# one-hot


def decode(b: Builder, name: str, x: Word, count: int | None = None, enable: Sequence[Expr] = ()) -> tuple[Expr, ...]:
    """One-hot: output v is 1 if x == v (and all of ``enable``), for v in 0 .. count - 1 (default ``2**width``).

    One level, one neuron an output.
    """
    count = 1 << x.width if count is None else count
    return tuple(b.and_(f"{name}.is{value}", *_literals(x, value), *enable) for value in range(count))


def encode(name: str, one_hot: Sequence[Expr]) -> Word:
    """The number of the bit that is 1, zero if none is. Free."""
    width = max(len(one_hot) - 1, 1).bit_length()
    return Word(
        name, tuple(merge(*(bit for value, bit in enumerate(one_hot) if (value >> i) & 1)) for i in range(width))
    )


def lowest_set(b: Builder, name: str, bits: Sequence[Expr]) -> tuple[Expr, ...]:
    """One-hot: the lowest bit that is 1; all zero if none is. One level, one neuron a bit."""
    return tuple(b.and_(f"{name}.is{i}", bit, *(~lower for lower in bits[:i])) for i, bit in enumerate(bits))


def lowest_set_after(b: Builder, name: str, bits: Sequence[Expr], position: Sequence[Expr]) -> tuple[Expr, ...]:
    """One-hot: the first bit that is 1 cyclically after the one-hot ``position``, which itself comes last.

    All zero if no bit is 1; the lowest if no position is. Two levels, three neurons a bit.
    """
    if len(bits) != len(position):
        raise CircuitError(
            f"lowest_set_after '{b.path(name)}': {len(bits)} bits and {len(position)} positions; give one for each"
        )
    with b.scope(name):
        after = [merge(*position[:i]) for i in range(len(bits))]
        upper = [b.and_(f"after{i}", bit, beyond) for i, (bit, beyond) in enumerate(zip(bits, after, strict=True))]
        result = []
        for i, bit in enumerate(bits):
            here = total([upper[i], *(~lower for lower in upper[:i])])
            wrapped = total([bit, *(~lower for lower in bits[:i]), *(~other for other in upper)])
            terms: list[tuple[Expr, Table]] = [(here, _equals(i + 1)), (wrapped, _equals(i + 1 + len(upper)))]
            result.append(b.sum_of(f"is{i}", terms, 0, 1))
        return tuple(result)


def population_count(b: Builder, name: str, bits: Sequence[Expr] | Word) -> Word:
    """How many of n bits are 1, in binary (as an integer it is free: ``total``). One level, n neurons."""
    count = total(bits)
    return b.lookup_word(name, count, lambda n: n, max(count.hi, 1).bit_length())


# words bit by bit


def and_words(b: Builder, name: str, x: Word, y: Word) -> Word:
    """One level, one neuron a bit."""
    return _bitwise(b, name, x, y, b.and_)


def or_words(b: Builder, name: str, x: Word, y: Word) -> Word:
    """One level, one neuron a bit."""
    return _bitwise(b, name, x, y, b.or_)


def xor_words(b: Builder, name: str, x: Word, y: Word) -> Word:
    """One level, two neurons a bit."""
    return _bitwise(b, name, x, y, b.xor)


def _bitwise(b: Builder, name: str, x: Word, y: Word, gate: Callable[[str, Expr, Expr], Expr]) -> Word:
    same_width(f"'{b.path(name)}'", x, y)
    return Word(b.path(name), tuple(gate(f"{name}.bit{i}", p, q) for i, (p, q) in enumerate(zip(x, y, strict=True))))


def logic_unit(b: Builder, name: str, x: Word, y: Word, operations: Sequence[tuple[Expr, Sequence[int]]]) -> Word:
    """For each (condition, (f0, f1, f2)) with the condition at 1, the words' bits go through ``f[x + y]``; zero if none
    is 1.

    AND is (0, 0, 1), OR (0, 1, 1), XOR (0, 1, 0); at most one condition may be 1. One level; a bit takes one neuron for
    AND or NOR, two for OR, XOR, NAND, XNOR.
    """
    width = same_width(f"logic_unit '{b.path(name)}'", x, y)
    bits = []
    for i in range(width):
        terms: list[tuple[Expr, Table]] = []
        for condition, table in operations:
            terms += b.gated(condition, x[i] + y[i], _entries(table))
        bits.append(b.sum_of(f"{name}.bit{i}", terms, 0, 1))
    return Word(b.path(name), tuple(bits))


def shift(b: Builder, name: str, x: Word, amount: Word, *, left: bool, fill: Expr | None = None, step: int = 1) -> Word:
    """x shifted by ``amount * step`` places; ``fill`` (default zero) comes in from the left of a right shift.

    One level, a neuron for each bit and each value of ``amount``; meant for amounts of two bits.
    """
    bits = []
    shifted = [x.shift_left(n * step) if left else x.shift_right(n * step, fill) for n in range(1 << amount.width)]
    for i in range(x.width):
        terms: list[tuple[Expr, Table]] = []
        for value, word in enumerate(shifted):
            literals = _literals(amount, value)
            terms.append((total([word[i], *literals]), _equals(1 + len(literals))))
        bits.append(b.sum_of(f"{name}.bit{i}", terms, 0, 1))
    return Word(b.path(name), tuple(bits))


def _equals(value: int) -> Callable[[int], int]:
    return lambda n: int(n == value)


def _entries(table: Sequence[int]) -> Callable[[int], int]:
    return lambda n: table[n]


# memory


@dataclass(frozen=True, eq=False)
class Access:
    """Which row of a register file: ``address`` of any width, used only if all of ``enable`` are 1."""

    address: Word
    enable: tuple[Expr, ...] = ()


def register_file(
    b: Builder,
    name: str,
    fields: Sequence[Field],
    write: Access,
    reads: Sequence[Access],
    wipe: Expr | None = None,
    into: Sequence[Mapping[str, Word]] = (),
) -> list[dict[str, Word]]:
    """``2**address width`` rows with one write port and any number of read ports: what each port reads, field by field.

    Of one address width throughout. Made of banks of up to 128 rows, each read port with its own copy. No Sum cells.
    ``into``: for each read port, the words that its fields are added to, see ``Builder.memory``.
    """
    for access in reads:
        same_width(f"register_file '{b.path(name)}'", write.address, access.address)
    low = min(write.address.width, LARGEST_ADDRESS)
    results = []
    for number, access in enumerate(reads):
        words: Mapping[str, Word] | None = into[number] if into else None
        for bank in range(1 << (write.address.width - low)):
            ports = [
                Port(a.address.bits[:low], (*a.enable, *_literals(a.address[low:], bank))) for a in (write, access)
            ]
            made = b.memory(f"{name}.port{number}.bank{bank}", fields, ports[0], ports[1], wipe=wipe, into=words)
            words = made
        results.append(made)
    return results
