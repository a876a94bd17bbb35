// Warp-wide operations over 32 lanes: shuffles with all their edges, votes, matches, reductions, warp barriers.
#include "ptx.cuh"

#define ALL 0xffffffffu

// A shuffle by its PTX operands: the value, and whether its source was in range.
#ifdef __CUDA_ARCH__
#define SHUFFLE(name, mode) \
  __device__ inline u32 name(u32 mask, u32 value, u32 b, u32 c, u32* inside) { \
    u32 d, p; \
    asm volatile("{.reg .pred q; shfl.sync." mode ".b32 %0|q, %2, %3, %4, %5; selp.u32 %1, 1, 0, q;}" \
                 : "=r"(d), "=r"(p) : "r"(value), "r"(b), "r"(c), "r"(mask)); \
    *inside = p; \
    return d; \
  }
SHUFFLE(shfl_idx, "idx")
SHUFFLE(shfl_up, "up")
SHUFFLE(shfl_down, "down")
SHUFFLE(shfl_bfly, "bfly")
__device__ inline u32 lane_id() {
  u32 d;
  asm("mov.u32 %0, %%laneid;" : "=r"(d));
  return d;
}
#else
#define SHUFFLE(name, kind) \
  static inline u32 name(u32 mask, u32 value, u32 b, u32 c, u32* inside) { \
    return (u32)host::meet(host::kind, mask, value, b, c, (int*)inside); \
  }
SHUFFLE(shfl_idx, IDX)
SHUFFLE(shfl_up, UP)
SHUFFLE(shfl_down, DOWN)
SHUFFLE(shfl_bfly, BFLY)
static inline u32 lane_id() { return host::lane(); }
#endif

__global__ void shuffle_idx(const u32* a, u32* out) {
  u32 t = threadIdx.x, x = a[t];
  out[t] = __shfl_sync(ALL, x, (t * 7 + 3) & 31);
}

__global__ void shuffle_broadcast(const u32* a, u32* out) {
  u32 t = threadIdx.x;
  out[t] = __shfl_sync(ALL, a[t], 13) - __shfl_sync(ALL, t, 31);
}

__global__ void shuffle_up_down(const int* a, int* out) {
  int t = threadIdx.x, x = a[t];
  out[t] = __shfl_up_sync(ALL, x, 3) - 2 * __shfl_down_sync(ALL, x, 5);
}

__global__ void shuffle_xor(const int* a, int* out) {
  int t = threadIdx.x;
  out[t] = __shfl_xor_sync(ALL, a[t], 21);
}

// Segments of 8 and 16 lanes; sources beyond a segment wrap (idx) or give the lane's own value (up, down, xor).
__global__ void shuffle_width(const int* a, int* out) {
  int t = threadIdx.x, x = a[t], n = blockDim.x;
  out[t] = __shfl_sync(ALL, x, t + 5, 8);
  out[n + t] = __shfl_up_sync(ALL, x, 2, 16);
  out[2 * n + t] = __shfl_down_sync(ALL, x, 3, 8);
  out[3 * n + t] = __shfl_xor_sync(ALL, x, 9, 16);
}

// The source lane counts modulo the width, also where it is far out or negative.
__global__ void shuffle_source_modulo(const int* a, int* out) {
  int t = threadIdx.x, x = a[t], n = blockDim.x;
  out[t] = __shfl_sync(ALL, x, t + 40);
  out[n + t] = __shfl_sync(ALL, x, -1 - t, 4);
  out[2 * n + t] = __shfl_sync(ALL, x, 37, 32);
}

// All modes by their PTX operands: lane mask and clamp apart, range predicate kept.
__global__ void shuffle_range(const u32* a, u32* out) {
  u32 t = threadIdx.x, x = a[t], inside, sum = 0, flags = 0;
  sum += shfl_up(ALL, x, 5, 0x0000, &inside), flags |= inside;
  sum = sum * 3 + shfl_down(ALL, x, 6, 0x181f, &inside), flags |= inside << 1;
  sum = sum * 3 + shfl_bfly(ALL, x, 12, 0x1807, &inside), flags |= inside << 2;
  sum = sum * 3 + shfl_idx(ALL, x, 11, 0x1005, &inside), flags |= inside << 3;
  sum = sum * 3 + shfl_up(ALL, x, t & 7, 0x1000, &inside), flags |= inside << 4;
  sum = sum * 3 + shfl_idx(ALL, x, t ^ 33, 0x1c1f, &inside), flags |= inside << 5;
  sum = sum * 3 + shfl_down(ALL, x, t >> 2, 0x0014, &inside), flags |= inside << 6;
  out[t] = sum;
  out[blockDim.x + t] = flags;
}

// Only some lanes take part; the others go another way, and what they hold is not read.
__global__ void shuffle_members(const int* a, int* out) {
  int t = threadIdx.x, x = a[t], result = -1;
  if (t & 1) {
    result = __shfl_sync(0xaaaaaaaau, x, (t + 6) | 1);
  } else if (t >= 16) {
    result = __shfl_down_sync(0x55550000u, x, t < 24 ? 8 : 0);
  }
  out[t] = result;
}

// A value that is written in a branch, on one side only, and shuffled after it.
__global__ void shuffle_after_divergence(const int* a, int* out) {
  int t = threadIdx.x, x = a[t];
  if (x & 1) {
    x = 3 * x + 1;
    if (x & 4) x ^= 0x55;
  }
  __syncwarp();
  int y = __shfl_sync(ALL, x, 31 - t);
  if (t % 3 == 0) y -= x;
  out[t] = y + __shfl_xor_sync(ALL, y, 1);
}

// Trip counts differ from lane to lane before every exchange.
__global__ void shuffle_after_loops(const int* a, int* out) {
  int t = threadIdx.x, x = a[t], sum = 0;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < ((t + round) & 3); i++) x += t ^ i;
    sum += __shfl_sync(ALL, x, (t + 1 + round) & 31);
  }
  out[t] = sum;
}

__global__ void shuffle_64(const long long* a, long long* out) {
  int t = threadIdx.x;
  out[t] = __shfl_xor_sync(ALL, a[t], 9) + __shfl_up_sync(ALL, a[t], 1);
}

// A warp that is not full: 20 threads, and a mask of those there are.
__global__ void shuffle_partial_warp(const int* a, int* out, int n) {
  int t = threadIdx.x;
  u32 mask = (1u << n) - 1;
  int x = a[t];
  for (int d = 1; d < 32; d *= 2) {
    int y = __shfl_down_sync(mask, x, d);
    if (t + d < n) x += y;
  }
  out[t] = __shfl_sync(mask, x, 0);
}

__global__ void warp_sum(const int* a, int* out) {
  int t = threadIdx.x, x = a[t];
  for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(ALL, x, d);
  out[t] = x;
}

__global__ void warp_scan(const int* a, int* out) {
  int t = threadIdx.x, lane = t & 31, x = a[t];
  for (int d = 1; d < 32; d *= 2) {
    int y = __shfl_up_sync(ALL, x, d);
    if (lane >= d) x += y;
  }
  out[t] = x;
}

__global__ void warp_argmax(const int* a, int* out) {
  int t = threadIdx.x, best = a[t], place = t & 31;
  for (int d = 16; d; d >>= 1) {
    int other = __shfl_down_sync(ALL, best, d), where = __shfl_down_sync(ALL, place, d);
    if (other > best || (other == best && where < place)) best = other, place = where;
  }
  if ((t & 31) == 0) {
    out[2 * (t >> 5)] = best;
    out[2 * (t >> 5) + 1] = place;
  }
}

__global__ void warp_reverse_bits_of_index(const int* a, int* out) {
  int t = threadIdx.x;
  out[t] = __shfl_sync(ALL, a[t], __brev(t) >> 27);
}

__global__ void votes(const int* a, u32* out) {
  int t = threadIdx.x, x = a[t], n = blockDim.x;
  out[t] = __ballot_sync(ALL, x > 0);
  out[n + t] = (u32)__all_sync(ALL, x > -100) | (u32)__all_sync(ALL, x > 0) << 1;
  out[2 * n + t] = (u32)__any_sync(ALL, x == 7) | (u32)__any_sync(ALL, x > 1000) << 1;
}

__global__ void vote_members(const int* a, u32* out) {
  int t = threadIdx.x, x = a[t];
  u32 result;
  if (t < 12) {
    result = __ballot_sync(0x00000fffu, x & 1);
  } else {
    result = __ballot_sync(0xfffff000u, x & 2) | (u32)__all_sync(0xfffff000u, x > 0);
  }
  out[t] = result;
}

// Lanes that have returned count as 0 in a ballot.
__global__ void vote_after_exit(const int* a, u32* out) {
  int t = threadIdx.x, x = a[t];
  if (x < 0) return;
  out[t] = __ballot_sync(ALL, 1);
}

__global__ void vote_uniform(const int* a, u32* out) {
  int t = threadIdx.x;
#ifdef __CUDA_ARCH__
  u32 d, e;
  asm volatile("{.reg .pred p, q; setp.gt.s32 p, %2, 0; vote.sync.uni.pred q, p, -1; selp.u32 %0, 1, 0, q;"
               " setp.gt.s32 p, %2, -100; vote.sync.uni.pred q, p, -1; selp.u32 %1, 1, 0, q;}"
               : "=r"(d), "=r"(e) : "r"(a[t]));
#else
  u32 d = (u32)host::meet(host::UNI, ALL, a[t] > 0), e = (u32)host::meet(host::UNI, ALL, a[t] > -100);
#endif
  out[t] = d | e << 1;
}

__global__ void match_any(const int* a, u32* out) {
  int t = threadIdx.x;
  out[t] = __match_any_sync(ALL, a[t]);
}

__global__ void match_all(const int* a, u32* out) {
  int t = threadIdx.x, same, equal;
  out[t] = __match_all_sync(ALL, a[t], &same);
  out[blockDim.x + t] = __match_all_sync(ALL, t >> 5, &equal);
  out[2 * blockDim.x + t] = (u32)same | (u32)equal << 1;
}

__global__ void match_64(const long long* a, u32* out) {
  int t = threadIdx.x;
  out[t] = __match_any_sync(ALL, a[t]);
}

// One lane of those that are here adds for all of them, whoever they are.
__global__ void aggregated_count(const int* a, int* out, int n) {
  int t = threadIdx.x;
  if (t < n && a[t] % 3 == 0) {
    u32 here = __activemask();
    int leader = __ffs(here) - 1;
    if ((t & 31) == leader) atomicAdd(out, __popc(here));
  }
}

// Stores of other lanes are there after a warp barrier.
__global__ void warp_barrier_exchange(const int* a, int* out) {
  __shared__ int kept[64];
  int t = threadIdx.x, warp = t & ~31;
  kept[t] = a[t];
  __syncwarp();
  int x = kept[warp + ((t + 9) & 31)];
  __syncwarp();
  kept[t] = x * 2 + 1;
  __syncwarp();
  out[t] = kept[t ^ 1] - kept[warp];
}

// The two sides of a branch each meet at a warp barrier of their own.
__global__ void warp_barriers_of_sides(const int* a, int* out) {
  __shared__ int kept[32];
  int t = threadIdx.x;
  if (t < 20) {
    kept[t] = a[t];
    __syncwarp(0x000fffffu);
    out[t] = kept[19 - t];
  } else {
    kept[t] = -a[t];
    __syncwarp(0xfff00000u);
    out[t] = kept[51 - t];
  }
}

__global__ void lane_masks(u32* out) {
  u32 t = threadIdx.x, n = blockDim.x, eq, lt, le, gt, ge, lane = lane_id(), warp;
#ifdef __CUDA_ARCH__
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  asm("mov.u32 %0, %%warpid;" : "=r"(warp));
#else
  eq = 1u << lane, lt = eq - 1, le = lt | eq, gt = ~le, ge = ~lt;
  warp = host::warp();
#endif
  out[t] = eq;
  out[n + t] = lt;
  out[2 * n + t] = le;
  out[3 * n + t] = gt;
  out[4 * n + t] = ge;
  out[5 * n + t] = lane + 100 * warp + warpSize;
}
