// Lanes of a warp that meet at different places of a program: exchanges pair by kind and members, not by instruction.
#include "ptx.cuh"

#define ALL 0xffffffffu

// The two sides of a branch exchange words with each other.
__global__ void meet_sides(const int* a, int* out) {
  __shared__ int kept[32];
  int t = threadIdx.x;
  if (t < 20) {
    kept[t] = a[t];
    __syncwarp();
    out[t] = kept[31 - t];
  } else {
    kept[t] = -a[t];
    __syncwarp();
    out[t] = kept[31 - t] * 3;
  }
}

// One lane hands out a word a round, from a loop of its own.
__global__ void meet_loops(const int* a, int* out) {
  __shared__ volatile int word;
  int t = threadIdx.x, sum = 0;
  if (t == 0) {
    for (int k = 0; k < 4; k++) {
      word = a[k];
      __syncwarp();
      __syncwarp();
    }
  } else {
    for (int k = 0; k < 4; k++) {
      __syncwarp();
      sum = sum * 3 + word * t;
      __syncwarp();
    }
  }
  out[t] = sum;
}

// Three ways, one of them after a loop whose trip count differs, end in the same shuffle.
__global__ void meet_shuffles(const int* a, int* out) {
  int t = threadIdx.x, x;
  if (t & 1) {
    x = __shfl_sync(ALL, a[t], t / 2) + 1;
  } else if (t & 2) {
    x = __shfl_sync(ALL, a[t] * 2, 31 - t) - 5;
  } else {
    int k = 0;
    while (k < t) k += 3;
    x = __shfl_sync(ALL, k, t + 1);
  }
  out[t] = x;
}

// As many warp barriers for all, in loops with other trip counts, behind them, and on one side.
__global__ void meet_counts(const int* a, int* out) {
  __shared__ int kept[32];
  int t = threadIdx.x, sum = 0;
  kept[t] = a[t];
  for (int k = 0; k < (t < 16 ? 3 : 1); k++) {
    __syncwarp();
    sum += k + kept[31 - t];
  }
  if (t >= 16) {
    __syncwarp();
    sum += kept[t ^ 1];
    __syncwarp();
  }
  __syncwarp();
  out[t] = sum + kept[t ^ 3];
}

// Ballots before a continue and at the loop's end.
__global__ void meet_continue(const int* a, int* out) {
  int t = threadIdx.x;
  u32 sum = 0;
  for (int k = 0; k < 4; k++) {
    if ((a[t] >> k) & 1) {
      sum += __ballot_sync(ALL, a[t] & 2);
      continue;
    }
    sum ^= __ballot_sync(ALL, a[t] & 4);
  }
  out[t] = (int)(sum + (u32)__any_sync(ALL, t == 4));
}

// A case of a switch each, members from a register, and lanes that have left before.
__global__ void meet_switch(const int* a, int* out, int n) {
  int t = threadIdx.x;
  if (t >= n) return;
  u32 members = n < 32 ? (1u << n) - 1 : ALL;
  int x = 0;
  switch (a[t] & 3) {
    case 0: x = __shfl_xor_sync(members, t, 1); break;
    case 1: x = 100 + __shfl_xor_sync(members, 2 * t, 1); break;
    case 2: x = 200 + __shfl_xor_sync(members, 3 * t, 1); break;
    default: x = __shfl_xor_sync(members, a[t], 1);
  }
  out[t] = x + (t & 1 ? __any_sync(members, x > 200) : 2 * __any_sync(members, x > 100));
}
