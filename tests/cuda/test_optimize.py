"""The passes over the IR: what each makes of small functions, and that no pass changes what random functions do."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cuda.harness import KERNELS, ir_of, kernel_from_file, kernel_from_source

from qgpu.cuda.evaluate import Fault, run
from qgpu.cuda.ir import (
    Address,
    BasicBlock,
    Branch,
    Compute,
    Const,
    Exit,
    Function,
    Guard,
    Jump,
    KernelParameter,
    Load,
    Param,
    Reg,
    Special,
    Store,
    Type,
)
from qgpu.cuda.ir_text import statistics, text_of
from qgpu.cuda.optimize import optimize
from qgpu.cuda.simplify import remove_unreachable
from qgpu.cuda.verify import verify


def optimised(body, parameters=".param .u32 a, .param .u32 b"):
    """The text of the optimised IR of a body, without its head."""
    return text_of(optimize(ir_of(body, parameters))).split("\n", 1)[1].replace("\n  ", "\n").splitlines()


STORE = "st.global.b32 [0], %r1; ret;"


@pytest.mark.parametrize(
    ("ptx", "value"),
    [
        # constants and identities
        ("mov.b32 %r2, 6; mul.lo.s32 %r1, %r2, 7;", "42"),
        ("ld.param.b32 %r2, [a]; add.s32 %r1, %r2, 0;", "param[0]"),
        ("ld.param.b32 %r2, [a]; mul.lo.s32 %r1, %r2, 0;", "0"),
        ("ld.param.b32 %r2, [a]; xor.b32 %r1, %r2, %r2;", "0"),
        ("ld.param.b32 %r2, [a]; or.b32 %r1, %r2, -1;", "-1"),
        ("ld.param.b32 %r2, [a]; and.b32 %r1, -1, %r2;", "param[0]"),
        ("ld.param.b32 %r2, [a]; shr.u32 %r1, %r2, 32;", "0"),
        ("ld.param.b32 %r2, [a]; not.b32 %r3, %r2; not.b32 %r1, %r3;", "param[0]"),
        ("ld.param.b32 %r2, [a]; setp.eq.s32 %p1, 1, 2; selp.b32 %r1, %r2, 5, %p1;", "5"),
        ("div.s32 %r1, 7, 0;", "-1"),
        # widths
        ("ld.param.b32 %r2, [a]; cvt.u64.u32 %d1, %r2; cvt.u32.u64 %r1, %d1;", "param[0]"),
        ("ld.param.b32 %r2, [a]; mov.b64 %d1, {%r2, 9}; mov.b64 {%r3, %r1}, %d1;", "9"),
        ("ld.param.b32 %r2, [a]; cvta.to.global.u32 %r1, %r2;", "param[0]"),
        # a choice between constants, compared again
        ("mov.u32 %r2, %tid.x; setp.lt.s32 %p1, %r2, 3; selp.b32 %r3, 1, 0, %p1; setp.ne.s32 %p2, %r3, 0;"
         "setp.ne.s32 %p3, %r3, 5; selp.b32 %r1, 8, 9, %p3;", "8"),
    ],
)  # fmt: skip
def test_what_is_known_becomes_an_operand(ptx, value):
    assert optimised(ptx + STORE) == ["b0:", f"store.global.32 [0], {value}", "exit"]


@pytest.mark.parametrize(
    ("ptx", "operation"),
    [
        ("mul.lo.s32 %r1, %r2, 8;", "r2 = shl r1, 3"),
        ("sub.s32 %r1, %r2, 5;", "r2 = add r1, -5"),
        ("sub.s32 %r1, 0, %r2;", "r2 = neg r1"),
        ("add.s32 %r3, %r2, 5; add.s32 %r1, %r3, -2;", "r2 = add r1, 3"),
        ("shl.b32 %r3, %r2, 5; shl.b32 %r1, %r3, 2;", "r2 = shl r1, 7"),
        ("xor.b32 %r1, %r2, -1;", "r2 = not r1"),
        ("cvt.s64.s32 %d1, %r2; add.s64 %d2, %d1, 7; cvt.u32.u64 %r1, %d2;", "r2 = add r1, 7"),
        ("mul.wide.s32 %d1, %r2, 12; cvt.u32.u64 %r1, %d1;", "r2 = mul r1, 12"),
        ("cvt.s32.s8 %r3, %r2; cvt.s32.s16 %r1, %r3;", "r2 = sext8 r1"),
    ],
)
def test_operations_get_simpler(ptx, operation):
    expected = ["b0:", "r1 = load.global.u32 [4]", operation, "store.global.32 [0], r2", "exit"]
    assert optimised(f"ld.global.b32 %r2, [4]; {ptx} {STORE}") == expected


def test_the_high_word_is_kept_where_it_is_read():
    ptx = "ld.global.b32 %r2, [4]; mul.wide.s32 %d1, %r2, 12; shr.u64 %d2, %d1, 32; cvt.u32.u64 %r1, %d2;" + STORE
    assert "d1 = mulwide.s r1, 12" in optimised(ptx)


def test_negation_goes_into_branches_and_choices():
    text = optimised(
        "ld.global.b32 %r2, [4]; setp.lt.s32 %p1, %r2, 3; setp.eq.s32 %p4, %r2, 9; and.pred %p5, %p1, %p4;"
        "not.pred %p2, %p5; selp.b32 %r1, 1, 2, %p2; @!%p2 bra A; st.global.b32 [8], %r1; A: " + STORE
    )
    assert "r2 = select 2, 1, p3" in text and "branch p3 ? b2 : b1" in text
    assert not any("not" in line for line in text)


@pytest.mark.parametrize(
    ("ptx", "address"),
    [
        ("shl.b32 %r3, %r2, 2; add.s32 %r4, %r9, %r3; ld.global.b32 %r1, [%r4];", "[param[0] + r1 << 2]"),
        ("shl.b32 %r3, %r2, 2; add.s32 %r4, %r3, %r9; ld.global.b32 %r1, [%r4];", "[param[0] + r1 << 2]"),
        ("add.s32 %r4, %r9, %r2; ld.global.b32 %r1, [%r4];", "[param[0] + r1]"),
        ("add.s32 %r4, %r2, 12; ld.global.b32 %r1, [%r4+4];", "[r1 + 16]"),
        ("add.s32 %r4, %r2, -4; ld.global.b32 %r1, [%r4];", "[r1 - 4]"),
        ("mul.wide.s32 %d1, %r2, 8; cvt.u64.u32 %d2, %r9; add.s64 %d3, %d2, %d1; ld.global.b32 %r1, [%d3];",
         "[param[0] + r1 << 3]"),
        # x + (u << 2) + (v << 2): one sum and one shift
        ("ld.global.b32 %r5, [8]; shl.b32 %r3, %r2, 2; add.s32 %r4, %r9, %r3; shl.b32 %r6, %r5, 2;"
         "add.s32 %r7, %r4, %r6; ld.global.b32 %r1, [%r7];", "[param[0] + r3 << 2]"),
    ],
)  # fmt: skip
def test_sums_go_into_addresses(ptx, address):
    text = optimised(f"ld.param.b32 %r9, [a]; ld.global.b32 %r2, [4]; {ptx} {STORE}")
    assert any(line.endswith(f" = load.global.u32 {address}") for line in text), text
    assert not any(" shl " in line for line in text)


def test_a_sum_that_is_needed_anyway_stays_out_of_the_address():
    text = optimised(
        "ld.param.b32 %r9, [a]; ld.global.b32 %r2, [4]; add.s32 %r4, %r9, %r2; ld.global.b32 %r1, [%r4];"
        "st.global.b32 [8], %r4;" + STORE
    )
    assert "r3 = load.global.u32 [r2]" in text


def test_addresses_do_not_read_a_register_that_has_changed():
    """The index is written again between the sum and the load: the sum must stay."""
    text = optimised(
        "ld.param.b32 %r9, [a]; mov.b32 %r2, 0; L: add.s32 %r4, %r9, %r2; add.s32 %r2, %r2, 4;"
        "ld.global.b32 %r1, [%r4]; st.global.b32 [8], %r1; setp.lt.s32 %p1, %r2, 40; @%p1 bra L; ret;"
    )
    position = {line.split(" = ")[-1]: number for number, line in enumerate(text)}
    assert position["add param[0], r1"] < position["add r1, 4"] < position["load.global.u32 [r2]"]


def test_offsets_go_into_the_address_of_a_variable():
    source = (
        "__global__ void k(int* a) { __shared__ int s[64]; s[threadIdx.x] = 1; s[threadIdx.x + 3] = 2;"
        " __syncthreads(); a[0] = s[7]; a[1] = s[threadIdx.y]; }"
    )
    text = text_of(kernel_from_source(source)[1])
    name = next(line.split()[1].rstrip(":") for line in text.splitlines() if line.startswith("  shared"))
    assert f"[&{name} + %tid.x << 2]" in text and f"[&{name}+12 + %tid.x << 2]" in text and f"[&{name}+28]" in text


GENERIC = """
__device__ __noinline__ int total(const int* p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
__global__ void k(int* a, int n) {
  __shared__ int s[32];
  int local[8];
  s[threadIdx.x] = a[threadIdx.x];
  for (int i = 0; i < 8; i++) local[(i * n) & 7] = i;
  __syncthreads();
  a[0] = total(s + a[9], n);
  a[1] = total(a + 2, n);
  a[2] = total(local, 8);
  int* p = (n & 1) ? s : a;
  p[3] = 1;
}
"""


def test_generic_accesses_find_their_memory_where_there_is_only_one():
    text = text_of(kernel_from_source(GENERIC)[1])
    assert [line.split("[")[0].strip() for line in text.splitlines() if ".generic." in line] == ["store.generic.32"]
    assert text.count("load.shared") == text.count("load.local") == 1 and text.count("load.global") == 3


def test_nobody_reads_nobody_computes():
    assert optimised("ld.global.b32 %r1, [%r2]; add.s32 %r3, %r1, 1; atom.global.add.u32 %r4, [64], 1; ret;") == [
        "b0:", "atomic.add.global.32 [64], 1", "exit"
    ]  # fmt: skip
    assert "volatile load.generic.u32 [64]" in " ".join(optimised("ld.volatile.b32 %r1, [64]; ret;"))


def test_equal_expressions_are_computed_once_where_one_dominates():
    text = optimised(
        "ld.global.b32 %r2, [4]; add.s32 %r3, %r2, 9; st.global.b32 [8], %r3; setp.eq.s32 %p1, %r2, 0; @%p1 bra A;"
        "add.s32 %r4, %r2, 9; st.global.b32 [12], %r4; A: ret;"
    )
    assert sum("add r1, 9" in line for line in text) == 1


def test_loops_are_tested_at_their_bottom():
    text = optimised(
        "mov.b32 %r1, 0; L: setp.ge.s32 %p1, %r1, 10; @%p1 bra E; st.global.b32 [64], %r1; add.s32 %r1, %r1, 1;"
        "bra.uni L; E: ret;"
    )
    assert text == [
        "b0:", "r1 = mov 0", "jump b1",
        "b1:", "store.global.32 [64], r1", "r1 = add r1, 1", "p1 = ge.s r1, 10", "branch p1 ? b2 : b1",
        "b2:", "exit",
    ]  # fmt: skip


def test_a_header_that_exchanges_is_not_copied():
    text = optimised(
        "mov.b32 %r1, 0; L: vote.sync.any.pred %p1, %p2, -1; @%p1 bra E; add.s32 %r1, %r1, 1; bra.uni L; E: ret;"
    )
    assert sum("vote" in line for line in text) == 1


def test_moves_around_a_loop_are_written_in_place():
    text = text_of(kernel_from_file(KERNELS / "atomic_sum.cu", "atomic_sum")[1])
    assert "r2 = add r2, r3" in text and "mov r" not in text


def test_guarded_instructions_keep_the_old_value():
    text = optimised(
        "ld.global.b32 %r2, [4]; setp.eq.s32 %p1, %r2, 0; mov.b32 %r1, 5; @%p1 mov.b32 %r1, 6;" + STORE
    )
    assert text[3:] == ["r2 = mov 5", "@p1 r2 = mov 6", "store.global.32 [0], r2", "exit"]


@pytest.mark.parametrize(
    ("name", "instructions"),
    [("dot", 10), ("vector_add", 10), ("saxpy", 11), ("matmul", 31), ("trips", 17), ("atomic_sum", 13), ("matvec", 22)],
)
def test_stock_kernels_do_not_grow(name, instructions):
    """The size of the IR, terminators included, is a budget: lower it when a pass gets better."""
    assert sum(statistics(kernel_from_file(KERNELS / f"{name}.cu", name)[1]).values()) <= instructions


# ---- Random functions ----

WORDS = [Reg(f"r{i}", Type.B32) for i in range(4)]
WIDE = [Reg(f"d{i}", Type.B64) for i in range(3)]
FLAGS = [Reg(f"p{i}", Type.PRED) for i in range(2)]
BINARY = ["add", "sub", "mul", "and", "or", "xor", "min.s", "max.u", "mulhi.u", "div.s", "rem.u"]


def constants(type_):
    numbers = [0, 1, 2, 3, 4, 8, 31, 255, type_.mask, type_.mask >> 1]
    return st.sampled_from(numbers).map(lambda value: Const(value & type_.mask, type_))


WORD = st.sampled_from([*WORDS, *WORDS, Param(0, Type.B32), Param(4, Type.B32), Special("tid.x")]) | constants(Type.B32)
LONG = st.sampled_from([*WIDE, *WIDE, Param(0, Type.B64)]) | constants(Type.B64)
FLAG = st.sampled_from(FLAGS) | constants(Type.PRED)


@st.composite
def computations(draw):
    guard = draw(st.sampled_from([None, None, None, Guard(FLAGS[0]), Guard(FLAGS[1], True)]))
    word, long, flag = draw(st.sampled_from(WORDS)), draw(st.sampled_from(WIDE)), draw(st.sampled_from(FLAGS))
    kind = draw(st.integers(0, 11))
    w, v = draw(WORD), draw(WORD)
    match kind:
        case 0 | 1:
            return Compute(draw(st.sampled_from(BINARY)), Type.B32, word, (w, v), guard=guard)
        case 2:
            return Compute(draw(st.sampled_from(["mov", "neg", "not"])), Type.B32, word, (w,), guard=guard)
        case 3:
            count = draw(constants(Type.B32))
            return Compute(draw(st.sampled_from(["shl", "shr.s", "shr.u"])), Type.B32, word, (w, count), guard=guard)
        case 4:
            return Compute(draw(st.sampled_from(["eq", "ne", "lt.s", "ge.u"])), Type.B32, flag, (w, v), guard=guard)
        case 5:
            return Compute("select", Type.B32, word, (w, v, draw(FLAG)), guard=guard)
        case 6:
            op = draw(st.sampled_from(["and", "or", "xor"]))
            return Compute(op, Type.PRED, flag, (draw(FLAG), draw(FLAG)), guard=guard)
        case 7:
            return Compute("not", Type.PRED, flag, (draw(FLAG),), guard=guard)
        case 8:
            op = draw(st.sampled_from(["sext8", "zext16", "sext32", "zext32"]))
            wide = draw(st.booleans())
            dest = long if wide else word
            return Compute(op, dest.type, dest, (draw(LONG if draw(st.booleans()) else WORD),), guard=guard)
        case 9:
            op = draw(st.sampled_from(["add", "sub", "mul", "and", "xor", "mov", "shr.u", "shl"]))
            second = draw(constants(Type.B32)) if op[:2] == "sh" else draw(LONG)
            sources = (draw(LONG),) if op == "mov" else (draw(LONG), second)
            return Compute(op, Type.B64, long, sources, guard=guard)
        case 10:
            op = draw(st.sampled_from(["mulwide.s", "pack"]))
            return Compute(op, Type.B32, long, (w, v), guard=guard)
        case _:
            return Compute("high", Type.B32, word, (draw(LONG),), guard=guard)


@st.composite
def accesses(draw):
    """Loads and stores inside 256 bytes, some through a register that is masked just before."""
    masked = Reg("m", Type.B32)
    mask = Compute("and", Type.B32, masked, (draw(st.sampled_from(WORDS)), Const(0x7C, Type.B32)))
    address = draw(st.sampled_from([Address(masked), Address(masked, None, 0, 64), Address(Const(16, Type.B32))]))
    if draw(st.booleans()):
        return [mask, Load((draw(st.sampled_from(WORDS)),), "global", address, 4)]
    return [mask, Store((draw(WORD),), "global", address, 4)]


@st.composite
def functions(draw):
    count = draw(st.integers(1, 5))
    target = st.sampled_from([f"b{i}" for i in range(1, count + 1)])
    blocks = []
    for number in range(count + 1):
        items = draw(st.lists(computations(), max_size=6))
        if draw(st.booleans()):
            items += draw(accesses())
        kind = draw(st.integers(0, 4))
        if number == count or kind == 0:
            # Everything that could differ is stored at the end.
            ends = [(word, 4, 128 + 4 * i) for i, word in enumerate(WORDS)]
            ends += [(wide, 8, 160 + 8 * i) for i, wide in enumerate(WIDE)]
            items += [Store((value,), "global", Address(Const(at, Type.B32)), width) for value, width, at in ends]
            terminator = Exit()
        elif kind == 1:
            terminator = Jump(draw(target))
        else:
            terminator = Branch(draw(st.sampled_from(FLAGS)), draw(st.booleans()), draw(target), draw(target))
        blocks.append(BasicBlock(f"b{number}", tuple(items), terminator))
    parameters = tuple(KernelParameter(name, "u32", 4 * i, 4, 4, False) for i, name in enumerate("ab"))
    return verify(remove_unreachable(Function("k", parameters, (), tuple(blocks))))


def outcome(function, a, b):
    memory = bytearray(range(256))
    try:
        run(function, struct.pack("<2I", a, b), memory, (1,), (2,), limit=400)
    except Fault:
        return None  # a loop that does not end
    return bytes(memory)


@settings(max_examples=300, deadline=None)
@given(functions(), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 2**31, 2**32 - 1]))
def test_random_functions_do_the_same_when_optimised(function, a, b):
    before = outcome(function, a, b)
    if before is not None:
        assert outcome(optimize(function), a, b) == before


# ---- Bounds ----


def test_a_trip_count_is_the_bound_itself_where_a_branch_proves_it_positive():
    """max(a, 0) is a in the loop, which is entered only if it is not 0; the test becomes a > 0."""
    text = optimised(
        "ld.param.b32 %r1, [a]; max.s32 %r2, %r1, 0; mov.b32 %r3, 0; setp.eq.s32 %p1, %r2, 0; @%p1 bra E;"
        "L: st.global.b32 [4], %r3; add.s32 %r3, %r3, 1; setp.ne.s32 %p2, %r3, %r2; @%p2 bra L; E: ret;"
    )
    assert not any("max" in line for line in text)
    assert any("gt.s param[0], 0" in line or "le.s param[0], 0" in line for line in text)
    assert any("ne r1, param[0]" in line for line in text)


def test_a_maximum_stays_where_nothing_is_proved():
    text = optimised("ld.param.b32 %r1, [a]; max.s32 %r2, %r1, 0; st.global.b32 [4], %r2; ret;")
    assert any("max.s param[0], 0" in line for line in text)


def test_a_bound_that_is_too_low_proves_nothing():
    text = optimised(
        "ld.param.b32 %r1, [a]; max.s32 %r2, %r1, 5; setp.lt.s32 %p1, %r1, 3; @%p1 bra E; st.global.b32 [4], %r2; E: ret;"  # noqa: E501
    )
    assert any("max.s param[0], 5" in line for line in text)
