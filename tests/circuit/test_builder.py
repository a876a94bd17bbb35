"""The builder: names, folding, cost, loops, and every error message in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.evaluate import RESTS, EvaluationError, Simulator
from qgpu.circuit.graph import cost
from qgpu.circuit.ir import Circuit, CircuitError, Delay, Expr, Port, Sum, constant
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word


def four(name: str = "c") -> tuple[Builder, Word]:
    b = Builder(name, 16)
    return b, b.token_word("x", range(16), 4)


def done(b: Builder, x: Word) -> Circuit:
    return b.finish(x, range(16))


def message(action: Callable[[], object]) -> str:
    with pytest.raises(CircuitError) as caught:
        action()
    return str(caught.value)


# names


def test_names_are_hierarchical() -> None:
    b, x = four()
    with b.scope("alu"), b.scope("lane2"):
        made = b.and_("both", x[0], x[1])
        word = b.mux("m", [(x[0], x[1:3])])
    assert [signal.name for signal in made.terms] == ["alu.lane2.both"]
    assert word.name == "alu.lane2.m"
    assert [signal.name for signal in word[1].terms] == ["alu.lane2.m.bit1"]


def test_a_name_is_taken_once() -> None:
    b, x = four()
    with b.scope("s"):
        b.and_("a", x[0], x[1])
    wanted = "circuit 'c': the name 's.a' is taken; names are unique, use a scope"
    assert message(lambda: b.or_("s.a", x[0], x[1])) == wanted


def test_a_folded_gate_takes_its_name_too() -> None:
    b, x = four()
    b.and_("a", x[0])
    assert message(lambda: b.and_("a", x[1])) == "circuit 'c': the name 'a' is taken; names are unique, use a scope"


# what costs nothing, and what one neuron


@pytest.mark.parametrize(
    ("build", "neurons"),
    [
        (lambda b, x: b.and_("g", x), 1),
        (lambda b, x: b.or_("g", x), 1),
        (lambda b, x: b.nand("g", x), 1),
        (lambda b, x: b.nor("g", x), 1),
        (lambda b, x: b.xor("g", x[0], x[1]), 2),
        (lambda b, x: b.xor("g", x), 4),
        (lambda b, x: b.and_("g", x[0], constant(1)), 0),
        (lambda b, x: b.and_("g", x[0], ~x[0]), 0),
        (lambda b, x: b.and_("g", x, constant(0)), 0),
        (lambda b, x: b.lookup("g", x.value, lambda n: 3 * n - 4), 0),
        (lambda b, x: b.lookup("g", x.value, lambda n: int(n in (0, 15))), 2),
        (lambda b, x: b.lookup("g", x.value, {7: 1}), 3),
        (lambda b, x: b.buffer("g", x[0] + x[1]), 1),
        (lambda b, x: b.select("g", x[0], x[1], x[2]), 2),
        (lambda b, x: b.select("g", x[0], x[1], constant(0)), 1),
        (lambda b, x: b.mux("g", [(x[0], Word.constant(5, 3)), (~x[0], Word.constant(2, 3))]), 0),
        (lambda b, x: b.mux("g", [((x[0], x[1]), x[2:]), (~x[0], x[2:])]), 4),
        (lambda b, x: b.sum_of("g", b.gated(x[0], x[1] + x[2], lambda n: int(n == 2))), 1),
        (lambda b, x: b.sum_of("g", b.gated(x[0], x[1] + x[2], lambda n: int(n == 0))), 1),
    ],
)
def test_neurons(build: Callable[[Builder, Word], object], neurons: int) -> None:
    b, x = four()
    before = len(b.cells)
    build(b, x)
    made = cost(b.cells[before:])
    assert (made.neurons, made.depth) == (neurons, min(neurons, 1))


def test_tables_start_at_zero() -> None:
    """No Sum cell needs a constant of its own, whatever the table."""
    b, x = four()
    b.lookups("t", x.value, {str(k): (lambda n, k=k: (n * n + k) % 5 - 1) for k in range(6)})
    sums = [cell for cell in b.cells if isinstance(cell, Sum)]
    assert len(sums) == 6
    assert all(term.table[0] == 0 and len(term.table) == 16 for cell in sums for term in cell.terms)


def test_shared_tables_share_neurons() -> None:
    b, x = four()
    before = len(b.cells)
    b.lookup_word("w", x[0] + x[1] + x[2] + x[3], lambda n: n, 3)
    assert cost(b.cells[before:]).neurons == 4


# the costs the library states


@pytest.mark.parametrize(
    ("build", "depth", "neurons"),
    [
        (lambda b, x, y, e: w.add(b, "f", x, y), 3, 211),
        (lambda b, x, y, e: w.add(b, "f", x[:8], y[:8], e), 2, 42),
        (lambda b, x, y, e: w.add(b, "f", x[:4], y[:4], e), 1, 21),
        (lambda b, x, y, e: w.add_with_carry(b, "f", x, y), 3, 222),
        (lambda b, x, y, e: w.add_subtract(b, "f", x, y, e), 3, 397),
        (lambda b, x, y, e: w.increment(b, "f", x, e), 1, 95),
        (lambda b, x, y, e: w.compare(b, "f", x, y), 2, 25),
        (lambda b, x, y, e: w.compare(b, "f", x, y, signed=True), 2, 25),
        (lambda b, x, y, e: w.compare(b, "f", x, y, signed=e), 2, 30),
        (lambda b, x, y, e: w.equal(b, "f", x, y), 2, 19),
        (lambda b, x, y, e: w.is_zero(b, "f", x), 1, 1),
        (lambda b, x, y, e: w.decode(b, "f", x[:5]), 1, 32),
        (lambda b, x, y, e: w.lowest_set(b, "f", x), 1, 31),
        (lambda b, x, y, e: w.lowest_set_after(b, "f", x[:8].bits, y[:8].bits), 2, 22),
        (lambda b, x, y, e: w.population_count(b, "f", x), 1, 32),
        (lambda b, x, y, e: w.xor_words(b, "f", x, y), 1, 64),
        (lambda b, x, y, e: w.multiply(b, "f", x, y, addend=x + y), 6, 3056),
        (lambda b, x, y, e: w.multiply(b, "f", x, y, addend=x + y, signed=e), 6, 3189),
        (lambda b, x, y, e: w.multiply(b, "f", x, y, 32, addend=x + y), 6, 1485),
    ],
)
def test_costs(build: Callable[[Builder, Word, Word, Expr], object], depth: int, neurons: int) -> None:
    b = Builder("c", 2)
    x, y = (Word(n, tuple(b.token(f"{n}.bit{i}", [0, 1]) for i in range(32))) for n in "xy")
    e = b.token("e", [0, 1])
    before = len(b.cells)
    build(b, x, y, e)
    made = cost(b.cells[before:])
    assert (made.depth, made.neurons) == (depth, neurons)
    assert made.reach <= 256


# errors


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (
            lambda b, x: w.add(b, "s", x, x[:3]),
            "add 's': 'x' has 4 bits and 'x[0:3]' has 3; extend or slice one of them",
        ),
        (
            lambda b, x: b.mux("m", [(x[0], x), (~x[0], Word.constant(1, 2))]),
            "mux 'm': 'x' has 4 bits and '#1' has 2; extend or slice one of them",
        ),
        (lambda b, x: b.mux("m", []), "mux 'm': there is nothing to choose from"),
        (
            lambda b, x: b.and_("a", x[0], x[0] + x[1]),
            "'a': input 1 (+1*x.bit0 +1*x.bit1) ranges over 0..2, a bit (0..1) is needed",
        ),
        (
            lambda b, x: Word("y", (x[0], x[0] - x[1])),
            "word 'y', bit 1: the expression +1*x.bit0 -1*x.bit1 ranges over -1..1, a bit must be 0..1; "
            "use lookup() on it, or assume(0, 1) if it can be nothing else",
        ),
        (lambda b, x: x[4], "word 'x' has 4 bits, there is no bit 4"),
        (lambda b, x: x.zero_extend(3), "word 'x' has 4 bits and cannot be extended to 3; slice it instead"),
        (lambda b, x: w.is_constant(b, "k", x, 16), "'x' has 4 bits and cannot be 16"),
        (
            lambda b, x: b.lookup("t", x[0] + x[1], [0, 1]),
            "sum 't', term 0: the table has 2 entries, but +1*x.bit0 +1*x.bit1 ranges over 0..2, which takes 3",
        ),
        (
            lambda b, x: b.lookup("t", x[0], {2: 1}),
            "sum 't', term 0: the table has entries at [2], but +1*x.bit0 ranges over 0..1",
        ),
        (
            lambda b, x: b.lookup("t", x.value * 20, lambda n: int(n > 5)),
            "'t': the coefficients of +20*x.bit0 +40*x.bit1 +80*x.bit2 +160*x.bit3 add up to 300; "
            "a gate is exact in bfloat16 up to 256, so split the table into two levels",
        ),
        (lambda b, x: b.token("t", [1, 2]), "token 't': 2 values for a vocabulary of 16; give one an id"),
        (lambda b, x: b.token("t", lambda i: 100 * i), "token 't': values range over 0..1500, not 0..256"),
        (lambda b, x: b.delay("d", x[0], 4), "delay 'd': 4 tokens; a delay is 1 to 3 tokens"),
        (
            lambda b, x: b.memory("m", [Field("f", x)], Port((x + x).bits), Port(())),
            "memory 'm', write port: 8 address bits; a memory has at most 128 rows (7 bits), use banks",
        ),
        (
            lambda b, x: b.memory("m", [Field("f", x)], Port(()), Port((), (x[0] + 1,))),
            "memory 'm', read port: enable bit 0 (+1*x.bit0 +1) ranges over 1..2, not 0..1",
        ),
        (
            lambda b, x: b.memory(
                "m", [Field("f", x.sign_extend(40)), Field("g", x.zero_extend(30))], Port(()), Port(())
            ),
            "memory 'm': 70 bits a row (f 40, g 30); a row holds at most 64",
        ),
        (
            lambda b, x: b.memory("m", [Field("f", x, complement=True)], Port(()), Port(()), gather=True),
            "memory 'm', field 'f': a complement needs a plain read, not a gather",
        ),
        (
            lambda b, x: b.memory("m", [Field("f", x, delay=4)], Port(()), Port(())),
            "memory 'm', field 'f': a delay of 4 tokens; 0 to 3 are possible",
        ),
        (lambda b, x: b.drive(x[0], x[1]), "drive: +1*x.bit0 is not a wire made by forward()"),
        (
            lambda b, x: b.drive(b.forward("f"), x[0] + x[1]),
            "drive: the wire 'f' holds 0..1, its driver +1*x.bit0 +1*x.bit1 ranges over 0..2; "
            "widen the wire, or assume() the range",
        ),
        (
            lambda b, x: b.drive(b.forward_word("f", 3), x),
            "drive: 'f' has 3 bits and 'x' has 4; extend or slice one of them",
        ),
        (
            lambda b, x: w.lowest_set_after(b, "p", x.bits, x.bits[:2]),
            "lowest_set_after 'p': 4 bits and 2 positions; give one for each",
        ),
        (
            lambda b, x: w.add_columns(b, "s", [x[0] + x[1] + x[2]] * 8),
            "adder 's.group0': its count ranges over 0..45; with more than 31 it would carry more than one",
        ),
    ],
)
def test_errors(action: Callable[[Builder, Word], object], text: str) -> None:
    b, x = four()
    assert message(lambda: action(b, x)) == text


def test_a_wire_is_driven_once() -> None:
    b, x = four()
    wire = b.forward("f")
    b.drive(wire, x[0])
    assert message(lambda: b.drive(wire, x[1])) == "drive: the wire 'f' is driven already"


def test_finish_reports_all_faults() -> None:
    b, x = four()
    b.forward("f")
    b.forward("g")
    assert message(lambda: b.finish((x[0], x[1] + x[2]), [0, 1, 2, 5] + [3] * 12)) == (
        "circuit 'c': the forward wire 'f' is never driven\n"
        "circuit 'c': the forward wire 'g' is never driven\n"
        "circuit 'c': output code bit 1: +1*x.bit1 +1*x.bit2 ranges over 0..2, not 0..1\n"
        "circuit 'c': codes range over 0..5, which 2 bits cannot hold\n"
        "circuit 'c': ids [4, 5, 6, 7] share the code 3; codes must be distinct"
    )


def test_codes_one_an_id() -> None:
    b, x = four()
    assert message(lambda: b.finish(x, [1, 2])) == "circuit 'c': 2 codes for a vocabulary of 16; give one for each id"


# loops


def test_a_loop_through_gates_is_found() -> None:
    b, x = four()
    back = b.forward("back")
    first = b.and_("first", back, x[0])
    second = b.xor("second", first, x[1])
    b.xor("aside", second, x[2])
    b.drive(back, second)
    assert message(lambda: done(b, x)) == (
        "circuit 'c': combinational loop: first -> second -> first; a delay of one token somewhere on it would break it"
    )


def test_a_loop_of_wires_alone_is_found() -> None:
    b, x = four()
    p, q, r = (b.forward(name) for name in "pqr")
    b.drive(p, ~q)
    b.drive(q, r)
    b.drive(r, ~p)
    assert message(lambda: done(b, x)) == "circuit 'c': combinational loop of forward wires: r -> q -> p -> r"


@pytest.mark.parametrize("way", ["data", "address", "enable", "select", "wipe"])
def test_a_memory_does_not_break_a_loop(way: str) -> None:
    b, x = four()
    back = b.forward("back")
    field = Field("f", Word("d", (back if way == "data" else x[0],)), select=back if way == "select" else None)
    write = Port((back if way == "address" else x[1],), (back if way == "enable" else x[2],))
    read = b.memory("m", [field], write, Port((x[1],)), wipe=back if way == "wipe" else None)
    b.drive(back, b.and_("gate", read["f"][0], x[3]))
    assert message(lambda: done(b, x)) == (
        "circuit 'c': combinational loop: m.f.bit0 -> gate -> m.f.bit0; "
        "a delay of one token somewhere on it would break it"
    )


def test_delays_break_loops() -> None:
    """A bit that toggles whenever x is odd, and one that a memory brings back a token late."""
    b, x = four()
    back = b.forward("back")
    toggled = b.xor("toggled", b.delay("before", back), x[0])
    b.drive(back, toggled)
    late = b.forward("late")
    read = b.memory("m", [Field("f", Word("d", (late,)), delay=1)], Port(()), Port(()))["f"]
    b.drive(late, b.xor("late.toggled", read[0], x[0]))
    b.probe("toggled", toggled)
    b.probe("late", late)
    simulator = Simulator(done(b, x))
    state = 0
    for token in [1, 0, 3, 5, 2, 1, 1, 4]:
        simulator.step(token)
        state ^= token & 1
        assert simulator.probe("toggled").tolist() == [[state]]
        assert simulator.probe("late").tolist() == [[state]]


def test_forward_wires_are_gone() -> None:
    b, x = four()
    wire = b.forward("wire")
    gate = b.and_("gate", wire, x[0])
    b.delay("later", ~wire)
    b.drive(wire, b.or_("driver", x[1], x[2]))
    circuit = b.finish(Word("w", (wire, gate, x[2], x[3])), range(16))
    names = {
        signal.name for cell in circuit.cells if isinstance(cell, Sum) for t in cell.terms for signal in t.arg.terms
    }
    assert names == {"x.bit0", "x.bit1", "x.bit2", "driver"}
    assert [repr(cell.arg) for cell in circuit.cells if isinstance(cell, Delay)] == ["+1*driver"]
    assert repr(circuit.code[0]) == "-1*driver +1"


def test_claims_are_checked() -> None:
    b, x = four()
    b.lookup("hot", w.merge(x[0], x[1]) + x[2] + x[3], lambda n: int(n > 1))
    simulator = Simulator(done(b, x), 2)
    simulator.step([1, 2])
    with pytest.raises(EvaluationError) as caught:
        simulator.step([1, 15])
    assert str(caught.value) == (
        "circuit 'c', token 1 (id 15, instance 1): an input of 'hot', +1*x.bit0 +1*x.bit1 +1*x.bit2 +1*x.bit3, is 4, "
        "outside 0..3"
    )


def test_bounds_are_checked() -> None:
    b, x = four()
    with b.scope("alu"):
        b.mux("m", [(x[0], x[2:3]), (x[1], x[2:3])])
    simulator = Simulator(done(b, x), 3)
    simulator.step([1, 2, 5])
    with pytest.raises(EvaluationError) as caught:
        simulator.step([1, 7, 7])
    assert str(caught.value) == "circuit 'c', token 1 (id 7, instance 1): signal 'alu.m.bit0' is 2, outside 0..1"


def test_the_code_is_checked() -> None:
    b, x = four()
    simulator = Simulator(b.finish((x[0], x[1], x[2], w.merge(x[2], x[3])), range(16)))
    assert simulator.step(7) == 15
    with pytest.raises(EvaluationError) as caught:
        simulator.step(12)
    assert str(caught.value) == (
        "circuit 'c', token 1 (id 12, instance 0): an input of 'the output code', +1*x.bit2 +1*x.bit3, is 2, "
        "outside 0..1"
    )


def test_an_instance_at_rest_is_not_checked() -> None:
    b, x = four()
    # Neither holds at id 0, whose values stand in for a rest.
    b.and_("claim", w.merge(~x[0], ~x[1]), ~x[2])
    b.mux("m", [(~x[0], ~x[2:]), (~x[1], ~x[2:])])
    simulator = Simulator(done(b, x), 2)
    assert simulator.step([RESTS, 3]).tolist() == [RESTS, 3]
    with pytest.raises(EvaluationError):
        simulator.step([0, 3])


def test_ids_are_checked() -> None:
    b, x = four()
    simulator = Simulator(done(b, x), 2)
    assert message(lambda: simulator.step([3, 16])) == "circuit 'c': ids range over 3..16, the vocabulary is 0..15"


def test_expressions_keep_their_range_when_wires_go() -> None:
    """Tables are indexed from the range that the expression had when it was used."""
    b, x = four()
    wire = b.forward("wire", -3, 4)
    b.probe("square", b.lookup("square", wire, lambda n: n * n))
    b.drive(wire, x[0] + x[1])
    circuit = done(b, x)
    terms = [term for cell in circuit.cells if isinstance(cell, Sum) for term in cell.terms]
    assert terms and all(len(term.table) == term.arg.hi - term.arg.lo + 1 for term in terms)
    simulator = Simulator(circuit)
    simulator.step(3)
    assert simulator.probe("square").tolist() == [[4]]


def test_an_upper_group_has_no_room_for_a_third_row() -> None:
    b, x = four()
    columns = [x[0] + x[1]] * 8
    columns[4] = x[0] + x[1] + x[2]
    assert message(lambda: w.add_columns(b, "s", [*columns, x[0]])) == (
        "adder 's.group1': its count ranges over 0..31; with more than 30 it would carry more than one"
    )


def test_what_drives_a_bus_adds_up() -> None:
    b, x = four()
    bus = b.bus_word("bus", 2)
    count = b.bus("count", 0, 3)
    b.mux("m", [(x[0], x[1:3])], into=bus)
    b.memory("mem", [Field("v", x[2:4])], Port(()), Port((), (~x[0],)), into={"v": bus})
    for i in range(3):
        b.sum_of(f"s{i}", [(x[i], lambda n: n)], into=count)
    b.probe("bus", bus)
    b.probe("count", count)
    simulator = Simulator(done(b, x), 16)
    simulator.step(range(16))
    wanted = [i >> 1 & 3 if i & 1 else i >> 2 for i in range(16)]
    assert simulator.probe_word("bus").tolist() == wanted
    assert simulator.probe("count").tolist() == [[(i & 7).bit_count() for i in range(16)]]


def test_buses_are_checked() -> None:
    b, x = four()
    bus = b.bus_word("bus", 2)
    assert "is no signal to drive" in message(lambda: b.sum_of("s", [(x[0], lambda n: n)], into=~bus[0]))
    assert "no field that is read is called w" in message(
        lambda: b.memory("m", [Field("v", x[0:2])], Port(()), Port(()), into={"w": bus})
    )
    b.mux("one", [(x[0], x[1:2])], into=bus[0:1])
    assert "nothing drives the bus 'bus.bit1'" in message(lambda: done(b, x))
    b.mux("both", [(x[1], x[1:2])], into=bus[0:1])
    b.mux("other", [(x[0], x[1:2])], into=bus[1:2])
    simulator = Simulator(done(b, x))
    with pytest.raises(EvaluationError, match=r"signal 'bus.bit0' is 2, outside 0..1"):
        simulator.step(3)
