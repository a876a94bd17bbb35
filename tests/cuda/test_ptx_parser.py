"""The PTX parser: what it reads, how it names mistakes, and that no text makes it do anything else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cuda.harness import HEAD, KERNELS, NVRTC, REGISTERS, parse

from qgpu.cuda import ptx
from qgpu.cuda.ptx import Immediate, Memory, Pair, Register, SpecialRegister, Symbol, Vector
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.cuda.ptx_text import text_of
from qgpu.errors import PtxError


def only_instruction(text):
    (statement,) = parse(text, REGISTERS).kernels[0].body
    return statement


def b32(number):
    return Register(f"%r{number}", "b32")


# ---- Instructions and operands ----


@pytest.mark.parametrize(
    ("text", "opcode", "modifiers", "operands"),
    [
        ("ret;", "ret", (), ()),
        ("add.s32 %r1, %r2, -5;", "add", ("s32",), (b32(1), b32(2), Immediate(-5))),
        ("mov.u32 %r1, %tid.x;", "mov", ("u32",), (b32(1), SpecialRegister("tid.x"))),
        ("and.b32 %r1, %r2, 0x3U;", "and", ("b32",), (b32(1), b32(2), Immediate(3))),
        ("and.b32 %r1, %r2, 017;", "and", ("b32",), (b32(1), b32(2), Immediate(15))),
        ("and.b32 %r1, %r2, 0b101;", "and", ("b32",), (b32(1), b32(2), Immediate(5))),
        ("ld.global.nc.b32 %r1, [%r2+-8];", "ld", ("global", "nc", "b32"), (b32(1), Memory(b32(2), -8))),
        ("ld.b32 %r1, [a];", "ld", ("b32",), (b32(1), Memory(Symbol("a"), 0))),
        ("ld.b32 %r1, [a+4];", "ld", ("b32",), (b32(1), Memory(Symbol("a"), 4))),
        ("ld.b32 %r1, [16];", "ld", ("b32",), (b32(1), Memory(None, 16))),
        ("mov.b32 %r1, a+4;", "mov", ("b32",), (b32(1), Symbol("a", 4))),
        ("ld.v2.b32 {%r1, _}, [%r2];", "ld", ("v2", "b32"), (Vector((b32(1), ptx.Sink())), Memory(b32(2), 0))),
        (
            "shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;",
            "shfl",
            ("sync", "up", "b32"),
            (Pair(b32(1), Register("%p1", "pred")), b32(2), Immediate(1), Immediate(0), Immediate(-1)),
        ),
        ("ld.global.L2::128B.b32 %r1, [%r2];", "ld", ("global", "L2::128B", "b32"), (b32(1), Memory(b32(2), 0))),
        ("mov.f32 %f1, 0f3F800000;", "mov", ("f32",), (Register("%f1", "f32"), ptx.FloatImmediate("0f3F800000"))),
    ],
)
def test_instruction(text, opcode, modifiers, operands):
    found = only_instruction(text)
    assert (found.opcode, found.modifiers, found.operands, found.guard) == (opcode, modifiers, operands, None)
    assert found.line == 8


@pytest.mark.parametrize(("text", "negated"), [("@%p1 exit;", False), ("@!%p1 exit;", True)])
def test_guard(text, negated):
    assert only_instruction(text).guard == ptx.Guard(Register("%p1", "pred"), negated)


@pytest.mark.parametrize(
    "text",
    ["add.s32 %r1, %r2, -5", "@!%p1 bra DONE", "ld.global.v2.b32 {%r1, _}, [%r2+8]", "mov.u32 %r1, %ctaid.y",
     "match.all.sync.b32 %r1|%p1, %r2, -1", "call.uni (a), f, (b)", "setp.eq.and.s32 %p1, %r1, 3, !%p2"],
)  # fmt: skip
def test_text_of_an_instruction_reads_as_it_was_written(text):
    assert text_of(parse(f"DONE: {text};", REGISTERS).kernels[0].body[1]) == text


# ---- Scopes, labels, tables, lines ----


def test_names_of_nested_scopes_do_not_clash():
    body = parse(
        "{ .reg .b32 t; mov.b32 t, 1; L: bra L; } { .reg .b32 t; mov.b32 t, 2; L: bra L; } mov.b32 %r1, %r2;", REGISTERS
    ).kernels[0].body
    names = [item.operands[0].name for item in body if isinstance(item, ptx.Instruction)]
    assert names == ["t@1", "L@1", "t@2", "L@2", "%r1"]
    assert [item.name for item in body if isinstance(item, ptx.Label)] == ["L@1", "L@2"]


def test_branch_targets():
    body = parse("T: .branchtargets A, B; brx.idx %r1, T; A: ret; B: ret;", REGISTERS).kernels[0].body
    assert body[0] == ptx.BranchTargets("T", ("A", "B"), 8)


def test_lines_of_the_users_source():
    text = (
        HEAD + ".entry k()\n{\n.loc 2 7 3\nret;\n.loc 2 0 0\nret;\n.loc 1 9 1, function_name $L, inlined_at 2 5 1\n"
        'ret;\n}\n.file 1 "lib.cuh"\n.file 2 "./my.cu", 123, 45\n'
    )
    sources = [item.source for item in parse_ptx(text, "k.ptx").kernels[0].body]
    assert sources == [ptx.SourceLine("my.cu", 7), ptx.SourceLine("my.cu", 7), ptx.SourceLine("lib.cuh", 9)]


def test_a_range_of_registers_ends_before_its_count():
    assert only_instruction("neg.s32 %r19, %r0;").operands == (b32(19), b32(0))
    with pytest.raises(PtxError, match=r"k\.ptx:8: expected a declared register, found '%r20'"):
        parse("neg.s32 %r1, %r20;", REGISTERS)


def test_a_huge_range_costs_nothing():
    assert parse("ret;", ".reg .b32 %q<4000000000>;").kernels[0].name == "k"


# ---- Declarations ----


def test_parameters():
    pointer, array = ".param .u32 .ptr .global .align 16 p", ".param .align 8 .b8 s[12]"
    module = parse("ret;", parameters=f"{pointer},\n.param .u64 q, {array}, .param .u8 c")
    assert [(p.name, p.size, p.align, p.pointer) for p in module.kernels[0].parameters] == [
        ("p", 4, 4, True), ("q", 8, 8, False), ("s", 12, 8, False), ("c", 1, 1, False)
    ]  # fmt: skip


def test_variables():
    module = parse_ptx(
        HEAD + ".const .align 4 .u32 t[2][3] = {{1, -2, 0x3}, {4, 5, 6}};\n.extern .shared .align 16 .b8 d[];\n"
        ".global .u32 x, y = 7;\n.global .u32 at = generic(x)+4;\n.visible .global .align 8 .b8 s[] = {1, 2, 3};\n",
        "k.ptx",
    )
    by_name = {variable.name: variable for variable in module.variables}
    assert (by_name["t"].size, by_name["t"].initial) == (24, (4, (1, -2, 3, 4, 5, 6)))
    assert (by_name["d"].space, by_name["d"].size, by_name["d"].align, by_name["d"].extern) == ("shared", 0, 16, True)
    assert (by_name["x"].size, by_name["y"].initial) == (4, (4, (7,)))
    assert by_name["at"].initial == (4, (Symbol("x", 4),))
    assert by_name["s"].size == 3


def test_functions_and_limits():
    module = parse_ptx(
        HEAD + ".func (.param .b32 r) f (.param .b32 a);\n.weak .func g() .noreturn { ret; }\n"
        ".entry k() .maxntid 32, 1, 1 .minnctapersm 2 { ret; }\n",
        "k.ptx",
    )
    functions = {function.name: function for function in module.functions}
    assert functions["f"].body is None and functions["f"].returns[0].name == "r"
    assert functions["k"].limits == {"maxntid": (32, 1, 1), "minnctapersm": (2,)}
    assert [kernel.name for kernel in module.kernels] == ["k"]


def test_debug_sections_pragmas_and_comments_are_passed_over():
    text = (
        "// first\n/* second\n third */" + HEAD + '.file 1 "a.cu"\n@@DWARF .byte 1\n'
        '.section .debug_str { info: .b8 1,2; { } .b8 -1 }\n.entry k() { .pragma "nounroll"; // here\n ret; }\n'
    )
    assert len(parse_ptx(text, "k.ptx").kernels[0].body) == 1


@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        ("_Z3dotPKiS0_Pii", "dot"), ("plain", "plain"), ("_ZN4math3dotEPi", "math::dot"),
        ("_Z4scanIiEvPT_", "scan"), ("_ZN12_GLOBAL__N_11kEPi", "(anonymous)::k"), ("_Z", "_Z"),
        ("_Z9999999999x", "_Z9999999999x"),
    ],
)  # fmt: skip
def test_readable_name(mangled, readable):
    assert ptx.readable_name(mangled) == readable


def test_every_kept_ptx_file_parses():
    for path in [*KERNELS.glob("*.ptx"), *NVRTC.glob("*.ptx")]:
        module = parse_ptx(path.read_text(), path.name)
        assert [ptx.readable_name(kernel.name) for kernel in module.kernels] == [path.stem]


# ---- Mistakes ----


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "k.ptx:1: expected the directive .version, with which every PTX file opens, found the end of the file"),
        ("hello", "k.ptx:1: expected the directive .version, with which every PTX file opens, found 'hello'"),
        (HEAD + "\x01", r"k.ptx:4: expected PTX, found the character '\x01'"),
        (HEAD + "/* open", "k.ptx:4: expected */ to close the comment that opens here"),
        (HEAD + ".address_size 16", "k.ptx:4: expected 32 or 64 after .address_size, found '16'"),
        (HEAD + ".entry k()\n{ add.s32 1 2; }", "k.ptx:5: expected ',' or ';', found '2'"),
        (HEAD + ".entry k()\n{ ret", "k.ptx:5: expected an operand, found the end of the file"),
        (HEAD + ".entry k()\n{ ret;", "k.ptx:5: expected an instruction, a label or '}', found the end of the file"),
        (HEAD + ".entry k() { bra NOWHERE; }", "k.ptx:4: there is no label NOWHERE here"),
        (HEAD + ".entry k() { A: A: ret; }", "k.ptx:4: the label A is here a second time"),
        (HEAD + ".entry k() { @%q ret; }", "k.ptx:4: expected a declared register, found '%q'"),
        (HEAD + ".entry k() { .reg .b32 r; @r ret; }", "k.ptx:4: expected a predicate register, found 'r'"),
        (HEAD + ".entry k() { .reg .q32 r; }", "k.ptx:4: expected a register type such as .b32, found '.q32'"),
        (HEAD + ".entry k(.param u32 x) { }", "k.ptx:4: expected a type such as .u32, found 'u32'"),
        (HEAD + ".global x;", "k.ptx:4: expected a type such as .b32, found 'x'"),
        (HEAD + ".global .b8 x[99999999999];", "k.ptx:4: expected an array of at most 4294967296 bytes, found ']'"),
        (HEAD + ".entry k() { mov.b32 1, 99999999999999999999; }",
         "k.ptx:4: expected an integer of at most 64 bits, found '99999999999999999999'"),
        (HEAD + ".entry k() { mov.b32 1, 09; }", "k.ptx:4: expected an integer, found '09'"),
        (HEAD + ".section .debug {", "k.ptx:4: expected '}' to close the section, found the end of the file"),
        (HEAD + ".entry k() {" + "{" * 100, "k.ptx:4: expected at most 64 nested scopes, found '{'"),
        (HEAD + ".entry k() { mov.b32 " + "{" * 100, "k.ptx:4: expected an operand nested less deeply, found '{'"),
    ],
)  # fmt: skip
def test_mistake(text, message):
    with pytest.raises(PtxError) as caught:
        parse_ptx(text, "k.ptx")
    assert str(caught.value) == message


WHOLE = (KERNELS / "atomic_sum.ptx").read_text() + '.section .x { a }\n.const .b32 t[2] = {1, {2}};\n'
PIECES = [".version 7.0", ".reg .b32 %r<9>;", "{", "}", "(", ")", "[", "]", ";", ",", ":", "@", "!", "%r1", "%p", "-",
          ".entry", ".func", ".loc 1", ".param", ".b8", "= {", "0x", "1.5", "add.s32", "\n", ".section",
          "<", ">", "|"]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_ptx_gives_a_ptx_error_or_a_module(data):
    start = data.draw(st.integers(0, len(WHOLE)))
    end = data.draw(st.integers(start, min(len(WHOLE), start + 60)))
    text = WHOLE[:start] + "".join(data.draw(st.lists(st.sampled_from(PIECES), max_size=4))) + WHOLE[end:]
    try:
        parse_ptx(text, "k.ptx")
    except PtxError as error:
        assert str(error).startswith("k.ptx:")


@settings(max_examples=100, deadline=None)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join))
def test_any_text_gives_a_ptx_error_or_a_module(text):
    for whole in (text, HEAD + text, HEAD + ".entry k() {" + text):
        try:
            parse_ptx(whole, "k.ptx")
        except PtxError as error:
            assert str(error).startswith("k.ptx:")
