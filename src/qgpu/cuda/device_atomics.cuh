// Atomics of CUDA C: part of device.cuh. Each returns the old value. Address-space inference makes them atom.global or
// atom.shared.
#pragma once

#define __QGPU_ATOMIC__(name, op, T, S, suffix) \
  __QGPU__ T name(T* p, T v) { return (T)__nvvm_atom_##op##_gen_##suffix((S*)p, (S)v); } \
  __QGPU__ T name##_block(T* p, T v) { return name(p, v); } \
  __QGPU__ T name##_system(T* p, T v) { return name(p, v); }
#define __QGPU_ATOMIC_BITS__(name, op) \
  __QGPU_ATOMIC__(name, op, int, int, i) \
  __QGPU_ATOMIC__(name, op, unsigned, int, i) \
  __QGPU_ATOMIC__(name, op, long long, long long, ll) \
  __QGPU_ATOMIC__(name, op, unsigned long long, long long, ll)
#define __QGPU_ATOMIC_ORDER__(name, op) \
  __QGPU_ATOMIC__(name, op, int, int, i) \
  __QGPU_ATOMIC__(name, op, unsigned, unsigned, ui) \
  __QGPU_ATOMIC__(name, op, long long, long long, ll) \
  __QGPU_ATOMIC__(name, op, unsigned long long, unsigned long long, ull)
__QGPU_ATOMIC_BITS__(atomicAdd, add)
__QGPU_ATOMIC_BITS__(atomicExch, xchg)
__QGPU_ATOMIC_BITS__(atomicAnd, and)
__QGPU_ATOMIC_BITS__(atomicOr, or)
__QGPU_ATOMIC_BITS__(atomicXor, xor)
__QGPU_ATOMIC_ORDER__(atomicMax, max)
__QGPU_ATOMIC_ORDER__(atomicMin, min)
__QGPU_ATOMIC__(atomicInc, inc, unsigned, unsigned, ui)
__QGPU_ATOMIC__(atomicDec, dec, unsigned, unsigned, ui)
#undef __QGPU_ATOMIC_ORDER__
#undef __QGPU_ATOMIC_BITS__
#undef __QGPU_ATOMIC__
#define __QGPU_SUB__(name, T) \
  __QGPU__ T name(T* p, T v) { return atomicAdd(p, (T)(0u - (unsigned)v)); }
__QGPU_SUB__(atomicSub, int)
__QGPU_SUB__(atomicSub, unsigned)
__QGPU_SUB__(atomicSub_block, int)
__QGPU_SUB__(atomicSub_block, unsigned)
__QGPU_SUB__(atomicSub_system, int)
__QGPU_SUB__(atomicSub_system, unsigned)
#undef __QGPU_SUB__

#define __QGPU_CAS__(T) \
  __QGPU__ T atomicCAS(T* p, T expected, T desired) { \
    __scoped_atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED, \
                                       __MEMORY_SCOPE_DEVICE); \
    return expected; \
  } \
  __QGPU__ T atomicCAS_block(T* p, T expected, T desired) { return atomicCAS(p, expected, desired); } \
  __QGPU__ T atomicCAS_system(T* p, T expected, T desired) { return atomicCAS(p, expected, desired); }
__QGPU_CAS__(int)
__QGPU_CAS__(unsigned)
__QGPU_CAS__(unsigned short)
__QGPU_CAS__(long long)
__QGPU_CAS__(unsigned long long)
#undef __QGPU_CAS__
