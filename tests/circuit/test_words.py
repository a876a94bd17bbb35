"""Every word circuit against Python's own integers."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.circuit.harness import run

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.evaluate import Simulator
from qgpu.circuit.ir import Expr, Port
from qgpu.circuit.word import Word

few = settings(max_examples=25, deadline=None)


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


@st.composite
def pairs(draw: st.DrawFn, widths: st.SearchStrategy[int] | None = None) -> tuple[int, list[int], list[int]]:
    """A width and many pairs of numbers of it, the extremes and near-equal ones among them."""
    width = draw(st.one_of(st.integers(1, 40), st.sampled_from([1, 8, 16, 32, 64])) if widths is None else widths)
    top = (1 << width) - 1
    number = st.one_of(st.integers(0, top), st.sampled_from([0, 1, top, top >> 1, (top >> 1) + 1]))
    cases = draw(st.lists(st.tuples(number, number), min_size=1, max_size=12))
    cases += [(x, x) for x, _ in cases] + [(x, x ^ (1 << draw(st.integers(0, width - 1)))) for x, _ in cases]
    cases += [(top, top), (0, 0), (top, 0), (0, top), (top, 1)]
    return width, [x for x, _ in cases], [y for _, y in cases]


def check2(case: tuple[int, list[int], list[int]], build: Callable, wanted: Callable) -> None:  # type: ignore[type-arg]
    """``build(b, x, y)`` gives named outputs; ``wanted(x, y, width)`` the same names' values."""
    width, xs, ys = case
    got, _ = run(lambda b, i: build(b, i["x"], i["y"]), {"x": (width, xs), "y": (width, ys)})
    for n, (x, y) in enumerate(zip(xs, ys, strict=True)):
        assert {name: values[n] for name, values in got.items()} == wanted(x, y, width), (x, y, width)


@few
@given(pairs(), st.integers(1, 5))
def test_add_and_subtract(case: tuple[int, list[int], list[int]], group: int) -> None:
    def build(b: Builder, x: Word, y: Word) -> dict[str, Word | Expr]:
        total, carry = w.add_with_carry(b, "s", x, y, group=group)
        difference, borrow = w.subtract_with_borrow(b, "d", x, y, group=group)
        chain = w.add(b, "c", x, y, x[0], group=group)
        both = w.add_subtract(b, "as", x, y, y[0], group=group)
        over = w.signed_overflow(b, "v", x.sign, y.sign, total.sign)
        return {"s": total, "c": carry, "d": difference, "borrow": borrow, "chain": chain, "both": both, "over": over}

    def wanted(x: int, y: int, width: int) -> dict[str, int]:
        top = (1 << width) - 1
        exact = signed(x, width) + signed(y, width)
        return {
            "s": (x + y) & top,
            "c": (x + y) >> width,
            "d": (x - y) & top,
            "borrow": int(x < y),
            "chain": (x + y + (x & 1)) & top,
            "both": (x - y if y & 1 else x + y) & top,
            "over": int(exact != signed(exact & top, width)),
        }

    check2(case, build, wanted)


@few
@given(pairs(), st.integers(0, (1 << 64) - 1))
def test_add_of_a_constant(case: tuple[int, list[int], list[int]], value: int) -> None:
    width = case[0]

    def build(b: Builder, x: Word, y: Word) -> dict[str, Word]:
        return {
            "s": w.add(b, "s", x, Word.constant(value, width)),
            "d": w.subtract(b, "d", Word.constant(value, width), y),
        }

    top = (1 << width) - 1
    check2(case, build, lambda x, y, _: {"s": (x + value) & top, "d": (value - y) & top})


@few
@given(pairs())
def test_count_up_and_down(case: tuple[int, list[int], list[int]]) -> None:
    def build(b: Builder, x: Word, y: Word) -> dict[str, Word]:
        return {
            "up": w.increment(b, "up", x),
            "down": w.decrement(b, "down", x),
            "up_if": w.increment(b, "up_if", x, y[0]),
            "down_if": w.decrement(b, "down_if", x, y[0]),
            "minus": w.negate(b, "minus", x),
        }

    def wanted(x: int, y: int, width: int) -> dict[str, int]:
        top = (1 << width) - 1
        results = {"up": x + 1, "down": x - 1, "up_if": x + (y & 1), "down_if": x - (y & 1), "minus": -x}
        return {name: value & top for name, value in results.items()}

    check2(case, build, wanted)


@few
@given(pairs())
def test_compare(case: tuple[int, list[int], list[int]]) -> None:
    def build(b: Builder, x: Word, y: Word) -> dict[str, Word | Expr]:
        plain = w.compare(b, "u", x, y)
        other = w.compare(b, "s", x, y, signed=True)
        free = w.compare(b, "f", x, y, signed=b.token("flag", lambda i: i & 1))
        return {
            "u": Word("u", (plain.lt, plain.eq, plain.le, plain.gt, plain.ge, plain.ne)),
            "s": Word("s", (other.lt, other.eq, other.le, other.gt, other.ge, other.ne)),
            "f": Word("f", (free.lt, free.eq)),
            "same": w.equal(b, "same", x, y),
        }

    def relations(p: int, q: int) -> list[bool]:
        return [p < q, p == q, p <= q, p > q, p >= q, p != q]

    def number(bits: list[bool]) -> int:
        return sum(bit << i for i, bit in enumerate(bits))

    width, xs, ys = case
    got, _ = run(lambda b, i: build(b, i["x"], i["y"]), {"x": (width, xs), "y": (width, ys)})
    for n, (x, y) in enumerate(zip(xs, ys, strict=True)):
        p, q = signed(x, width), signed(y, width)
        assert got["u"][n] == number(relations(x, y))
        assert got["s"][n] == number(relations(p, q))
        assert got["f"][n] == number(relations(p, q)[:2] if n & 1 else relations(x, y)[:2])
        assert got["same"][n] == (x == y)


@few
@given(pairs(st.integers(1, 33)), st.integers(0, 1 << 33))
def test_bit_by_bit(case: tuple[int, list[int], list[int]], value: int) -> None:
    width = case[0]
    value &= (1 << width) - 1

    def build(b: Builder, x: Word, y: Word) -> dict[str, Word | Expr]:
        kinds = w.decode(b, "kind", y[:2].zero_extend(2)) if width > 1 else (~y[0], y[0])
        tables = [(0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 1, 0)]
        return {
            "and": w.and_words(b, "and", x, y),
            "or": w.or_words(b, "or", x, y),
            "xor": w.xor_words(b, "xor", x, y),
            "unit": w.logic_unit(b, "unit", x, y, list(zip(kinds, tables, strict=False))),
            "zero": w.is_zero(b, "zero", x),
            "constant": w.is_constant(b, "constant", x, value),
            "count": w.population_count(b, "count", x),
            "select": b.select_word("select", y[0], x, ~y),
        }

    def wanted(x: int, y: int, _: int) -> dict[str, int]:
        top = (1 << width) - 1
        results = [x & y, x | y, x ^ y, ~(x & y) & top]
        return {
            "and": x & y,
            "or": x | y,
            "xor": x ^ y,
            "unit": results[y & 3 if width > 1 else y & 1],
            "zero": int(x == 0),
            "constant": int(x == value),
            "count": x.bit_count(),
            "select": x if y & 1 else y ^ top,
        }

    check2(case, build, wanted)


@few
@given(pairs(st.integers(2, 20)), st.sampled_from([1, 4]))
def test_shift(case: tuple[int, list[int], list[int]], step: int) -> None:
    def build(b: Builder, x: Word, y: Word) -> dict[str, Word]:
        amount = y[:2]
        return {
            "left": w.shift(b, "left", x, amount, left=True, step=step),
            "right": w.shift(b, "right", x, amount, left=False, step=step),
            "arithmetic": w.shift(b, "arithmetic", x, amount, left=False, fill=x.sign, step=step),
        }

    def wanted(x: int, y: int, width: int) -> dict[str, int]:
        top, n = (1 << width) - 1, (y & 3) * step
        return {"left": x << n & top, "right": x >> n, "arithmetic": signed(x, width) >> n & top}

    check2(case, build, wanted)


@few
@given(pairs(st.integers(1, 16)))
def test_priorities(case: tuple[int, list[int], list[int]]) -> None:
    def build(b: Builder, x: Word, y: Word) -> dict[str, Word]:
        place = w.lowest_set(b, "place", y.bits)
        first = w.lowest_set(b, "first", x.bits)
        after = w.lowest_set_after(b, "after", x.bits, place)
        return {"first": Word("", first), "after": Word("", after), "number": w.encode("number", first)}

    def wanted(x: int, y: int, width: int) -> dict[str, int]:
        place = (y & -y).bit_length() - 1  # -1: no position, so the search starts at bit 0
        after = next((1 << (place + i) % width for i in range(1, width + 1) if x >> (place + i) % width & 1), 0)
        return {"first": x & -x, "after": after, "number": max((x & -x).bit_length() - 1, 0)}

    check2(case, build, wanted)


@few
@given(pairs(st.integers(1, 6)))
def test_decode_and_encode(case: tuple[int, list[int], list[int]]) -> None:
    def build(b: Builder, x: Word, y: Word) -> dict[str, Word]:
        one_hot = w.decode(b, "d", x)
        return {
            "hot": Word("", one_hot),
            "back": w.encode("back", one_hot),
            "enabled": Word("", w.decode(b, "e", x, count=(1 << x.width) // 2 + 1, enable=(y[0],))),
        }

    def wanted(x: int, y: int, width: int) -> dict[str, int]:
        return {"hot": 1 << x, "back": x, "enabled": 1 << x if y & 1 and x <= 1 << width - 1 else 0}

    check2(case, build, wanted)


@few
@given(st.integers(1, 12), st.lists(st.integers(0, (1 << 36) - 1), min_size=1, max_size=30))
def test_mux(width: int, cases: list[int]) -> None:
    """Three variable words, one of constants; conditions one-hot from two bits, and none at the value 3."""
    inputs = {name: (width, [c >> (12 * i) & ((1 << width) - 1) for c in cases]) for i, name in enumerate("pqr")}
    inputs["k"] = (2, [c % 4 for c in cases])

    def build(b: Builder, i: dict[str, Word]) -> dict[str, Word]:
        hot = w.decode(b, "hot", i["k"], 3)
        return {
            "m": b.mux("m", [(hot[0], i["p"]), (hot[1], ~i["q"]), (hot[2], Word.constant(5, width))]),
            "free": b.mux("free", [(hot[0], Word.constant(9, width)), (hot[2], Word.constant(6, width))]),
        }

    got, _ = run(build, inputs)
    top = (1 << width) - 1
    for n, _ in enumerate(cases):
        p, q, k = inputs["p"][1][n], inputs["q"][1][n], inputs["k"][1][n]
        assert got["m"][n] == [p, ~q & top, 5 & top, 0][k]
        assert got["free"][n] == [9 & top, 0, 6 & top, 0][k]


def product(x: int, y: int, m: int, n: int, is_signed: int) -> int:
    return signed(x, m) * signed(y, n) if is_signed else x * y


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(1, 26),
    st.sampled_from([3, 7, 15, 31]),
    st.lists(st.integers(0, (1 << 52) - 1), min_size=1, max_size=60),
)
def test_multiply(m: int, n: int, width: int, limit: int, cases: list[int]) -> None:
    tops = (1 << m) - 1, (1 << n) - 1
    pairs = [(c & tops[0], c >> 12 & tops[1]) for c in cases] + [tops, (tops[0], 0), (1, tops[1])]
    pairs += [(1 << (m - 1), 1 << (n - 1)), (1 << (m - 1), tops[1] >> 1)]
    added = [c >> 24 & ((1 << width) - 1) for c in cases] + [(1 << width) - 1, 0, 1, 5 % (1 << width), 0]
    flags = [c & 1 for c in cases] + [1, 0, 1, 1, 0]

    def build(b: Builder, i: dict[str, Word]) -> dict[str, Word]:
        x, y = i["x"], i["y"]
        return {
            "plain": w.multiply(b, "plain", x, y, limit=limit),
            "signed": w.multiply(b, "signed", x, y, width, signed=True, limit=limit),
            "mad": w.multiply(b, "mad", x, y, width, signed=i["s"][0], addend=i["z"], limit=limit),
        }

    inputs = {"x": (m, [p for p, _ in pairs]), "y": (n, [q for _, q in pairs]), "z": (width, added), "s": (1, flags)}
    got, _ = run(build, inputs)
    top = (1 << width) - 1
    for k, (x, y) in enumerate(pairs):
        assert got["plain"][k] == x * y
        assert got["signed"][k] == product(x, y, m, n, 1) & top
        assert got["mad"][k] == product(x, y, m, n, flags[k]) + added[k] & top


@settings(max_examples=5, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(0, (1 << 32) - 1)] * 2, st.integers(0, (1 << 64) - 1)), min_size=40, max_size=60)
)
def test_multiply_32_by_32(cases: list[tuple[int, int, int]]) -> None:
    """All ones, where every column is as full as it gets, and the signed extremes among them."""
    top, low = (1 << 32) - 1, 1 << 31
    extremes = [top, low, low - 1, 0, 1]
    cases = [*cases, *((x, y, z) for x in extremes for y in extremes for z in (0, (1 << 64) - 1))]

    def build(b: Builder, i: dict[str, Word]) -> dict[str, Word]:
        x, y, z = i["x"], i["y"], i["z"]
        return {
            "mad": w.multiply(b, "mad", x, y, signed=b.token("s", lambda n: n & 1), addend=z),
            "low": w.multiply(b, "low", x, y, 32, addend=z[:32]),
        }

    inputs = {name: (64 if name == "z" else 32, [case[k] for case in cases]) for k, name in enumerate("xyz")}
    got, _ = run(build, inputs)
    for k, (x, y, z) in enumerate(cases):
        assert got["mad"][k] == product(x, y, 32, 32, k & 1) + z & ((1 << 64) - 1)
        assert got["low"][k] == x * y + z & top


def test_register_file() -> None:
    """Two read ports, banks, write before read, a wipe: against a dictionary."""
    rng = random.Random(3)
    width, count = 9, 400
    rows = rng.sample(range(1 << width), 24)
    tokens = [
        (
            rng.choice(rows),
            rng.choice(rows),
            rng.choice(rows),
            rng.randrange(256),
            rng.random() < 0.5,
            rng.random() < 0.02,
        )
        for _ in range(count)
    ]
    b = Builder("registers", count)
    fields = [("write", width), ("first", width), ("second", width), ("data", 8), ("enable", 1), ("wipe", 1)]
    words = {
        name: b.token_word(name, [int(token[k]) for token in tokens], size) for k, (name, size) in enumerate(fields)
    }
    ports = w.register_file(
        b,
        "r",
        [w.Field("value", words["data"], complement=True)],
        w.Access(words["write"], tuple(words["enable"])),
        [w.Access(words["first"]), w.Access(words["second"], (words["data"][0],))],
        wipe=words["wipe"][0],
    )
    for k, port in enumerate(ports):
        b.probe(f"port{k}", port["value"])
        b.probe(f"port{k}.not", port["value.not"])
    simulator = Simulator(b.finish(b.token_word("id", range(count), 9), range(count)))
    held: dict[int, int] = {}
    for token, (write, first, second, data, enable, wipe) in enumerate(tokens):
        simulator.step(token)
        if wipe:
            held.clear()
        if enable:
            held[write] = data
        for name, row, on in (("port0", first, True), ("port1", second, data & 1)):
            value = held.get(row) if on else None
            assert simulator.probe_word(name) == (value or 0)
            assert simulator.probe_word(f"{name}.not") == (0 if value is None else value ^ 255)
    stored, written = simulator.memory(f"r.port0.bank{rows[0] >> 7}")
    assert bool(written[rows[0] & 127, 0]) == (rows[0] in held)
    assert int(stored[rows[0] & 127, 0]) == held.get(rows[0], 0)


def test_snapshot_and_reset() -> None:
    b = Builder("c", 16)
    x = b.token_word("x", range(16), 2)
    old = b.memory("m", [w.Field("f", x)], Port((), (x[1],)), Port(()))["f"]
    late = b.delay("late", x)
    simulator = Simulator(b.finish(Word("code", (*old, *late)), range(16)), 2)
    simulator.step([3, 2])
    saved = simulator.snapshot()
    following = simulator.step([1, 1]).tolist()
    assert following == [3 + 4 * 3, 2 + 4 * 2]
    simulator.step([2, 0])
    simulator.restore(saved)
    assert simulator.step([1, 1]).tolist() == following
    simulator.reset()
    assert simulator.step([1, 1]).tolist() == [0, 0]
