// The device header that is put in front of every CUDA file: what CUDA C promises and clang does not supply by itself.
//
// clang brings __syncthreads and the __nvvm_* builtins; the rest stands here: keywords, built-in variables, vector
// types, atomics, warp primitives and integer intrinsics. Everything is `nodebug`, so that an inlined call keeps
// the line of the user's own code, and `always_inline`, so that nothing of this file is left in the PTX unused.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __grid_constant__
#define __CUDA_ARCH_QGPU__ 1

#define __QGPU__ static __attribute__((device, always_inline, nodebug, unused))
#define __QGPU_BOTH__ static __attribute__((host, device, always_inline, nodebug, unused))

typedef __SIZE_TYPE__ size_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;

// ---- Vector types: aligned as in CUDA, so that the compiler may move them with one access. ----

#define __QGPU_VECTORS__(T, name, a2, a4) \
  struct name##1 { T x; }; \
  struct __align__(a2) name##2 { T x, y; }; \
  struct name##3 { T x, y, z; }; \
  struct __align__(a4) name##4 { T x, y, z, w; }; \
  __QGPU_BOTH__ name##1 make_##name##1(T x) { return name##1{x}; } \
  __QGPU_BOTH__ name##2 make_##name##2(T x, T y) { return name##2{x, y}; } \
  __QGPU_BOTH__ name##3 make_##name##3(T x, T y, T z) { return name##3{x, y, z}; } \
  __QGPU_BOTH__ name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }

__QGPU_VECTORS__(signed char, char, 2, 4)
__QGPU_VECTORS__(unsigned char, uchar, 2, 4)
__QGPU_VECTORS__(short, short, 4, 8)
__QGPU_VECTORS__(unsigned short, ushort, 4, 8)
__QGPU_VECTORS__(int, int, 8, 16)
__QGPU_VECTORS__(unsigned int, uint, 8, 16)
__QGPU_VECTORS__(long, long, 8, 16)
__QGPU_VECTORS__(unsigned long, ulong, 8, 16)
__QGPU_VECTORS__(long long, longlong, 16, 16)
__QGPU_VECTORS__(unsigned long long, ulonglong, 16, 16)
__QGPU_VECTORS__(float, float, 8, 16)
#undef __QGPU_VECTORS__

struct dim3 {
  unsigned x, y, z;
  __attribute__((host, device, nodebug)) constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
  __attribute__((host, device, nodebug)) constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __attribute__((host, device, nodebug)) operator uint3() const { return uint3{x, y, z}; }
};

// ---- Built-in variables: reading a member reads the special register. ----

#define __QGPU_INDEX__(variable, sreg) \
  struct __qgpu_##variable { \
    __declspec(property(get = __x)) unsigned x; \
    __declspec(property(get = __y)) unsigned y; \
    __declspec(property(get = __z)) unsigned z; \
    __QGPU__ unsigned __x() { return __nvvm_read_ptx_sreg_##sreg##_x(); } \
    __QGPU__ unsigned __y() { return __nvvm_read_ptx_sreg_##sreg##_y(); } \
    __QGPU__ unsigned __z() { return __nvvm_read_ptx_sreg_##sreg##_z(); } \
    __attribute__((device, always_inline, nodebug)) operator dim3() const { return dim3(__x(), __y(), __z()); } \
    __attribute__((device, always_inline, nodebug)) operator uint3() const { return uint3{__x(), __y(), __z()}; } \
  }; \
  extern const __device__ __attribute__((weak)) __qgpu_##variable variable;

__QGPU_INDEX__(threadIdx, tid)
__QGPU_INDEX__(blockIdx, ctaid)
__QGPU_INDEX__(blockDim, ntid)
__QGPU_INDEX__(gridDim, nctaid)
#undef __QGPU_INDEX__

static constexpr int warpSize = 32;

// ---- Integer functions. CUDA overloads min, max and abs for every integer type. What could overflow is computed
// unsigned: the compiler takes signed overflow as a promise that it does not happen.

#define __QGPU_MINMAX__(T) \
  __QGPU_BOTH__ constexpr T min(T a, T b) { return b < a ? b : a; } \
  __QGPU_BOTH__ constexpr T max(T a, T b) { return a < b ? b : a; }
__QGPU_MINMAX__(int)
__QGPU_MINMAX__(unsigned)
__QGPU_MINMAX__(long)
__QGPU_MINMAX__(unsigned long)
__QGPU_MINMAX__(long long)
__QGPU_MINMAX__(unsigned long long)
#undef __QGPU_MINMAX__
// Mixed signs compare as unsigned, as in CUDA.
__QGPU_BOTH__ constexpr unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
__QGPU_BOTH__ constexpr unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
__QGPU_BOTH__ constexpr unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
__QGPU_BOTH__ constexpr unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
__QGPU_BOTH__ constexpr int abs(int a) { return a < 0 ? (int)(0u - (unsigned)a) : a; }
__QGPU_BOTH__ constexpr long abs(long a) { return a < 0 ? (long)(0ul - (unsigned long)a) : a; }
__QGPU_BOTH__ constexpr long long abs(long long a) {
  return a < 0 ? (long long)(0ull - (unsigned long long)a) : a;
}
__QGPU_BOTH__ long labs(long a) { return abs(a); }
__QGPU_BOTH__ long long llabs(long long a) { return abs(a); }
__QGPU_BOTH__ unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
__QGPU_BOTH__ unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }

__QGPU__ int __popc(unsigned x) { return __builtin_popcount(x); }
__QGPU__ int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__QGPU__ int __clz(int x) { return __builtin_clzg((unsigned)x, 32); }
__QGPU__ int __clzll(long long x) { return __builtin_clzg((unsigned long long)x, 64); }
__QGPU__ int __ffs(unsigned x) { return x ? 32 - __clz(x & (0u - x)) : 0; }
__QGPU__ int __ffsll(unsigned long long x) { return x ? 64 - __clzll(x & (0ull - x)) : 0; }
__QGPU__ unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
__QGPU__ unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
__QGPU__ unsigned __byte_perm(unsigned x, unsigned y, unsigned s) { return __nvvm_prmt(x, y, s); }
__QGPU__ int __mulhi(int a, int b) { return __nvvm_mulhi_i(a, b); }
__QGPU__ unsigned __umulhi(unsigned a, unsigned b) { return __nvvm_mulhi_ui(a, b); }
__QGPU__ long long __mul64hi(long long a, long long b) { return __nvvm_mulhi_ll(a, b); }
__QGPU__ unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return __nvvm_mulhi_ull(a, b); }
__QGPU__ int __mul24(int a, int b) {
  return (unsigned)((int)((unsigned)a << 8) >> 8) * (unsigned)((int)((unsigned)b << 8) >> 8);
}
__QGPU__ unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
__QGPU__ int __hadd(int a, int b) { return (a & b) + ((a ^ b) >> 1); }
__QGPU__ int __rhadd(int a, int b) { return (a | b) - ((a ^ b) >> 1); }
__QGPU__ unsigned __uhadd(unsigned a, unsigned b) { return (a & b) + ((a ^ b) >> 1); }
__QGPU__ unsigned __urhadd(unsigned a, unsigned b) { return (a | b) - ((a ^ b) >> 1); }
__QGPU__ unsigned __sad(int a, int b, unsigned c) { return c + (a < b ? (unsigned)b - a : (unsigned)a - b); }
__QGPU__ unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }
__QGPU__ unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) { return __builtin_elementwise_fshl(hi, lo, s); }
__QGPU__ unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) { return __builtin_elementwise_fshr(hi, lo, s); }
__QGPU__ unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) {
  return s >= 32 ? lo : __builtin_elementwise_fshl(hi, lo, s);
}
__QGPU__ unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) {
  return s >= 32 ? hi : __builtin_elementwise_fshr(hi, lo, s);
}
__QGPU__ void __trap() { __builtin_trap(); }

// clang makes a call of vprintf of it, whose text the host puts together after the launch.
extern "C" __attribute__((host, device)) int printf(const char*, ...);

// ---- Loads and stores with cache hints: the machine has no cache, so they are plain ones. ----

#define __QGPU_HINT__(name) template <typename T> __QGPU__ T name(const T* p) { return *p; }
__QGPU_HINT__(__ldg) __QGPU_HINT__(__ldcg) __QGPU_HINT__(__ldca) __QGPU_HINT__(__ldcs)
__QGPU_HINT__(__ldlu) __QGPU_HINT__(__ldcv)
#undef __QGPU_HINT__
#define __QGPU_HINT__(name) template <typename T> __QGPU__ void name(T* p, T value) { *p = value; }
__QGPU_HINT__(__stwb) __QGPU_HINT__(__stcg) __QGPU_HINT__(__stcs) __QGPU_HINT__(__stwt)
#undef __QGPU_HINT__

// ---- Barriers and fences. __syncthreads itself is a builtin of clang. ----

__QGPU__ int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
__QGPU__ int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
__QGPU__ int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
__QGPU__ void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
__QGPU__ void __threadfence() { __nvvm_membar_gl(); }
__QGPU__ void __threadfence_block() { __nvvm_membar_cta(); }
__QGPU__ void __threadfence_system() { __nvvm_membar_sys(); }
__QGPU__ void __nanosleep(unsigned ns) { __nvvm_nanosleep(ns); }

// ---- Atomics: each returns the old value. Address-space inference makes them atom.global or atom.shared. ----

#define __QGPU_ATOMIC__(name, op, T, S, suffix) \
  __QGPU__ T name(T* p, T v) { return (T)__nvvm_atom_##op##_gen_##suffix((S*)p, (S)v); } \
  __QGPU__ T name##_block(T* p, T v) { return name(p, v); } \
  __QGPU__ T name##_system(T* p, T v) { return name(p, v); }
#define __QGPU_ATOMIC_BITS__(name, op) \
  __QGPU_ATOMIC__(name, op, int, int, i) \
  __QGPU_ATOMIC__(name, op, unsigned, int, i) \
  __QGPU_ATOMIC__(name, op, long long, long long, ll) \
  __QGPU_ATOMIC__(name, op, unsigned long long, long long, ll)
#define __QGPU_ATOMIC_ORDER__(name, op) \
  __QGPU_ATOMIC__(name, op, int, int, i) \
  __QGPU_ATOMIC__(name, op, unsigned, unsigned, ui) \
  __QGPU_ATOMIC__(name, op, long long, long long, ll) \
  __QGPU_ATOMIC__(name, op, unsigned long long, unsigned long long, ull)
__QGPU_ATOMIC_BITS__(atomicAdd, add)
__QGPU_ATOMIC_BITS__(atomicExch, xchg)
__QGPU_ATOMIC_BITS__(atomicAnd, and)
__QGPU_ATOMIC_BITS__(atomicOr, or)
__QGPU_ATOMIC_BITS__(atomicXor, xor)
__QGPU_ATOMIC_ORDER__(atomicMax, max)
__QGPU_ATOMIC_ORDER__(atomicMin, min)
__QGPU_ATOMIC__(atomicInc, inc, unsigned, unsigned, ui)
__QGPU_ATOMIC__(atomicDec, dec, unsigned, unsigned, ui)
#undef __QGPU_ATOMIC_ORDER__
#undef __QGPU_ATOMIC_BITS__
#undef __QGPU_ATOMIC__
__QGPU__ int atomicSub(int* p, int v) { return atomicAdd(p, (int)(0u - (unsigned)v)); }
__QGPU__ unsigned atomicSub(unsigned* p, unsigned v) { return atomicAdd(p, 0u - v); }

#define __QGPU_CAS__(T) \
  __QGPU__ T atomicCAS(T* p, T expected, T desired) { \
    __scoped_atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED, \
                                       __MEMORY_SCOPE_DEVICE); \
    return expected; \
  }
__QGPU_CAS__(int)
__QGPU_CAS__(unsigned)
__QGPU_CAS__(long long)
__QGPU_CAS__(unsigned long long)
#undef __QGPU_CAS__

// ---- Warp primitives: 32 lanes; `width` a power of two up to 32, encoded as PTX wants it (segment mask << 8). ----

__QGPU__ int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p); }
__QGPU__ int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p); }
__QGPU__ int __uni_sync(unsigned mask, int p) { return __nvvm_vote_uni_sync(mask, p); }
__QGPU__ unsigned __ballot_sync(unsigned mask, int p) { return __nvvm_vote_ballot_sync(mask, p); }
__QGPU__ unsigned __activemask() { return __nvvm_activemask(); }

#define __QGPU_SHUFFLE_32__(name, kind, clamp, T) \
  __QGPU__ T name(unsigned mask, T value, unsigned lane, int width = 32) { \
    return (T)__nvvm_shfl_sync_##kind##_i32(mask, (int)value, (int)lane, ((32 - width) << 8) | clamp); \
  }
#define __QGPU_SHUFFLE_64__(name, kind, clamp, T) \
  __QGPU__ T name(unsigned mask, T value, unsigned lane, int width = 32) { \
    unsigned low = name(mask, (unsigned)value, lane, width); \
    unsigned high = name(mask, (unsigned)((unsigned long long)value >> 32), lane, width); \
    return (T)((unsigned long long)high << 32 | low); \
  }
#define __QGPU_SHUFFLE__(name, kind, clamp) \
  __QGPU_SHUFFLE_32__(name, kind, clamp, int) \
  __QGPU_SHUFFLE_32__(name, kind, clamp, unsigned) \
  __QGPU_SHUFFLE_32__(name, kind, clamp, long) \
  __QGPU_SHUFFLE_32__(name, kind, clamp, unsigned long) \
  __QGPU_SHUFFLE_64__(name, kind, clamp, long long) \
  __QGPU_SHUFFLE_64__(name, kind, clamp, unsigned long long)
__QGPU_SHUFFLE__(__shfl_sync, idx, 31)
__QGPU_SHUFFLE__(__shfl_up_sync, up, 0)
__QGPU_SHUFFLE__(__shfl_down_sync, down, 31)
__QGPU_SHUFFLE__(__shfl_xor_sync, bfly, 31)
#undef __QGPU_SHUFFLE__
#undef __QGPU_SHUFFLE_64__
#undef __QGPU_SHUFFLE_32__

#define __QGPU_MATCH__(T, S, suffix) \
  __QGPU__ unsigned __match_any_sync(unsigned mask, T v) { return __nvvm_match_any_sync_##suffix(mask, (S)v); } \
  __QGPU__ unsigned __match_all_sync(unsigned mask, T v, int* all) { \
    return __nvvm_match_all_sync_##suffix##p(mask, (S)v, all); \
  }
__QGPU_MATCH__(int, unsigned, i32)
__QGPU_MATCH__(unsigned, unsigned, i32)
__QGPU_MATCH__(long, unsigned, i32)
__QGPU_MATCH__(unsigned long, unsigned, i32)
__QGPU_MATCH__(long long, unsigned long long, i64)
__QGPU_MATCH__(unsigned long long, unsigned long long, i64)
#undef __QGPU_MATCH__

// redux.sync needs a later architecture than the one compiled for. Full masks take a butterfly of five shuffles; other
// masks take one shuffle for each lane of the mask. Both end with the same value in every lane.
#define __QGPU_REDUCE__(name, T, combine) \
  __QGPU__ T name(unsigned mask, T v) { \
    T result = v, x; \
    if (mask == 0xffffffffu) { \
      for (int lanes = 16; lanes; lanes >>= 1) { \
        x = __shfl_xor_sync(mask, result, lanes); \
        result = combine; \
      } \
      return result; \
    } \
    unsigned rest = mask; \
    result = __shfl_sync(mask, v, __ffs(rest) - 1); \
    while (rest &= rest - 1) { \
      x = __shfl_sync(mask, v, __ffs(rest) - 1); \
      result = combine; \
    } \
    return result; \
  }
__QGPU_REDUCE__(__reduce_add_sync, unsigned, result + x)
__QGPU_REDUCE__(__reduce_add_sync, int, result + x)
__QGPU_REDUCE__(__reduce_min_sync, unsigned, min(result, x))
__QGPU_REDUCE__(__reduce_min_sync, int, min(result, x))
__QGPU_REDUCE__(__reduce_max_sync, unsigned, max(result, x))
__QGPU_REDUCE__(__reduce_max_sync, int, max(result, x))
__QGPU_REDUCE__(__reduce_and_sync, unsigned, result & x)
__QGPU_REDUCE__(__reduce_or_sync, unsigned, result | x)
__QGPU_REDUCE__(__reduce_xor_sync, unsigned, result ^ x)
#undef __QGPU_REDUCE__

#include "include/cuda_runtime.h"
