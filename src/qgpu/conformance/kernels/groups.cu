// Cooperative groups of one CTA.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "ptx.cuh"

namespace cg = cooperative_groups;

__global__ void groups_tiles(const int* a, int* out) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int t = block.thread_rank(), x = a[t];
  for (int d = tile.size() / 2; d > 0; d /= 2) x += tile.shfl_down(x, d);
  out[t] = tile.shfl(x, 0) * 100 + tile.meta_group_rank() * 10 + tile.thread_rank();
}

__global__ void groups_reduce(const int* a, int* out) {
  __shared__ int best[2];
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int t = block.thread_rank(), top = cg::reduce(warp, a[t], cg::greater<int>()), sum = cg::reduce(warp, a[t], cg::plus<int>());
  if (warp.thread_rank() == 0) best[warp.meta_group_rank()] = top;
  block.sync();
  out[t] = best[0] - best[1] + sum;
}

__global__ void groups_ballot(const int* a, int* out) {
  auto tile = cg::tiled_partition<4>(cg::this_thread_block());
  int t = threadIdx.x;
  if (t & 4) {
    out[t] = tile.ballot(a[t] > 0);
  } else {
    tile.sync();
    out[t] = 16 + tile.any(a[t] > 5);
  }
}
