// Warp primitives of CUDA C: part of device.cuh. A warp has 32 lanes; `width` is a power of two up to 32, encoded as PTX
// wants it (segment mask << 8). Floating-point values are moved as their bits.
#pragma once

__QGPU__ int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p); }
__QGPU__ int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p); }
__QGPU__ int __uni_sync(unsigned mask, int p) { return __nvvm_vote_uni_sync(mask, p); }
__QGPU__ unsigned __ballot_sync(unsigned mask, int p) { return __nvvm_vote_ballot_sync(mask, p); }
__QGPU__ unsigned __activemask() { return __nvvm_activemask(); }

#define __QGPU_SHUFFLE_32__(name, kind, clamp, T) \
  __QGPU__ T name(unsigned mask, T value, unsigned lane, int width = 32) { \
    return (T)__nvvm_shfl_sync_##kind##_i32(mask, (int)value, (int)lane, ((32 - width) << 8) | clamp); \
  }
#define __QGPU_SHUFFLE_64__(name, kind, clamp, T) \
  __QGPU__ T name(unsigned mask, T value, unsigned lane, int width = 32) { \
    unsigned low = name(mask, (unsigned)value, lane, width); \
    unsigned high = name(mask, (unsigned)((unsigned long long)value >> 32), lane, width); \
    return (T)((unsigned long long)high << 32 | low); \
  }
#define __QGPU_SHUFFLE__(name, kind, clamp) \
  __QGPU_SHUFFLE_32__(name, kind, clamp, int) \
  __QGPU_SHUFFLE_32__(name, kind, clamp, unsigned) \
  __QGPU_SHUFFLE_32__(name, kind, clamp, long) \
  __QGPU_SHUFFLE_32__(name, kind, clamp, unsigned long) \
  __QGPU_SHUFFLE_64__(name, kind, clamp, long long) \
  __QGPU_SHUFFLE_64__(name, kind, clamp, unsigned long long) \
  __QGPU__ float name(unsigned mask, float value, unsigned lane, int width = 32) { \
    return __builtin_bit_cast(float, name(mask, __builtin_bit_cast(unsigned, value), lane, width)); \
  } \
  __QGPU__ double name(unsigned mask, double value, unsigned lane, int width = 32) { \
    return __builtin_bit_cast(double, name(mask, __builtin_bit_cast(unsigned long long, value), lane, width)); \
  }
__QGPU_SHUFFLE__(__shfl_sync, idx, 31)
__QGPU_SHUFFLE__(__shfl_up_sync, up, 0)
__QGPU_SHUFFLE__(__shfl_down_sync, down, 31)
__QGPU_SHUFFLE__(__shfl_xor_sync, bfly, 31)
#undef __QGPU_SHUFFLE__
#undef __QGPU_SHUFFLE_64__
#undef __QGPU_SHUFFLE_32__

#define __QGPU_MATCH__(T, S, suffix) \
  __QGPU__ unsigned __match_any_sync(unsigned mask, T v) { return __nvvm_match_any_sync_##suffix(mask, (S)v); } \
  __QGPU__ unsigned __match_all_sync(unsigned mask, T v, int* all) { \
    return __nvvm_match_all_sync_##suffix##p(mask, (S)v, all); \
  }
__QGPU_MATCH__(int, unsigned, i32)
__QGPU_MATCH__(unsigned, unsigned, i32)
__QGPU_MATCH__(long, unsigned, i32)
__QGPU_MATCH__(unsigned long, unsigned, i32)
__QGPU_MATCH__(long long, unsigned long long, i64)
__QGPU_MATCH__(unsigned long long, unsigned long long, i64)
#undef __QGPU_MATCH__

// redux.sync needs a later architecture than the one compiled for. Full masks take a butterfly of five shuffles; other
// masks take one shuffle for each lane of the mask. Both end with the same value in every lane.
#define __QGPU_REDUCE__(name, T, combine) \
  __QGPU__ T name(unsigned mask, T v) { \
    T result = v, x; \
    if (mask == 0xffffffffu) { \
      for (int lanes = 16; lanes; lanes >>= 1) { \
        x = __shfl_xor_sync(mask, result, lanes); \
        result = combine; \
      } \
      return result; \
    } \
    unsigned rest = mask; \
    result = __shfl_sync(mask, v, __ffs(rest) - 1); \
    while (rest &= rest - 1) { \
      x = __shfl_sync(mask, v, __ffs(rest) - 1); \
      result = combine; \
    } \
    return result; \
  }
__QGPU_REDUCE__(__reduce_add_sync, unsigned, result + x)
__QGPU_REDUCE__(__reduce_add_sync, int, result + x)
__QGPU_REDUCE__(__reduce_min_sync, unsigned, min(result, x))
__QGPU_REDUCE__(__reduce_min_sync, int, min(result, x))
__QGPU_REDUCE__(__reduce_max_sync, unsigned, max(result, x))
__QGPU_REDUCE__(__reduce_max_sync, int, max(result, x))
__QGPU_REDUCE__(__reduce_and_sync, unsigned, result & x)
__QGPU_REDUCE__(__reduce_or_sync, unsigned, result | x)
__QGPU_REDUCE__(__reduce_xor_sync, unsigned, result ^ x)
#undef __QGPU_REDUCE__
