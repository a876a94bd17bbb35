// Reductions over a warp by one call. Real GPUs have them from compute capability 8.0 on.
#include "ptx.cuh"

#define ALL 0xffffffffu

__global__ void redux(const int* a, u32* out) {
  int t = threadIdx.x, x = a[t], n = blockDim.x;
  out[t] = (u32)__reduce_add_sync(ALL, x);
  out[n + t] = (u32)__reduce_min_sync(ALL, x) ^ __reduce_min_sync(ALL, (u32)x) << 1;
  out[2 * n + t] = (u32)__reduce_max_sync(ALL, x) ^ __reduce_max_sync(ALL, (u32)x) << 1;
  out[3 * n + t] = __reduce_and_sync(ALL, (u32)x) + __reduce_or_sync(ALL, (u32)x) * 3 + __reduce_xor_sync(ALL, (u32)x);
}

__global__ void redux_members(const int* a, int* out) {
  int t = threadIdx.x, x = a[t];
  if (t % 4 == 1) {
    out[t] = __reduce_add_sync(0x22222222u, x);
  } else {
    out[t] = (int)__reduce_max_sync(0xddddddddu, (u32)x);
  }
}
