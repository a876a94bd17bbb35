// CUDA C for the host: what a .cu file of the conformance table needs to be compiled as plain C++.
//
// Threads are fibres (fibres.cpp). They change at barriers, exchanges, atomics, fences and sleeps; in what order is the
// schedule's business. Nothing here shares a line with the device header, the PTX reader or the machine.
#pragma once

#define __global__ extern "C"
#define __device__ static
#define __host__
#define __constant__ static
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__
// One copy for all fibres of a CTA; its bytes are spoiled before each CTA, since CUDA promises nothing of them.
// What is declared extern, of a size that the launch tells, is a pointer into a place of its own (DYNAMIC_SHARED).
#define __shared__ static __attribute__((used, section("qgpu_shared")))

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long u64;

struct Index3 {
  unsigned x, y, z;
};
extern Index3 threadIdx, blockIdx, blockDim, gridDim;
static constexpr int warpSize = 32;

namespace host {
enum Kind { SYNC, IDX, UP, DOWN, BFLY, ALL, ANY, UNI, BALLOT, MATCH_ANY, MATCH_ALL, ADD, MIN, MAX, AND, OR, XOR };
enum Vote { PLAIN, COUNT, EVERY, SOME };
void yield();
int barrier(int vote, int value);
// A warp-wide operation: waits for the lanes of mask; flag: in range of a shuffle, or all equal of a match.
u64 meet(int kind, unsigned mask, u64 value, unsigned b = 0, unsigned c = 0, int* flag = nullptr);
unsigned lane();
unsigned warp();
unsigned active();
[[noreturn]] void trap();
}  // namespace host

#define __HOST_VECTORS__(T, name, a2, a4) \
  struct name##2 { T x, y; } __attribute__((aligned(a2))); \
  struct name##3 { T x, y, z; }; \
  struct name##4 { T x, y, z, w; } __attribute__((aligned(a4))); \
  static inline name##2 make_##name##2(T x, T y) { return name##2{x, y}; } \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }
__HOST_VECTORS__(unsigned char, uchar, 2, 4)
__HOST_VECTORS__(short, short, 4, 8)
__HOST_VECTORS__(int, int, 8, 16)
__HOST_VECTORS__(unsigned, uint, 8, 16)
__HOST_VECTORS__(long long, longlong, 16, 16)
__HOST_VECTORS__(unsigned long long, ulonglong, 16, 16)

// ---- Integer functions, each by its definition ----

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
static inline u64 min(u64 a, u64 b) { return a < b ? a : b; }
static inline u64 max(u64 a, u64 b) { return a > b ? a : b; }
static inline int abs(int a) { return a < 0 ? (int)(0u - (unsigned)a) : a; }
static inline int __popcll(u64 x) {
  int count = 0;
  for (int i = 0; i < 64; i++) count += x >> i & 1;
  return count;
}
static inline int __popc(unsigned x) { return __popcll(x); }
static inline int __clzll(u64 x) {
  int count = 0;
  while (count < 64 && !(x >> (63 - count) & 1)) count++;
  return count;
}
static inline int __clz(unsigned x) { return __clzll(x) - 32; }
static inline int __ffsll(u64 x) {
  for (int i = 0; i < 64; i++)
    if (x >> i & 1) return i + 1;
  return 0;
}
static inline int __ffs(unsigned x) { return __ffsll(x); }
static inline u64 __brevll(u64 x) {
  u64 result = 0;
  for (int i = 0; i < 64; i++) result |= (x >> i & 1) << (63 - i);
  return result;
}
static inline unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  u64 pool = (u64)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) result |= (unsigned)(pool >> (8 * (s >> 4 * i & 7)) & 255) << 8 * i;
  return result;
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((u64)a * b >> 32); }
static inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static inline u64 __umul64hi(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static inline int __mul24(int a, int b) {
  return (int)((unsigned)((int)((unsigned)a << 8) >> 8) * (unsigned)((int)((unsigned)b << 8) >> 8));
}
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
static inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
static inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
static inline unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((u64)a + b) >> 1); }
static inline unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((u64)a + b + 1) >> 1); }
static inline unsigned __sad(int a, int b, unsigned c) {
  long long distance = (long long)a - b;
  return c + (unsigned)(distance < 0 ? -distance : distance);
}
static inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((u64)hi << 32 | lo) << (s & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((u64)hi << 32 | lo) >> (s & 31));
}
static inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) {
  return s >= 32 ? lo : __funnelshift_l(lo, hi, s);
}
static inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) {
  return s >= 32 ? hi : __funnelshift_r(lo, hi, s);
}
static inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  int ones = 0;
  for (int i = (int)base; i >= 0 && i < 32; i += offset < 0 ? -1 : 1) {
    ones += mask >> i & 1;
    if (offset == 0) return mask >> i & 1 ? base : ~0u;
    if (ones == (offset < 0 ? -offset : offset)) return (unsigned)i;
  }
  return ~0u;
}

// Functions on the bytes or halves of a word: x and y are two parts, read as T.
template <typename T, typename F> static inline unsigned by_parts(unsigned a, unsigned b, F f) {
  unsigned result = 0, bits = 8 * sizeof(T), ones = (1u << bits) - 1;
  for (unsigned i = 0; i < 32; i += bits) result |= ((unsigned)f((int)(T)(a >> i & ones), (int)(T)(b >> i & ones)) & ones) << i;
  return result;
}
#define __HOST_PARTS__(name, T, expression) \
  static inline unsigned name(unsigned a, unsigned b) { \
    return by_parts<T>(a, b, [](int x, int y) { return expression; }); \
  }
__HOST_PARTS__(__vadd4, unsigned char, x + y)
__HOST_PARTS__(__vsub2, unsigned short, x - y)
__HOST_PARTS__(__vaddss2, short, x + y > 32767 ? 32767 : x + y < -32768 ? -32768 : x + y)
__HOST_PARTS__(__vsubus4, unsigned char, x < y ? 0 : x - y)
__HOST_PARTS__(__vmins2, short, x < y ? x : y)
__HOST_PARTS__(__vmaxu4, unsigned char, x > y ? x : y)
__HOST_PARTS__(__vabsdiffu4, unsigned char, x < y ? y - x : x - y)
__HOST_PARTS__(__vavgu4, unsigned char, (x + y + 1) / 2)
__HOST_PARTS__(__vhaddu4, unsigned char, (x + y) / 2)
__HOST_PARTS__(__vcmpgts4, signed char, x > y ? 255 : 0)
__HOST_PARTS__(__vseteq2, unsigned short, x == y)
static inline unsigned __vsadu4(unsigned a, unsigned b) {
  unsigned parts = __vabsdiffu4(a, b);
  return (parts & 255) + (parts >> 8 & 255) + (parts >> 16 & 255) + (parts >> 24);
}
// Products of the bytes of b with bytes (dp4a) or halves (dp2a) of a, added to c.
template <typename A, typename B> static inline unsigned products(unsigned a, unsigned b, unsigned c, int from, int count) {
  for (int i = 0; i < count; i++)
    c += (unsigned)((int)(A)(a >> i * 8 * (int)sizeof(A)) * (int)(B)(b >> 8 * (from + i)));
  return c;
}
#define __HOST_DOT__(name, from, count, S, U) \
  static inline int name(int a, int b, int c) { return (int)products<S, signed char>(a, b, c, from, count); } \
  static inline unsigned name(unsigned a, unsigned b, unsigned c) { return products<U, unsigned char>(a, b, c, from, count); }
__HOST_DOT__(__dp4a, 0, 4, signed char, unsigned char)
__HOST_DOT__(__dp2a_lo, 0, 2, short, unsigned short)
__HOST_DOT__(__dp2a_hi, 2, 2, short, unsigned short)
[[noreturn]] static inline void __trap() { host::trap(); }
template <typename T> static inline T __ldg(const T* p) { return *p; }

// ---- Barriers, fences, atomics ----

static inline void __syncthreads() { host::barrier(host::PLAIN, 0); }
static inline int __syncthreads_count(int p) { return host::barrier(host::COUNT, p); }
static inline int __syncthreads_and(int p) { return host::barrier(host::EVERY, p); }
static inline int __syncthreads_or(int p) { return host::barrier(host::SOME, p); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { host::meet(host::SYNC, mask, 0); }
static inline void __threadfence() { host::yield(); }
static inline void __threadfence_block() { host::yield(); }
static inline void __nanosleep(unsigned) { host::yield(); }

#define __HOST_ATOMIC__(name, T, value) \
  static inline T name(T* p, T v) { \
    host::yield(); \
    T old = *p; \
    *p = (value); \
    return old; \
  }
#define __HOST_ATOMICS__(T, U) \
  __HOST_ATOMIC__(atomicAdd, T, (T)((U)old + (U)v)) \
  __HOST_ATOMIC__(atomicExch, T, v) \
  __HOST_ATOMIC__(atomicAnd, T, old & v) \
  __HOST_ATOMIC__(atomicOr, T, old | v) \
  __HOST_ATOMIC__(atomicXor, T, old ^ v) \
  __HOST_ATOMIC__(atomicMin, T, old < v ? old : v) \
  __HOST_ATOMIC__(atomicMax, T, old > v ? old : v) \
  static inline T atomicCAS(T* p, T expected, T desired) { \
    host::yield(); \
    T old = *p; \
    if (old == expected) *p = desired; \
    return old; \
  }
__HOST_ATOMICS__(int, unsigned)
__HOST_ATOMICS__(unsigned, unsigned)
__HOST_ATOMICS__(long long, u64)
__HOST_ATOMICS__(u64, u64)
__HOST_ATOMIC__(atomicInc, unsigned, old >= v ? 0 : old + 1)
__HOST_ATOMIC__(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
static inline int atomicSub(int* p, int v) { return atomicAdd(p, (int)(0u - (unsigned)v)); }
static inline unsigned atomicSub(unsigned* p, unsigned v) { return atomicAdd(p, 0u - v); }

// ---- Warp primitives ----

#define __HOST_SHUFFLE__(name, kind, clamp, T) \
  static inline T name(unsigned mask, T value, unsigned lane, int width = 32) { \
    return (T)host::meet(host::kind, mask, (u64)value, lane, (unsigned)(32 - width) << 8 | clamp); \
  }
#define __HOST_SHUFFLES__(T) \
  __HOST_SHUFFLE__(__shfl_sync, IDX, 31, T) \
  __HOST_SHUFFLE__(__shfl_up_sync, UP, 0, T) \
  __HOST_SHUFFLE__(__shfl_down_sync, DOWN, 31, T) \
  __HOST_SHUFFLE__(__shfl_xor_sync, BFLY, 31, T)
__HOST_SHUFFLES__(int)
__HOST_SHUFFLES__(unsigned)
__HOST_SHUFFLES__(long long)
__HOST_SHUFFLES__(u64)

static inline int __all_sync(unsigned mask, int p) { return (int)host::meet(host::ALL, mask, p != 0); }
static inline int __any_sync(unsigned mask, int p) { return (int)host::meet(host::ANY, mask, p != 0); }
static inline unsigned __ballot_sync(unsigned mask, int p) { return (unsigned)host::meet(host::BALLOT, mask, p != 0); }
static inline unsigned __activemask() { return host::active(); }
#define __HOST_MATCH__(T) \
  static inline unsigned __match_any_sync(unsigned mask, T v) { \
    return (unsigned)host::meet(host::MATCH_ANY, mask, (u64)v); \
  } \
  static inline unsigned __match_all_sync(unsigned mask, T v, int* all) { \
    return (unsigned)host::meet(host::MATCH_ALL, mask, (u64)v, 0, 0, all); \
  }
__HOST_MATCH__(int)
__HOST_MATCH__(unsigned)
__HOST_MATCH__(long long)
__HOST_MATCH__(u64)
#define __HOST_REDUCE__(name, kind, T) \
  static inline T name(unsigned mask, T v) { return (T)host::meet(host::kind, mask, (u64)(long long)v); }
__HOST_REDUCE__(__reduce_add_sync, ADD, int)
__HOST_REDUCE__(__reduce_add_sync, ADD, unsigned)
__HOST_REDUCE__(__reduce_min_sync, MIN, int)
__HOST_REDUCE__(__reduce_min_sync, MIN, unsigned)
__HOST_REDUCE__(__reduce_max_sync, MAX, int)
__HOST_REDUCE__(__reduce_max_sync, MAX, unsigned)
__HOST_REDUCE__(__reduce_and_sync, AND, unsigned)
__HOST_REDUCE__(__reduce_or_sync, OR, unsigned)
__HOST_REDUCE__(__reduce_xor_sync, XOR, unsigned)
