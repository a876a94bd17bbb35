// Functions of CUDA C on two halves or four bytes in a word: part of device.cuh. Written out by parts, since the machine
// has no packed arithmetic; dp4a and dp2a are PTX of their own.
#pragma once

#define __QGPU_DOT__(name, instruction, A, B, C) \
  __QGPU__ C name(A a, B b, C c) { \
    C d; \
    asm(instruction " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); \
    return d; \
  }
__QGPU_DOT__(__dp4a, "dp4a.s32.s32", int, int, int)
__QGPU_DOT__(__dp4a, "dp4a.u32.u32", unsigned, unsigned, unsigned)
__QGPU_DOT__(__dp2a_lo, "dp2a.lo.s32.s32", int, int, int)
__QGPU_DOT__(__dp2a_lo, "dp2a.lo.u32.u32", unsigned, unsigned, unsigned)
__QGPU_DOT__(__dp2a_hi, "dp2a.hi.s32.s32", int, int, int)
__QGPU_DOT__(__dp2a_hi, "dp2a.hi.u32.u32", unsigned, unsigned, unsigned)
#undef __QGPU_DOT__
__QGPU__ int __dp4a(char4 a, char4 b, int c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
__QGPU__ unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// x and y are the parts of a and b, read as T; the low bits of the expression are the part of the result.
#define __QGPU_PARTS__(name, T, bits, expression) \
  __QGPU__ unsigned name(unsigned a, unsigned b) { \
    unsigned result = 0; \
    _Pragma("unroll") for (int i = 0; i < 32; i += bits) { \
      int x = (T)(a >> i), y = (T)(b >> i); \
      result |= ((unsigned)(expression) & ((1u << bits) - 1)) << i; \
    } \
    return result; \
  }
#define __QGPU_PACKED__(n, bits, S, U) \
  __QGPU_PARTS__(__vadd##n, U, bits, x + y) \
  __QGPU_PARTS__(__vsub##n, U, bits, x - y) \
  __QGPU_PARTS__(__vaddss##n, S, bits, min(max(x + y, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)) \
  __QGPU_PARTS__(__vsubss##n, S, bits, min(max(x - y, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)) \
  __QGPU_PARTS__(__vaddus##n, U, bits, min(x + y, (1 << bits) - 1)) \
  __QGPU_PARTS__(__vsubus##n, U, bits, max(x - y, 0)) \
  __QGPU_PARTS__(__vmins##n, S, bits, min(x, y)) \
  __QGPU_PARTS__(__vminu##n, U, bits, min(x, y)) \
  __QGPU_PARTS__(__vmaxs##n, S, bits, max(x, y)) \
  __QGPU_PARTS__(__vmaxu##n, U, bits, max(x, y)) \
  __QGPU_PARTS__(__vabsdiffs##n, S, bits, abs(x - y)) \
  __QGPU_PARTS__(__vabsdiffu##n, U, bits, abs(x - y)) \
  __QGPU_PARTS__(__vavgs##n, S, bits, (x + y + (x + y >= 0)) >> 1) \
  __QGPU_PARTS__(__vavgu##n, U, bits, (x + y + 1) >> 1) \
  __QGPU_PARTS__(__vhaddu##n, U, bits, (x + y) >> 1) \
  __QGPU_COMPARED__(eq##n, U, bits, x == y) \
  __QGPU_COMPARED__(ne##n, U, bits, x != y) \
  __QGPU_COMPARED__(lts##n, S, bits, x < y) \
  __QGPU_COMPARED__(ltu##n, U, bits, x < y) \
  __QGPU_COMPARED__(les##n, S, bits, x <= y) \
  __QGPU_COMPARED__(leu##n, U, bits, x <= y) \
  __QGPU_COMPARED__(gts##n, S, bits, x > y) \
  __QGPU_COMPARED__(gtu##n, U, bits, x > y) \
  __QGPU_COMPARED__(ges##n, S, bits, x >= y) \
  __QGPU_COMPARED__(geu##n, U, bits, x >= y) \
  __QGPU__ unsigned __vneg##n(unsigned a) { return __vsub##n(0, a); } \
  __QGPU__ unsigned __vabs##n(unsigned a) { return __vmaxs##n(a, __vneg##n(a)); }
#define __QGPU_COMPARED__(suffix, T, bits, expression) \
  __QGPU_PARTS__(__vcmp##suffix, T, bits, (expression) ? -1 : 0) \
  __QGPU_PARTS__(__vset##suffix, T, bits, expression)
__QGPU_PACKED__(2, 16, short, unsigned short)
__QGPU_PACKED__(4, 8, signed char, unsigned char)
#undef __QGPU_COMPARED__
#undef __QGPU_PACKED__
#undef __QGPU_PARTS__
#define __QGPU_SUM__(n, bits, S, U) \
  __QGPU__ unsigned __vsads##n(unsigned a, unsigned b) { \
    unsigned sum = 0; \
    _Pragma("unroll") for (int i = 0; i < 32; i += bits) sum += abs((int)(S)(a >> i) - (int)(S)(b >> i)); \
    return sum; \
  } \
  __QGPU__ unsigned __vsadu##n(unsigned a, unsigned b) { \
    unsigned sum = 0; \
    _Pragma("unroll") for (int i = 0; i < 32; i += bits) sum += abs((int)(U)(a >> i) - (int)(U)(b >> i)); \
    return sum; \
  }
__QGPU_SUM__(2, 16, short, unsigned short)
__QGPU_SUM__(4, 8, signed char, unsigned char)
#undef __QGPU_SUM__
