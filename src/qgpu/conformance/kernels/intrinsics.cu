// CUDA's integer functions: averages, distances, products of parts, packed arithmetic, funnel shifts, bits.
#include "ptx.cuh"

__global__ void packed_arithmetic(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __vadd4(a[i], b[i]);
  out[n + i] = __vsub2(a[i], b[i]);
  out[2 * n + i] = __vaddss2(a[i], b[i]);
  out[3 * n + i] = __vsubus4(a[i], b[i]);
  out[4 * n + i] = __vavgu4(a[i], b[i]) ^ __vhaddu4(a[i], b[i]);
}

__global__ void packed_comparisons(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __vmins2(a[i], b[i]);
  out[n + i] = __vmaxu4(a[i], b[i]);
  out[2 * n + i] = __vabsdiffu4(a[i], b[i]) + __vsadu4(a[i], b[i]);
  out[3 * n + i] = __vcmpgts4(a[i], b[i]);
  out[4 * n + i] = __vseteq2(a[i], b[i] & 0xffffu | a[i] & 0xffff0000u);
}

__global__ void dot_products_packed(const int* a, const int* b, const int* c, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __dp4a(a[i], b[i], c[i]);
  out[n + i] = (int)__dp4a((u32)a[i], (u32)b[i], (u32)c[i]);
  out[2 * n + i] = __dp2a_lo(a[i], b[i], c[i]) - (int)__dp2a_lo((u32)a[i], (u32)b[i], 5u);
  out[3 * n + i] = __dp2a_hi(a[i], b[i], c[i]) - (int)__dp2a_hi((u32)a[i], (u32)b[i], 5u);
}

__global__ void averages_and_distances(const int* a, const int* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i], y = b[i];
  out[i] = (u32)__hadd(x, y) ^ (u32)__rhadd(x, y) << 1;
  out[n + i] = __uhadd((u32)x, (u32)y) ^ __urhadd((u32)x, (u32)y) << 1;
  out[2 * n + i] = __sad(x, y, 7u) ^ __usad((u32)x, (u32)y, 9u) << 1;
  out[3 * n + i] = (u32)__mulhi(x, y) ^ __umulhi((u32)x, (u32)y) << 1;
  out[4 * n + i] = (u32)__mul24(x, y) + __umul24((u32)x, (u32)y) + (u32)abs(x);
}

__global__ void funnel_shifts(const u32* a, const u32* b, const u32* c, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __funnelshift_l(a[i], b[i], c[i]);
  out[n + i] = __funnelshift_r(a[i], b[i], c[i]);
  out[2 * n + i] = __funnelshift_lc(a[i], b[i], c[i]);
  out[3 * n + i] = __funnelshift_rc(a[i], b[i], c[i]);
}

__global__ void bits_of_doublewords(const u64* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u64 x = a[i], y = __brevll(x);
  out[i] = (u32)(__popcll(x) + 100 * __clzll((long long)x) + 10000 * __ffsll((long long)x));
  out[n + i] = (u32)y ^ (u32)(y >> 32);
  out[2 * n + i] = (u32)__ffs((int)x) + 64 * (u32)__clz((int)x);
}

__global__ void find_nth_one(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = __fns(a[i], i, (i & 3) + 1);
  out[n + i] = __fns(a[i], 31 - i, -1 - (i & 1));
}

__global__ void byte_permutes(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = __byte_perm(a[i], b[i], 0x5140) + __byte_perm(a[i], b[i], b[i] & 0x7777) + __byte_perm(a[i], 0, 0x0123);
}

__global__ void dynamic_shared(const int* a, int* out, int n) {
  DYNAMIC_SHARED(int, kept);
  int t = threadIdx.x;
  int* second = kept + n;
  kept[t] = a[t];
  second[n - 1 - t] = a[t] * 2;
  __syncthreads();
  out[t] = kept[(t + 3) % n] + second[(t + 1) % n];
}
