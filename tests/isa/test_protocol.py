"""What a host may feed: everything else is refused, and names what the machine would have written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgpu.isa import tokens
from qgpu.isa.assembly import assemble
from qgpu.isa.interpreter import Interpreter, ProtocolError, run
from qgpu.isa.program import Launch, prompt

START = Launch(assemble(".program test\nb0: c_sel=I imm=5 alu_b=second d_b=r1\nb1: branch=exit"), (1, 1, 1), (4, 1, 1))


def encode(name: str, *fields: int) -> int:
    return tokens.encode(name, *fields)


@pytest.mark.parametrize("name", ["EXEC", "VAL", "VALW", "MASK", "FAULT", "BAR", "CTA", "HALT"])
def test_a_prompt_holds_no_token_of_the_machine(name: str) -> None:
    token = tokens.BY_NAME[name].first
    with pytest.raises(ProtocolError, match="not a token that a prompt may hold"):
        Interpreter().feed([token])


@pytest.mark.parametrize(
    "ids, told",
    [
        ([tokens.USED_IDS], "token id"),
        ([-1], "token id"),
        ([5], "DATA after HALT"),
        ([encode("PROGRAM", 0, 0), 1, 2, 3, 4, 5], "followed by 4 DATA"),
        ([encode("GRID"), 1, 2, 3, 4, 5], "followed by 4 DATA"),
        ([encode("MEM", 0, 0), 1, 2, 3, 4, 5], "at most 4 DATA"),
        ([encode("GO")], "thread 0 does not exist"),
        ([encode("THREADS", 0, 0), 0, 0, 0, 0x8000, encode("GO")], "thread 0 does not exist"),
    ],
)
def test_bad_prompts(ids: list[int], told: str) -> None:
    with pytest.raises(ProtocolError, match=told):
        Interpreter().feed(ids)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100), st.integers(0, tokens.USED_IDS - 1))
def test_only_the_machines_own_next_token_is_taken(place: int, other: int) -> None:
    written, _ = run(START)
    place %= len(written)
    machine = Interpreter()
    machine.feed([*prompt(START), *written[:place]])
    assert machine.next() == written[place]
    if other != written[place] and tokens.decode(other)[0] != "READ":  # which ends a launch
        with pytest.raises(ProtocolError, match="where the machine writes " + tokens.text(written[place])):
            machine.feed([other])


def test_nothing_is_written_before_go_and_after_the_end() -> None:
    machine = Interpreter()
    machine.feed(prompt(START)[:-1])
    assert machine.next() is None
    written, machine = run(START)
    assert machine.next() is None and tokens.text(written[-1]) == "HALT"


def test_a_second_launch_in_the_same_context() -> None:
    written, machine = run(START)
    machine.feed([encode("GO")])
    again = []
    while (token := machine.next()) is not None:
        machine.feed([token])
        again.append(token)
    assert again == written


def test_statistics_count_what_the_machine_wrote() -> None:
    written, machine = run(START)
    assert machine.statistics.total == len(written) == 4
    assert machine.statistics.tokens == {"EXEC": 2, "DATA": 1, "HALT": 1}
    assert machine.statistics.lane_instructions == 8
