"""Random circuits without loops, deep enough that errors of float32 activations would show if nothing ended them."""

from __future__ import annotations

import random

import numpy as np
from tests.circuit.random_circuits import shared_word

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Circuit, Expr, Port, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word

BITS = 6


def random_netlist(seed: int, levels: int = 10, width: int = 12, shared: bool = False) -> Circuit:
    """``levels`` rows of ``width`` cells, each reading mostly the row before; a vocabulary of 64 ids. ``shared``:
    whether there are signals with several drivers."""
    rng = random.Random(seed)
    b = Builder(f"random{seed}", 1 << BITS)
    x = b.token_word("x", lambda i: i, BITS)
    rows: list[list[Expr]] = [list(x)]
    count = b.token("count", [rng.randrange(9) for _ in range(1 << BITS)])

    def bit() -> Expr:
        chosen = rng.choice(rows[-1] if rng.random() < 0.8 else rng.choice(rows))
        return ~chosen if rng.random() < 0.3 else chosen

    def bits(low: int, high: int) -> tuple[Expr, ...]:
        return tuple(bit() for _ in range(rng.randint(low, high)))

    for level in range(levels):
        row: list[Expr] = []
        for number in range(width):
            name = f"r{level}.{number}"
            kind = rng.randrange(13 if shared else 12)
            if kind < 3:
                row.append(b.xor(name, *bits(2, 6)))
            elif kind < 5:
                arg = total(rng.choice([-2, -1, 1, 1, 2, 3]) * part for part in bits(2, 5)) + rng.choice([count, 1])
                row.append(b.lookup(name, arg, [rng.randrange(2) for _ in range(arg.hi - arg.lo + 1)]))
            elif kind < 7:
                words = [Word(f"{name}.w{i}", bits(2, 2)) for i in range(4)]
                high, low = bit(), bit()
                picks = [b.and_(f"{name}.p{i}", high if i & 2 else ~high, low if i & 1 else ~low) for i in range(4)]
                row.extend(b.mux(name, list(zip(picks, words, strict=True))))
            elif kind < 9:
                row.append(b.delay(name, bit(), rng.randint(1, 3)))
            elif kind < 10:
                row.append(b.or_(name, b.and_(f"{name}.a", *bits(1, 3)), b.and_(f"{name}.b", *bits(1, 3))))
            elif kind == 12:
                row.extend(shared_word(b, rng, name, bit))
            else:
                fields = [
                    Field("now", Word("now", bits(2, 2)), complement=True),
                    Field("old", Word("old", bits(3, 3)), delay=rng.randint(1, 3), select=bit()),
                ]
                wipe = b.and_(f"{name}.wipe", *bits(3, 4)) if rng.random() < 0.4 else None
                # a delayed complement is not kept before its past is there, so only "now" has one
                words_read = b.memory(
                    f"{name}.m", fields, Port(bits(1, 4), bits(0, 2)), Port(bits(0, 4), bits(0, 2)), wipe=wipe
                )
                row.extend(part for word in words_read.values() for part in word)
        rows.append(row)
    code = [b.xor(f"code{i}", bit(), bit(), x[i]) for i in range(BITS)]
    return b.finish(code, np.random.default_rng(seed).permutation(1 << BITS))
