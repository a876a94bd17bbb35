// Work on two and three dimensions: matrices, stencils, images, cellular automata, tables of dynamic programming.
#include "ptx.cuh"

__global__ void transpose_tiled(const int* a, int* out, int rows, int columns) {
  __shared__ int tile[4][5];
  int x = blockIdx.x * 4 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
  if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = a[y * columns + x];
  __syncthreads();
  x = blockIdx.y * 4 + threadIdx.x;
  y = blockIdx.x * 4 + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void matmul_tiled(const int* a, const int* b, int* c, int n) {
  __shared__ int left[4][4], right[4][4];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 4 + y, column = blockIdx.x * 4 + x, sum = 0;
  for (int tile = 0; tile < n; tile += 4) {
    left[y][x] = row < n && tile + x < n ? a[row * n + tile + x] : 0;
    right[y][x] = tile + y < n && column < n ? b[(tile + y) * n + column] : 0;
    __syncthreads();
    for (int k = 0; k < 4; k++) sum += left[y][k] * right[k][x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

__global__ void matrix_power_mod(const u32* a, u32* out, int n, int power, u32 modulus) {
  __shared__ u32 base[16], result[16];
  int x = threadIdx.x, y = threadIdx.y, own = y * n + x;
  base[own] = a[own] % modulus;
  result[own] = x == y;
  __syncthreads();
  for (; power; power >>= 1) {
    u32 product = 0, square = 0;
    for (int k = 0; k < n; k++) {
      product = (product + result[y * n + k] * base[k * n + x]) % modulus;
      square = (square + base[y * n + k] * base[k * n + x]) % modulus;
    }
    __syncthreads();
    if (power & 1) result[own] = product;
    base[own] = square;
    __syncthreads();
  }
  out[own] = result[own];
}

__global__ void triangular_solve_mod(const int* l, const int* b, int* x, int n) {
  // forward substitution with ones on the diagonal; thread i waits for the rows above it
  __shared__ int kept[16];
  int i = threadIdx.x, sum = b[i];
  for (int k = 0; k < n; k++) {
    if (i == k) kept[k] = sum;
    __syncthreads();
    if (i > k) sum -= l[i * n + k] * kept[k];
  }
  x[i] = kept[i];
}

__global__ void stencil_1d(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int left = i > 0 ? a[i - 1] : 0, right = i + 1 < n ? a[i + 1] : 0;
  out[i] = left - 2 * a[i] + right;
}

__global__ void stencil_2d(const int* a, int* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int i = y * width + x, sum = -4 * a[i];
  if (x > 0) sum += a[i - 1];
  if (x < width - 1) sum += a[i + 1];
  if (y > 0) sum += a[i - width];
  if (y < height - 1) sum += a[i + width];
  out[i] = sum;
}

__global__ void stencil_3d(const int* a, int* out) {
  int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z, n = blockDim.x, m = blockDim.y, i = (z * m + y) * n + x;
  int left = a[x ? i - 1 : i], up = a[y ? i - n : i], before = a[z ? i - n * m : i];
  out[i] = 3 * a[i] - left - up - before;
}

__global__ void stencil_shared_halo(const int* a, int* out, int n) {
  __shared__ int tile[18];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  tile[t + 1] = i < n ? a[i] : 0;
  if (t == 0) tile[0] = i > 0 ? a[i - 1] : 0;
  if (t == blockDim.x - 1) tile[t + 2] = i + 1 < n ? a[i + 1] : 0;
  __syncthreads();
  if (i < n) out[i] = max(tile[t], max(tile[t + 1], tile[t + 2]));
}

__global__ void convolution_1d(const int* a, const int* weights, int* out, int n, int k) {
  int i = threadIdx.x;
  if (i >= n) return;
  int sum = 0;
  for (int j = 0; j < k; j++) {
    int at = i + j - k / 2;
    if (at >= 0 && at < n) sum += a[at] * weights[j];
  }
  out[i] = sum;
}

__global__ void convolution_2d(const u8* image, const signed char* weights, u8* out, int width, int height) {
  int x = threadIdx.x, y = threadIdx.y;
  if (x >= width || y >= height) return;
  int sum = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      int u = min(max(x + dx, 0), width - 1), v = min(max(y + dy, 0), height - 1);
      sum += image[v * width + u] * weights[(dy + 1) * 3 + dx + 1];
    }
  sum >>= 2;
  out[y * width + x] = (u8)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

__global__ void life(const u8* cells, u8* out, int width, int height) {
  int x = threadIdx.x, y = threadIdx.y, count = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++)
      if (dx || dy) count += cells[(y + dy + height) % height * width + (x + dx + width) % width];
  out[y * width + x] = count == 3 || (count == 2 && cells[y * width + x]);
}

__global__ void rule_110(u32* row, int steps) {
  // one cell a lane; neighbours come by shuffles
  u32 t = threadIdx.x, cell = row[t];
  for (int step = 0; step < steps; step++) {
    u32 left = __shfl_sync(0xffffffffu, cell, t + 31), right = __shfl_sync(0xffffffffu, cell, t + 1);
    cell = 110u >> (left << 2 | cell << 1 | right) & 1;
  }
  row[t] = cell;
}

__global__ void image_grey(const uchar4* pixels, u8* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  uchar4 p = pixels[i];
  out[i] = (u8)((77 * p.x + 150 * p.y + 29 * p.z) >> 8);
}

__global__ void image_threshold_flip(const u8* image, u8* out, int width, u8 level) {
  int x = threadIdx.x, y = blockIdx.x;
  out[y * width + width - 1 - x] = image[y * width + x] >= level ? 255 : 0;
}

__global__ void image_blend(const u32* a, const u32* b, u32* out, int n, u32 alpha) {
  // four bytes at once, in two halves of a word
  int i = threadIdx.x;
  if (i >= n) return;
  u32 x = a[i], y = b[i], even = 0x00ff00ffu;
  u32 low = ((x & even) * alpha + (y & even) * (256 - alpha)) >> 8 & even;
  u32 high = ((x >> 8 & even) * alpha + (y >> 8 & even) * (256 - alpha)) & ~even;
  out[i] = low | high;
}

__global__ void image_integral_row(const u8* image, int* out, int width) {
  int y = threadIdx.x, sum = 0;
  for (int x = 0; x < width; x++) out[y * width + x] = sum += image[y * width + x];
}

__global__ void dilate_bits(const u32* rows, u32* out, int height) {
  int y = threadIdx.x;
  u32 above = y ? rows[y - 1] : 0, below = y + 1 < height ? rows[y + 1] : 0, x = rows[y] | above | below;
  out[y] = x | x << 1 | x >> 1;
}

__global__ void mandelbrot_fixed(u8* out, int width, int height, int limit) {
  // 20.12 fixed point
  int x = threadIdx.x, y = threadIdx.y;
  int cr = (x * 12288) / width - 8192, ci = (y * 8192) / height - 4096, zr = 0, zi = 0, k = 0;
  while (k < limit && zr * (zr >> 6) + zi * (zi >> 6) < (4 << 18)) {
    int next = (zr * zr - zi * zi >> 12) + cr;
    zi = (2 * zr * zi >> 12) + ci;
    zr = next;
    k++;
  }
  out[y * width + x] = (u8)k;
}

__global__ void floyd_warshall_pass(int* distance, int n, int k) {
  int i = threadIdx.y, j = threadIdx.x;
  if (i >= n || j >= n) return;
  int through = distance[i * n + k] + distance[k * n + j];
  if (i != k && j != k && through < distance[i * n + j]) distance[i * n + j] = through;
}

__global__ void floyd_warshall(int* distance, int n) {
  __shared__ int kept[36];
  int i = threadIdx.y, j = threadIdx.x;
  kept[i * n + j] = distance[i * n + j];
  for (int k = 0; k < n; k++) {
    __syncthreads();
    int through = kept[i * n + k] + kept[k * n + j];
    __syncthreads();
    if (through < kept[i * n + j]) kept[i * n + j] = through;
  }
  distance[i * n + j] = kept[i * n + j];
}

__global__ void bfs_step(const int* starts, const int* edges, int* level, int* more, int now, int n) {
  int v = threadIdx.x;
  if (v >= n || level[v] != now) return;
  for (int e = starts[v]; e < starts[v + 1]; e++) {
    int to = edges[e];
    if (atomicCAS(&level[to], -1, now + 1) == -1) *more = 1;
  }
}

__global__ void connected_components(const int* from, const int* to, int* label, int n, int m) {
  __shared__ int changed;
  int t = threadIdx.x;
  if (t < n) label[t] = t;
  __syncthreads();
  while (true) {
    if (t == 0) changed = 0;
    __syncthreads();
    if (t < m) {
      int a = atomicAdd(&label[from[t]], 0), b = atomicAdd(&label[to[t]], 0);
      if (a < b && atomicMin(&label[to[t]], a) > a) changed = 1;
      if (b < a && atomicMin(&label[from[t]], b) > b) changed = 1;
    }
    __syncthreads();
    int again = changed;
    __syncthreads();
    if (!again) break;
  }
}

__global__ void sparse_matvec(const int* starts, const int* columns, const int* values, const int* x, int* y, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int sum = 0;
  for (int e = starts[i]; e < starts[i + 1]; e++) sum += values[e] * x[columns[e]];
  y[i] = sum;
}

// A tile of Needleman-Wunsch: anti-diagonal after anti-diagonal.
__global__ void needleman_wunsch(const u8* a, const u8* b, int* table, int n) {
  int t = threadIdx.x, width = n + 1;
  table[t + 1] = -2 * (t + 1);
  table[(t + 1) * width] = -2 * (t + 1);
  if (t == 0) table[0] = 0;
  for (int d = 0; d < 2 * n - 1; d++) {
    __syncthreads();
    int i = d - t, j = t;
    if (i >= 0 && i < n) {
      int* at = table + (i + 1) * width + j + 1;
      int best = at[-width - 1] + (a[i] == b[j] ? 1 : -1);
      best = max(best, at[-width] - 2);
      *at = max(best, at[-1] - 2);
    }
  }
}

// Levenshtein's distance in one warp: lane j holds column j, the row moves through the lanes one step behind another.
__global__ void edit_distance(const u8* a, const u8* b, int* out, int n, int m) {
  int j = threadIdx.x, own = j + 1, corner = j;
  for (int d = 0; d < n + m - 1; d++) {
    int left = __shfl_up_sync(0xffffffffu, own, 1), i = d - j;
    if (j == 0) left = i + 1;
    if (i >= 0 && i < n && j < m) {
      int next = min(min(own, left) + 1, corner + (a[i] != b[j]));
      corner = left;
      own = next;
    }
  }
  if (j == m - 1) *out = own;
}

__global__ void knapsack(const int* weights, const int* values, int* best, int n, int capacity) {
  __shared__ int kept[32];
  int t = threadIdx.x;
  kept[t] = 0;
  for (int i = 0; i < n; i++) {
    __syncthreads();
    int x = t >= weights[i] ? kept[t - weights[i]] + values[i] : 0;
    __syncthreads();
    kept[t] = max(kept[t], x);
  }
  if (t <= capacity) best[t] = kept[t];
}
