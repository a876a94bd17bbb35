"""PTX that is none: one clear error for each, at once, whatever its size, and never anything but an error of ours."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cuda.harness import HEAD, KERNELS, NVRTC

from qgpu.cuda.frontend import translate
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.errors import PtxError, QgpuError, UnsupportedError

LONG = 10_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{" * LONG, "x.ptx:4: expected a variable, .entry, .func or another directive, found '{'"),
        (".entry k() " + "{" * LONG, "x.ptx:4: expected at most 64 nested scopes, found '{'"),
        (".global .b32 a[4] = " + "{" * LONG, "x.ptx:4: expected at most 64 nested braces, found '{'"),
        (".section .debug " + "{" * LONG, "x.ptx:4: expected at most 64 nested braces, found '{'"),
        (".entry k() { call " + "(" * LONG, "expected an operand nested less deeply"),
        (".entry k() { mov.b32 a, " + "-" * LONG, "expected an integer, found '-'"),
        (".entry k() { mov.b32 a, " + "1" * LONG, "expected an integer, found '11111"),
        (".entry k() { mov.b32 a, 0x" + "1" * LONG, "expected an integer of at most 64 bits, found '0x1111"),
        (".entry k() { " + "a" * LONG, "expected an operand, found the end of the file"),
        (".entry k() { a" + ".a" * LONG, "expected"),
        ("/*" * LONG, "expected a variable"),
        ("\0" * LONG, "expected PTX, found the character '\\x00'"),
        (".entry k(", "expected a parameter that starts with .param or .reg, found the end of the file"),
        (".entry k() { .reg .b32 %r<2>; @%r1 ret; }", "expected a predicate register, found '%r1'"),
        (".entry k() { ret; } .entry k() { ret; }", "the function k is here a second time"),
        (".shared .align 3 .b8 a[9];", "expected an alignment, a power of two, found '3'"),
        (".global .b32 a[4294967296][4294967296];", "expected an array of at most"),
    ],
    ids=range(17),
)
def test_one_error_each(text, message):
    with pytest.raises(PtxError) as caught:
        parse_ptx(HEAD + text, "x.ptx")
    assert message in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.param.b32 %r1, [a+400];", "this reads beyond the parameter"),
        ("ld.param.b32 %r1, [a-4];", "this reads beyond the parameter"),
        ("mov.b32 %r1, big; st.global.b32 [%r1], 1;", "4,294,967,296 bytes, and the whole memory has 16,384"),
        ("set;\nslct;\nmad;\nprmt;\ndp2a;\nbmsk;\nszext;\nisspacep;", "8 things"),
    ],
)
def test_one_message_each(body, message):
    module = parse_ptx(
        f"{HEAD}.global .b32 big[1073741824]; .entry k(.param .b32 a) {{ .reg .b32 %r<4>; {body} ret; }}", "x.ptx"
    )
    with pytest.raises(UnsupportedError, match=message):
        translate(module, "k")


WORDS = [
    *"{ } ( ) [ ] < > , ; : @ ! + - | = _ 0 1 -1 32 0x1f 0f3F800000 18446744073709551616".split(),
    *"%p1 %r1 %rd1 %r99 %tid.x".split(),
    *"mov.b32 add.s32 ld.global.b32 ld.param.b32 st.global.v2.b32 @%p1 bra ret; setp.eq.s32 call.uni mad.lo".split(),
    *"atom.global.add.u32 shfl.sync.bfly.b32 prmt.b32 cvt.sat.u8.s32 bar.red.popc.u32 brx.idx .reg .b32 .pred".split(),
    *".param .shared .align .loc 1 .file \"f.cu\" .section .entry .func .visible .branchtargets L: a b".split(),
]  # fmt: skip
TEXTS = [path.read_text() for path in (KERNELS / "dot.ptx", KERNELS / "divergent.ptx", NVRTC / "dot.ptx")]

PATCHES = st.tuples(st.floats(0, 1), st.integers(0, 30), st.sampled_from(WORDS))
"""Where in the text, how much of it goes, and what comes in its place."""


def compiles_or_complains(text):
    try:
        module = parse_ptx(text, "fuzz.ptx")
        for kernel in module.kernels:
            translate(module, kernel.name)
    except QgpuError as error:
        assert str(error)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_words_in_any_order(words):
    compiles_or_complains(f"{HEAD}.entry k(.param .b32 a) {{ .reg .b32 %r<9>; .reg .pred %p<3>; {' '.join(words)}")
    compiles_or_complains(f"{HEAD}.entry k(.param .b32 a) {{ .reg .b32 %r<9>; {' '.join(words)}; ret; }}")


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(TEXTS), st.lists(PATCHES, max_size=4))
def test_stock_ptx_with_holes_and_patches(text, patches):
    for place, length, word in patches:
        start = int(place * len(text))
        text = f"{text[:start]} {word} {text[start + length:]}"
    compiles_or_complains(text)
