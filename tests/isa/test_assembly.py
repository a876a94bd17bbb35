"""Assembler text: what it says, that it comes back the same, and that every fault is named with its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.isa.random_blocks import programs

from qgpu.isa import encoding
from qgpu.isa.assembly import AssemblyError, assemble, disassemble
from qgpu.isa.program import Block, Program, Spot

DOT = """
.program dot     # out[0] += a[i] * b[i]
.parameters 3
.pool 0xffffffff -2

start:  x=tid.x a_sel=P b_sel=X b_shift=2 pa=param0 load=b32 stage_w=L line=4 instructions=3 load.line=a%20b/h%23.cuh:7
mul:    x=tid.x a_sel=P b_sel=X b_shift=2 pa=param1 load=b32
        m1_sel=S1 m2_sel=L m_op=mul.lo rb=r3 imm=-5 pq=pool1 pt=ntid.y
b2:     branch=bra target=mul g_branch=1
last:   branch=bra target=b4
b4:     branch=exit
"""


def number(name: str, choice: str) -> int:
    return encoding.CHOICES[name].index(choice)


def test_text_is_read_field_by_field() -> None:
    program = assemble(DOT)
    assert (program.name, program.parameter_words, program.pool) == ("dot", 3, (0xFFFFFFFF, 0xFFFFFFFE))
    first, mul, loop, last, end = program.blocks
    assert first == Block(
        {"x": 1, "a_sel": 2, "b_sel": 3, "b_shift": 2, "pa": 6, "load": 5, "stage_w": 2}, 3, 4, "start",
        ports={"load": Spot(7, "a b/h#.cuh")},
    )  # fmt: skip
    assert first.spot() == first.spot("store") == Spot(4) and first.spot("load").under("k.cu") == "a b/h#.cuh:7"
    assert mul.label == "mul" and mul.instructions == 1 and mul.line == 0
    assert {k: mul.fields[k] for k in ("pa", "rb", "imm", "pq", "pt", "m_op")} == {
        "pa": 7, "rb": 3, "imm": -5, "pq": 10, "pt": 1, "m_op": number("m_op", "mul.lo"),
    }  # fmt: skip
    assert loop == Block({"branch": 1, "target": 1, "back": 1, "g_branch": 1})
    assert last == Block({"branch": 1, "target": 4}, label="last")
    assert end == Block({"branch": number("branch", "exit")})


@settings(max_examples=150, deadline=None)
@given(programs())
def test_disassembled_text_assembles_to_the_same_program(program: Program) -> None:
    assert assemble(disassemble(program)) == program


def test_disassembly_names_things() -> None:
    text = disassemble(assemble(DOT))
    assert text.splitlines()[:3] == [".program dot", ".parameters 3", ".pool 0xffffffff 0xfffffffe"]
    assert "target=mul" in text and "target=b4" in text and "back" not in text
    assert "rb=r3" in text and "pq=pool1" in text and "pt=ntid.y" in text and "m_op=mul.lo" in text
    assert max(map(len, text.splitlines())) <= 120


def test_every_fault_is_named_at_once() -> None:
    text = """.parameters none
.pol 3
x=zero
one: ra=r16 a_sell=P b_sel=Z
one: imm=32768 rb=1 rb=2 target=nowhere pa=param0
     branch load=b32
b7:  line=-1
0x10: branch=exit
"""
    with pytest.raises(AssemblyError) as caught:
        assemble(text, "a.qasm")
    told = caught.value.errors
    assert isinstance(caught.value, ValueError) and str(caught.value) == "\n".join(told)
    expected = [
        "a.qasm:1: a program needs its name",
        "a.qasm:1: write .parameters COUNT",
        "a.qasm:2: unknown directive .pol",
        "a.qasm:3: 'x=zero' stands before",
        "a.qasm:4: ra is a register",
        "a.qasm:4: a block has no field 'a_sell'; is a_sel meant?",
        "a.qasm:4: b_sel is one of",
        "a.qasm:5: label one stands in line 4",
        "a.qasm:5: imm 32768",
        "a.qasm:5: rb is given twice",
        "a.qasm:5: target is a label",
        "a.qasm:5: pa is a parameter word",
        "a.qasm:6: 'branch' is not field=value",
        "a.qasm:7: this is block 2, not b7",
        "a.qasm:8: 0x10 is a number",
        "a.qasm:7: line -1",
    ]
    assert len(told) == len(expected)
    for start in expected:
        assert any(line.startswith(start) for line in told), start


@pytest.mark.parametrize(
    "text, fault",
    [
        (".program a\n", "no block"),
        (".program a\n.parameters 120\n.pool 1 2 3\nb0: branch=exit", "there is room for 122 together"),
        (".program a\n.pool 0x100000000\nb0: branch=exit", "32-bit constants"),
        (".program a\n" + "".join(f"b{i}:\n" for i in range(257)), "257 blocks"),
    ],
)
def test_limits(text: str, fault: str) -> None:
    with pytest.raises(AssemblyError, match=fault):
        assemble(text)


@pytest.mark.parametrize("label", ["a b", "a:", "b3", ".a", "a#", "6", "0x1f"])
def test_labels_that_cannot_be_spelled_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match="label"):
        disassemble(Program("a", (Block({}, label=label),)))
