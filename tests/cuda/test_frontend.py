"""PTX to IR: what each spelling becomes, calls put in place, and refusals that come all at once with their lines."""

import numpy as np
import pytest
from tests.cuda.harness import HEAD, REGISTERS, ir_of, launch, parse

from qgpu.cuda.compile import compile_cuda
from qgpu.cuda.frontend import translate
from qgpu.cuda.ir_text import text_of
from qgpu.cuda.optimize import optimize
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.errors import PtxError, UnsupportedError


def lines(body, parameters=".param .u32 a"):
    """The text of the IR of a body, its head and its final exit left out."""
    text = text_of(ir_of(body, parameters)).splitlines()
    start = next(number for number, line in enumerate(text) if line == "entry:")
    assert text[-1] == "  exit"
    return [line.strip() for line in text[start + 1 : -1]]


@pytest.mark.parametrize(
    ("ptx", "ir"),
    [
        ("mov.u32 %r1, %tid.x;", ["%r1 = mov %tid.x"]),
        ("mov.u32 %r1, WARP_SZ;", ["%r1 = mov 32"]),
        ("mov.pred %p1, -1;", ["%p1 = mov.pred 1"]),
        ("mov.f32 %f1, 0f3F800000;", ["%f1 = mov 1065353216"]),
        ("mov.b64 {%r1, %r2}, %d1;", [".1 = zext32 %d1", ".2 = high %d1", "%r1 = mov .1", "%r2 = mov .2"]),
        ("mov.b64 %d1, {%r1, %r2};", ["%d1 = pack %r1, %r2"]),
        ("mov.b32 %r1, {%h1, %h2};", ["%r1 = pack.b16 %h1, %h2"]),
        ("add.s32 %r1, %r2, -1;", ["%r1 = add %r2, -1"]),
        ("sub.s64 %d1, %d2, 5;", ["%d1 = sub.b64 %d2, 5"]),
        ("mul.lo.u16 %h1, %h2, %h3;", ["%h1 = mul.b16 %h2, %h3"]),
        ("mul.hi.s32 %r1, %r2, %r3;", ["%r1 = mulhi.s %r2, %r3"]),
        ("mul.wide.u32 %d1, %r2, %r3;", ["%d1 = mulwide.u %r2, %r3"]),
        ("mul.wide.s16 %r1, %h2, 3;", [".1 = sext16 %h2", ".2 = sext16 3", "%r1 = mul .1, .2"]),
        ("mad.lo.s32 %r1, %r2, %r3, %r4;", [".1 = mul %r2, %r3", "%r1 = add .1, %r4"]),
        ("mad.hi.u32 %r1, %r2, %r3, 7;", [".1 = mulhi.u %r2, %r3", "%r1 = add .1, 7"]),
        ("mad.wide.s32 %d1, %r2, 4, %d2;", [".1 = mulwide.s %r2, 4", "%d1 = add.b64 .1, %d2"]),
        ("min.s32 %r1, %r2, %r3;", ["%r1 = min.s %r2, %r3"]),
        ("shl.b64 %d1, %d2, %r3;", ["%d1 = shl.b64 %d2, %r3"]),
        ("shr.s32 %r1, %r2, 3;", ["%r1 = shr.s %r2, 3"]),
        ("shr.b32 %r1, %r2, 3;", ["%r1 = shr.u %r2, 3"]),
        ("shf.l.wrap.b32 %r1, %r2, %r3, %r4;", ["%r1 = funnel.l.wrap %r2, %r3, %r4"]),
        ("and.pred %p1, %p2, %p3;", ["%p1 = and.pred %p2, %p3"]),
        ("not.pred %p1, %p2;", ["%p1 = not.pred %p2"]),
        ("selp.b32 %r1, 1, 0, %p1;", ["%r1 = select 1, 0, %p1"]),
        ("bfe.u32 %r1, %r2, 8, 4;", ["%r1 = extract.u %r2, 8, 4"]),
        ("bfi.b32 %r1, %r2, %r3, 8, 4;", ["%r1 = insert %r2, %r3, 8, 4"]),
        ("bfind.shiftamt.u32 %r1, %r2;", ["%r1 = findshift.u %r2"]),
        ("popc.b64 %r1, %d1;", ["%r1 = popc.b64 %d1"]),
        ("lop3.b32 %r1, %r2, %r3, %r4, 0x80;", ["%r1 = logic3 %r2, %r3, %r4, 128"]),
        ("sad.u32 %r1, %r2, %r3, %r4;",
         [".1 = max.u %r2, %r3", ".2 = min.u %r2, %r3", ".3 = sub .1, .2", "%r1 = add .3, %r4"]),
        ("setp.lt.s32 %p1, %r1, %r2;", ["%p1 = lt.s %r1, %r2"]),
        ("setp.lo.u32 %p1, %r1, %r2;", ["%p1 = lt.u %r1, %r2"]),
        ("setp.eq.b64 %p1, %d1, 0;", ["%p1 = eq.b64 %d1, 0"]),
        ("setp.ge.u32 %p1|%p2, %r1, %r2;",
         [".1 = ge.u %r1, %r2", "%p1 = mov.pred .1", ".2 = not.pred .1", "%p2 = mov.pred .2"]),
        ("setp.eq.or.s32 %p1, %r1, 3, !%p2;", [".1 = not.pred %p2", ".2 = eq %r1, 3", "%p1 = or.pred .2, .1"]),
        ("set.gt.u32.s32 %r1, %r2, 0;", [".1 = gt.s %r2, 0", "%r1 = select -1, 0, .1"]),
        ("slct.s32.s32 %r1, %r2, %r3, %r4;", [".1 = ge.s %r4, 0", "%r1 = select %r2, %r3, .1"]),
        ("cvt.u64.u32 %d1, %r1;", ["%d1 = zext32.b64 %r1"]),
        ("cvt.s64.s32 %d1, %r1;", ["%d1 = sext32.b64 %r1"]),
        ("cvt.u32.u64 %r1, %d1;", ["%r1 = zext32 %d1"]),
        ("cvt.s32.s8 %r1, %h1;", ["%r1 = sext8 %h1"]),
        ("cvt.s8.s32 %r1, %r2;", ["%r1 = sext8 %r2"]),
        ("cvt.u16.s8 %r1, %h1;", [".1 = sext8.b16 %h1", "%r1 = zext16 .1"]),
        ("cvt.u16.u32 %h1, %r1;", ["%h1 = zext16.b16 %r1"]),
        ("cvta.to.global.u32 %r1, %r2;", ["%r1 = mov %r2"]),
        ("ld.param.b32 %r1, [a];", ["%r1 = mov param[0]"]),
        ("ld.global.b32 %r1, [%r2+8];", ["%r1 = load.global.u32 [%r2 + 8]"]),
        ("ld.global.nc.L2::128B.s8 %r1, [%r2];", ["%r1 = load.global.s8 [%r2]"]),
        ("ld.volatile.shared.u16 %h1, [%r2];", ["%h1 = volatile load.shared.u16 [%r2]"]),
        ("ld.acquire.gpu.u32 %r1, [%r2];", ["%r1 = volatile load.generic.u32 [%r2]"]),
        ("ld.global.b32 %d1, [%r2];", ["%d1 = load.global.u32 [%r2]"]),
        ("ld.global.v2.b32 {%r1, _}, [%r2];", ["%r1, .1 = load.global.u32 [%r2]"]),
        ("ld.global.b32 %r1, [%d2+4];", [".1 = zext32 %d2", "%r1 = load.global.u32 [.1 + 4]"]),
        ("ld.global.b32 %r1, [64];", ["%r1 = load.global.u32 [64]"]),
        ("st.global.b32 [%r1], %d2;", ["store.global.32 [%r1], %d2"]),
        ("st.shared.v2.b32 [%r1], {%r2, 7};", ["store.shared.32 [%r1], %r2, 7"]),
        ("atom.global.add.u32 %r1, [%r2], 1;", ["%r1 = atomic.add.global.32 [%r2], 1"]),
        ("atom.acquire.sys.shared.cas.b32 %r1, [%r2], %r3, %r4;", ["%r1 = atomic.cas.shared.32 [%r2], %r3, %r4"]),
        ("atom.global.min.s32 _, [%r2], %r3;", ["atomic.min.s.global.32 [%r2], %r3"]),
        ("red.global.add.s32 [%r2], %r3;", ["atomic.add.global.32 [%r2], %r3"]),
        ("bar.sync 0;", ["barrier"]),
        ("barrier.cta.sync.aligned 0;", ["barrier"]),
        ("bar.red.popc.u32 %r1, 0, !%p1;", [".1 = not.pred %p1", "%r1 = barrier.popc .1"]),
        ("bar.warp.sync -1;", ["syncwarp -1"]),
        ("membar.gl;", ["fence"]),
        ("fence.sc.sys;", ["fence"]),
        ("shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;", ["%r1, %p1 = shuffle.bfly %r2, 1, 31, -1"]),
        ("vote.sync.ballot.b32 %r1, %p1, -1;", ["%r1 = vote.ballot.pred %p1, -1"]),
        ("match.any.sync.b64 %r1, %d1, -1;", ["%r1 = match.any.b64 %d1, -1"]),
        ("redux.sync.min.s32 %r1, %r2, -1;", ["%r1 = reduce.min.s %r2, -1"]),
        ("activemask.b32 %r1;", ["%r1 = activemask"]),
        ("@!%p1 add.s32 %r1, %r1, 1;", ["@!%p1 %r1 = add %r1, 1"]),
        ("@%p1 mad.lo.s32 %r1, %r2, %r3, %r4;", [".1 = mul %r2, %r3", "@%p1 %r1 = add .1, %r4"]),
    ],
)  # fmt: skip
def test_spelling(ptx, ir):
    assert lines(ptx + " ret;") == ir


def test_parameters_smaller_than_a_word_are_cut_out_of_it():
    parameters = ".param .u8 a, .param .s8 b, .param .u16 c, .param .u64 d"
    assert lines("ld.param.s8 %r1, [b]; ld.param.u16 %h1, [c]; ld.param.u64 %d1, [d]; ret;", parameters) == [
        ".1 = shr.u param[0], 8", "%r1 = sext8 .1", ".2 = shr.u param[0], 16", "%h1 = zext16.b16 .2",
        "%d1 = mov.b64 param[8]:b64",
    ]  # fmt: skip


# ---- Control flow ----


def test_branches_and_guarded_ends():
    text = text_of(ir_of("A: @%p1 bra A; @!%p2 ret; @%p3 trap; bra.uni B; mov.b32 %r1, 1; B: exit;"))
    assert text.split("\n", 1)[1] == "\n".join(
        ["entry:", "  jump A", "A:", "  branch %p1 ? A : after1", "after1:", "  branch !%p2 ? after2 : after3",
         "after2:", "  exit", "after3:", "  branch %p3 ? after4 : after5", "after4:", "  trap", "after5:", "  jump B",
         "B:", "  exit"]
    )  # fmt: skip


def test_indexed_branch():
    text = text_of(ir_of("T: .branchtargets A, B, A; brx.idx %r1, T; A: ret; B: trap;"))
    assert "  switch %r1 ? A, B, A" in text


CALLS = """
__device__ __noinline__ int twice(int x) { return x + x; }
struct Pair { long long first; char second; };
__device__ __noinline__ Pair pair(int x) { return Pair{twice(x), (char)twice(x + 1)}; }
__global__ void k(int* out) { Pair p = pair(out[0]); out[1] = (int)p.first + p.second; }
"""


def test_device_functions_stand_in_the_place_of_their_calls():
    module = parse_ptx(compile_cuda(CALLS, "calls.cu"), "calls.ptx")
    assert [function.name for function in module.functions if not function.entry], "there is nothing to put in place"
    optimised = text_of(optimize(translate(module, "k")))
    assert "b1:" not in optimised  # one straight block
    assert optimised.count("add") + optimised.count("shl") >= 3


def test_parameters_may_be_registers_of_the_function():
    source = f"""{HEAD}
    .func (.reg .b32 sum) add (.reg .b32 x, .reg .b32 y) {{ add.s32 sum, x, y; ret; }}
    .func (.param .b32 twice) double (.param .b32 x) {{ .reg .b32 %r<3>;
      ld.param.b32 %r1, [x]; add.s32 %r2, %r1, %r1; st.param.b32 [twice], %r2; ret; }}
    .entry k(.param .u32 a) {{ .reg .b32 %r<8>; .reg .pred %p<2>;
      ld.param.b32 %r1, [a]; ld.global.b32 %r2, [%r1]; setp.ne.s32 %p1, %r2, 5; mov.b32 %r4, 1000;
      call (%r3), add, (%r2, 40);
      @%p1 call.uni (%r4), double, (%r3);
      st.global.b32 [%r1], %r4; ret; }}"""
    function = translate(parse_ptx(source, "k.ptx"), "k")
    assert [launch(function, [np.array([x], np.int32)])[0][0] for x in (5, 6)] == [1000, 92]


def test_a_parameter_is_put_together_from_the_pieces_it_was_passed_in():
    source = f"""{HEAD}
    .func (.param .b32 r) f (.param .align 8 .b8 s[16]) {{ .reg .b32 %r<9>; .reg .b16 %h<3>; .reg .b64 %d<2>;
      ld.param.b32 %r1, [s+4]; ld.param.b32 %r2, [s+8]; ld.param.s8 %r3, [s+13];
      mad.lo.s32 %r4, %r2, 3, %r1; add.s32 %r4, %r4, %r3; st.param.b32 [r], %r4; ret; }}
    .entry k(.param .u32 a) {{ .reg .b32 %r<9>; .reg .b64 %d<3>;
      ld.param.b32 %r1, [a]; ld.global.b64 %d1, [%r1]; ld.global.b64 %d2, [%r1+8];
      {{ .param .align 8 .b8 p[16]; .param .b32 q;
      st.param.b64 [p], %d1; st.param.b64 [p+8], %d2; call.uni (q), f, (p); ld.param.b32 %r2, [q]; }}
      st.global.b32 [%r1], %r2; ret; }}"""
    function = translate(parse_ptx(source, "k.ptx"), "k")
    values = np.array([1, -20, 300, -0x12345678], np.int32)
    third = int(np.frombuffer(values.tobytes(), np.int8)[13])
    assert launch(function, [values])[0][0] == -20 + 900 + third


def test_a_parameter_whose_address_is_taken_is_a_copy_in_local_memory():
    source = f"""{HEAD.replace("32", "64")}.entry k(.param .u64 a, .param .align 4 .b8 s[10]) {{
      .reg .b64 %d<9>; .reg .b32 %r<9>; ld.param.u64 %d1, [a]; mov.b64 %d2, s; ld.global.s32 %r1, [%d1];
      mul.wide.s32 %d3, %r1, 2; add.s64 %d4, %d2, %d3; ld.param.s16 %r2, [%d4+2]; st.global.b32 [%d1], %r2; ret; }}"""
    function = translate(parse_ptx(source, "k.ptx"), "k")
    halves = [11, -22, 33, -44, 55]
    word = int.from_bytes(np.array(halves, np.int16).tobytes(), "little")
    found = [launch(optimize(function), [np.array([i], np.int32), word])[0][0] for i in range(4)]
    assert found == halves[1:]


def test_recursion_is_refused():
    source = "__device__ __noinline__ int f(int n) { return n < 2 ? n : f(n - 1) * f(n - 2); }\n"
    source += "__global__ void k(int* a) { a[0] = f(a[1]); }"
    with pytest.raises(UnsupportedError, match="f calls itself: recursion is not there, use a loop"):
        translate(parse_ptx(compile_cuda(source, "r.cu"), "r.ptx"), "k")


def test_calls_that_multiply_are_stopped():
    functions = "".join(
        f".func f{n}() {{ call f{n + 1}; call f{n + 1}; ret; }}\n" for n in range(60)
    ) + ".func f60() { ret; }\n"  # fmt: skip
    with pytest.raises(UnsupportedError, match="more than 50000 instructions"):
        translate(parse_ptx(f"{HEAD}{functions}.entry k() {{ call f0; ret; }}", "k.ptx"), "k")


# ---- Refusals ----


def test_all_refusals_come_at_once_with_their_lines():
    source = "__global__ void k(float* a, int* b) {\n  a[0] = a[1] * a[2];\n  b[0] = 1;\n  b[1] = (int)a[3];\n}\n"
    with pytest.raises(UnsupportedError) as caught:
        translate(parse_ptx(compile_cuda(source, "dir/k.cu"), "k.ptx", {"dir/k.cu": source}), "k")
    head, *rest = str(caught.value).splitlines()
    assert head == "k.ptx: kernel k holds 2 things this machine cannot run:"
    assert [line.split(" (PTX line ")[0] for line in rest[::3]] == ["  dir/k.cu:2", "  dir/k.cu:4"]
    assert "mul.f32" in rest[0] and "cvt.rzi.s32.f32" in rest[3]
    assert rest[1::3] == ["    a[0] = a[1] * a[2];", "    b[1] = (int)a[3];"]
    assert all("floating point is not there yet" in line for line in rest[2::3])


@pytest.mark.parametrize(
    ("ptx", "hint"),
    [
        ("add.f32 %f1, %f2, %f3;", "floating point"),
        ("fma.rn.f32 %f1, %f2, %f3, %f1;", "floating point"),
        ("setp.gt.f32 %p1, %f1, %f2;", "floating point"),
        ("atom.global.add.f32 %f1, [%r1], %f2;", "floating point"),
        ("add.s32 %r1, %r2, %d3;", "another width"),
        ("add.sat.u32 %r1, %r2, %r3;", ".sat is there for .s32 only"),
        ("add.rn.s32 %r1, %r2, %r3;", "this form of the instruction is not there"),
        ("isspacep.local %p1, %r1;", "shared or global only"),
        ("ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [%r1];", "more than 16 bytes"),
        ("add.s32 %r1, %r2;", "2 operands, expected 3"),
        ("mov.u32 %r1, %clock;", "%clock has no meaning on this machine"),
        ("mov.u32 %r1, nothing;", "there is no variable nothing"),
        ("mov.u32 %r1, k;", "pointers to functions are not there"),
        ("bar.sync 1;", "named barriers are not there"),
        ("bar.sync 0, 64;", "2 operands, expected 1"),
        ("shfl.idx.b32 %r1, %r2, 0, 31;", "use the _sync form"),
        ("tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [a, {%r1}];", "textures"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 %r1, %r2, %r3, %r4;", "matrix units"),
        ("call.uni (%r1), %r2, (%r3);", "calls through pointers"),
        ("call nothing;", "the function nothing has no body here"),
        ("call malloc;", "there is no heap: pass memory to the kernel"),
        ("nonsense.b32 %r1;", "this instruction is not there"),
        ("ld.global.b128 %r1, [%r2];", "128 bits"),
    ],
)
def test_refusal(ptx, hint):
    with pytest.raises(UnsupportedError) as caught:
        ir_of(f"ret;\n{ptx}")
    assert hint in str(caught.value)
    assert f"  PTX line 9: {ptx[:-1]}" in str(caught.value)


def test_kernels_are_found_by_either_name():
    module = parse_ptx(compile_cuda("__global__ void f(int* a) {} __global__ void f(int a) {}", "f.cu"), "f.ptx")
    with pytest.raises(PtxError, match="several kernels f: _Z1fPi, _Z1fi; use one of these names"):
        translate(module, "f")
    assert translate(module, "_Z1fi").name == "f"
    with pytest.raises(PtxError, match="there is no kernel g; there are: f, f"):
        translate(module, "g")


def test_variables_of_the_kernel_and_their_bytes():
    source = (
        "__constant__ short t[4] = {1, -2}; __device__ int counter; extern __shared__ int dynamic[];\n"
        "__global__ void k(int* a) { __shared__ int s[8]; s[threadIdx.x] = a[0]; __syncthreads();"
        " a[1] = t[a[2]] + s[a[3]] + dynamic[a[4]] + atomicAdd(&counter, 1); }"
    )
    function = translate(parse_ptx(compile_cuda(source, "v.cu"), "v.ptx"), "k")
    found = {variable.name.strip("_").split("E")[-1]: variable for variable in function.variables}
    assert (found["t"].space, found["t"].initial) == ("const", b"\1\0\xfe\xff\0\0\0\0")
    assert (found["counter"].space, found["counter"].initial) == ("global", bytes(4))
    assert (found["1s"].space if "1s" in found else found["s"].space) == "shared"
    assert (found["dynamic"].size, found["dynamic"].initial) == (0, None)


def test_origins_name_the_users_line():
    source = "__global__ void k(int* a) {\n  int x = a[threadIdx.x];\n  __syncthreads();\n  atomicAdd(a, x);\n}\n"
    function = translate(parse_ptx(compile_cuda(source, "o.cu"), "o.ptx"), "k")
    where = {type(item).__name__: item.origin.source.line for block in function.blocks for item in block.instructions}
    assert (where["Load"], where["Barrier"], where["Atomic"]) == (2, 3, 4)


def test_the_module_of_a_body_is_what_the_tests_think():
    assert parse("ret;", REGISTERS).kernels[0].body[0].line == 8
