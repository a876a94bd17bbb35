"""Random netlists that use every kind of cell, for comparing evaluators (and whatever is cast from them)."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Circuit, Expr, Port, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word


def random_circuit(seed: int, cells: int = 40, bits: int = 4) -> Circuit:
    """A valid netlist over a vocabulary of ``2**bits`` ids, with delays, memories, banks, a gather and forward
    wires."""
    rng = random.Random(seed)
    b = Builder(f"random{seed}", 1 << bits)
    x = b.token_word("x", lambda i: i, bits)
    pool: list[Expr] = [*x, b.token("odd", [rng.randrange(2) for _ in range(1 << bits)])]
    numbers: list[Expr] = [x.value, b.token("n", [rng.randrange(6) for _ in range(1 << bits)])]
    feedback = [b.forward(f"back{i}") for i in range(3)]
    pool += feedback

    def bit() -> Expr:
        chosen = rng.choice(pool)
        return ~chosen if rng.random() < 0.3 else chosen

    def some(count: int) -> list[Expr]:
        return [bit() for _ in range(rng.randint(1, count))]

    def word(name: str, width: int) -> Word:
        return Word(name, tuple(bit() for _ in range(width)))

    for i in range(cells):
        kind = rng.randrange(10)
        if kind == 0:
            pool.append(b.and_(f"and{i}", *some(4)))
        elif kind == 1:
            pool.append(b.or_(f"or{i}", *some(4)))
        elif kind == 2:
            pool.append(b.xor(f"xor{i}", *some(5)))
        elif kind in (3, 4):
            arg = rng.choice(numbers) * rng.choice([1, -1, 2]) + bit() + rng.randint(-2, 2)
            table = [rng.randint(-2, 3) for _ in range(arg.hi - arg.lo + 1)]
            made = b.sum_of(f"sum{i}", [(arg, table), (bit(), lambda n: 2 * n - 1)])
            if made.hi - made.lo < 20:
                numbers.append(made)
            pool.append(b.lookup(f"test{i}", made, lambda n: int(n > 1)))
        elif kind == 5:
            pool.append(b.delay(f"delay{i}", bit(), rng.randint(1, 3)))
        elif kind == 6:
            choice = x[rng.randrange(bits)]
            pool.extend(b.mux(f"mux{i}", [(choice, word("p", 2)), (~choice, word("q", 2))]))
        elif kind == 7:
            pool.extend(_memory(b, rng, f"memory{i}", some, word, bit))
        elif kind == 8:
            pool.extend(_banks(b, rng, f"banks{i}", some, word, bit))
        else:
            pool.extend(shared_word(b, rng, f"shared{i}", bit))
    for i, wire in enumerate(feedback):
        b.drive(wire, b.delay(f"feedback{i}", bit(), rng.randint(1, 3)))
    b.probe("numbers", numbers)
    b.probe("bits", pool)
    return b.finish(Word("next", tuple(bit() for _ in range(bits))), np.random.default_rng(seed).permutation(1 << bits))


def shared_word(b: Builder, rng: random.Random, name: str, bit: Callable[[], Expr]) -> Word:
    """Two signals that two fields of one memory, a second memory, a mux and a sum drive in turn, as two bits say; and
    what each of them gives is ready at another level."""
    low, high = bit(), bit()
    case = [b.and_(f"{name}.case{i}", low if i & 1 else ~low, high if i & 2 else ~high) for i in range(4)]
    bus = b.bus_word(name, 2)

    def word() -> Word:
        return Word("w", (bit(), bit()))

    fields = [Field("p", word(), select=case[0]), Field("q", word(), select=case[1], delay=rng.randint(0, 2))]
    b.memory(f"{name}.m", fields, Port((bit(),), (bit(),)), Port((bit(),)), into={"p": bus, "q": bus})
    b.memory(f"{name}.n", [Field("v", word())], Port((), (bit(),)), Port((), (case[2],)), into={"v": bus})
    late = b.xor(f"{name}.late", bit(), bit())
    b.mux(f"{name}.mux", [((case[3], late), word())], into=bus)
    b.sum_of(f"{name}.sum", [(total((case[3], ~late)), lambda n: int(n == 2))], into=bus[rng.randrange(2)])
    return bus


def _memory(b: Builder, rng: random.Random, name: str, some, word, bit) -> list[Expr]:  # type: ignore[no-untyped-def]
    address = tuple(some(3))
    fields = [
        Field("now", word("now", 2), complement=True),
        Field("old", word("old", 3), delay=rng.randint(1, 3), select=bit()),
        Field("hidden", word("hidden", 1), read=False),
    ]
    read = Port(tuple(bit() for _ in range(rng.randint(0, 3))), tuple(some(2)))
    words = b.memory(name, fields, Port(address, tuple(some(2))), read, wipe=bit() if rng.random() < 0.5 else None)
    return [e for w in words.values() for e in w]


def _banks(b: Builder, rng: random.Random, name: str, some, word, bit) -> list[Expr]:  # type: ignore[no-untyped-def]
    """Two banks that share their outputs, and a gather over a row each of whose columns is written by one address
    only."""
    choice, high = bit(), bit()
    data = word("data", 2)
    address = (bit(), bit())
    first = b.memory(f"{name}.a", [Field("v", data)], Port(address, (~high,)), Port(address, (choice,)))
    b.memory(f"{name}.b", [Field("v", data)], Port(address, (high,)), Port(address, (~choice,)), into=first)
    row, value = bit(), bit()
    mine = [b.and_(f"{name}.mine{i}", row if i else ~row, value) for i in range(2)]
    gathered = b.memory(
        f"{name}.gather",
        [Field("g", Word("mine", tuple(mine)))],
        Port((row,), (bit(),)),
        Port((), (bit(),)),
        gather=True,
    )
    # a sum over pairs of rows, of what is written on two conditions only, as a number
    number = b.bus(f"{name}.number", 0, 6)
    b.memory(
        f"{name}.part",
        [Field("n", word("n", 2), where=(bit(),))],
        Port((bit(), bit()), (bit(),)),
        Port((bit(),), (bit(),)),
        gather=True,
        into={"n": number},
    )
    return [*first["v"], *gathered["g"], b.lookup(f"{name}.odd", number, lambda n: n & 1)]
