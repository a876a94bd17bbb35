// Cooperative groups for the host: the block, tiles of a warp, the threads that are here.
#pragma once

namespace cooperative_groups {

static inline unsigned rank_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

struct thread_block {
  void sync() const { __syncthreads(); }
  unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  unsigned thread_rank() const { return rank_in_block(); }
};
static inline thread_block this_thread_block() { return thread_block(); }

template <unsigned N> struct tile {
  unsigned first() const { return rank_in_block() % 32 / N * N; }
  unsigned mask() const {
    unsigned lanes = 0;
    for (unsigned i = 0; i < N; i++) lanes |= 1u << (first() + i);
    return lanes;
  }
  void sync() const { __syncwarp(mask()); }
  unsigned size() const { return N; }
  unsigned thread_rank() const { return rank_in_block() % N; }
  unsigned meta_group_rank() const { return rank_in_block() / N; }
  template <typename T> T shfl(T v, int rank) const { return __shfl_sync(mask(), v, rank, N); }
  template <typename T> T shfl_down(T v, unsigned by) const { return __shfl_down_sync(mask(), v, by, N); }
  template <typename T> T shfl_xor(T v, unsigned lanes) const { return __shfl_xor_sync(mask(), v, lanes, N); }
  unsigned ballot(int p) const { return __ballot_sync(mask(), p) >> first(); }
  int any(int p) const { return __any_sync(mask(), p); }
};
template <unsigned N, typename G> static inline tile<N> tiled_partition(const G&) { return tile<N>(); }

template <typename T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <typename T> struct greater { T operator()(T a, T b) const { return a > b ? a : b; } };
template <unsigned N, typename T, typename F> static inline T reduce(const tile<N>& g, T value, F f) {
  T result = g.shfl(value, 0);
  for (unsigned i = 1; i < N; i++) result = f(result, g.shfl(value, i));
  return result;
}

}  // namespace cooperative_groups
