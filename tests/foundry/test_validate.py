"""What is refused before anything is cast: every fault at once, by name."""

from __future__ import annotations

import numpy as np
import pytest

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Circuit, Column, Delay, Memory, Port, Signal, Sum, Term, Token, constant
from qgpu.foundry import FoundryError, Options, cast
from qgpu.foundry.numbers import SCALE_UP
from qgpu.foundry.validate import validate

IDS = np.arange(4)


def token(name: str = "x", bit: int = 0) -> Token:
    return Token(Signal(name, 0, 1), ((IDS >> bit) & 1).astype(np.int16))


def circuit(*cells: Token | Sum | Delay | Memory, code: tuple[Signal, Signal] | None = None) -> Circuit:
    x, y = token("x", 0), token("y", 1)
    bits = code or (x.out, y.out)
    return Circuit("test", 4, (x, y, *cells), tuple(bit.expr for bit in bits), IDS)


def test_all_faults_at_once() -> None:
    x = token("in")
    out = Signal("out", 0, 1)
    cells = (
        x,
        Sum(out, (Term(x.out.expr, (0, 1, 1)),)),
        Delay(out, x.out.expr, 1),
        Delay(Signal("late", 0, 1), x.out.expr, 4),
        Delay(Signal("two", 0, 1), x.out.expr + x.out.expr, 1),
        Sum(Signal("lost", 0, 1), (Term(Signal("ghost", 0, 1).expr, (0, 1)),)),
        Memory("big", Port((x.out.expr,) * 8), Port((x.out.expr + 1,)), (Column(x.out.expr, 5),) * 65),
    )
    with pytest.raises(FoundryError) as caught:
        validate(circuit(*cells))
    text = "\n".join(caught.value.faults)
    for part in (
        "sum 'out', term 0: 3 entries for 0..1, 2 are needed",
        "'out' is driven twice",
        "delay 'late': 4 tokens",
        "delay 'two'",
        "nothing drives 'ghost'",
        "memory 'big', write: 8 address bits",
        "memory 'big', read, address bit 0",
        "65 columns",
        "a delay of 5",
    ):
        assert part in text, part


def test_codes_have_to_be_distinct_and_fit() -> None:
    for codes, reason in (([0, 1, 1, 2], "1 stands for several ids"), ([0, 1, 2, 4], "do not fit 2 bits")):
        made = circuit()
        with pytest.raises(FoundryError, match=reason):
            validate(Circuit("codes", 4, made.cells, made.code, np.array(codes)))


def test_the_law_is_told_by_names() -> None:
    """A counter: the row written is the row read plus one. And a delay that feeds itself."""
    b = Builder("counter", 4)
    x = b.token_word("x", lambda i: i, 2)
    old = Signal("old", 0, 1)
    new = Signal("new", 0, 1)
    sum_cell = Sum(new, (Term(old.expr + x[0], (0, 1, 0)),))
    memory = Memory("cell", Port(()), Port(()), (Column(new.expr, 0, old),))
    late, fed = Signal("late", 0, 1), Signal("fed", 0, 1)
    loop = (Sum(fed, (Term(late.expr + x[1], (0, 1, 1)),)), Delay(late, fed.expr, 1))
    cells = (*b.finish(x, lambda i: i).cells, sum_cell, memory, *loop)
    with pytest.raises(FoundryError) as caught:
        validate(Circuit("counter", 4, cells, (new.expr, fed.expr), IDS))
    assert len(caught.value.faults) == 2
    text = "\n".join(sorted(caught.value.faults))
    assert "memory 'cell'" in text and "'new'" in text
    assert "'late'" in text and "'fed'" in text
    assert "send the value in a token" in text


def test_gather_needs_what_it_needs() -> None:
    x = token("in")
    out, out_not = Signal("a", 0, 1), Signal("b", 0, 1)
    columns = (Column(x.out.expr, 1, out, out_not),)
    gather = Memory("g", Port((x.out.expr,) * 7), Port(()), columns, gather=True)
    with pytest.raises(FoundryError) as caught:
        validate(circuit(x, gather))
    text = "\n".join(caught.value.faults)
    for part in ("spare row", "enable", "complements", "delayed columns"):
        assert part in text


def test_limits_of_the_shape_are_told() -> None:
    b = Builder("shape", 16)
    x = b.token_word("x", lambda i: i, 4)
    y = [b.xor(f"y{i}", *x[: i + 1]) for i in range(4)]
    made = b.finish([b.xor("z", *y), *x[1:]], lambda i: i)
    with pytest.raises(FoundryError, match=r"live signals in layer \d.* hidden is 8"):
        cast(made, Options(heads=1, hidden=8))
    with pytest.raises(FoundryError, match="more than 4 layers of 1 heads and 3 neurons"):
        cast(made, Options(heads=1, max_layers=4, max_intermediate=3))


def test_constant_code_bits() -> None:
    """A code bit that is a constant, and one that is an inverted signal."""
    x, y = token("x", 0), token("y", 1)
    made = Circuit(
        "constant",
        2,
        (Token(x.out, x.values[:2]), Token(y.out, y.values[:2])),
        (1 - x.out.expr, constant(1)),
        np.array([2, 3]),
    )
    network = cast(made, Options(heads=1))
    head = network.dense("lm_head.weight")
    assert head.shape == (2, network.shape.hidden)
    embedding = network.dense("embed_tokens.weight")
    logits = (embedding / SCALE_UP) @ head.T
    assert logits.argmax(1).tolist() == [1, 0]
    assert np.ptp(logits, axis=1).tolist() == [64.0, 64.0]
