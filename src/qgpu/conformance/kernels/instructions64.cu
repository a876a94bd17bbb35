// One kernel for each PTX instruction of 64 bits, and conversions between widths.
#include "ptx.cuh"

#define DUET64(kernel, R, f, g) \
  __global__ void kernel(const u64* a, const u64* b, R* out, int n) { \
    int i = threadIdx.x; \
    if (i < n) { \
      out[i] = (R)f(a[i], b[i]); \
      out[n + i] = (R)g(a[i], b[i]); \
    } \
  }
#define SOLO64(kernel, R, f, g) \
  __global__ void kernel(const u64* a, R* out, int n) { \
    int i = threadIdx.x; \
    if (i < n) { \
      out[i] = (R)f(a[i]); \
      out[n + i] = (R)g(a[i]); \
    } \
  }

SOLO64(ins64_neg_abs, u64, neg_s64, abs_s64)
SOLO64(ins64_not_brev, u64, not_b64, brev_b64)
SOLO64(ins64_popc_clz, u32, popc_b64, clz_b64)
SOLO64(ins64_bfind, u32, bfind_u64, bfind_s64)
DUET64(ins64_add_sub, u64, add_s64, sub_s64)
DUET64(ins64_mul_hi, u64, mul_hi_s64, mul_hi_u64)
DUET64(ins64_div, u64, div_s64, div_u64)
DUET64(ins64_rem, u64, rem_s64, rem_u64)
DUET64(ins64_min, u64, min_s64, min_u64)
DUET64(ins64_max, u64, max_s64, max_u64)
DUET64(ins64_and_or, u64, and_b64, or_b64)
DUET64(ins64_xor_mul, u64, xor_b64, mul_lo_s64)

__global__ void ins64_mad(const u64* a, const u64* b, const u64* c, u64* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = mad_lo_s64(a[i], b[i], c[i]);
}

__global__ void ins64_shifts(const u64* a, const u32* b, u64* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = shl_b64(a[i], b[i]);
  out[n + i] = shr_u64(a[i], b[i]);
  out[2 * n + i] = shr_s64(a[i], b[i]);
}

__global__ void ins64_bfe(const u64* a, const u32* position, const u32* length, u64* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = bfe_u64(a[i], position[i], length[i]);
  out[n + i] = bfe_s64(a[i], position[i], length[i]);
}

__global__ void ins64_bfi(const u64* a, const u64* b, const u32* position, const u32* length, u64* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
#ifdef __CUDA_ARCH__
  u64 d;
  asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(d) : "l"(a[i]), "l"(b[i]), "r"(position[i]), "r"(length[i]));
  out[i] = d;
#else
  out[i] = insert_bits(a[i], b[i], position[i], length[i], 64);
#endif
}

__global__ void ins64_setp(const u64* a, const u64* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u64 x = a[i], y = b[i];
  out[i] = setp_eq_s64(x, y) | setp_lt_s64(x, y) << 1 | setp_le_s64(x, y) << 2 | setp_lt_u64(x, y) << 3 |
           setp_ge_u64(x, y) << 4;
}

__global__ void ins64_select(const u64* a, const u64* b, const u32* c, u64* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = c[i] & 1 ? a[i] : b[i];
}

// A sum and a difference of 96 bits, with the carry handed from one instruction to the next.
__global__ void ins_carry(const u32* a, const u32* b, u32* out) {
  int i = 3 * threadIdx.x;
#ifdef __CUDA_ARCH__
  u32 x, y, z;
  asm("add.cc.u32 %0, %3, %6; addc.cc.u32 %1, %4, %7; addc.u32 %2, %5, %8;"
      : "=r"(x), "=r"(y), "=r"(z)
      : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(b[i]), "r"(b[i + 1]), "r"(b[i + 2]));
  u32 u, v, w;
  asm("sub.cc.u32 %0, %3, %6; subc.cc.u32 %1, %4, %7; subc.u32 %2, %5, %8;"
      : "=r"(u), "=r"(v), "=r"(w)
      : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(b[i]), "r"(b[i + 1]), "r"(b[i + 2]));
#else
  u64 low = (u64)a[i] + b[i], middle = (u64)a[i + 1] + b[i + 1] + (low >> 32);
  u32 x = (u32)low, y = (u32)middle, z = (u32)(a[i + 2] + b[i + 2] + (middle >> 32));
  u64 first = (u64)a[i] - b[i], second = (u64)a[i + 1] - b[i + 1] - (first >> 63);
  u32 u = (u32)first, v = (u32)second, w = (u32)(a[i + 2] - b[i + 2] - (second >> 63));
#endif
  out[2 * i] = x;
  out[2 * i + 1] = y;
  out[2 * i + 2] = z;
  out[2 * i + 3] = u;
  out[2 * i + 4] = v;
  out[2 * i + 5] = w;
}

// Conversions: every width to every other.
__global__ void ins_cvt(const u64* a, s64* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u64 x = a[i];
  out[i] = (s8)x;
  out[n + i] = (u8)x;
  out[2 * n + i] = (s16)x;
  out[3 * n + i] = (u16)x;
  out[4 * n + i] = (s32)x;
  out[5 * n + i] = (u32)x;
  out[6 * n + i] = (s64)(s16)(s8)x * (u16)(x >> 32);
}

#ifdef __CUDA_ARCH__
#define SATURATE(name, text) \
  __device__ inline s32 name(s32 x) { \
    s32 d; \
    asm("{.reg .s32 t; " text "}" : "=r"(d) : "r"(x)); \
    return d; \
  }
#else
#define SATURATE(name, text)
static inline s32 saturate_s8(s32 x) { return (s32)clamp_to(x, -128, 127); }
static inline s32 saturate_u8(s32 x) { return (s32)clamp_to(x, 0, 255); }
static inline s32 saturate_s16(s32 x) { return (s32)clamp_to(x, -32768, 32767); }
static inline s32 saturate_u16(s32 x) { return (s32)clamp_to(x, 0, 65535); }
#endif
SATURATE(saturate_s8, "cvt.sat.s8.s32 t, %1; cvt.s32.s8 %0, t;")
SATURATE(saturate_u8, "cvt.sat.u8.s32 t, %1; cvt.u32.u8 %0, t;")
SATURATE(saturate_s16, "cvt.sat.s16.s32 t, %1; cvt.s32.s16 %0, t;")
SATURATE(saturate_u16, "cvt.sat.u16.s32 t, %1; cvt.u32.u16 %0, t;")

__global__ void ins_cvt_sat(const s32* a, s32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = saturate_s8(a[i]);
  out[n + i] = saturate_u8(a[i]);
  out[2 * n + i] = saturate_s16(a[i]);
  out[3 * n + i] = saturate_u16(a[i]);
}
