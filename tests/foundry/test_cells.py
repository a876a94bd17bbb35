"""Each kind of cell alone, cast and judged by the stock model against the circuit on integers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.foundry.stock_model import agree

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Circuit, Port, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.foundry import Options, cast


def ids_for(circuit: Circuit, count: int, seed: int = 0) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).integers(0, circuit.vocabulary, count)]


def check(circuit: Circuit, count: int = 200, heads: int = 2, first: tuple[int, ...] = ()) -> None:
    agree(circuit, cast(circuit, Options(heads=heads)), [*first, *ids_for(circuit, count)])


def test_tables_of_all_shapes() -> None:
    """Random tables of up to 16 values over weighted sums, several of the same argument, as 3-bit outputs."""
    b = Builder("tables", 256)
    x = b.token_word("x", lambda i: i, 8)
    rng = np.random.default_rng(1)
    code = []
    for number in range(6):
        picked = rng.permutation(8)[:4]
        coefs = rng.choice([-3, -2, -1, 1, 2, 3], 4)
        arg = total(int(c) * x[int(i)] for c, i in zip(coefs, picked, strict=True)) + int(rng.integers(-3, 4))
        table = rng.integers(0, 2, arg.hi - arg.lo + 1).tolist()
        code.append(b.lookup(f"t{number}", arg, table))
        if number < 2:
            code.append(b.lookup(f"u{number}", arg, rng.integers(0, 2, arg.hi - arg.lo + 1).tolist()))
    check(b.finish(code, lambda i: i), heads=1)


def test_values_beyond_bits() -> None:
    """Signals of several values, negative ones among them, read by tables, by a linear neuron, and cleared."""
    b = Builder("integers", 64)
    v = b.token("v", lambda i: i)
    w = b.sum_of("w", [(v - 20, lambda n: max(-7, min(7, n)))])
    square = b.lookup("square", w, lambda n: n * n // 4)
    copy = b.buffer("copy", 3 - w)
    bits = [b.lookup(f"b{i}", square, lambda n, i=i: (n >> i) & 1) for i in range(4)]
    code = [*bits, b.lookup("sign", copy, lambda n: int(n > 3)), b.lookup("odd", copy, lambda n: n & 1)]
    check(b.finish(code, lambda i: i), heads=1)


def test_delays() -> None:
    """One to three tokens, of a token bit, of an inverted bit, of a computed bit, and a delay of a delay."""
    b = Builder("delays", 64)
    x = b.token_word("x", lambda i: i, 6)
    y = b.xor("y", x[4], x[5])
    code = [b.delay("d1", x[0], 1), b.delay("d2", ~x[1], 2), b.delay("d3", x[2], 3), b.delay("e3", y, 3)]
    code += [b.delay("f", code[3], 2), b.and_("g", code[1], y)]
    check(b.finish(code, lambda i: i))


def test_memory_of_all_rows_and_columns() -> None:
    """128 rows of 64 columns (the word written is a spread of 16 random bits), two enables, folded to eight bits."""
    b = Builder("memory", 1 << 10)
    x = b.token_word("x", lambda i: i, 10)
    past = [b.delay(f"past{t}", x, t) for t in (1, 2)]
    word = [*x, *past[0], *past[1]]
    data = [b.xor(f"data{i}", word[i % 30], word[(7 * i + 3) % 30]) for i in range(64)]
    address = (*past[0][0:4], *past[1][0:3])
    write = Port(address, (x[0], past[0][8]))
    read = Port((*past[1][3:7], *x[5:8]), (~x[9],))
    got = b.memory("m", [Field("v", Word("data", tuple(data)))], write, read)["v"]
    code = [b.xor(f"fold{i}", *(got[i + 10 * k] for k in range(6)), got[60 + i % 4]) for i in range(10)]
    check(b.finish(code, lambda i: i), count=600, heads=2)


def test_unwritten_rows_read_zero_on_both_rails() -> None:
    b = Builder("rails", 64)
    x = b.token_word("x", lambda i: i, 6)
    port = Port((x[0], x[1]), (x[5],))
    got = b.memory("m", [Field("v", x[2:4], complement=True)], port, Port((x[2], x[3]), (x[4],)))
    code = [*got["v"], *got["v.not"], b.or_("seen", got["v"][0], got["v.not"][0]), x[0]]
    check(b.finish(code, lambda i: i), count=60)


@pytest.mark.parametrize("delay", [0, 2])
def test_wipe(delay: int) -> None:
    """Wipes often (several in a chunk of 64 tokens), with and without a write in the same token."""
    b = Builder("wipe", 256)
    x = b.token_word("x", lambda i: i, 8)
    wipe = b.and_("wipe", x[6], x[7], x[0])
    port = Port((x[0], x[1], x[2]), (x[5],))
    fields = [Field("v", x[2:6], complement=True, delay=delay)] if not delay else [Field("v", x[2:6], delay=delay)]
    got = b.memory("m", fields, port, Port((x[2], x[3], x[4])), wipe=wipe)
    code = [*got["v"], *(got["v.not"] if not delay else x[0:4])]
    check(b.finish(code, lambda i: i), count=500)


def test_select_and_banks() -> None:
    """Two banks drive the same signals; a select that depends on the token masks each read word."""
    b = Builder("banks", 256)
    x = b.token_word("x", lambda i: i, 8)
    low = b.memory(
        "low",
        [Field("v", x[0:4], select=x[7])],
        Port((x[4], x[5]), (~x[6],)),
        Port((x[0], x[1]), (~x[2],)),
    )
    b.memory(
        "high",
        [Field("v", x[0:4], select=~x[5])],
        Port((x[4], x[5]), (x[6],)),
        Port((x[0], x[1]), (x[2],)),
        into=low,
    )
    check(b.finish([*low["v"], *x[4:8]], lambda i: i), count=300)


def test_banks_in_different_layers() -> None:
    """The second bank's address takes two levels, so the signals they share are finished layers after they began."""
    b = Builder("deep", 256)
    x = b.token_word("x", lambda i: i, 8)
    y = b.xor("y", x[0], x[3], x[5])
    deep = b.xor("deep", y, x[1], x[2])
    low = b.memory("low", [Field("v", x[0:4])], Port((x[4], x[5]), (~x[6],)), Port((x[0], x[1]), (~x[2],)))
    b.memory("high", [Field("v", x[0:4])], Port((x[4], deep), (x[6],)), Port((deep, x[1]), (x[2],)), into=low)
    circuit = b.finish([*low["v"], deep, *x[5:8]], lambda i: i)
    network = cast(circuit, Options(heads=1))
    assert network.states["high"][0] > network.states["low"][0]
    agree(circuit, network, ids_for(circuit, 300))


def test_four_tokens_fill_a_row() -> None:
    """A row of 64 columns takes 16 bits of each of the last four tokens; the first write comes after four tokens."""
    b = Builder("rows", 1 << 16)
    x = b.token_word("x", lambda i: i, 16)
    port = Port((x[0], x[1]), (x[15],))
    got = b.memory("m", [Field(f"t{t}", x, delay=t) for t in range(4)], port, Port((x[2], x[3])))
    code = [b.xor(f"c{i}", got["t0"][i], got["t1"][i], got["t2"][(i + 1) % 16], got["t3"][i]) for i in range(16)]
    check(b.finish(code, lambda i: i), count=150, first=(1, 2, 3))


def test_gather() -> None:
    """Each row holds its own columns; one read brings them all. The first token does not write."""
    b = Builder("gather", 256)
    x = b.token_word("x", lambda i: i, 8)
    here = [b.and_(f"here{r}", *(x[4 + i] if (r >> i) & 1 else ~x[4 + i] for i in range(2))) for r in range(4)]
    data = [b.and_(f"bit{r}.{i}", here[r], x[i]) for r in range(4) for i in range(2)]
    got = b.memory(
        "g",
        [Field("v", Word("data", tuple(data)))],
        Port((x[4], x[5]), (x[6], ~x[2])),
        Port((), (x[7],)),
        gather=True,
    )["v"]
    check(b.finish(list(got), lambda i: i), count=300, first=(0,))


def test_gather_of_some_rows_as_numbers() -> None:
    """Rows 0 to 7 in two halves, each row with columns of its own in its half; one read brings a half: two numbers, and
    how many rows of it are odd."""
    b = Builder("gather", 1024)
    x = b.token_word("x", lambda i: i, 10)
    number = [b.bus(f"number{row}", 0, 3) for row in range(2)]
    odd = b.bus("odd", 0, 4)
    low = x[0] + x[1] * 2
    here = [b.lookup(f"here{row}", low, {row: 1}) for row in range(2)]
    fields = [Field(f"v{row}", x[3:5], where=(here[row],)) for row in range(2)]
    count = Field("odd", x[3:4])
    b.memory(
        "g",
        [*fields, count],
        Port((x[0], x[1], x[2]), (x[5], ~x[6])),
        Port((x[7],), (x[8],)),
        gather=True,
        into={"v0": number[0], "v1": number[1], "odd": odd},
    )
    code = [w for k, arg in enumerate((*number, odd)) for w in b.lookup_word(f"n{k}", arg, lambda n: n, 3)]
    code[2] = code[5] = x[9]  # no number has a third bit
    code.append(code[0])
    check(b.finish(code, lambda i: i), count=300, first=(0,))
