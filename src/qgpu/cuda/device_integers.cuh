// Integer functions of CUDA C: part of device.cuh. CUDA overloads min, max and abs for every integer type. What could overflow is computed
// unsigned: the compiler takes signed overflow as a promise that it does not happen.
#pragma once

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
#define __QGPU_MIXED__(name, S, U) \
  __QGPU_BOTH__ constexpr U name(S a, U b) { return name((U)a, b); } \
  __QGPU_BOTH__ constexpr U name(U a, S b) { return name(a, (U)b); }
__QGPU_MIXED__(min, int, unsigned)
__QGPU_MIXED__(max, int, unsigned)
__QGPU_MIXED__(min, long, unsigned long)
__QGPU_MIXED__(max, long, unsigned long)
__QGPU_MIXED__(min, long long, unsigned long long)
__QGPU_MIXED__(max, long long, unsigned long long)
#undef __QGPU_MIXED__
__QGPU_BOTH__ constexpr int abs(int a) { return a < 0 ? (int)(0u - (unsigned)a) : a; }
__QGPU_BOTH__ constexpr long abs(long a) { return a < 0 ? (long)(0ul - (unsigned long)a) : a; }
__QGPU_BOTH__ constexpr long long abs(long long a) {
  return a < 0 ? (long long)(0ull - (unsigned long long)a) : a;
}
__QGPU_BOTH__ long labs(long a) { return abs(a); }
__QGPU_BOTH__ long long llabs(long long a) { return abs(a); }
__QGPU_BOTH__ long long llmin(long long a, long long b) { return min(a, b); }
__QGPU_BOTH__ long long llmax(long long a, long long b) { return max(a, b); }
__QGPU_BOTH__ unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
__QGPU_BOTH__ unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
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
// Of each nibble of s the top bit, which prmt has a use for, counts for nothing here.
__QGPU__ unsigned __byte_perm(unsigned x, unsigned y, unsigned s) { return __nvvm_prmt(x, y, s & 0x7777); }
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
// The place of the offset-th one of mask from bit base on: upwards, or downwards if offset is negative; ~0 if none.
__QGPU__ unsigned __fns(unsigned mask, unsigned base, int offset) {
  unsigned place;
  asm("fns.b32 %0, %1, %2, %3;" : "=r"(place) : "r"(mask), "r"(base), "r"(offset));
  return place;
}
