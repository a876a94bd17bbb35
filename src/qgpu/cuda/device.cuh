// The device header that is put in front of every CUDA file: what CUDA C promises and clang does not supply by itself.
//
// clang brings __syncthreads and the __nvvm_* builtins; the rest stands here and in the files included at the end:
// keywords, vector types, built-in variables, barriers, loads with hints. Everything is `nodebug`, so that an inlined
// call keeps the line of the user's own code, and `always_inline`, so that nothing unused is left in the PTX.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __grid_constant__
#define __CUDA_ARCH_QGPU__ 1

#define __QGPU__ static __attribute__((device, always_inline, nodebug, unused))
#define __QGPU_BOTH__ static __attribute__((host, device, always_inline, nodebug, unused))

typedef __SIZE_TYPE__ size_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

// ---- Vector types: aligned as in CUDA, so that the compiler may move them with one access. ----

#define __QGPU_VECTORS__(T, name, a2, a4) \
  struct name##1 { T x; }; \
  struct __align__(a2) name##2 { T x, y; }; \
  struct name##3 { T x, y, z; }; \
  struct __align__(a4) name##4 { T x, y, z, w; }; \
  __QGPU_BOTH__ name##1 make_##name##1(T x) { return name##1{x}; } \
  __QGPU_BOTH__ name##2 make_##name##2(T x, T y) { return name##2{x, y}; } \
  __QGPU_BOTH__ name##3 make_##name##3(T x, T y, T z) { return name##3{x, y, z}; } \
  __QGPU_BOTH__ name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }

__QGPU_VECTORS__(signed char, char, 2, 4)
__QGPU_VECTORS__(unsigned char, uchar, 2, 4)
__QGPU_VECTORS__(short, short, 4, 8)
__QGPU_VECTORS__(unsigned short, ushort, 4, 8)
__QGPU_VECTORS__(int, int, 8, 16)
__QGPU_VECTORS__(unsigned int, uint, 8, 16)
__QGPU_VECTORS__(long, long, 8, 16)
__QGPU_VECTORS__(unsigned long, ulong, 8, 16)
__QGPU_VECTORS__(long long, longlong, 16, 16)
__QGPU_VECTORS__(unsigned long long, ulonglong, 16, 16)
__QGPU_VECTORS__(float, float, 8, 16)
#undef __QGPU_VECTORS__

struct dim3 {
  unsigned x, y, z;
  __attribute__((host, device, nodebug)) constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
  __attribute__((host, device, nodebug)) constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __attribute__((host, device, nodebug)) operator uint3() const { return uint3{x, y, z}; }
};

// ---- Built-in variables: reading a member reads the special register. ----

#define __QGPU_INDEX__(variable, sreg) \
  struct __qgpu_##variable { \
    __declspec(property(get = __x)) unsigned x; \
    __declspec(property(get = __y)) unsigned y; \
    __declspec(property(get = __z)) unsigned z; \
    __QGPU__ unsigned __x() { return __nvvm_read_ptx_sreg_##sreg##_x(); } \
    __QGPU__ unsigned __y() { return __nvvm_read_ptx_sreg_##sreg##_y(); } \
    __QGPU__ unsigned __z() { return __nvvm_read_ptx_sreg_##sreg##_z(); } \
    __attribute__((device, always_inline, nodebug)) operator dim3() const { return dim3(__x(), __y(), __z()); } \
    __attribute__((device, always_inline, nodebug)) operator uint3() const { return uint3{__x(), __y(), __z()}; } \
  }; \
  extern const __device__ __attribute__((weak)) __qgpu_##variable variable;

__QGPU_INDEX__(threadIdx, tid)
__QGPU_INDEX__(blockIdx, ctaid)
__QGPU_INDEX__(blockDim, ntid)
__QGPU_INDEX__(gridDim, nctaid)
#undef __QGPU_INDEX__

static constexpr int warpSize = 32;

// ---- Loads and stores with cache hints: the machine has no cache, so they are plain ones. ----

#define __QGPU_HINT__(name) template <typename T> __QGPU__ T name(const T* p) { return *p; }
__QGPU_HINT__(__ldg) __QGPU_HINT__(__ldcg) __QGPU_HINT__(__ldca) __QGPU_HINT__(__ldcs)
__QGPU_HINT__(__ldlu) __QGPU_HINT__(__ldcv)
#undef __QGPU_HINT__
#define __QGPU_HINT__(name) template <typename T> __QGPU__ void name(T* p, T value) { *p = value; }
__QGPU_HINT__(__stwb) __QGPU_HINT__(__stcg) __QGPU_HINT__(__stcs) __QGPU_HINT__(__stwt)
#undef __QGPU_HINT__

// ---- Barriers and fences. __syncthreads itself is a builtin of clang. ----

__QGPU__ int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
__QGPU__ int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
__QGPU__ int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
__QGPU__ void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
__QGPU__ void __threadfence() { __nvvm_membar_gl(); }
__QGPU__ void __threadfence_block() { __nvvm_membar_cta(); }
__QGPU__ void __threadfence_system() { __nvvm_membar_sys(); }
__QGPU__ void __nanosleep(unsigned ns) { __nvvm_nanosleep(ns); }

// ---- Traps, printf, clocks. ----

__QGPU__ void __trap() { __builtin_trap(); }

// clang makes a call of vprintf of it, whose text the host puts together after the launch.
extern "C" __attribute__((host, device)) int printf(const char*, ...);

// The machine has no clock: reading one is refused, with the line that does.
__QGPU__ int clock() { return __nvvm_read_ptx_sreg_clock(); }
__QGPU__ long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }

__QGPU__ unsigned __isShared(const void* p) { return __nvvm_isspacep_shared(p); }
__QGPU__ unsigned __isGlobal(const void* p) { return __nvvm_isspacep_global(p); }

#include "device_integers.cuh"
#include "device_packed.cuh"
#include "device_atomics.cuh"
#include "device_warps.cuh"
#include "device_floats.cuh"
#include "include/cuda_runtime.h"
// nvcc brings these with every file, too.
#include "include/limits.h"
#include "include/stddef.h"
#include "include/stdint.h"
#include "include/stdlib.h"
#include "include/string.h"
