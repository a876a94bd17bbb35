// PTX instructions as functions: inline PTX on the device, their definitions in plain C++ on the host.
//
// The host's side is written from the PTX manual's text and loops over bits where that is the plainest reading.
#pragma once

typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned u32;
typedef long long s64;
typedef unsigned long long u64;

// Shared memory of a size that the launch tells.
#ifdef __CUDA_ARCH__
#define DYNAMIC_SHARED(T, name) extern __shared__ T name[]
#else
#define DYNAMIC_SHARED(T, name) __shared__ T name[4096 / sizeof(T)]
#endif

#ifdef __CUDA_ARCH__

#define PTX1(name, R, r, A, a, text) \
  __device__ inline R name(A x) { \
    R d; \
    asm(text " %0, %1;" : "=" r(d) : a(x)); \
    return d; \
  }
#define PTX2(name, R, r, A, a, B, b, text, host) \
  __device__ inline R name(A x, B y) { \
    R d; \
    asm(text " %0, %1, %2;" : "=" r(d) : a(x), b(y)); \
    return d; \
  }
#define PTX3(name, R, r, A, a, B, b, C, c, text, host) \
  __device__ inline R name(A x, B y, C z) { \
    R d; \
    asm(text " %0, %1, %2, %3;" : "=" r(d) : a(x), b(y), c(z)); \
    return d; \
  }
#define PTX_TEST(name, T, t, text, host) \
  __device__ inline u32 name(T x, T y) { \
    u32 d; \
    asm("{.reg .pred p; " text " p, %1, %2; selp.u32 %0, 1, 0, p;}" : "=r"(d) : t(x), t(y)); \
    return d; \
  }
#define PTX_UNARY(name, R, r, A, a, text, host) PTX1(name, R, r, A, a, text)

#else

#define PTX2(name, R, r, A, a, B, b, text, host) \
  static inline R name(A x, B y) { return (R)(host); }
#define PTX3(name, R, r, A, a, B, b, C, c, text, host) \
  static inline R name(A x, B y, C z) { return (R)(host); }
#define PTX_TEST(name, T, t, text, host) \
  static inline u32 name(T x, T y) { return (host) ? 1 : 0; }
#define PTX_UNARY(name, R, r, A, a, text, host) \
  static inline R name(A x) { return (R)(host); }

static inline u64 bits_of(u64 x, int bits) { return bits == 64 ? x : x & ((1ull << bits) - 1); }
static inline s64 signed_of(u64 x, int bits) {
  return bits == 64 ? (s64)x : (s64)(x << (64 - bits)) >> (64 - bits);
}
// Position of the highest bit that is set (unsigned) or differs from the sign; -1 if there is none.
static inline int find_bit(u64 x, int bits, bool with_sign) {
  x = bits_of(x, bits);
  if (with_sign && x >> (bits - 1) & 1) x = bits_of(~x, bits);
  for (int i = bits - 1; i >= 0; i--)
    if (x >> i & 1) return i;
  return -1;
}
static inline int find_shift(u64 x, int bits, bool with_sign) {
  int found = find_bit(x, bits, with_sign);
  return found < 0 ? -1 : bits - 1 - found;
}
static inline u64 extract_bits(u64 x, u32 position, u32 length, int bits, bool with_sign) {
  position &= 255, length &= 255;
  if (length == 0) return 0;
  u32 top = position + length - 1 < (u32)bits - 1 ? position + length - 1 : (u32)bits - 1;
  bool fill = with_sign && (x >> top & 1);
  u64 result = 0;
  for (int i = 0; i < bits; i++) {
    bool bit = (u32)i < length && position + i < (u32)bits ? x >> (position + i) & 1 : fill;
    result |= (u64)bit << i;
  }
  return result;
}
static inline u64 insert_bits(u64 field, u64 into, u32 position, u32 length, int bits) {
  position &= 255, length &= 255;
  for (u32 i = 0; i < length && position + i < (u32)bits; i++) {
    into &= ~(1ull << (position + i));
    into |= (field >> i & 1) << (position + i);
  }
  return into;
}
static inline u32 permute(u32 x, u32 y, u32 selector) {
  u64 pool = (u64)y << 32 | x;
  u32 result = 0;
  for (int i = 0; i < 4; i++) {
    u32 choice = selector >> 4 * i & 15, byte = (u32)(pool >> 8 * (choice & 7)) & 255;
    if (choice & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}
// The modes of prmt name the byte that each byte of the result is: of y:x, from the selector's two low bits.
static inline u32 permute_mode(u32 x, u32 y, u32 selector, const u8 (&table)[4][4]) {
  u64 pool = (u64)y << 32 | x;
  u32 result = 0;
  for (int i = 0; i < 4; i++) result |= ((u32)(pool >> 8 * table[selector & 3][i]) & 255) << 8 * i;
  return result;
}
static const u8 F4E[4][4] = {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}};
static const u8 B4E[4][4] = {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}};
static const u8 RC8[4][4] = {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}};
static const u8 ECL[4][4] = {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}};
static const u8 ECR[4][4] = {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}};
static const u8 RC16[4][4] = {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}};
static inline u32 logic3(u32 x, u32 y, u32 z, u32 table) {
  u32 result = 0;
  for (int i = 0; i < 32; i++)
    result |= (table >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1)) & 1) << i;
  return result;
}
static inline u64 shift_left(u64 x, u32 n, int bits) { return n >= (u32)bits ? 0 : bits_of(x << n, bits); }
static inline u64 shift_right(u64 x, u32 n, int bits) { return n >= (u32)bits ? 0 : bits_of(x, bits) >> n; }
static inline s64 shift_right_signed(u64 x, u32 n, int bits) {
  return signed_of(x, bits) >> (n >= (u32)bits ? bits - 1 : n);
}
static inline u32 funnel_left(u32 low, u32 high, u32 n) { return n == 32 ? low : (u32)(((u64)high << 32 | low) << n >> 32); }
static inline u32 funnel_right(u32 low, u32 high, u32 n) { return (u32)(((u64)high << 32 | low) >> n); }
static inline s64 divide(s64 x, s64 y) { return y == -1 ? (s64)(0 - (u64)x) : x / y; }
static inline s64 remainder_of(s64 x, s64 y) { return y == -1 ? 0 : x % y; }
static inline s64 clamp_to(s64 x, s64 low, s64 high) { return x < low ? low : x > high ? high : x; }
static inline s64 distance(s64 x, s64 y) { return x < y ? (s64)((u64)y - (u64)x) : (s64)((u64)x - (u64)y); }

#endif

// Three widths, each by its register letter.
#define PTX_TWO(name, T, t, text, host) PTX2(name, T, t, T, t, T, t, text, host)
#define PTX_THREE(name, T, t, text, host) PTX3(name, T, t, T, t, T, t, T, t, text, host)
#define PTX_ONE(name, T, t, text, host) PTX_UNARY(name, T, t, T, t, text, host)

// ---- 32 bits ----

PTX_ONE(neg_s32, s32, "r", "neg.s32", 0u - (u32)x)
PTX_ONE(abs_s32, s32, "r", "abs.s32", x < 0 ? 0u - (u32)x : (u32)x)
PTX_ONE(not_b32, u32, "r", "not.b32", ~x)
PTX_ONE(cnot_b32, u32, "r", "cnot.b32", x == 0)
PTX_ONE(brev_b32, u32, "r", "brev.b32", __brev(x))
PTX_UNARY(popc_b32, u32, "r", u32, "r", "popc.b32", __popc(x))
PTX_UNARY(clz_b32, u32, "r", u32, "r", "clz.b32", __clz(x))
PTX_UNARY(bfind_u32, u32, "r", u32, "r", "bfind.u32", find_bit(x, 32, false))
PTX_UNARY(bfind_s32, u32, "r", s32, "r", "bfind.s32", find_bit(x, 32, true))
PTX_UNARY(bfind_shift_u32, u32, "r", u32, "r", "bfind.shiftamt.u32", find_shift(x, 32, false))
PTX_UNARY(bfind_shift_s32, u32, "r", s32, "r", "bfind.shiftamt.s32", find_shift(x, 32, true))

PTX_TWO(add_s32, s32, "r", "add.s32", (u32)x + (u32)y)
PTX_TWO(sub_s32, s32, "r", "sub.s32", (u32)x - (u32)y)
PTX_TWO(add_sat_s32, s32, "r", "add.sat.s32", clamp_to((s64)x + y, -2147483648ll, 2147483647))
PTX_TWO(sub_sat_s32, s32, "r", "sub.sat.s32", clamp_to((s64)x - y, -2147483648ll, 2147483647))
PTX_TWO(mul_lo_s32, s32, "r", "mul.lo.s32", (u32)x * (u32)y)
PTX_TWO(mul_hi_s32, s32, "r", "mul.hi.s32", (s64)x * y >> 32)
PTX_TWO(mul_hi_u32, u32, "r", "mul.hi.u32", (u64)x * y >> 32)
PTX2(mul_wide_s32, s64, "l", s32, "r", s32, "r", "mul.wide.s32", (s64)x * y)
PTX2(mul_wide_u32, u64, "l", u32, "r", u32, "r", "mul.wide.u32", (u64)x * y)
PTX_TWO(mul24_lo_s32, s32, "r", "mul24.lo.s32", __mul24(x, y))
PTX_TWO(mul24_lo_u32, u32, "r", "mul24.lo.u32", __umul24(x, y))
PTX_TWO(div_s32, s32, "r", "div.s32", divide(x, y))
PTX_TWO(div_u32, u32, "r", "div.u32", x / y)
PTX_TWO(rem_s32, s32, "r", "rem.s32", remainder_of(x, y))
PTX_TWO(rem_u32, u32, "r", "rem.u32", x % y)
PTX_TWO(min_s32, s32, "r", "min.s32", x < y ? x : y)
PTX_TWO(min_u32, u32, "r", "min.u32", x < y ? x : y)
PTX_TWO(max_s32, s32, "r", "max.s32", x > y ? x : y)
PTX_TWO(max_u32, u32, "r", "max.u32", x > y ? x : y)
PTX_TWO(and_b32, u32, "r", "and.b32", x & y)
PTX_TWO(or_b32, u32, "r", "or.b32", x | y)
PTX_TWO(xor_b32, u32, "r", "xor.b32", x ^ y)
PTX_TWO(shl_b32, u32, "r", "shl.b32", shift_left(x, y, 32))
PTX_TWO(shr_u32, u32, "r", "shr.u32", shift_right(x, y, 32))
PTX2(shr_s32, s32, "r", s32, "r", u32, "r", "shr.s32", shift_right_signed(x, y, 32))

PTX_THREE(mad_lo_s32, s32, "r", "mad.lo.s32", (u32)x * (u32)y + (u32)z)
PTX_THREE(mad_hi_s32, s32, "r", "mad.hi.s32", (u32)((s64)x * y >> 32) + (u32)z)
PTX_THREE(mad_hi_u32, u32, "r", "mad.hi.u32", (u32)((u64)x * y >> 32) + z)
PTX3(mad_wide_s32, s64, "l", s32, "r", s32, "r", s64, "l", "mad.wide.s32", (u64)((s64)x * y) + (u64)z)
PTX3(mad_wide_u32, u64, "l", u32, "r", u32, "r", u64, "l", "mad.wide.u32", (u64)x * y + z)
PTX3(sad_s32, u32, "r", s32, "r", s32, "r", u32, "r", "sad.s32", z + (u32)distance(x, y))
PTX_THREE(sad_u32, u32, "r", "sad.u32", z + (u32)distance(x, y))
PTX_THREE(bfe_u32, u32, "r", "bfe.u32", extract_bits(x, y, z, 32, false))
PTX3(bfe_s32, s32, "r", s32, "r", u32, "r", u32, "r", "bfe.s32", extract_bits((u32)x, y, z, 32, true))
PTX_THREE(prmt_b32, u32, "r", "prmt.b32", permute(x, y, z))
PTX_THREE(prmt_f4e, u32, "r", "prmt.b32.f4e", permute_mode(x, y, z, F4E))
PTX_THREE(prmt_b4e, u32, "r", "prmt.b32.b4e", permute_mode(x, y, z, B4E))
PTX_THREE(prmt_rc8, u32, "r", "prmt.b32.rc8", permute_mode(x, y, z, RC8))
PTX_THREE(prmt_ecl, u32, "r", "prmt.b32.ecl", permute_mode(x, y, z, ECL))
PTX_THREE(prmt_ecr, u32, "r", "prmt.b32.ecr", permute_mode(x, y, z, ECR))
PTX_THREE(prmt_rc16, u32, "r", "prmt.b32.rc16", permute_mode(x, y, z, RC16))
PTX_THREE(shf_l_wrap, u32, "r", "shf.l.wrap.b32", funnel_left(x, y, z & 31))
PTX_THREE(shf_l_clamp, u32, "r", "shf.l.clamp.b32", funnel_left(x, y, z > 32 ? 32 : z))
PTX_THREE(shf_r_wrap, u32, "r", "shf.r.wrap.b32", funnel_right(x, y, z & 31))
PTX_THREE(shf_r_clamp, u32, "r", "shf.r.clamp.b32", funnel_right(x, y, z > 32 ? 32 : z))
PTX3(slct_s32, s32, "r", s32, "r", s32, "r", s32, "r", "slct.s32.s32", z >= 0 ? x : y)

PTX_TEST(setp_eq_s32, s32, "r", "setp.eq.s32", x == y)
PTX_TEST(setp_ne_s32, s32, "r", "setp.ne.s32", x != y)
PTX_TEST(setp_lt_s32, s32, "r", "setp.lt.s32", x < y)
PTX_TEST(setp_le_s32, s32, "r", "setp.le.s32", x <= y)
PTX_TEST(setp_gt_s32, s32, "r", "setp.gt.s32", x > y)
PTX_TEST(setp_ge_s32, s32, "r", "setp.ge.s32", x >= y)
PTX_TEST(setp_lt_u32, u32, "r", "setp.lt.u32", x < y)
PTX_TEST(setp_le_u32, u32, "r", "setp.le.u32", x <= y)
PTX_TEST(setp_gt_u32, u32, "r", "setp.gt.u32", x > y)
PTX_TEST(setp_ge_u32, u32, "r", "setp.ge.u32", x >= y)
PTX_TEST(setp_lo_u32, u32, "r", "setp.lo.u32", x < y)
PTX_TEST(setp_ls_u32, u32, "r", "setp.ls.u32", x <= y)
PTX_TEST(setp_hi_u32, u32, "r", "setp.hi.u32", x > y)
PTX_TEST(setp_hs_u32, u32, "r", "setp.hs.u32", x >= y)
PTX_TWO(set_lt_s32, s32, "r", "set.lt.s32.s32", x < y ? -1 : 0)
PTX_TWO(set_hi_u32, u32, "r", "set.hi.u32.u32", x > y ? -1 : 0)

// ---- 16 bits: results are read as 32-bit numbers where nothing else is said ----

PTX_TWO(add_s16, s16, "h", "add.s16", x + y)
PTX_TWO(sub_s16, s16, "h", "sub.s16", x - y)
PTX_TWO(mul_lo_s16, s16, "h", "mul.lo.s16", x * y)
PTX_TWO(mul_hi_s16, s16, "h", "mul.hi.s16", x * y >> 16)
PTX_TWO(mul_hi_u16, u16, "h", "mul.hi.u16", (u32)x * y >> 16)
PTX2(mul_wide_s16, s32, "r", s16, "h", s16, "h", "mul.wide.s16", x * y)
PTX2(mul_wide_u16, u32, "r", u16, "h", u16, "h", "mul.wide.u16", (u32)x * y)
PTX_THREE(mad_lo_s16, s16, "h", "mad.lo.s16", x * y + z)
PTX_TWO(div_s16, s16, "h", "div.s16", divide(x, y))
PTX_TWO(div_u16, u16, "h", "div.u16", x / y)
PTX_TWO(rem_s16, s16, "h", "rem.s16", remainder_of(x, y))
PTX_TWO(rem_u16, u16, "h", "rem.u16", x % y)
PTX_TWO(min_s16, s16, "h", "min.s16", x < y ? x : y)
PTX_TWO(max_u16, u16, "h", "max.u16", x > y ? x : y)
PTX_ONE(neg_s16, s16, "h", "neg.s16", -x)
PTX_ONE(abs_s16, s16, "h", "abs.s16", x < 0 ? -x : x)
PTX_ONE(not_b16, u16, "h", "not.b16", ~x)
PTX_TWO(and_b16, u16, "h", "and.b16", x & y)
PTX_TWO(or_b16, u16, "h", "or.b16", x | y)
PTX_TWO(xor_b16, u16, "h", "xor.b16", x ^ y)
PTX2(shl_b16, u16, "h", u16, "h", u32, "r", "shl.b16", shift_left(x, y, 16))
PTX2(shr_u16, u16, "h", u16, "h", u32, "r", "shr.u16", shift_right(x, y, 16))
PTX2(shr_s16, s16, "h", s16, "h", u32, "r", "shr.s16", shift_right_signed(x, y, 16))
PTX_TEST(setp_lt_s16, s16, "h", "setp.lt.s16", x < y)
PTX_TEST(setp_lt_u16, u16, "h", "setp.lt.u16", x < y)

// ---- 64 bits ----

PTX_ONE(neg_s64, s64, "l", "neg.s64", 0ull - (u64)x)
PTX_ONE(abs_s64, s64, "l", "abs.s64", x < 0 ? 0ull - (u64)x : (u64)x)
PTX_ONE(not_b64, u64, "l", "not.b64", ~x)
PTX_ONE(brev_b64, u64, "l", "brev.b64", __brevll(x))
PTX_UNARY(popc_b64, u32, "r", u64, "l", "popc.b64", __popcll(x))
PTX_UNARY(clz_b64, u32, "r", u64, "l", "clz.b64", __clzll(x))
PTX_UNARY(bfind_u64, u32, "r", u64, "l", "bfind.u64", find_bit(x, 64, false))
PTX_UNARY(bfind_s64, u32, "r", s64, "l", "bfind.s64", find_bit(x, 64, true))
PTX_UNARY(bfind_shift_u64, u32, "r", u64, "l", "bfind.shiftamt.u64", find_shift(x, 64, false))
PTX_TWO(add_s64, s64, "l", "add.s64", (u64)x + (u64)y)
PTX_TWO(sub_s64, s64, "l", "sub.s64", (u64)x - (u64)y)
PTX_TWO(mul_lo_s64, s64, "l", "mul.lo.s64", (u64)x * (u64)y)
PTX_TWO(mul_hi_s64, s64, "l", "mul.hi.s64", __mul64hi(x, y))
PTX_TWO(mul_hi_u64, u64, "l", "mul.hi.u64", __umul64hi(x, y))
PTX_THREE(mad_lo_s64, s64, "l", "mad.lo.s64", (u64)x * (u64)y + (u64)z)
PTX_TWO(div_s64, s64, "l", "div.s64", divide(x, y))
PTX_TWO(div_u64, u64, "l", "div.u64", x / y)
PTX_TWO(rem_s64, s64, "l", "rem.s64", remainder_of(x, y))
PTX_TWO(rem_u64, u64, "l", "rem.u64", x % y)
PTX_TWO(min_s64, s64, "l", "min.s64", x < y ? x : y)
PTX_TWO(min_u64, u64, "l", "min.u64", x < y ? x : y)
PTX_TWO(max_s64, s64, "l", "max.s64", x > y ? x : y)
PTX_TWO(max_u64, u64, "l", "max.u64", x > y ? x : y)
PTX_TWO(and_b64, u64, "l", "and.b64", x & y)
PTX_TWO(or_b64, u64, "l", "or.b64", x | y)
PTX_TWO(xor_b64, u64, "l", "xor.b64", x ^ y)
PTX2(shl_b64, u64, "l", u64, "l", u32, "r", "shl.b64", shift_left(x, y, 64))
PTX2(shr_u64, u64, "l", u64, "l", u32, "r", "shr.u64", shift_right(x, y, 64))
PTX2(shr_s64, s64, "l", s64, "l", u32, "r", "shr.s64", shift_right_signed(x, y, 64))
PTX3(bfe_u64, u64, "l", u64, "l", u32, "r", u32, "r", "bfe.u64", extract_bits(x, y, z, 64, false))
PTX3(bfe_s64, s64, "l", s64, "l", u32, "r", u32, "r", "bfe.s64", extract_bits(x, y, z, 64, true))
PTX_TEST(setp_eq_s64, s64, "l", "setp.eq.s64", x == y)
PTX_TEST(setp_lt_s64, s64, "l", "setp.lt.s64", x < y)
PTX_TEST(setp_le_s64, s64, "l", "setp.le.s64", x <= y)
PTX_TEST(setp_lt_u64, u64, "l", "setp.lt.u64", x < y)
PTX_TEST(setp_ge_u64, u64, "l", "setp.ge.u64", x >= y)
