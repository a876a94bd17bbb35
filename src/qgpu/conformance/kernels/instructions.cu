// One kernel for each PTX instruction of 32 and 16 bits, signed and unsigned side by side; thread i takes numbers i.
#include "ptx.cuh"

#define SOLO(kernel, T, R, f, g) \
  __global__ void kernel(const T* a, R* out, int n) { \
    int i = threadIdx.x; \
    if (i < n) { \
      out[i] = (R)f(a[i]); \
      out[n + i] = (R)g(a[i]); \
    } \
  }
#define DUET(kernel, T, R, f, g) \
  __global__ void kernel(const T* a, const T* b, R* out, int n) { \
    int i = threadIdx.x; \
    if (i < n) { \
      out[i] = (R)f(a[i], b[i]); \
      out[n + i] = (R)g(a[i], b[i]); \
    } \
  }
#define TRIO(kernel, T, R, f, g) \
  __global__ void kernel(const T* a, const T* b, const T* c, R* out, int n) { \
    int i = threadIdx.x; \
    if (i < n) { \
      out[i] = (R)f(a[i], b[i], c[i]); \
      out[n + i] = (R)g(a[i], b[i], c[i]); \
    } \
  }

SOLO(ins_neg_abs, s32, s32, neg_s32, abs_s32)
SOLO(ins_not_cnot, u32, u32, not_b32, cnot_b32)
SOLO(ins_popc_clz, u32, u32, popc_b32, clz_b32)
SOLO(ins_bfind, u32, u32, bfind_u32, bfind_s32)
SOLO(ins_bfind_shiftamt, u32, u32, bfind_shift_u32, bfind_shift_s32)
DUET(ins_add_sub, s32, s32, add_s32, sub_s32)
DUET(ins_add_sub_sat, s32, s32, add_sat_s32, sub_sat_s32)
DUET(ins_mul_hi, u32, u32, mul_hi_s32, mul_hi_u32)
DUET(ins_mul24, u32, u32, mul24_lo_s32, mul24_lo_u32)
DUET(ins_mul_wide, u32, u64, mul_wide_s32, mul_wide_u32)
DUET(ins_div, u32, u32, div_s32, div_u32)
DUET(ins_rem, u32, u32, rem_s32, rem_u32)
DUET(ins_min, u32, u32, min_s32, min_u32)
DUET(ins_max, u32, u32, max_s32, max_u32)
DUET(ins_and_or, u32, u32, and_b32, or_b32)
DUET(ins_shr, u32, u32, shr_s32, shr_u32)
TRIO(ins_mad_lo, u32, u32, mad_lo_s32, mad_lo_s32)
TRIO(ins_mad_hi, u32, u32, mad_hi_s32, mad_hi_u32)
TRIO(ins_sad, u32, u32, sad_s32, sad_u32)
TRIO(ins_bfe, u32, u32, bfe_s32, bfe_u32)
TRIO(ins_shf_l, u32, u32, shf_l_wrap, shf_l_clamp)
TRIO(ins_shf_r, u32, u32, shf_r_wrap, shf_r_clamp)

__global__ void ins_brev_xor(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i < n) {
    out[i] = brev_b32(a[i]);
    out[n + i] = xor_b32(a[i], b[i]);
  }
}

__global__ void ins_shl_mul(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i < n) {
    out[i] = shl_b32(a[i], b[i]);
    out[n + i] = mul_lo_s32(a[i], b[i]);
  }
}

__global__ void ins_mad_wide(const u32* a, const u32* b, const u64* c, u64* out, int n) {
  int i = threadIdx.x;
  if (i < n) {
    out[i] = mad_wide_s32(a[i], b[i], c[i]);
    out[n + i] = mad_wide_u32(a[i], b[i], c[i]);
  }
}

__global__ void ins_bfi(const u32* a, const u32* b, const u32* position, const u32* length, u32* out, int n) {
  int i = threadIdx.x;
  if (i < n) {
#ifdef __CUDA_ARCH__
    u32 d;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a[i]), "r"(b[i]), "r"(position[i]), "r"(length[i]));
    out[i] = d;
#else
    out[i] = (u32)insert_bits(a[i], b[i], position[i], length[i], 32);
#endif
  }
}

__global__ void ins_prmt(const u32* a, const u32* b, const u32* selector, u32* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = prmt_b32(a[i], b[i], selector[i]);
}

// The six modes of prmt, each for the four values that count of the selector.
__global__ void ins_prmt_modes(u32 a, u32 b, u32* out) {
  int i = threadIdx.x;
  u32 selector = i ^ 0xfffffff0u;
  out[i] = prmt_f4e(a, b, selector);
  out[i + 4] = prmt_b4e(a, b, selector);
  out[i + 8] = prmt_rc8(a, b, selector);
  out[i + 12] = prmt_ecl(a, b, selector);
  out[i + 16] = prmt_ecr(a, b, selector);
  out[i + 20] = prmt_rc16(a, b, selector);
}

#ifdef __CUDA_ARCH__
#define LOP3(name, table) \
  __device__ inline u32 name(u32 x, u32 y, u32 z) { \
    u32 d; \
    asm("lop3.b32 %0, %1, %2, %3, " #table ";" : "=r"(d) : "r"(x), "r"(y), "r"(z)); \
    return d; \
  }
#else
#define LOP3(name, table) \
  static inline u32 name(u32 x, u32 y, u32 z) { return logic3(x, y, z, table); }
#endif
LOP3(lop3_parity, 0x96)
LOP3(lop3_majority, 0xe8)
LOP3(lop3_select, 0xca)
LOP3(lop3_odd, 0x1d)
LOP3(lop3_none, 0x00)
LOP3(lop3_second, 0xcc)
TRIO(ins_lop3, u32, u32, lop3_parity, lop3_majority)
TRIO(ins_lop3_more, u32, u32, lop3_select, lop3_odd)
TRIO(ins_lop3_less, u32, u32, lop3_none, lop3_second)

// Every comparison of 32 bits: bit k of the result is comparison k.
__global__ void ins_setp(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i], y = b[i];
  out[i] = setp_eq_s32(x, y) | setp_ne_s32(x, y) << 1 | setp_lt_s32(x, y) << 2 | setp_le_s32(x, y) << 3 |
           setp_gt_s32(x, y) << 4 | setp_ge_s32(x, y) << 5 | setp_lt_u32(x, y) << 6 | setp_le_u32(x, y) << 7 |
           setp_gt_u32(x, y) << 8 | setp_ge_u32(x, y) << 9;
}

__global__ void ins_setp_unsigned_names(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = setp_lo_u32(a[i], b[i]) | setp_ls_u32(a[i], b[i]) << 1 | setp_hi_u32(a[i], b[i]) << 2 |
                      setp_hs_u32(a[i], b[i]) << 3;
}

DUET(ins_set, u32, u32, set_lt_s32, set_hi_u32)

__global__ void ins_slct(const s32* a, const s32* b, const s32* c, s32* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = slct_s32(a[i], b[i], c[i]);
}

// ---- 16 bits ----

DUET(ins16_add_sub, u16, u16, add_s16, sub_s16)
DUET(ins16_mul_hi, u16, u16, mul_hi_s16, mul_hi_u16)
DUET(ins16_mul_wide, u16, u32, mul_wide_s16, mul_wide_u16)
DUET(ins16_div, u16, u16, div_s16, div_u16)
DUET(ins16_rem, u16, u16, rem_s16, rem_u16)
DUET(ins16_min_max, u16, u16, min_s16, max_u16)
DUET(ins16_logic, u16, u16, and_b16, xor_b16)
DUET(ins16_setp, u16, u16, setp_lt_s16, setp_lt_u16)
SOLO(ins16_neg_abs, u16, u16, neg_s16, abs_s16)

__global__ void ins16_mad_shifts(const u16* a, const u16* b, const u16* c, u16* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = mad_lo_s16(a[i], b[i], c[i]);
  out[n + i] = shl_b16(a[i], i);
  out[2 * n + i] = shr_u16(a[i], i);
  out[3 * n + i] = shr_s16(a[i], i);
  out[4 * n + i] = or_b16(not_b16(b[i]), mul_lo_s16(a[i], c[i]));
}
