"""Launches cut short: what a snapshot, READ and the memory tell after any token; and what a fresh GO forgets."""

from __future__ import annotations

import pytest

from qgpu.isa import tokens
from qgpu.isa.assembly import assemble
from qgpu.isa.interpreter import Interpreter, ProtocolError, run
from qgpu.isa.program import Launch, prompt

# every thread adds its index to one word and stores a 64-bit row of its own; the second block loads what stands there
KERNEL = """.program cut
.parameters 2
.pool 100000
add:  m1_sel=Q pq=pool0 x=tid.x c_sel=X alu_b=add sa_sel=T pt=param0 store=b32 atomic=add d_o=r2
own:  x=tid.x b_sel=X b_shift=3 sa_sel=T pt=param1 sb_sel=BS store=b64 m1_sel=A ra=r2 rc=r2 c_sel=zero alu_b=first
back: x=tid.x a_sel=P pa=param1 b_sel=X b_shift=3 load=b64 d_e=r3 e_sel=H branch=exit
"""
LAUNCH = Launch(assemble(KERNEL), (2, 1, 1), (6, 1, 1), (64, 128), {8: (5, 7)}, {1: 2**64 - 1, 2: 2**64 - 1})


def row(data: list[int]) -> tuple[int, int]:
    sign = [d - (d >> 15 << 16) for d in data]
    low = data[0] + (data[1] << 16) if len(data) > 2 else sign[0]
    high = data[2] + (data[3] << 16) if len(data) == 4 else sign[-1] if len(data) > 1 else 0
    return low % 2**32, high % 2**32


def told(written: list[int]) -> dict[int, tuple[int, int]]:
    """Rows as the tokens tell them: those of the prompt, then the last DATA of each MEM that is complete."""
    rows = dict(LAUNCH.rows)
    at = 0
    while at < len(written):
        name, fields = tokens.decode(written[at])
        at += 1
        data: list[int] = []
        while at < len(written) and written[at] < 65536:
            data.append(written[at])
            at += 1
        if name == "MEM" and data and at < len(written):
            rows[fields[0]] = row(data)
    return rows


def start() -> Interpreter:
    machine = Interpreter()
    machine.feed(prompt(LAUNCH))
    return machine


def rest(machine: Interpreter) -> list[int]:
    written = []
    while (token := machine.next()) is not None:
        written.append(token)
        machine.feed([token])
    return written


def test_memory_is_what_the_tokens_so_far_tell() -> None:
    written, _ = run(LAUNCH)
    machine = start()
    for count, token in enumerate(written):
        name = tokens.decode(token)[0]
        if name != "DATA":  # the row before is complete
            assert machine.state.memory == told([*written[:count], token]), count
        machine.feed([token])
    assert machine.state.memory[8] == (sum(100000 + lane for lane in range(6)) * 2 + 5, 7)


def test_a_snapshot_goes_on_with_the_same_tokens() -> None:
    written, end = run(LAUNCH)
    for count in range(len(written)):
        machine = start()
        machine.feed(written[:count])
        copy = machine.snapshot()
        machine.feed([tokens.encode("READ", 8)])  # must not reach the copy
        rest(machine)
        assert rest(copy) == written[count:]
        assert copy.state.memory == end.state.memory


def test_read_ends_a_launch_and_a_new_one_may_follow() -> None:
    written, _ = run(LAUNCH)
    cut = written.index(tokens.encode("EXEC", 1, 0))
    machine = start()
    machine.feed(written[:cut])
    word = 5 + sum(100000 + lane for lane in range(4))
    machine.feed([tokens.encode("READ", 8)])
    assert rest(machine) == [word & 0xFFFF, word >> 16, 7, tokens.encode("HALT")]
    machine.feed(prompt(LAUNCH))
    assert rest(machine) == written


def test_go_forgets_a_fault() -> None:
    machine = start()
    bad = Launch(LAUNCH.program, (1, 1, 1), (6, 1, 1), (66, 128), {}, LAUNCH.allocated)
    machine.feed([tokens.encode("READ", 8)])
    rest(machine)
    machine.feed(prompt(bad))
    assert tokens.text(rest(machine)[-1]) == "FAULT store misaligned, lane 0"
    assert machine.fault is not None and machine.fault[4] == 66
    machine.feed(prompt(LAUNCH))
    assert machine.fault is None
    assert rest(machine) == run(LAUNCH)[0]


def test_only_read_may_come_in_between() -> None:
    machine = start()
    for name, fields in (("GO", ()), ("MEM", (8, 0)), ("PARAM", (0,)), ("HALT", ())):
        with pytest.raises(ProtocolError, match="where the machine writes EXEC b0 q0"):
            machine.feed([tokens.encode(name, *fields)])


@pytest.mark.parametrize(
    "text, lost", [("imm=77 a_sel=I stage_w=R m1_sel=S1 d_b=r4", False), ("a_sel=I imm=77 stage_w=R", True)]
)
def test_a_yield_takes_stage_registers_from_a_straight_line(text: str, lost: bool) -> None:
    """Lane 1 spins at a lower PC than lane 0 runs at: after every block of lane 0 it goes first."""
    source = f""".program staged
.parameters 2
head: x=tid.x a_sel=X b_sel=I cond=eq p_write=1 g_branch=1 branch=bra target=work
spin: a_sel=P pa=param0 load=b32 stage_w=L m1_sel=L c_sel=zero cond=eq p_write=1 p_src=b p_index=1 g_index=1 g_branch=1
      branch=bra target=spin yield=1
end:  branch=exit
work: {text}
keep: m1_sel={"S1" if lost else "A"} ra=r4 sa_sel=T pt=param1 store=b32
free: m1_sel=Q pq=ntid.x sa_sel=T pt=param0 store=b32 branch=exit
"""
    launch = Launch(assemble(source), (1, 1, 1), (2, 1, 1), (64, 72), {}, {1: 2**64 - 1})
    written, machine = run(launch, 200)
    assert written[-1] == tokens.encode("HALT")
    assert machine.state.memory[9] == ((0 if lost else 77), 0)


@pytest.mark.parametrize(
    "end, fault",
    [
        ("branch=trap g_branch=1", "falls off the end"),
        ("branch=bar", "falls off the end"),
        ("d_e=r3 d_b=r3 branch=exit", "d_e, d_b and d_o are the same register"),
        ("d_b=r3 d_o=r3 store=b32 atomic=add branch=exit", "d_e, d_b and d_o are the same register"),
    ],
)
def test_programs_that_are_refused(end: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        prompt(Launch(assemble(f".program refused\nfirst: {end}\n")))


@pytest.mark.parametrize("end", ["branch=trap", "branch=exit d_e=r3 d_b=r4", "branch=bra target=first"])
def test_programs_that_are_not(end: str) -> None:
    assert prompt(Launch(assemble(f".program fine\nfirst: {end}\n")))[-1] == tokens.encode("GO")
