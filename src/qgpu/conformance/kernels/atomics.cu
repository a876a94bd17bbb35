// Atomics of every kind, with the old values that they return, on global and on shared memory; locks and queues.
#include "ptx.cuh"

// Each thread has a word of its own, so that old values are known: every operation once.
__global__ void atomic_every(u32* words, const u32* operands, u32* old, int n) {
  int t = threadIdx.x;
  if (t >= n) return;
  u32 v = operands[t], *p = words + 12 * t;
  u32 sum = atomicAdd(p, v);
  sum = sum * 5 + atomicSub(p + 1, v);
  sum = sum * 5 + atomicExch(p + 2, v);
  sum = sum * 5 + atomicAnd(p + 3, v);
  sum = sum * 5 + atomicOr(p + 4, v);
  sum = sum * 5 + atomicXor(p + 5, v);
  sum = sum * 5 + atomicMin(p + 6, v);
  sum = sum * 5 + atomicMax(p + 7, v);
  sum = sum * 5 + (u32)atomicMin((int*)p + 8, (int)v);
  sum = sum * 5 + (u32)atomicMax((int*)p + 9, (int)v);
  sum = sum * 5 + atomicInc(p + 10, v);
  sum = sum * 5 + atomicDec(p + 11, v);
  old[t] = sum;
}

__global__ void atomic_shared_every(const u32* start, const u32* operands, u32* out, int n) {
  __shared__ u32 words[8 * 6];
  int t = threadIdx.x;
  if (t < n)
    for (int i = 0; i < 6; i++) words[6 * t + i] = start[6 * t + i];
  __syncthreads();
  if (t >= n) return;
  u32 v = operands[t], *p = words + 6 * t;
  u32 sum = atomicAdd(p, v) ^ atomicExch(p + 1, v) << 1 ^ atomicXor(p + 2, v) << 2 ^ atomicMax(p + 3, v) << 3;
  sum += (u32)atomicMin((int*)p + 4, (int)v) + atomicCAS(p + 5, t & 1 ? start[6 * t + 5] : 5u, v);
  for (int i = 0; i < 6; i++) sum = sum * 31 + p[i];
  out[t] = sum;
}

__global__ void atomic_cas_own(u32* words, const u32* expected, const u32* desired, u32* old) {
  int t = threadIdx.x;
  old[t] = atomicCAS(words + t, expected[t], desired[t]);
}

__global__ void atomic_64(u64* words, const u64* operands, u64* old, int n) {
  int t = threadIdx.x;
  if (t >= n) return;
  u64 v = operands[t], *p = words + 8 * t;
  u64 sum = atomicAdd(p, v);
  sum = sum * 5 + atomicExch(p + 1, v);
  sum = sum * 5 + atomicAnd(p + 2, v);
  sum = sum * 5 + atomicOr(p + 3, v);
  sum = sum * 5 + atomicXor(p + 4, v);
  sum = sum * 5 + atomicMin(p + 5, v);
  sum = sum * 5 + (u64)atomicMax((s64*)p + 6, (s64)v);
  sum = sum * 5 + atomicCAS(p + 7, 0x100000001ull, v);
  old[t] = sum;
}

// Many threads at the same word: the results do not depend on who comes first.
__global__ void atomic_contended(const u32* a, u32* out) {
  u32 x = a[threadIdx.x + blockIdx.x * blockDim.x];
  atomicAdd(out, x);
  atomicXor(out + 1, x);
  atomicOr(out + 2, 1u << (x & 31));
  atomicAnd(out + 3, ~(1u << (x >> 27)));
  atomicMax(out + 4, x);
  atomicMin((int*)out + 5, (int)x);
  atomicInc(out + 6, 6);
  atomicDec(out + 7, 4);
}

// Old values of a counter are all different: each marks its place once.
__global__ void atomic_tickets(u32* counter, u32* marks) {
  u32 ticket = atomicAdd(counter, 1);
  atomicAdd(marks + ticket, ticket + 1);
}

__global__ void histogram(const u32* a, u32* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[a[i] & 7], 1u);
}

__global__ void histogram_shared(const u32* a, u32* bins, int n) {
  __shared__ u32 own[16];
  int t = threadIdx.x;
  if (t < 16) own[t] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[a[i] >> 28], 1u);
  __syncthreads();
  if (t < 16 && own[t]) atomicAdd(&bins[t], own[t]);
}

// A maximum by compare-and-swap, as for types that have no atomic of their own.
__global__ void cas_loop_maximum(const int* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int seen = *out;
  while (a[i] > seen) {
    int before = atomicCAS(out, seen, a[i]);
    if (before == seen) break;
    seen = before;
  }
}

// Sum of bytes in a packed word: add with saturation at 255, by compare-and-swap.
__global__ void cas_saturating_bytes(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 shift = 8 * (a[i] & 3), amount = a[i] >> 4 & 63, old = *out, assumed;
  do {
    assumed = old;
    u32 byte = (assumed >> shift & 255) + amount;
    u32 next = (assumed & ~(255u << shift)) | (byte > 255 ? 255 : byte) << shift;
    old = atomicCAS(out, assumed, next);
  } while (old != assumed);
}

// Linear probing; keys are unique, so every table of the same keys holds the same, in another order.
__global__ void hash_insert(const u32* keys, u32* table, u32* found, int n, int size) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 key = keys[i], slot = key * 2654435761u >> 27;
  while (true) {
    u32 old = atomicCAS(&table[slot % size], 0u, key);
    if (old == 0 || old == key) break;
    slot++;
  }
  // every key is found again from its own place
  for (slot = key * 2654435761u >> 27; table[slot % size] != key; slot++) {}
  found[i] = 1;
}

// What the table holds, whatever the order: clears it, and sums.
__global__ void hash_drain(u32* table, u32* out, const u32* keys, int n, int size) {
  int t = threadIdx.x;
  for (int i = t; i < n; i += blockDim.x) {
    u32 key = keys[i], slot = key * 2654435761u >> 27;
    while (true) {
      u32 old = atomicCAS(&table[slot % size], 0u, key);
      if (old == 0 || old == key) break;
      slot++;
    }
  }
  __syncthreads();
  for (int i = t; i < size; i += blockDim.x) {
    u32 key = table[i];
    if (key) {
      atomicAdd(out, 1u);
      atomicXor(out + 1, key);
    }
    table[i] = 0;
  }
}

// A lock that is taken by exchange: all threads of a warp get through.
__global__ void spin_lock(u32* lock, u32* total, const u32* a) {
  bool done = false;
  while (!done) {
    if (atomicExch(lock, 1u) == 0) {
      *(volatile u32*)total = *(volatile u32*)total + a[threadIdx.x];
      __threadfence();
      atomicExch(lock, 0u);
      done = true;
    }
  }
}

// First come, first served.
__global__ void ticket_lock(u32* lock, u32* total) {
  u32 mine = atomicAdd(&lock[0], 1u);
  while (atomicAdd(&lock[1], 0u) != mine) {}
  *(volatile u32*)total = *(volatile u32*)total * 3 + 1;
  __threadfence();
  atomicAdd(&lock[1], 1u);
}

// Even threads produce, odd ones take from a ring.
__global__ void queue_ring(u32* places, u32* ends, u32* sum, int n) {
  u32 t = threadIdx.x;
  if (t & 1) {
    u32 at = atomicAdd(&ends[1], 1u), value;
    while ((value = atomicExch(&places[at % n], 0u)) == 0) {}
    atomicAdd(sum, value);
  } else {
    u32 at = atomicAdd(&ends[0], 1u);
    while (atomicCAS(&places[at % n], 0u, t + 100) != 0) {}
  }
}

// Order of the items is open, the set of them is not: they are marked.
__global__ void compact_by_atomics(const int* a, int* count, u32* seen, int* items, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && a[i] > 0) items[atomicAdd(count, 1)] = i;
  __syncthreads();
  if (gridDim.x == 1 && i < *count) {
    atomicOr(&seen[items[i] >> 5], 1u << (items[i] & 31));
    __syncthreads();
    items[i] = 0;
  }
}

// The last CTA to finish sums what all have left.
__global__ void last_block_sums(const int* a, int* parts, u32* ticket, int* out) {
  __shared__ u32 last;
  int t = threadIdx.x;
  atomicAdd(&parts[blockIdx.x], a[blockIdx.x * blockDim.x + t]);
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (last && t == 0) {
    int sum = 0;
    for (u32 i = 0; i < gridDim.x; i++) sum += parts[i];
    *out = sum;
  }
}

