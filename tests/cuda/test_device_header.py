"""The device header: every integer function of CUDA C, compiled and run, against plain Python; warps against lists."""

import itertools
import random

import numpy as np
import pytest
from tests.cuda.harness import kernel_from_source, launch

from qgpu.cuda import nvrtc
from qgpu.cuda.compile import compile_cuda
from qgpu.cuda.frontend import translate
from qgpu.cuda.optimize import optimize
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.errors import UnsupportedError

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
RANDOM = random.Random(3)
EDGES = [0, 1, 31, 32, 33, 0x80, 0x7FFF, 0x8000_0000, 0x7FFF_FFFF, M32, 0x80FF_7F01]
TRIPLES = [*itertools.islice(itertools.product(EDGES, repeat=3), 0, None, 37)] + [
    tuple(RANDOM.getrandbits(32) for _ in range(3)) for _ in range(24)
]


def s(value, bits=32):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def packed(bits, function, signed):
    """Applies a function to the parts of two words."""

    def apply(a, b, c):
        result = 0
        for i in range(0, 32, bits):
            x, y = (value >> i & ((1 << bits) - 1) for value in (a, b))
            x, y = (s(x, bits), s(y, bits)) if signed else (x, y)
            result |= (int(function(x, y)) & ((1 << bits) - 1)) << i
        return result

    return apply


def clamp(value, low, high):
    return max(low, min(high, value))


def nth_one(mask, base, offset):
    if base > 31:
        return M32
    if offset == 0:
        return base if mask >> base & 1 else M32
    places = [i for i in (range(base, 32) if offset > 0 else range(base, -1, -1)) if mask >> i & 1]
    return places[abs(offset) - 1] if len(places) >= abs(offset) else M32


# a, b and c are unsigned words in C and in Python; x is the 64-bit a:b; the results are words or pairs of words
WORDS = [
    ("__popc(a)", lambda a, b, c: a.bit_count()),
    ("__clz((int)a)", lambda a, b, c: 32 - a.bit_length()),
    ("__ffs(a)", lambda a, b, c: (a & -a).bit_length()),
    ("__brev(a)", lambda a, b, c: int(f"{a:032b}"[::-1], 2)),
    ("__popcll(x)", lambda a, b, c: a.bit_count() + b.bit_count()),
    ("__clzll((long long)x)", lambda a, b, c: 64 - (a << 32 | b).bit_length()),
    ("__ffsll(x)", lambda a, b, c: ((a << 32 | b) & -(a << 32 | b)).bit_length()),
    ("__brevll(x) >> 32", lambda a, b, c: int(f"{b:032b}"[::-1], 2)),
    ("__mulhi((int)a, (int)b)", lambda a, b, c: s(a) * s(b) >> 32),
    ("__umulhi(a, b)", lambda a, b, c: a * b >> 32),
    ("__mul64hi((long long)x, (long long)c)", lambda a, b, c: s(a << 32 | b, 64) * c >> 64),
    ("__umul64hi(x, x)", lambda a, b, c: (a << 32 | b) ** 2 >> 64),
    ("__mul24((int)a, (int)b)", lambda a, b, c: s(a, 24) * s(b, 24)),
    ("__umul24(a, b)", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    ("__hadd((int)a, (int)b)", lambda a, b, c: s(a) + s(b) >> 1),
    ("__rhadd((int)a, (int)b)", lambda a, b, c: s(a) + s(b) + 1 >> 1),
    ("__uhadd(a, b)", lambda a, b, c: a + b >> 1),
    ("__urhadd(a, b)", lambda a, b, c: a + b + 1 >> 1),
    ("__sad((int)a, (int)b, c)", lambda a, b, c: abs(s(a) - s(b)) + c),
    ("__usad(a, b, c)", lambda a, b, c: abs(a - b) + c),
    ("__funnelshift_l(a, b, c)", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
    ("__funnelshift_r(a, b, c)", lambda a, b, c: (b << 32 | a) >> (c & 31)),
    ("__funnelshift_lc(a, b, c)", lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32),
    ("__funnelshift_rc(a, b, c)", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    ("__byte_perm(a, b, c)", lambda a, b, c: int.from_bytes(
        bytes((b << 32 | a) >> 8 * (c >> 4 * i & 7) & 255 for i in range(4)), "little")),
    ("min((int)a, (int)b)", lambda a, b, c: min(s(a), s(b))),
    ("max(a, (int)b)", lambda a, b, c: max(a, b)),
    ("max((long long)(int)a, (long long)(int)b) >> 1", lambda a, b, c: max(s(a), s(b)) >> 1),
    ("abs((int)a)", lambda a, b, c: abs(s(a))),
    ("llabs((long long)x) >> 32", lambda a, b, c: (abs(s(a << 32 | b, 64)) & M64) >> 32),
    ("__dp4a((int)a, (int)b, (int)c)",
     lambda a, b, c: c + sum(s(a >> i, 8) * s(b >> i, 8) for i in (0, 8, 16, 24))),
    ("__dp4a(a, b, c)", lambda a, b, c: c + sum((a >> i & 255) * (b >> i & 255) for i in (0, 8, 16, 24))),
    ("__dp2a_hi((int)a, (int)b, (int)c)",
     lambda a, b, c: c + s(a, 16) * s(b >> 16, 8) + s(a >> 16, 16) * s(b >> 24, 8)),
    ("__dp2a_lo(a, b, c)", lambda a, b, c: c + (a & 0xFFFF) * (b & 255) + (a >> 16) * (b >> 8 & 255)),
    ("__vadd4(a, b)", packed(8, lambda x, y: x + y, False)),
    ("__vsub2(a, b)", packed(16, lambda x, y: x - y, False)),
    ("__vaddss2(a, b)", packed(16, lambda x, y: clamp(x + y, -32768, 32767), True)),
    ("__vsubus4(a, b)", packed(8, lambda x, y: max(x - y, 0), False)),
    ("__vmaxs4(a, b)", packed(8, max, True)),
    ("__vminu2(a, b)", packed(16, min, False)),
    ("__vabsdiffu4(a, b)", packed(8, lambda x, y: abs(x - y), False)),
    ("__vavgs4(a, b)", packed(8, lambda x, y: (abs(x + y) + 1) // 2 * (1 if x + y >= 0 else -1), True)),
    ("__vcmpgts2(a, b)", packed(16, lambda x, y: -(x > y), True)),
    ("__vseteq4(a, b)", packed(8, lambda x, y: x == y, False)),
    ("__vsadu4(a, b)", lambda a, b, c: sum(abs((a >> i & 255) - (b >> i & 255)) for i in (0, 8, 16, 24))),
    ("(unsigned)INT_MAX + sizeof(int4)", lambda a, b, c: 2**31 - 1 + 16),
    ("make_short4(a, b, c, a).z", lambda a, b, c: s(c, 16)),
    ("dim3(a, b).z + uint3{a, b, c}.y + warpSize", lambda a, b, c: 1 + b + 32),
    ("(int)a / ((int)b | 1)", lambda a, b, c: abs(s(a)) // abs(s(b | 1)) * (1 if (s(a) < 0) == (s(b | 1) < 0) else -1)),
    ("(long long)x % 1000003", lambda a, b, c: (abs(s(a << 32 | b, 64)) % 1000003) * (-1 if a >> 31 else 1)),
    ("x / (c | 1)", lambda a, b, c: (a << 32 | b) // (c | 1)),
    ("(signed char)a * (short)b + (bool)c", lambda a, b, c: s(a, 8) * s(b, 16) + (c != 0)),
]  # fmt: skip


@pytest.mark.parametrize("compiler", ["ziglang", "nvrtc"])
def test_every_function(compiler):
    if compiler == "nvrtc" and nvrtc.find_library() is None:
        pytest.skip("NVRTC is not installed")
    lines = "\n".join(f"  out[{number}] = (unsigned)({text});" for number, (text, _) in enumerate(WORDS))
    source = f"""#include <limits.h>
    __global__ void k(const unsigned* in, unsigned* out) {{
      in += 3 * threadIdx.x; out += {len(WORDS)} * threadIdx.x;
      unsigned a = in[0], b = in[1], c = in[2]; unsigned long long x = (unsigned long long)a << 32 | b;
    {lines}
    }}"""
    words = np.array(TRIPLES, np.uint32).reshape(-1)
    results = np.zeros(len(TRIPLES) * len(WORDS), np.uint32)
    translated = translate(parse_ptx(compile_cuda(source, "test.cu", compiler=compiler), "test.cu"), "k")
    for function in (translated, optimize(translated)):
        found = launch(function, [words, results], (1,), (len(TRIPLES),))[1]
        table = found.reshape(len(TRIPLES), len(WORDS))
        for number, (text, oracle) in enumerate(WORDS):
            wrong = [
                (triple, hex(int(got)), hex(oracle(*triple) & M32))
                for triple, got in zip(TRIPLES, table[:, number], strict=True)
                if int(got) != oracle(*triple) & M32
            ]
            assert not wrong, (text, wrong[:3])


# ---- Warps: 40 threads, so that the second warp is not whole ----

THREADS = 40
WARPS = [
    ("__shfl_sync(~0u, v, 3)", lambda w, i: w[3]),
    ("__shfl_sync(~0u, v, i + 1, 8)", lambda w, i: w[(i & ~7) | (i + 1) & 7]),
    ("__shfl_up_sync(~0u, v, 2)", lambda w, i: w[i - 2] if i >= 2 else w[i]),
    ("__shfl_down_sync(~0u, v, 1, 4)", lambda w, i: w[i + 1] if i % 4 < 3 else w[i]),
    ("__shfl_xor_sync(~0u, v, 5, 8)", lambda w, i: w[i ^ 5]),
    ("__shfl_xor_sync(~0u, ((long long)v << 33) - 1, 1) >> 31", lambda w, i: ((w[i ^ 1] << 33) - 1) >> 31),
    ("__ballot_sync(~0u, v & 1)", lambda w, i: sum((x & 1) << j for j, x in enumerate(w))),
    ("__any_sync(~0u, v == 7)", lambda w, i: any(x == 7 for x in w)),
    ("__all_sync(~0u, v >= 0)", lambda w, i: all(x >= 0 for x in w)),
    ("__uni_sync(~0u, v < 0)", lambda w, i: len({x < 0 for x in w}) == 1),
    ("__activemask()", lambda w, i: (1 << len(w)) - 1),
    ("__match_any_sync(~0u, v & 3)", lambda w, i: sum((x & 3 == w[i] & 3) << j for j, x in enumerate(w))),
    ("__match_any_sync(~0u, (long long)v << 40)", lambda w, i: sum((x == w[i]) << j for j, x in enumerate(w))),
    ("(__match_all_sync(~0u, v & 3, &all), all)", lambda w, i: len({x & 3 for x in w}) == 1),
    ("__match_all_sync(~0u, i / 32 + 5, &all)", lambda w, i: (1 << len(w)) - 1),
    ("__reduce_add_sync(0xff, v)", lambda w, i: sum(w[:8])),
    ("__reduce_min_sync(0xff, v)", lambda w, i: min(w[:8])),
    ("__reduce_max_sync(0xff, (unsigned)v)", lambda w, i: max(x & M32 for x in w[:8])),
    ("__reduce_xor_sync(0xff, (unsigned)v)", lambda w, i: w[0] ^ w[1] ^ w[2] ^ w[3] ^ w[4] ^ w[5] ^ w[6] ^ w[7]),
    ("__syncthreads_count(v & 1)", None),
    ("__syncthreads_or(v == 12345)", lambda w, i: 0),
    ("__syncthreads_and(1)", lambda w, i: 1),
]  # fmt: skip


@pytest.mark.parametrize("optimised", [False, True])
def test_warp_functions(optimised):
    def line(number, text):
        return f"  {'if ((i & 31) < 8) ' if '0xff' in text else ''}out[{number}] = (int)({text});"

    lines = "\n".join(line(number, text) for number, (text, _) in enumerate(WARPS))
    source = f"""__global__ void k(const int* in, int* out) {{
      int i = threadIdx.x, all; int v = in[i]; out += {len(WARPS)} * i;
    {lines}
    }}"""
    values = [RANDOM.randrange(-9, 9) for _ in range(THREADS)]
    function = kernel_from_source(source)[optimised]
    results = np.zeros(THREADS * len(WARPS), np.int32)
    found = launch(function, [np.array(values, np.int32), results], (1,), (THREADS,))[1]
    table = found.reshape(THREADS, len(WARPS))
    for number, (text, oracle) in enumerate(WARPS):
        for i in range(THREADS):
            warp = values[i // 32 * 32 : i // 32 * 32 + 32]
            expected = sum(v & 1 for v in values) if oracle is None else int(oracle(warp, i % 32))
            if "0xff" in text and i % 32 >= 8:
                expected = 0
            assert int(table[i, number]) == s(expected), (text, i)


ATOMICS = """
__global__ void k(int* i, unsigned* u, long long* l, unsigned long long* w) {
  int t = threadIdx.x;
  atomicAdd(&i[0], t); atomicSub_block(&i[1], t); atomicMin(&i[2], -t); atomicMax_system(&i[3], t);
  atomicAnd(&i[4], ~t); atomicOr(&i[5], t); atomicXor(&i[6], 1 << t); i[8 + t] = atomicExch(&i[7], t);
  u[8 + t] = atomicInc(&u[0], 2); u[16 + t] = atomicDec(&u[1], 3); atomicCAS(&u[2], t, t + 1u);
  atomicMax(&u[3], 0x80000000u + t); atomicAdd(&u[4], 7u);
  atomicAdd(&w[0], 1ull << 33); atomicMin(&l[0], -((long long)t << 34)); atomicMax(&w[1], (unsigned long long)t << 60);
  atomicCAS(&w[2], (unsigned long long)t << 40, (t + 1ull) << 40); atomicExch(&l[1], 5ll);
  atomicXor(&l[2], 1ll << (t + 30));
}
"""


def test_atomics_of_every_kind():
    threads = 5
    i, u = np.zeros(16, np.int32), np.zeros(24, np.uint32)
    i[4] = -1
    signed, unsigned = np.zeros(4, np.int64), np.zeros(4, np.uint64)
    for function in kernel_from_source(ATOMICS):
        found = launch(function, [i, u, signed, unsigned], (1,), (threads,))
        assert found[0][:8].tolist() == [10, -10, -4, 4, ~7, 7, 31, 4]
        assert found[0][8:13].tolist() == [0, 0, 1, 2, 3]
        assert found[1][:5].tolist() == [2, 3, 5, 0x80000004, 35]
        assert found[1][8:13].tolist() == [0, 1, 2, 0, 1] and found[1][16:21].tolist() == [0, 3, 2, 1, 0]
        assert found[2][:3].tolist() == [-(4 << 34), 5, 31 << 30]
        assert found[3][:3].tolist() == [5 << 33, 4 << 60, 5 << 40]


def test_the_nth_one():
    source = """__global__ void k(int* o) {
      for (int i = 0; i < 8; i++) o[i] = __fns(o[8], o[9], i - 4);
      o[10] = __fns(5, 40, 1);
    }"""
    values = np.zeros(11, np.int32)
    for mask, base in [(0x0F0F, 6), (-1, 31), (0, 3), (-(2**31) + 1, 0)]:
        values[8:10] = mask, base
        expected = [s(nth_one(mask & M32, base, i - 4)) for i in range(8)]
        for function in kernel_from_source(source):
            found = launch(function, [values])[0].tolist()
            assert found[:8] == expected and found[10] == -1


GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdint>
namespace cg = cooperative_groups;
__global__ void k(const std::int32_t* in, int* out) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<4>(block);
  auto warp = cg::tiled_partition<32>(block);
  int i = block.thread_rank(), v = in[i];
  out += 8 * i;
  out[0] = cg::reduce(tile, v, cg::plus<int>());
  out[1] = cg::reduce(warp, v, cg::greater<int>());
  out[2] = tile.shfl(v, 1) + tile.thread_rank() + 100 * tile.meta_group_rank();
  out[3] = tile.ballot(v > 0);
  cg::sync(block);
  if (v & 1) {
    auto here = cg::coalesced_threads();
    out[4] = here.size();
    out[5] = here.thread_rank();
    out[6] = here.shfl(v, here.size() - 1);
    out[7] = here.ballot(v > 0);
  }
}
"""


def test_cooperative_groups():
    values = [RANDOM.randrange(-9, 9) for _ in range(THREADS)]
    results = np.zeros(8 * THREADS, np.int32)
    found = launch(kernel_from_source(GROUPS)[0], [np.array(values, np.int32), results], (1,), (THREADS,))[1]
    for i, row in enumerate(found.reshape(-1, 8).tolist()):
        tile, warp = values[i // 4 * 4 : i // 4 * 4 + 4], values[i // 32 * 32 : i // 32 * 32 + 32]
        assert row[0] == sum(tile)
        assert row[2] == tile[1] + i % 4 + 100 * (i // 4)
        assert row[3] == sum((v > 0) << j for j, v in enumerate(tile))
        if len(warp) == 32:  # a reduction over a warp that is not whole reads lanes that are not there
            assert row[1] == max(warp)
        odd = [v for v in warp if v & 1]
        if values[i] & 1:
            rank = len([v for v in warp[: i % 32] if v & 1])
            assert row[4:] == [len(odd), rank, odd[-1], sum((v > 0) << j for j, v in enumerate(odd))]


def test_floating_point_is_refused_by_name():
    source = """__global__ void k(float* a, int* b) {
  a[0] = sqrtf(a[1]);
  b[0] = (int)pow((double)b[1], 2.0);
  a[2] = __shfl_sync(~0u, a[3], 1);
  atomicAdd(a, 1.0f);
}"""
    with pytest.raises(UnsupportedError) as caught:
        translate(parse_ptx(compile_cuda(source, "f.cu"), "f.ptx", {"f.cu": source}), "k")
    text = str(caught.value)
    assert "f.cu:2" in text and "sqrtf: floating point is not there yet" in text and "a[0] = sqrtf(a[1]);" in text
    assert "f.cu:3" in text and "pow: floating point" in text
    assert "f.cu:4" not in text  # values may be moved
    assert "f.cu:5" in text and "not passed" not in text


def test_a_clock_is_refused():
    with pytest.raises(UnsupportedError, match="%clock64 has no meaning on this machine"):
        translate(parse_ptx(compile_cuda("__global__ void k(long long* a) { *a = clock64(); }", "c.cu"), "c.ptx"), "k")
