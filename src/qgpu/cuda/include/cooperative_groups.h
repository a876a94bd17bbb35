// Cooperative groups, as far as one CTA goes: the block, tiles of a warp, the threads that are here.
//
// A tile of N threads is N lanes in a row; everything a group does is a warp primitive with the mask of its lanes.
#pragma once

namespace cooperative_groups {

#define __QGPU_CG__ __device__ __forceinline__

struct thread_block {
  __QGPU_CG__ static void sync() { __syncthreads(); }
  __QGPU_CG__ static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  __QGPU_CG__ static unsigned num_threads() { return size(); }
  __QGPU_CG__ static unsigned thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  __QGPU_CG__ static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  __QGPU_CG__ static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  __QGPU_CG__ static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  __QGPU_CG__ static dim3 dim_threads() { return group_dim(); }
};
__QGPU_CG__ thread_block this_thread_block() { return thread_block(); }

struct __qgpu_lanes {
  unsigned mask;
  __QGPU_CG__ explicit __qgpu_lanes(unsigned mask) : mask(mask) {}
  __QGPU_CG__ static unsigned lane() { return thread_block::thread_rank() & 31; }
  __QGPU_CG__ void sync() const { __syncwarp(mask); }
  __QGPU_CG__ int any(int p) const { return __any_sync(mask, p); }
  __QGPU_CG__ int all(int p) const { return __all_sync(mask, p); }
};

template <unsigned Size, typename Parent = void> struct thread_block_tile : __qgpu_lanes {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  static constexpr unsigned ones = Size == 32 ? 0xffffffffu : (1u << Size % 32) - 1;
  __QGPU_CG__ thread_block_tile() : __qgpu_lanes(ones << (lane() & ~(Size - 1))) {}
  __QGPU_CG__ static constexpr unsigned size() { return Size; }
  __QGPU_CG__ static constexpr unsigned num_threads() { return Size; }
  __QGPU_CG__ static unsigned thread_rank() { return lane() & (Size - 1); }
  __QGPU_CG__ static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
  __QGPU_CG__ static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }
  template <typename T> __QGPU_CG__ T shfl(T v, int rank) const { return __shfl_sync(mask, v, rank, Size); }
  template <typename T> __QGPU_CG__ T shfl_up(T v, unsigned by) const { return __shfl_up_sync(mask, v, by, Size); }
  template <typename T> __QGPU_CG__ T shfl_down(T v, unsigned by) const { return __shfl_down_sync(mask, v, by, Size); }
  template <typename T> __QGPU_CG__ T shfl_xor(T v, unsigned lanes) const { return __shfl_xor_sync(mask, v, lanes, Size); }
  __QGPU_CG__ unsigned ballot(int p) const { return __ballot_sync(mask, p) >> (lane() & ~(Size - 1)); }
  template <typename T> __QGPU_CG__ unsigned match_any(T v) const {
    return __match_any_sync(mask, v) >> (lane() & ~(Size - 1));
  }
  template <typename T> __QGPU_CG__ unsigned match_all(T v, int& all) const {
    return __match_all_sync(mask, v, &all) >> (lane() & ~(Size - 1));
  }
};
template <unsigned Size, typename Group> __QGPU_CG__ thread_block_tile<Size, Group> tiled_partition(const Group&) {
  return thread_block_tile<Size, Group>();
}

struct coalesced_group : __qgpu_lanes {
  __QGPU_CG__ explicit coalesced_group(unsigned mask) : __qgpu_lanes(mask) {}
  __QGPU_CG__ unsigned size() const { return __popc(mask); }
  __QGPU_CG__ unsigned num_threads() const { return size(); }
  __QGPU_CG__ unsigned thread_rank() const { return __popc(mask & ((1u << lane()) - 1)); }
  template <typename T> __QGPU_CG__ T shfl(T v, int rank) const { return __shfl_sync(mask, v, place(rank)); }
  __QGPU_CG__ unsigned ballot(int p) const {
    unsigned found = __ballot_sync(mask, p), packed = 0, rest = mask;
    for (int rank = 0; rest; rank++, rest &= rest - 1) packed |= (found >> (__ffs(rest) - 1) & 1) << rank;
    return packed;
  }

 private:
  __QGPU_CG__ int place(int rank) const {
    unsigned rest = mask;
    while (rank-- > 0) rest &= rest - 1;
    return __ffs(rest) - 1;
  }
};
__QGPU_CG__ coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <typename Group> __QGPU_CG__ void sync(const Group& group) { group.sync(); }

// ---- Reductions: every thread of the tile gets the result. ----

template <typename T> struct plus { __QGPU_CG__ T operator()(T a, T b) const { return a + b; } };
template <typename T> struct less { __QGPU_CG__ T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T> struct greater { __QGPU_CG__ T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T> struct bit_and { __QGPU_CG__ T operator()(T a, T b) const { return a & b; } };
template <typename T> struct bit_or { __QGPU_CG__ T operator()(T a, T b) const { return a | b; } };
template <typename T> struct bit_xor { __QGPU_CG__ T operator()(T a, T b) const { return a ^ b; } };

template <unsigned Size, typename Parent, typename T, typename Op>
__QGPU_CG__ T reduce(const thread_block_tile<Size, Parent>& tile, T value, Op op) {
  for (unsigned lanes = Size / 2; lanes; lanes /= 2) value = op(value, tile.shfl_xor(value, lanes));
  return value;
}

#undef __QGPU_CG__

}  // namespace cooperative_groups
