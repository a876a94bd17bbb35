// Small kernels as people write them: branches around loads and stores, nested loops, swaps, data-dependent loops.
__global__ void stencil(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int left = i > 0 ? a[i - 1] : 0;
  int right = i + 1 < n ? a[i + 1] : 0;
  out[i] = left + 2 * a[i] + right;
}

__global__ void count(const int* a, int* out, int key, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (a[i] == key) atomicAdd(out, 1);
}

__global__ void gcd(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = a[i], y = b[i];
  while (x != y) { if (x > y) x -= y; else y -= x; }
  out[i] = x;
}

__global__ void transpose(const int* a, int* out, int m, int n) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < m && c < n) out[c * m + r] = a[r * n + c];
}

__global__ void histogram(const int* a, int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[a[i] & 15], 1);
}

__global__ void relu(int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = max(a[i], 0);
}

__global__ void prefix(const int* a, int* out, int n) {
  int i = threadIdx.x, s = 0;
  for (int j = 0; j <= i; j++) s += a[j];
  if (i < n) out[i] = s;
}

__global__ void fib(unsigned* out, int n) {
  unsigned a = 0, b = 1;
  for (int i = 0; i < n; i++) { out[i] = a; unsigned t = a + b; a = b; b = t; }
}

__global__ void square(const int* a, int* out) { out[threadIdx.x] = a[threadIdx.x] * a[threadIdx.x]; }

__global__ void maxval(const int* a, int* out, int n) {
  int best = a[0];
  for (int i = 1; i < n; i++) best = a[i] > best ? a[i] : best;
  *out = best;
}

__global__ void life(const int* in, int* out, int w, int h) {
  int x = threadIdx.x, y = threadIdx.y, n = 0;
  for (int dy = -1; dy <= 1; dy++) for (int dx = -1; dx <= 1; dx++) {
    int u = x + dx, v = y + dy;
    if ((dx || dy) && u >= 0 && u < w && v >= 0 && v < h) n += in[v * w + u];
  }
  out[y * w + x] = n == 3 || (n == 2 && in[y * w + x]);
}

__global__ void sieve(int* composite, int n) {
  for (int p = 2; p * p < n; p++)
    for (int m = p * p + p * threadIdx.x; m < n; m += p * blockDim.x) composite[m] = 1;
}

__global__ void bubble(int* a, int n) {
  for (int i = 0; i < n; i++) for (int j = 0; j + 1 < n; j++)
    if (a[j] > a[j+1]) { int t = a[j]; a[j] = a[j+1]; a[j+1] = t; }
}

__global__ void horner(const int* c, const int* x, int* y, int d) {
  int t = threadIdx.x, r = 0;
  for (int i = 0; i < d; i++) r = r * x[t] + c[i];
  y[t] = r;
}
