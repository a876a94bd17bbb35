"""What abacus is trained on: right answers, marks that can be read back, and nothing of the tests in it."""

from __future__ import annotations

import itertools

import pytest

from qgpu.abacus.phrases import CHAT, WORDINGS
from qgpu.abacus.questions import KINDS, kept_for_tests, questions
from qgpu.driver import Device
from qgpu.driver.calculator import Calculator


@pytest.mark.parametrize("held_out", [False, True])
def test_expressions_have_the_value_that_is_told(held_out: bool) -> None:
    """By the calculator on the interpreter, which knows nothing of how questions are made. One of every kind."""
    calculator = Calculator(Device("interpreter"))
    waiting = set(KINDS)
    for one in questions(5, 2000, held_out):
        if one.kind in waiting:
            waiting.discard(one.kind)
            value = calculator.evaluate(one.expression)
            if not calculator.notes:
                assert str(value.tolist()) == one.result, one
            calculator.notes.clear()
        assert one.kind == "talk" or one.result in one.answer
    assert waiting == set()


def test_every_kind_is_worded_and_wordings_are_not_shared() -> None:
    assert set(WORDINGS) == set(KINDS)
    for wording in WORDINGS.values():
        assert not set(wording.seen) & set(wording.held_out) and wording.answer
    everything = [text for wording in WORDINGS.values() for text in (*wording.seen, *wording.held_out)]
    assert len(everything) == len(set(everything)) and len(CHAT) > 10


def test_held_out_questions_have_numbers_of_their_own() -> None:
    seen = {one.expression for one in questions(0, 20_000)}
    kept = [one.expression for one in questions(1, 500, held_out=True)]
    assert not seen & set(kept)
    share = sum(kept_for_tests((n, n + 1)) for n in range(5000)) / 5000
    assert 0.08 < share < 0.12


def test_a_seed_gives_the_same_questions() -> None:
    assert list(questions(3, 50)) == list(questions(3, 50))
    assert list(itertools.islice(questions(3, 50), 5)) != list(itertools.islice(questions(4, 50), 5))
