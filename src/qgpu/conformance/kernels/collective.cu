// Reductions and scans over CTAs, compaction, sorting networks, a radix sort pass, a merge by ranks.
#include "ptx.cuh"

#define ALL 0xffffffffu

__global__ void reduce_shared(const int* a, int* out, int n) {
  __shared__ int part[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? a[i] : 0;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

__global__ void reduce_two_steps(const int* a, int* out, int n) {
  __shared__ int parts[4];
  int t = threadIdx.x, sum = 0;
  for (int i = t; i < n; i += blockDim.x) sum += a[i];
  for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(ALL, sum, d);
  if ((t & 31) == 0) parts[t >> 5] = sum;
  __syncthreads();
  if (t < 32) {
    sum = t < blockDim.x / 32 ? parts[t] : 0;
    for (int d = 2; d; d >>= 1) sum += __shfl_down_sync(ALL, sum, d);
    if (t == 0) *out = sum;
  }
}

__global__ void reduce_minimum_place(const int* a, int* out, int n) {
  __shared__ int best[32], place[32];
  int t = threadIdx.x;
  best[t] = 0x7fffffff;
  place[t] = -1;
  for (int i = t; i < n; i += blockDim.x)
    if (a[i] < best[t]) best[t] = a[i], place[t] = i;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (t < s && (best[t + s] < best[t] || (best[t + s] == best[t] && place[t + s] < place[t]))) {
      best[t] = best[t + s];
      place[t] = place[t + s];
    }
    __syncthreads();
  }
  if (t == 0) out[0] = best[0], out[1] = place[0];
}

__global__ void scan_hillis_steele(const int* a, int* out) {
  __shared__ int kept[2][64];
  int t = threadIdx.x, from = 0;
  kept[0][t] = a[t];
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    kept[1 - from][t] = t >= d ? kept[from][t] + kept[from][t - d] : kept[from][t];
    from = 1 - from;
    __syncthreads();
  }
  out[t] = kept[from][t];
}

__global__ void scan_blelloch(const int* a, int* out) {
  __shared__ int kept[64];
  int t = threadIdx.x, n = 2 * blockDim.x, offset = 1;
  kept[2 * t] = a[2 * t];
  kept[2 * t + 1] = a[2 * t + 1];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) kept[offset * (2 * t + 2) - 1] += kept[offset * (2 * t + 1) - 1];
    offset *= 2;
  }
  if (t == 0) kept[n - 1] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      int low = offset * (2 * t + 1) - 1, high = offset * (2 * t + 2) - 1, x = kept[low];
      kept[low] = kept[high];
      kept[high] += x;
    }
  }
  __syncthreads();
  out[2 * t] = kept[2 * t];
  out[2 * t + 1] = kept[2 * t + 1];
}

__global__ void scan_of_warps(const int* a, int* out) {
  __shared__ int sums[4];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5, x = a[t];
  for (int d = 1; d < 32; d *= 2) {
    int y = __shfl_up_sync(ALL, x, d);
    if (lane >= d) x += y;
  }
  if (lane == 31) sums[warp] = x;
  __syncthreads();
  for (int w = 0; w < warp; w++) x += sums[w];
  out[t] = x;
}

__global__ void scan_segmented(const int* a, const u8* head, int* out) {
  int t = threadIdx.x, x = a[t], flag = head[t];
  for (int d = 1; d < 32; d *= 2) {
    int y = __shfl_up_sync(ALL, x, d), other = __shfl_up_sync(ALL, flag, d);
    if (t >= d && !flag) x += y, flag = other;
  }
  out[t] = x;
}

__global__ void compact_by_ballot(const int* a, int* out, int* count) {
  int t = threadIdx.x, x = a[t];
  u32 keep = __ballot_sync(ALL, x > 0);
  if (x > 0) out[__popc(keep & ((1u << t) - 1))] = x;
  if (t == 0) *count = __popc(keep);
}

__global__ void compact_by_scan(const int* a, int* out, int* count) {
  __shared__ int sums[64];
  int t = threadIdx.x, keep = a[t] % 3 == 0;
  sums[t] = keep;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    int x = t >= d ? sums[t - d] : 0;
    __syncthreads();
    sums[t] += x;
    __syncthreads();
  }
  if (keep) out[sums[t] - 1] = a[t];
  if (t == blockDim.x - 1) *count = sums[t];
}

__global__ void sort_bitonic(int* a) {
  __shared__ int kept[32];
  u32 t = threadIdx.x;
  kept[t] = a[t];
  __syncthreads();
  for (u32 k = 2; k <= blockDim.x; k <<= 1)
    for (u32 j = k >> 1; j > 0; j >>= 1) {
      u32 other = t ^ j;
      if (other > t) {
        int x = kept[t], y = kept[other];
        if ((x > y) == !(t & k)) kept[t] = y, kept[other] = x;
      }
      __syncthreads();
    }
  a[t] = kept[t];
}

__global__ void sort_bitonic_warp(u32* a) {
  u32 t = threadIdx.x, x = a[t];
  for (u32 k = 2; k <= 32; k <<= 1)
    for (u32 j = k >> 1; j > 0; j >>= 1) {
      u32 y = __shfl_xor_sync(ALL, x, j);
      bool up = !(t & k), lower = !(t & j);
      x = up == lower ? min(x, y) : max(x, y);
    }
  a[t] = x;
}

__global__ void sort_odd_even(int* a, int n) {
  int t = threadIdx.x;
  for (int round = 0; round < n; round++) {
    int i = 2 * t + (round & 1);
    if (i + 1 < n && a[i] > a[i + 1]) {
      int x = a[i];
      a[i] = a[i + 1];
      a[i + 1] = x;
    }
    __syncthreads();
  }
}

__global__ void sort_by_rank(const int* a, int* out, int n) {
  int t = threadIdx.x;
  if (t >= n) return;
  int rank = 0;
  for (int i = 0; i < n; i++) rank += a[i] < a[t] || (a[i] == a[t] && i < t);
  out[rank] = a[t];
}

__global__ void sort_insertion(int* a, int n) {
  int* own = a + threadIdx.x * n;
  for (int i = 1; i < n; i++) {
    int x = own[i], j = i;
    while (j > 0 && own[j - 1] > x) {
      own[j] = own[j - 1];
      j--;
    }
    own[j] = x;
  }
}

// One pass of a radix sort: stable, by four bits, in one warp.
__global__ void radix_pass(const u32* a, u32* out, int shift) {
  __shared__ u32 starts[17];
  u32 t = threadIdx.x, digit = a[t] >> shift & 15;
  if (t < 17) starts[t] = 0;
  __syncwarp();
  atomicAdd(&starts[digit + 1], 1u);
  __syncwarp();
  if (t == 0)
    for (int i = 1; i < 16; i++) starts[i] += starts[i - 1];
  __syncwarp();
  u32 same = __match_any_sync(ALL, digit);
  out[starts[digit] + __popc(same & ((1u << t) - 1))] = a[t];
}

__global__ void merge_by_search(const int* a, const int* b, int* out, int n) {
  int t = threadIdx.x;
  if (t >= 2 * n) return;
  bool first = t < n;
  int x = first ? a[t] : b[t - n], low = 0, high = n;
  const int* other = first ? b : a;
  while (low < high) {
    int middle = (low + high) / 2;
    if (other[middle] < x || (!first && other[middle] == x)) low = middle + 1;
    else high = middle;
  }
  out[(first ? t : t - n) + low] = x;
}

__global__ void binary_search(const int* sorted, const int* wanted, int* out, int n, int m) {
  int t = threadIdx.x;
  if (t >= m) return;
  int low = 0, high = n - 1, found = -1;
  while (low <= high) {
    int middle = (low + high) >> 1;
    if (sorted[middle] == wanted[t]) {
      found = middle;
      break;
    }
    if (sorted[middle] < wanted[t]) low = middle + 1;
    else high = middle - 1;
  }
  out[t] = found;
}

__global__ void ring_buffer_rotate(int* a, int n, int by) {
  __shared__ int kept[40];
  int t = threadIdx.x;
  if (t < n) kept[t] = a[t];
  __syncthreads();
  if (t < n) a[t] = kept[(t + by) % n];
}
