// Number theory, searches, generators, hashes and ciphers: long chains of integer arithmetic.
#include "ptx.cuh"

__global__ void gcd_modulo(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i], y = b[i];
  while (y) {
    u32 rest = x % y;
    x = y;
    y = rest;
  }
  out[i] = x;
}

__global__ void gcd_binary(const u32* a, const u32* b, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i], y = b[i];
  if (x == 0 || y == 0) {
    out[i] = x | y;
    return;
  }
  int shift = __ffs(x | y) - 1;
  x >>= __ffs(x) - 1;
  while (y) {
    y >>= __ffs(y) - 1;
    if (x > y) {
      u32 swap = x;
      x = y;
      y = swap;
    }
    y -= x;
  }
  out[i] = x << shift;
}

__global__ void collatz_steps(const u32* a, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i];
  int steps = 0;
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x >> 1;
    steps++;
  }
  out[i] = steps;
}

__global__ void power_modulo(const u32* base, const u32* exponent, u32* out, u32 modulus, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u64 result = 1, b = base[i] % modulus;
  for (u32 e = exponent[i]; e; e >>= 1) {
    if (e & 1) result = result * b % modulus;
    b = b * b % modulus;
  }
  out[i] = (u32)result;
}

__global__ void sieve(u8* composite, int n) {
  for (int p = 2; p * p < n; p++) {
    if (!composite[p])
      for (int k = p * (p + threadIdx.x); k < n; k += p * blockDim.x) composite[k] = 1;
    __syncthreads();
  }
}

__global__ void is_prime(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i];
  bool prime = x > 1;
  for (u32 d = 2; d * d <= x; d++)
    if (x % d == 0) {
      prime = false;
      break;
    }
  out[i] = prime;
}

__global__ void square_root(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i], root = 0;
  for (u32 bit = 1u << 15; bit; bit >>= 1)
    if ((root | bit) * (root | bit) <= x) root |= bit;
  out[i] = root;
}

__global__ void fibonacci(u64* out) {
  int n = threadIdx.x * 5;
  u64 a = 0, b = 1;
  for (int i = 0; i < n; i++) {
    u64 next = a + b;
    a = b;
    b = next;
  }
  out[threadIdx.x] = a;
}

__global__ void inverse_modulo(const int* a, int* out, int modulus, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int r = modulus, next = a[i], t = 0, u = 1;
  while (next) {
    int q = r / next, rest = r - q * next, v = t - q * u;
    r = next;
    next = rest;
    t = u;
    u = v;
  }
  out[i] = r == 1 ? (t < 0 ? t + modulus : t) : -1;
}

__global__ void popcount_ways(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i], kernighan = 0;
  for (u32 y = x; y; y &= y - 1) kernighan++;
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4) & 0x0f0f0f0fu) * 0x01010101u >> 24;
  out[i] = x * 100 + kernighan - __popc(a[i]);
}

__global__ void bit_tricks(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i], y = x - 1;
  y |= y >> 1, y |= y >> 2, y |= y >> 4, y |= y >> 8, y |= y >> 16;
  out[i] = y + 1;                                     // the next power of two
  out[n + i] = x ^ x >> 1;                            // Gray code
  out[2 * n + i] = (x & 0u - x) | (x & x - 1) << 1;   // lowest bit, and the rest
  out[3 * n + i] = __brev(x) ^ (u32)__clz((int)x) << 8 ^ (u32)__ffs((int)x);
  u32 swap = (x ^ x >> 8) & 0x0000ff00u;              // the two middle bytes change places
  out[4 * n + i] = x ^ swap ^ swap << 8;
}

__global__ void morton_codes(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i] & 0xffffu, y = a[i] >> 16;
  for (int s = 8; s; s >>= 1) {
    u32 mask = 0xffffffffu / ((1u << s) + 1);
    x = (x | x << s) & mask;
    y = (y | y << s) & mask;
  }
  out[i] = x | y << 1;
}

__global__ void wide_product(const u64* a, const u64* b, u64* out) {
  int i = threadIdx.x;
  u64 x = a[i], y = b[i], low = (u64)(u32)x * (u32)y, mid = (x >> 32) * (u32)y + (low >> 32);
  u64 mid2 = (u64)(u32)x * (y >> 32) + (u32)mid;
  out[2 * i] = mid2 << 32 | (u32)low;
  out[2 * i + 1] = (x >> 32) * (y >> 32) + (mid >> 32) + (mid2 >> 32) - __umul64hi(x, y);
}

__global__ void decimal_digits(const u32* a, u8* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i];
  for (int k = 9; k >= 0; k--) {
    out[10 * i + k] = (u8)('0' + x % 10);
    x /= 10;
  }
}

// ---- Searches ----

__device__ int queens_below(int n, u32 columns, u32 left, u32 right, int row, u32* stack) {
  int count = 0, depth = row;
  u32 all = (1u << n) - 1;
  stack[4 * depth] = columns, stack[4 * depth + 1] = left, stack[4 * depth + 2] = right;
  stack[4 * depth + 3] = all & ~(columns | left | right);
  while (depth >= row) {
    u32* at = stack + 4 * depth;
    if (depth == n) {
      count++;
      depth--;
      continue;
    }
    u32 bit = at[3] & 0u - at[3];
    if (!bit) {
      depth--;
      continue;
    }
    at[3] ^= bit;
    at[4] = at[0] | bit, at[5] = (at[1] | bit) << 1, at[6] = (at[2] | bit) >> 1;
    at[7] = all & ~(at[4] | at[5] | at[6]);
    depth++;
  }
  return count;
}

// Thread i begins with a queen in column i of the first row.
__global__ void n_queens(u32* stacks, int* total, int n) {
  u32 bit = 1u << threadIdx.x;
  int count = queens_below(n, bit, bit << 1, bit >> 1, 1, stacks + threadIdx.x * 4 * (n + 1));
  atomicAdd(total, count);
}

__global__ void sudoku_check(const u8* grid, u32* faults) {
  int t = threadIdx.x;  // 27 groups: rows, columns, boxes
  if (t >= 27) return;
  u32 seen = 0;
  for (int k = 0; k < 9; k++) {
    int at = t < 9 ? t * 9 + k : t < 18 ? k * 9 + t - 9 : ((t - 18) / 3 * 3 + k / 3) * 9 + (t - 18) % 3 * 3 + k % 3;
    seen |= 1u << grid[at];
  }
  if (seen != 0x3fe) atomicOr(faults, 1u << t);
  if (t == 0) atomicOr(faults, 1u << 31);  // checked
}

__global__ void string_search(const u8* text, const u8* pattern, u8* hits, int n, int m) {
  int i = threadIdx.x;
  if (i + m > n) return;
  int k = 0;
  while (k < m && text[i + k] == pattern[k]) k++;
  hits[i] = k == m;
}

__global__ void string_lengths(const u8* text, const int* starts, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  const u8* p = text + starts[i];
  while (*p) p++;
  out[i] = (int)(p - text) - starts[i];
}

__global__ void count_words(const u8* text, int* out, int n) {
  int i = threadIdx.x;
  bool begins = i < n && text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
  u32 ballot = __ballot_sync(0xffffffffu, begins);
  if ((i & 31) == 0) atomicAdd(out, __popc(ballot));
}

__global__ void upper_case_reversed(const u8* text, u8* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u8 c = text[i];
  out[n - 1 - i] = c >= 'a' && c <= 'z' ? (u8)(c - 32) : c;
}

// ---- Generators ----

__global__ void lcg_streams(const u32* seeds, u32* out, int rounds) {
  int i = threadIdx.x;
  u32 x = seeds[i];
  for (int k = 0; k < rounds; k++) x = x * 1664525u + 1013904223u;
  out[i] = x;
}

__global__ void xorshift_streams(const u32* seeds, u32* out, int rounds) {
  int i = threadIdx.x;
  u32 x = seeds[i];
  for (int k = 0; k < rounds; k++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  out[i] = x;
}

__global__ void splitmix_64(const u64* seeds, u64* out) {
  int i = threadIdx.x;
  u64 z = seeds[i] + 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  out[i] = z ^ z >> 31;
}

__global__ void lfsr_16(const u16* seeds, u16* out, int rounds) {
  int i = threadIdx.x;
  u16 x = seeds[i];
  for (int k = 0; k < rounds; k++) {
    u16 bit = (u16)((x ^ x >> 2 ^ x >> 3 ^ x >> 5) & 1);
    x = (u16)(x >> 1 | bit << 15);
  }
  out[i] = x;
}

// ---- Hashes and ciphers ----

__global__ void hash_fnv(const u8* text, const int* starts, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 hash = 2166136261u;
  for (int k = starts[i]; k < starts[i + 1]; k++) hash = (hash ^ text[k]) * 16777619u;
  out[i] = hash;
}

__global__ void hash_jenkins(const u8* text, const int* starts, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 hash = 0;
  for (int k = starts[i]; k < starts[i + 1]; k++) {
    hash += text[k];
    hash += hash << 10;
    hash ^= hash >> 6;
  }
  hash += hash << 3;
  hash ^= hash >> 11;
  hash += hash << 15;
  out[i] = hash;
}

__global__ void hash_murmur_final(const u32* a, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 h = a[i];
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  h ^= h >> 16;
  out[i] = h;
}

__global__ void crc32_bits(const u8* text, const int* starts, u32* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  u32 crc = 0xffffffffu;
  for (int k = starts[i]; k < starts[i + 1]; k++) {
    crc ^= text[k];
    for (int b = 0; b < 8; b++) crc = crc >> 1 ^ (0xedb88320u & 0u - (crc & 1));
  }
  out[i] = ~crc;
}

__global__ void crc32_table(const u8* text, u32* out, int n) {
  __shared__ u32 table[16];
  u32 t = threadIdx.x;
  if (t < 16) {
    u32 c = t;
    for (int b = 0; b < 4; b++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    table[t] = c;
  }
  __syncthreads();
  u32 crc = 0xffffffffu;
  for (int k = 0; k <= (int)t % n; k++) {
    crc ^= text[k];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  out[t] = ~crc;
}

__global__ void adler_32(const u8* text, u32* out, int n) {
  u32 a = 1, b = 0;
  for (int k = 0; k < n - (int)threadIdx.x; k++) {
    a = (a + text[k]) % 65521;
    b = (b + a) % 65521;
  }
  out[threadIdx.x] = b << 16 | a;
}

__device__ inline u32 rotate_right(u32 x, int n) { return x >> n | x << (32 - n); }

__constant__ const u32 SHA_K[16] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
                                    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
                                    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174};

// The first rounds of SHA-256 on a block of its own for each thread.
__global__ void sha256_rounds(const u32* blocks, u32* out, int rounds) {
  const u32* w = blocks + 16 * threadIdx.x;
  u32 a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a;
  u32 e = 0x510e527f, f = 0x9b05688c, g = 0x1f83d9ab, h = 0x5be0cd19;
#pragma unroll 1
  for (int k = 0; k < rounds; k++) {
    u32 s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25), choice = (e & f) ^ (~e & g);
    u32 first = h + s1 + choice + SHA_K[k] + w[k];
    u32 s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + s0 + majority;
  }
  u32* to = out + 8 * threadIdx.x;
  to[0] = a, to[1] = b, to[2] = c, to[3] = d, to[4] = e, to[5] = f, to[6] = g, to[7] = h;
}

__global__ void sha256_schedule(u32* w) {
  u32* own = w + 20 * threadIdx.x;
  for (int k = 16; k < 20; k++) {
    u32 x = own[k - 15], y = own[k - 2];
    u32 s0 = rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3, s1 = rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10;
    own[k] = own[k - 16] + s0 + own[k - 7] + s1;
  }
}

__global__ void chacha_quarter_rounds(u32* state) {
  u32* s = state + 4 * threadIdx.x;
  u32 a = s[0], b = s[1], c = s[2], d = s[3];
  for (int k = 0; k < 2; k++) {
    a += b, d ^= a, d = d << 16 | d >> 16;
    c += d, b ^= c, b = b << 12 | b >> 20;
    a += b, d ^= a, d = d << 8 | d >> 24;
    c += d, b ^= c, b = b << 7 | b >> 25;
  }
  s[0] = a, s[1] = b, s[2] = c, s[3] = d;
}

__global__ void tea_encrypt(const u32* key, u32* data, int rounds) {
  u32 y = data[2 * threadIdx.x], z = data[2 * threadIdx.x + 1], sum = 0;
  for (int k = 0; k < rounds; k++) {
    sum += 0x9e3779b9u;
    y += (z << 4) + key[0] ^ z + sum ^ (z >> 5) + key[1];
    z += (y << 4) + key[2] ^ y + sum ^ (y >> 5) + key[3];
  }
  data[2 * threadIdx.x] = y;
  data[2 * threadIdx.x + 1] = z;
}

__global__ void base64(const u8* bytes, u8* out, int n) {
  int i = threadIdx.x;
  if (3 * i >= n) return;
  u32 group = (u32)bytes[3 * i] << 16 | (u32)bytes[3 * i + 1] << 8 | bytes[3 * i + 2];
  for (int k = 0; k < 4; k++) {
    u32 v = group >> (18 - 6 * k) & 63;
    out[4 * i + k] = (u8)(v < 26 ? 'A' + v : v < 52 ? 'a' + v - 26 : v < 62 ? '0' + v - 52 : v == 62 ? '+' : '/');
  }
}

__global__ void polynomial_horner(const int* coefficients, const int* x, int* out, int degree, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int sum = 0;
  for (int k = degree; k >= 0; k--) sum = sum * x[i] + coefficients[k];
  out[i] = sum;
}

__global__ void dot_bytes(const u32* a, const u32* b, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int sum = 0;
#ifdef __CUDA_ARCH__
  for (int k = 0; k < 4; k++) sum += (int)(signed char)(a[i] >> 8 * k) * (int)(signed char)(b[i] >> 8 * k);
#else
  for (int k = 0; k < 4; k++) sum += (s32)(s8)(u8)(a[i] >> 8 * k & 255) * (s32)(s8)(u8)(b[i] >> 8 * k & 255);
#endif
  out[i] = sum;
}

__global__ void brainfuck_like(const u8* program, u8* tape, u8* out, int length) {
  // an interpreter: eight tapes, one program
  u8* own = tape + 8 * threadIdx.x;
  int at = 0;
  for (int pc = 0, step = 0; pc < length && step < 60; pc++, step++) {
    switch (program[pc]) {
      case '>': at = (at + 1) & 7; break;
      case '<': at = (at - 1) & 7; break;
      case '+': own[at]++; break;
      case '-': own[at]--; break;
      case '[': if (!own[at]) while (program[pc] != ']') pc++; break;
      case ']': if (own[at]) while (program[pc] != '[') pc--; break;
    }
  }
  out[threadIdx.x] = own[at];
}
