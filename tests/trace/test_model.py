"""Steps replayed to registers and memory, against the interpreter; and traces that nobody wrote."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.launches import fault, mix, oracle, settled

from qgpu.isa import tokens
from qgpu.trace import steps


def test_steps_change_what_the_interpreter_changes():
    trace = mix()
    assert trace.ended == "HALT"
    by_end = {step.at + step.count: step for step in steps(trace)}
    registers = [[[0] * tokens.REGISTERS for _ in range(4)] for _ in range(tokens.QUADS)]
    memory = dict(trace.launch.rows)
    compared = 0
    for fed, machine in oracle(trace):
        if fed not in by_end:
            continue
        step = by_end[fed]
        if step.register is not None:
            for lane, word in step.words:
                registers[step.quad][lane][step.register] = word
        elif step.row is not None:
            memory[step.row] = tuple(word for _, word in step.words)
        elif step.kind == "CTA":
            memory = {row: words for row, words in memory.items() if row < tokens.SHARED_FIRST_ROW}
        if settled(trace, fed):
            compared += 1
            assert registers == machine.state.registers
            assert {row: words for row, words in memory.items() if any(words)} == {
                row: words for row, words in machine.state.memory.items() if any(words)
            }
            assert step.lanes == machine.state.mask[step.quad]
            if fed == len(trace.tokens) or tokens.decode(trace.tokens[fed])[0] != "CTA":
                assert step.cta == machine.state.cta
    assert compared > 200
    assert {step.kind for step in steps(trace)} == {"EXEC", "VAL", "VALW", "MEM", "MASK", "CTA", "BAR", "HALT"}
    assert any(step.atomic for step in steps(trace))


def test_a_fault_is_the_last_step():
    trace = fault()
    *_, before, last = steps(trace)
    assert (trace.ended, last.kind, last.lane, last.quad) == ("FAULT", "FAULT", 1, 1)
    assert tokens.CAUSES[last.cause] == "load out of bounds"
    assert before.kind in ("EXEC", "MASK") and "thread (5,0,0)" in trace.message


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, tokens.USED_IDS - 1) | st.integers(0, 3), max_size=40))
def test_any_tokens_have_steps(ids):
    """They cover the tokens without a gap, and a group that cannot be read changes nothing."""
    found = list(steps(replace(mix(), tokens=tuple(ids))))
    assert [step.at for step in found] == [sum(s.count for s in found[:i]) for i in range(len(found))]
    assert sum(step.count for step in found) == len(ids)
    assert all(lane < 4 and word < 2**32 for step in found for lane, word in step.words)
