// Loads and stores of every width, vectors, constants, local and shared memory, parameters of every width.
#include "ptx.cuh"

__global__ void bytes_signed(const s8* a, s8* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = (s8)(a[i] * 3 - a[n - 1 - i]);
}

__global__ void bytes_unsigned(const u8* a, u8* out, u32* sums, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = a[i] > 127 ? 255 - a[i] : a[i] * 2;
  sums[i] = a[i] + a[n - 1 - i];
}

__global__ void halves(const s16* a, const u16* b, s32* out, u16* low, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i] = a[i] * b[i];
  low[i] = (u16)(a[i] + b[i]);
}

__global__ void doublewords(const s64* a, s64* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[n - 1 - i] = a[i];
}

__global__ void vectors_2(const int2* a, int2* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int2 v = a[i];
  out[i] = make_int2(v.y, v.x - v.y);
}

__global__ void vectors_4(const uint4* a, uint4* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  uint4 v = a[i];
  out[n - 1 - i] = make_uint4(v.w, v.z + 1, v.y ^ v.x, v.x);
}

__global__ void vectors_of_bytes(const uchar4* a, uchar4* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  uchar4 v = a[i];
  out[i] = make_uchar4(v.w, (u8)(v.x + v.y), v.z > v.x ? v.z : v.x, (u8)~v.y);
}

__global__ void vectors_of_halves(const short2* a, short4* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = make_short4(a[i].x, a[i].y, (s16)-a[i].x, (s16)(a[i].x * a[i].y));
}

__global__ void vectors_of_doublewords(const longlong2* a, longlong2* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = make_longlong2(a[i].y, a[i].x);
}

// Bytes of one word by four threads.
__global__ void bytes_of_a_word(const u32* a, u8* out) {
  u32 t = threadIdx.x;
  out[t ^ 3] = (u8)(a[t >> 2] >> 8 * (t & 3));
}

// Four neighbours store bytes beside bytes that must stay.
__global__ void bytes_between(u8* out) {
  u32 t = threadIdx.x;
  out[2 * t + 1] = (u8)(t * 37 + 5);
}

struct Item {
  u8 kind;
  s16 amount;
  u32 key;
  s64 total;
};

__global__ void structures(const Item* a, Item* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  const Item& from = a[i];
  Item& to = out[i];
  to.kind = (u8)(from.kind + 1);
  to.amount = (s16)-from.amount;
  to.key = from.key ^ from.kind;
  to.total = from.total + from.amount;
}

__constant__ const int TABLE[8] = {3, -1, 4, 1, -5, 9, -2, 6};
__constant__ const u8 BYTES[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

__global__ void constants(const u32* a, int* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = TABLE[a[i] & 7] * 100 + BYTES[a[i] >> 28];
}

__device__ int settings[4] = {10, 20, 30, 40};

__global__ void device_variable(int* out) {
  int t = threadIdx.x;
  out[t] = settings[t & 3] + t;
}

// An array of a thread's own, indexed by what is known only at run time.
__global__ void local_array(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 kept[8];
#pragma unroll 1
  for (int k = 0; k < 8; k++) kept[k] = a[i] * k + i;
  u32 sum = 0;
#pragma unroll 1
  for (int k = 0; k < 4; k++) {
    u32 at = (a[i] >> 3 * k) & 7;
    sum = sum * 7 + kept[at];
    kept[7 - at] ^= sum;
  }
  out[i] = sum ^ kept[a[i] & 7];
}

__global__ void local_bytes(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u8 digits[12];
  int count = 0;
  u32 x = a[i];
#pragma unroll 1
  do {
    digits[count++] = (u8)(x & 15);
    x >>= 4;
  } while (x);
  u32 result = 0;
#pragma unroll 1
  for (int k = 0; k < count; k++) result = result << 4 | digits[k];
  out[i] = result;
}

__global__ void shared_reverse(const int* a, int* out) {
  __shared__ int kept[40];
  int t = threadIdx.x, n = blockDim.x;
  kept[t] = a[t];
  __syncthreads();
  out[t] = kept[n - 1 - t];
}

__global__ void shared_bytes(const u8* a, u8* out) {
  __shared__ u8 kept[64];
  u32 t = threadIdx.x;
  kept[t] = a[t];
  __syncthreads();
  out[t] = (u8)(kept[t * 5 & 31] + kept[t ^ 1]);
}

__global__ void shared_mixed(const u32* a, u32* out) {
  __shared__ u64 wide[16];
  __shared__ u16 narrow[32];
  u32 t = threadIdx.x;
  if (t < 16) wide[t] = (u64)a[t] << 17;
  narrow[t] = (u16)(a[t] >> 5);
  __syncthreads();
  out[t] = (u32)(wide[t & 15] >> 20) + narrow[31 - t];
}

// A pointer that may lead to either memory.
__global__ void generic_pointer(int* a, int* out) {
  __shared__ int own[32];
  int t = threadIdx.x;
  own[t] = 1000 + t;
  __syncthreads();
  int* p = a[t] & 1 ? own : a;
  p[t] += 7;
  __syncthreads();
  out[t] = own[t] + a[t] + *(t & 2 ? own + 3 : a + 3) * 0;
}

__global__ void volatile_words(volatile int* a, int* out) {
  int t = threadIdx.x;
  a[t] = a[t] + 1;
  a[t] = a[t] * 2;
  out[t] = a[t];
}

__global__ void parameters_small(u8 a, s8 b, u16 c, s16 d, int* out) {
  int t = threadIdx.x;
  out[t] = (a * 2 - b) * t + c - d;
}

__global__ void parameters_wide(s64 a, int b, u64 c, s64* out) {
  int t = threadIdx.x;
  out[t] = a * (b + t) ^ (s64)(c >> t);
}

__global__ void parameters_many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int* out) {
  int t = threadIdx.x;
  out[t] = ((((a * t + b) * t + c) * t + d) ^ e) + (f & g) - (h | i) * j;
}

// Addresses of several steps: rows, columns and an offset that is negative.
__global__ void offsets(const int* a, int* out, int pitch) {
  int x = threadIdx.x, y = threadIdx.y;
  const int* middle = a + (y + 1) * pitch + x + 1;
  out[y * blockDim.x + x] = middle[-pitch - 1] + 10 * middle[0] - middle[1 - pitch] + middle[pitch];
}
