"""What other tools got wrong in public reports, each as a test of its whole kind.

From PTX text to the interpreter's memory: translated, optimised, lowered to blocks and run by 128 threads, against
Python integers. The names of the tests are the list.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.cuda.harness import HEAD
from tests.cuda.test_ptx_semantics import EDGES, M32, bfe, bfi, find, funnel, prmt, s

from qgpu.driver import Device

THREADS = 128
RANDOM = random.Random(29)
REGISTERS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %d<9>;"
Oracle = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., list[int]]:
    """Runs a body with %r1, %r2, %r3 from each triple (a thread each, %r9 its index); the values of %r0."""
    count = itertools.count()

    def run(body: str, triples: Sequence[Sequence[int]], threads: int = THREADS) -> list[int]:
        path = tmp_path / f"k{next(count)}.ptx"
        path.write_text(
            f"{HEAD}.visible .entry k(.param .u32 a, .param .u32 out)\n{{\n{REGISTERS}\n"
            "mov.u32 %r9, %tid.x; ld.param.u32 %r10, [a]; ld.param.u32 %r11, [out]; mad.lo.u32 %r10, %r9, 12, %r10;\n"
            "mad.lo.u32 %r11, %r9, 4, %r11; ld.global.u32 %r1, [%r10]; ld.global.u32 %r2, [%r10+4];\n"
            f"ld.global.u32 %r3, [%r10+8]; mov.u32 %r0, 77;\n{body}\nst.global.u32 [%r11], %r0; ret;\n}}\n"
        )
        found: list[int] = []
        device = Device("interpreter")
        kernel = device.module(path).kernel("k")
        for first in range(0, len(triples), threads):
            part = list(triples[first : first + threads])
            words = np.array(part + [part[0]] * (threads - len(part)), np.uint32)
            a, out = device.array(words), device.zeros(threads, np.uint32)
            kernel[1, threads](a, out)
            found += out.numpy().tolist()[: len(part)]
            a.free()
            out.free()
        return found

    return run


def words(count: int = 40) -> list[tuple[int, int, int]]:
    edges = [tuple(RANDOM.choice(EDGES) for _ in range(3)) for _ in range(count)]
    return [*edges, *(tuple(RANDOM.getrandbits(32) for _ in range(3)) for _ in range(24))]  # type: ignore[list-item]


def agree(found: Sequence[int], triples: Sequence[Sequence[int]], oracle: Oracle, what: str) -> None:
    wrong = [(t, hex(f), hex(oracle(*t) & M32)) for t, f in zip(triples, found, strict=True) if f != oracle(*t) & M32]
    assert not wrong, (what, wrong[:3])


COMPARES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("sign", "us")
@pytest.mark.parametrize("name", COMPARES)
def test_selp_with_a_negated_predicate(run, name: str, sign: str) -> None:
    triples = [(a, b, 5) for a, b in itertools.product(EDGES[::2], EDGES[::2])]
    seen = s if sign == "s" else int
    for negated in ("", "!"):
        found = run(f"setp.{name}.{sign}32 %p1, %r1, %r2; selp.b32 %r0, %r1, %r3, {negated}%p1;", triples)
        agree(found, triples, lambda a, b, c, n=negated: a if COMPARES[name](seen(a), seen(b)) != bool(n) else c, name)


PLACES = [0, 1, 5, 30, 31, 32, 33, 40, 63, 64, 128, 200, 255, 256, 257, 2**16, 2**31, M32]


@pytest.mark.parametrize("sign", "us")
def test_bfe_with_positions_and_lengths_of_32_and_more(run, sign: str) -> None:
    triples = [(a, b, c) for a in (0x9ABCDEF1, 0x7FFFFFFF) for b in PLACES for c in PLACES]
    found = run(f"bfe.{sign}32 %r0, %r1, %r2, %r3;", triples)
    agree(found, triples, lambda a, b, c: bfe(a, b, c, sign == "s"), "registers")
    for b, c in ((0, 32), (31, 1), (32, 1), (40, 255), (4, 40), (255, 255), (0, 0), (31, 200)):
        found = run(f"bfe.{sign}32 %r0, %r1, {b}, {c};", words(8))
        agree(run(f"bfe.{sign}32 %r0, %r1, {b}, {c};", some := words(8)), some,
              lambda a, _b, _c, b=b, c=c: bfe(a, b, c, sign == "s"), f"{b}, {c}")  # fmt: skip


def test_bfi_with_positions_and_lengths_of_32_and_more(run) -> None:
    triples = [(0x9ABCDEF1, b, c) for b in PLACES for c in PLACES]
    found = run("mov.u32 %r4, 0x55AA0FF0; bfi.b32 %r0, %r1, %r4, %r2, %r3;", triples)
    agree(found, triples, lambda a, b, c: bfi(a, 0x55AA0FF0, b & 255, c & 255), "registers")


@pytest.mark.parametrize("sign", "us")
def test_mad_hi_adds_after_the_high_half(run, sign: str) -> None:
    seen = s if sign == "s" else int
    triples = words(80)
    agree(run(f"mad.hi.{sign}32 %r0, %r1, %r2, %r3;", triples), triples,
          lambda a, b, c: (seen(a) * seen(b) >> 32) + c, "mad.hi")  # fmt: skip


SPELLED = ["0", "1", "7", "31", "-1", "-7", "0x7fffffff", "0x80000000", "-2147483648", "0xFFFFFFFFU", "4294967295",
           "017", "0b1011", "255U"]  # fmt: skip
FORMS = ["add.u32", "sub.s32", "mul.lo.s32", "mul.hi.u32", "and.b32", "or.b32", "xor.b32", "shl.b32", "shr.s32",
         "shr.u32", "min.s32", "max.u32", "div.s32", "rem.u32", "set.lt.u32.s32", "mad.lo.u32", "mad.hi.s32", "sad.u32",
         "prmt.b32", "bfe.u32", "shf.l.clamp.b32", "slct.b32.s32"]  # fmt: skip
SLOW = ("div.s32", "rem.u32", "prmt.b32")
OPERANDS = {"mad": 3, "sad": 3, "prmt": 3, "bfe": 3, "shf": 3, "slct": 3}


@pytest.mark.parametrize("form", FORMS)
def test_immediates_of_every_spelling_in_every_place(run, form: str) -> None:
    """An immediate gives what a register gives that holds the same bits."""
    triples = [(a, b or 1, c) for a, b, c in words(12)]
    count = OPERANDS.get(form.split(".")[0], 2)
    for place in range(count):
        for text in SPELLED[:: 1 if form in ("add.u32", "set.lt.u32.s32") else 7 if form in SLOW else 3]:
            if place == 1 and form[:3] in ("div", "rem") and int(text.rstrip("U"), 0 if text[:2] != "01" else 8) == 0:
                continue
            held = [f"%r{i + 1}" for i in range(count)]
            written = held[:place] + [text] + held[place + 1 :]
            kept = held[:place] + ["%r5"] + held[place + 1 :]
            # the register's value comes through memory, so that nothing is known of it
            loaded = f"st.global.u32 [%r11], {text}; ld.volatile.global.u32 %r5, [%r11];"
            expected = run(f"{loaded} {form} %r0, {', '.join(kept)};", triples)
            assert run(f"{form} %r0, {', '.join(written)};", triples) == expected, (form, place, text)


@pytest.mark.parametrize("way", ["l", "r"])
@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_shf_beyond_32(run, way: str, mode: str) -> None:
    triples = [(0x89ABCDEF, 0x12345678, n) for n in [*range(70), 255, 256, 2**31, M32]]
    agree(run(f"shf.{way}.{mode}.b32 %r0, %r1, %r2, %r3;", triples), triples,
          lambda a, b, n: funnel(a, b, n, way == "l", mode == "wrap"), mode)  # fmt: skip
    for n in (0, 31, 32, 33, 64, -1):
        some = words(6)
        agree(run(f"shf.{way}.{mode}.b32 %r0, %r1, %r2, {n};", some), some,
              lambda a, b, _, n=n: funnel(a, b, n & M32, way == "l", mode == "wrap"), n)  # fmt: skip


def test_prmt_and_the_sign_bit_of_its_selector(run) -> None:
    pool = (0x80FF7F01, 0x00817E92)
    triples = [(*pool, nibble << 4 * place | 0x3210 & ~(15 << 4 * place)) for place in range(4) for nibble in range(16)]
    triples += [(*pool, RANDOM.getrandbits(32)) for _ in range(64)]
    agree(run("prmt.b32 %r0, %r1, %r2, %r3;", triples), triples, prmt, "prmt")


@pytest.mark.parametrize("sign", "us")
def test_bfind_of_zero_and_its_shift_amount(run, sign: str) -> None:
    triples = [(a, 0, 0) for a in [0, M32, *(1 << n for n in range(32)), *(M32 ^ 1 << n for n in range(32))]]
    for shift in (False, True):
        found = run(f"bfind{'.shiftamt' * shift}.{sign}32 %r0, %r1;", triples)
        agree(found, triples, lambda a, *_, shift=shift: find(a, sign == "s", shift), "bfind")


def shuffled(mode: str, lane: int, b: int, clamp: int, segment: int) -> tuple[int, bool]:
    """(source lane, whether it is in range), from the manual's pseudo-code."""
    most = lane & segment | clamp & ~segment & 31
    least = lane & segment
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | b & ~segment & 31}[mode]
    inside = source >= most if mode == "up" else source <= most
    return (source if inside else lane), inside


@pytest.mark.parametrize("width", [32, 16, 8, 4, 2, 1])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_source_segment_and_range_predicate(run, mode: str, width: int) -> None:
    segment = 32 - width
    clamp = segment << 8 | (0 if mode == "up" else 31)
    for b in (0, 1, 3, width - 1, width, 17, 31, 33, 40):
        triples = [(1000 + lane, b, 0) for lane in range(32)]
        found = run(
            f"shfl.sync.{mode}.b32 %r4|%p1, %r1, %r2, {clamp}, -1; selp.u32 %r5, 1, 0, %p1; "
            "mad.lo.u32 %r0, %r5, 100000, %r4;", triples, 32,
        )  # fmt: skip
        wanted = [shuffled(mode, lane, b & 31, clamp & 31, segment) for lane in range(32)]
        assert found == [100000 * inside + 1000 + source for source, inside in wanted], b


@pytest.mark.parametrize("member", [0x0000FFFF, 0x55555555, 0xF0F0F0F0, 0x80000001])
def test_shuffles_among_some_lanes(run, member: int) -> None:
    """Those that are not members go another way meanwhile; members read members."""
    lanes = [lane for lane in range(32) if member >> lane & 1]
    after = dict(zip(lanes, [*lanes[1:], lanes[0]], strict=True))
    triples = [(1000 + lane, after.get(lane, 0), 0) for lane in range(32)]
    found = run(
        f"shl.b32 %r4, 1, %r9; and.b32 %r4, %r4, {member}; setp.eq.u32 %p1, %r4, 0; @%p1 bra OUT;\n"
        f"shfl.sync.idx.b32 %r0, %r1, %r2, 31, {member}; bra END; OUT: add.u32 %r0, %r1, %r1; END:", triples, 32,
    )  # fmt: skip
    assert found == [1000 + triples[lane][1] if lane in lanes else 2000 + 2 * lane for lane in range(32)]


def test_a_value_written_under_divergence_and_then_shuffled(run) -> None:
    for bit in range(5):
        triples = [(lane * 3, lane ^ 1 << bit, 0) for lane in range(32)]
        found = run(
            "and.b32 %r4, %r9, 5; setp.eq.u32 %p1, %r4, 4; mov.u32 %r5, %r1; @%p1 bra ODD; add.u32 %r5, %r5, 1000; "
            "bra MEET; ODD: mul.lo.u32 %r5, %r5, 7; MEET: shfl.sync.idx.b32 %r0, %r5, %r2, 31, -1;", triples, 32,
        )  # fmt: skip
        value = [3 * lane * 7 if lane & 5 == 4 else 3 * lane + 1000 for lane in range(32)]
        assert found == [value[lane ^ 1 << bit] for lane in range(32)]


@pytest.mark.parametrize("turns", [1, 2, 3, 4, 7, 8, 16])
def test_rolled_and_unrolled_loops_agree(run, turns: int) -> None:
    step = "mad.lo.u32 %r1, %r1, 5, %r2; shr.u32 %r4, %r1, 3; xor.b32 %r1, %r1, %r4;"
    triples = words(16)
    rolled = f"mov.u32 %r5, {turns}; L: {step} sub.u32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra L;"
    assert run(rolled + "mov.u32 %r0, %r1;", triples) == run(step * turns + "mov.u32 %r0, %r1;", triples)


SIGNED: dict[str, Oracle] = {
    "div": lambda a, b: 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "rem": lambda a, b: a - b * SIGNED["div"](a, b),
    "min": min, "max": max,
    "mul.hi": lambda a, b: a * b >> 32,
}  # fmt: skip


@pytest.mark.parametrize("sign", "us")
@pytest.mark.parametrize("name", SIGNED)
def test_signed_and_unsigned(run, name: str, sign: str) -> None:
    seen = s if sign == "s" else int
    pairs = itertools.product(EDGES, EDGES)
    triples = [(a, b, 0) for a, b in pairs if b or name not in ("div", "rem")][::3]
    found = run(f"{name}.{sign}32 %r0, %r1, %r2;", triples)
    agree(found, triples, lambda a, b, _: SIGNED[name](seen(a), seen(b)), name)


PREDICATED = {
    "mov.u32 %r0, %r2;": lambda a, b: b, "add.u32 %r0, %r0, %r2;": lambda a, b: 77 + b,
    "ld.global.u32 %r0, [%r10+4];": lambda a, b: b, "mul.hi.u32 %r0, %r1, %r2;": lambda a, b: a * b >> 32,
    "selp.b32 %r0, %r1, %r2, %p1;": lambda a, b: a, "popc.b32 %r0, %r2;": lambda a, b: b.bit_count(),
    "prmt.b32 %r0, %r1, %r2, 0x7531;": lambda a, b: prmt(a, b, 0x7531),
    "atom.global.exch.b32 %r0, [%r10], %r2;": lambda a, b: a,
}  # fmt: skip


@pytest.mark.parametrize("body", PREDICATED)
@pytest.mark.parametrize("negated", ["", "!"])
def test_predicated_instructions_keep_the_old_destination(run, body: str, negated: str) -> None:
    triples = [(a, b, c & 1) for a, b, c in words(40)]
    found = run(f"setp.ne.u32 %p1, %r3, 0; mov.pred %p2, %p1; @{negated}%p2 {body.replace('%p1', '%p2')}", triples)
    if negated and "selp" in body:
        agree(found, triples, lambda a, b, c: b if not c else 77, body)
    else:
        agree(found, triples, lambda a, b, c: PREDICATED[body](a, b) if bool(c) != bool(negated) else 77, body)


def test_a_barrier_met_through_different_paths_and_after_exits(run) -> None:
    """Threads come to one barrier by three paths, some after others have left for good."""
    body = (
        "setp.ge.u32 %p3, %r9, 100; @%p3 ret;\n"
        "and.b32 %r4, %r9, 3; setp.eq.u32 %p1, %r4, 0; @%p1 bra A; setp.eq.u32 %p1, %r4, 1; @%p1 bra B;\n"
        "mov.u32 %r5, 3; bra MEET; A: mov.u32 %r5, 1; bra MEET; B: mov.u32 %r5, 2; MEET:\n"
        "st.global.u32 [%r11], %r5; bar.sync 0; xor.b32 %r6, %r9, 1; sub.u32 %r6, %r6, %r9;\n"
        "mad.lo.u32 %r7, %r6, 4, %r11; ld.global.u32 %r8, [%r7]; bar.sync 0; mad.lo.u32 %r0, %r5, 10, %r8;"
    )
    found = run(body, [(0, 0, 0)] * THREADS)
    kind = [{0: 1, 1: 2}.get(thread & 3, 3) for thread in range(THREADS)]
    assert found == [10 * kind[t] + kind[t ^ 1] if t < 100 else 0 for t in range(THREADS)]


def test_votes_around_convergence_points(run) -> None:
    """A ballot before, inside and behind a branch counts the lanes of its own mask, wherever it has been put."""
    body = (
        "and.b32 %r4, %r9, 1; setp.eq.u32 %p1, %r4, 1; setp.gt.u32 %p2, %r9, 9; vote.sync.ballot.b32 %r5, %p2, -1;\n"
        "mov.u32 %r6, 0; @!%p1 bra JOIN; vote.sync.ballot.b32 %r6, %p2, 0xAAAAAAAA; JOIN: bar.warp.sync -1;\n"
        "vote.sync.ballot.b32 %r7, %p1, -1; xor.b32 %r0, %r5, %r6; xor.b32 %r0, %r0, %r7;"
    )
    above = M32 & ~0x3FF
    found = run(body, [(0, 0, 0)] * 32, 32)
    assert found == [above ^ (above & 0xAAAAAAAA if lane & 1 else 0) ^ 0xAAAAAAAA for lane in range(32)]
