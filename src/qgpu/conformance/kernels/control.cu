// Control flow: divergence, loops with break and continue, barriers met on different ways, exits before them.
#include "ptx.cuh"

// What stands in a register before a predicated instruction stays where the predicate is false.
__global__ void predicated_keeps_old(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i], y, z;
#ifdef __CUDA_ARCH__
  asm volatile(
      "{.reg .pred p, q; .reg .s32 t;\n"
      "mov.s32 t, 1000;\n"
      "setp.gt.s32 p, %2, 0;\n"
      "setp.lt.s32 q, %2, 100;\n"
      "@p add.s32 t, t, %2;\n"
      "@!q mov.s32 t, -5;\n"
      "mov.s32 %0, t;\n"
      "@!p sub.s32 t, t, 7;\n"
      "@q shl.b32 t, t, 1;\n"
      "@p not.b32 t, t;\n"
      "mov.s32 %1, t;}"
      : "=r"(y), "=r"(z) : "r"(x));
#else
  bool p = x > 0, q = x < 100;
  u32 t = 1000;
  if (p) t += (u32)x;
  if (!q) t = (u32)-5;
  y = (int)t;
  if (!p) t -= 7;
  if (q) t <<= 1;
  if (p) t = ~t;
  z = (int)t;
#endif
  out[i] = y;
  out[n + i] = z;
}

// A guarded load and a guarded store: where the predicate is false neither touches memory.
__global__ void predicated_memory(const int* a, int* out, int n) {
  int i = threadIdx.x;
#ifdef __CUDA_ARCH__
  int x = 77;
  const int* from = a + i;
  int* to = out + i;
  if (sizeof(void*) == 4) {
    asm volatile("{.reg .pred p; setp.lt.s32 p, %1, %2; @p ld.global.s32 %0, [%3];}"
                 : "+r"(x) : "r"(i), "r"(n), "r"((u32)(size_t)from) : "memory");
    asm volatile("{.reg .pred p; setp.ge.s32 p, %0, 3; @p st.global.s32 [%1], %2;}"
                 ::"r"(i), "r"((u32)(size_t)to), "r"(x) : "memory");
  } else {
    asm volatile("{.reg .pred p; setp.lt.s32 p, %1, %2; @p ld.global.s32 %0, [%3];}"
                 : "+r"(x) : "r"(i), "r"(n), "l"((u64)(size_t)from) : "memory");
    asm volatile("{.reg .pred p; setp.ge.s32 p, %0, 3; @p st.global.s32 [%1], %2;}"
                 ::"r"(i), "l"((u64)(size_t)to), "r"(x) : "memory");
  }
#else
  int x = i < n ? a[i] : 77;
  if (i >= 3) out[i] = x;
#endif
}

// selp, with the predicate as it is and negated, of registers and of constants.
__global__ void select_negated(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i], first, second, third;
#ifdef __CUDA_ARCH__
  asm("{.reg .pred p, q; setp.ge.s32 p, %3, 0; not.pred q, p; selp.s32 %0, %3, -1, q; selp.b32 %1, 11, 22, q;"
      " selp.u32 %2, 4294967295, %3, p;}"
      : "=r"(first), "=r"(second), "=r"(third) : "r"(x));
#else
  bool q = x < 0;
  first = q ? x : -1;
  second = q ? 11 : 22;
  third = q ? x : -1;
#endif
  out[i] = first;
  out[n + i] = second;
  out[2 * n + i] = third;
}

// setp with two results and a third predicate, plain and negated; logic on predicates.
__global__ void predicates_combined(const int* a, const int* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i], y = b[i];
  u32 d;
#ifdef __CUDA_ARCH__
  asm("{.reg .pred c, p, q, r, s, t; .reg .u32 u;\n"
      "setp.gt.s32 c, %1, 10;\n"
      "setp.lt.and.s32 p|q, %1, %2, c;\n"
      "setp.eq.or.s32 r|s, %1, %2, !c;\n"
      "setp.le.xor.u32 t, %1, %2, c;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "selp.u32 u, 2, 0, q; or.b32 %0, %0, u;\n"
      "selp.u32 u, 4, 0, r; or.b32 %0, %0, u;\n"
      "selp.u32 u, 8, 0, s; or.b32 %0, %0, u;\n"
      "selp.u32 u, 16, 0, t; or.b32 %0, %0, u;\n"
      "and.pred p, q, s; or.pred q, p, t; xor.pred r, q, c; not.pred s, r;\n"
      "selp.u32 u, 32, 0, p; or.b32 %0, %0, u;\n"
      "selp.u32 u, 64, 0, q; or.b32 %0, %0, u;\n"
      "selp.u32 u, 128, 0, s; or.b32 %0, %0, u;}"
      : "=&r"(d) : "r"(x), "r"(y));
#else
  bool c = x > 10, p = x < y && c, q = !(x < y) && c, r = x == y || !c, s = x != y || !c, t = ((u32)x <= (u32)y) != c;
  d = p | q << 1 | r << 2 | s << 3 | t << 4;
  p = q && s, q = p || t, r = q != c, s = !r;
  d |= p << 5 | q << 6 | s << 7;
#endif
  out[i] = d;
}

// Immediates of every type and spelling.
__global__ void immediates(const int* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = (u32)a[i], sum;
  u64 wide;
#ifdef __CUDA_ARCH__
  asm("{.reg .u32 t; .reg .u16 h; .reg .pred p;\n"
      "add.u32 %0, %1, 0x7fffffff;\n"
      "xor.b32 %0, %0, 037777;\n"
      "mul.lo.u32 %0, %0, 0b1011;\n"
      "add.s32 %0, %0, -2147483648;\n"
      "and.b32 %0, %0, 0xfffffff7U;\n"
      "sub.s32 %0, %0, -5;\n"
      "mov.b16 h, -3; cvt.u32.u16 t, h; add.u32 %0, %0, t;\n"
      "mov.s16 h, 32767; cvt.s32.s16 t, h; xor.b32 %0, %0, t;\n"
      "setp.gt.s32 p, %1, -1; selp.b32 t, 0xdeadbeef, 12, p; add.u32 %0, %0, t;\n"
      "setp.hi.u32 p, %1, 0xfffffff0; selp.b32 t, 1, -1, p; add.u32 %0, %0, t;}"
      : "=&r"(sum) : "r"(x));
  asm("{.reg .u64 t; cvt.u64.u32 t, %1; add.u64 t, t, 0x123456789abcdef0; xor.b64 t, t, -1; sub.s64 %0, t, 4294967296;}"
      : "=l"(wide) : "r"(x));
#else
  sum = x + 0x7fffffffu;
  sum ^= 037777u;
  sum *= 11u;
  sum += 0x80000000u;
  sum &= 0xfffffff7u;
  sum += 5u;
  sum += 0xfffdu;
  sum ^= 32767u;
  sum += (int)x > -1 ? 0xdeadbeefu : 12u;
  sum += x > 0xfffffff0u ? 1u : 0xffffffffu;
  wide = ~((u64)x + 0x123456789abcdef0ull) - 4294967296ull;
#endif
  out[i] = sum;
  out[n + i] = (u32)wide;
  out[2 * n + i] = (u32)(wide >> 32);
}

// The same loop, rolled and unrolled.
__global__ void loops_rolled_and_unrolled(const int* a, int* out, int n) {
  int i = threadIdx.x;
  u32 x = (u32)a[i], y = x, z = x;
#pragma unroll 1
  for (int k = 0; k < 6; k++) x = x * 5 + (x >> 3) + k;
#pragma unroll
  for (int k = 0; k < 6; k++) y = y * 5 + (y >> 3) + k;
#pragma unroll 2
  for (int k = 0; k < 6; k++) z = z * 5 + (z >> 3) + k;
  out[i] = (int)x;
  out[n + i] = (int)(x - y);
  out[2 * n + i] = (int)(z ^ x);
}

// Signed against unsigned, in C: the same bits, two meanings.
__global__ void signed_and_unsigned(const int* a, const int* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i], y = b[i];
  u32 u = (u32)x, v = (u32)y;
  out[i] = (u32)(x / y) ^ u / v << 1;
  out[n + i] = (u32)(x % y) ^ u % v << 1;
  out[2 * n + i] = (u32)(x < y) | (u32)(u < v) << 1 | (u32)(x >= y) << 2 | (u32)(u >= v) << 3;
  out[3 * n + i] = (u32)min(x, y) ^ min(u, v) << 1;
  out[4 * n + i] = (u32)max(x, y) ^ max(u, v) << 1;
  out[5 * n + i] = (u32)(x >> 3) ^ u >> 5;
}

// Division by constants, as compilers rewrite it.
__global__ void division_by_constants(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i];
  u32 u = (u32)x;
  out[i] = x / 7 + x % 10;
  out[n + i] = (int)(u / 10 + u % 1000);
  out[2 * n + i] = x / 16 - x % 16 + x / -3;
  out[3 * n + i] = (int)(u / 641);
}

__global__ void nested_branches(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i], y = 0;
  if (x > 0) {
    if (x & 1) {
      y = x * 3;
      if (x > 50) y -= 100;
    } else if (x % 4 == 2) {
      y = x / 2;
    } else {
      y = -x;
    }
    y += 1000;
  } else if (x < -50) {
    y = x + 50;
  }
  out[i] = y;
}

__global__ void switch_cases(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i], y;
  switch (x & 7) {
    case 0: y = x; break;
    case 1: y = x * x; break;
    case 2:
    case 3: y = ~x; break;
    case 4: y = x << 4;  // on into the next
    case 5: y = (x & 7) == 4 ? x * 16 + 9 : 9; break;
    case 7: y = x - 1; break;
    default: y = -77;
  }
  out[i] = y;
}

// Two loops in each other, both left early, at another place in every lane.
__global__ void break_and_continue(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int x = a[i], sum = 0;
  for (int j = 0; j < 6; j++) {
    if (j == (x & 3)) continue;
    int k = 0;
    while (true) {
      if (k * k > x + j) break;
      k++;
      if ((k ^ j) == 5) goto out_of_both;
    }
    sum += k * 10 + j;
  }
out_of_both:
  out[i] = sum;
}

__global__ void short_circuit(const int* a, int* out, int n) {
  int i = threadIdx.x;
  // the second operand would read beside the array
  if (i < n && a[i] > 0 && (i == 0 || a[i - 1] < a[i] || a[i] == 7)) out[i] = 1;
}

__device__ __noinline__ int helper_of(int x, int depth) {
  if (x < 0) return depth;
  int sum = 0;
  for (int k = 0; k < depth; k++) sum += x >> k;
  return sum;
}

__global__ void calls(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = helper_of(a[i], 3) - helper_of(-a[i], i & 3);
}

// Threads that have nothing to do return; the others go on to barriers.
__global__ void exit_before_barrier(const int* a, int* out, int n) {
  __shared__ int kept[40];
  int t = threadIdx.x;
  if (t >= n) return;
  kept[t] = a[t];
  __syncthreads();
  if (t & 1) return;
  int x = kept[(t + 1) % n];
  __syncthreads();
  kept[t] = x;
  __syncthreads();
  out[t] = kept[t] + kept[(t + 2) % n & ~1];
}

// A barrier in each of two branches: all threads meet, on either way.
__global__ void barrier_on_both_ways(const int* a, int* out) {
  __shared__ int kept[48];
  int t = threadIdx.x, n = blockDim.x;
  if (t % 3 == 0) {
    kept[t] = a[t] * 2;
    __syncthreads();
    out[t] = kept[n - 1 - t];
  } else {
    kept[t] = a[t] - 1;
    __syncthreads();
    out[t] = kept[(t + 1) % n];
  }
}

// Trip counts that all threads share, with break and continue on the way to the barriers.
__global__ void barrier_in_a_loop(const int* a, int* out, int rounds) {
  __shared__ int kept[40];
  int t = threadIdx.x, n = blockDim.x;
  kept[t] = a[t];
  for (int round = 0;; round++) {
    __syncthreads();
    int x = kept[(t + round + 1) % n];
    __syncthreads();
    if (round == rounds) break;
    if ((x ^ t) & 1) {
      kept[t] += x;
      continue;
    }
    kept[t] -= 1;
  }
  out[t] = kept[t];
}

// Lanes leave the loop one after the other; those that are left still meet.
__global__ void barrier_while_some_leave(const int* a, int* out) {
  __shared__ int kept[40];
  int t = threadIdx.x, n = blockDim.x;
  kept[t] = a[t];
  for (int left = t / 5;; left--) {
    __syncthreads();
    int x = kept[(t + 1) % n];
    __syncthreads();
    if (left == 0) {
      out[t] = x;
      return;
    }
    kept[t] = x + left;
  }
}

__global__ void barrier_votes(const int* a, int* out) {
  int t = threadIdx.x, x = a[t], n = blockDim.x;
  out[t] = __syncthreads_count(x > 0);
  out[n + t] = __syncthreads_and(x != 99) + 2 * __syncthreads_and(x > 0);
  out[2 * n + t] = __syncthreads_or(x == 3) + 2 * __syncthreads_or(x > 1000);
}

// Work before and after a convergence point that a compiler may move over it.
__global__ void code_around_convergence(const int* a, int* out) {
  __shared__ int kept[32];
  int t = threadIdx.x, x = a[t], y = a[t ^ 1], z = 0;
  kept[t] = x;
  if (x > y) {
    z = x * y;
    kept[t] = z;
  }
  int w = x + y;
  __syncthreads();
  int v = kept[t ^ 3] + w;
  if (t & 4) v += kept[31 - t];
  __syncthreads();
  if (x <= y) kept[t] = v;
  z += w;
  __syncthreads();
  out[t] = kept[(t * 5) & 31] + z + (x > y ? kept[t] : y);
}

// A loop per lane inside a loop for all.
__global__ void trip_counts(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int sum = 0;
  for (int round = 0; round < 3; round++) {
    for (int k = a[i]; k > round; k -= 3) sum += k * round + 1;
    if (sum & 1) sum = -sum;
  }
  out[i] = sum;
}

// Every special register there is.
__global__ void indices_3d(u32* out) {
  u32 threads = blockDim.x * blockDim.y * blockDim.z;
  u32 cta = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  u32 value = threadIdx.x | threadIdx.y << 4 | threadIdx.z << 8 | blockIdx.x << 12 | blockIdx.y << 16 | blockIdx.z << 20;
  out[cta * threads + thread] = value + (gridDim.x * 7 + gridDim.y * 5 + gridDim.z * 3 << 24);
}

__global__ void grid_stride(const int* a, int* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = a[i] * a[i] - i;
}
