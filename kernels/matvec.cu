// A matrix times a vector, y = A x, one thread for each row.
//
// a: m x n integers, row by row; x: n integers; y: m integers. Sums wrap at 32 bits.
// Launch at least m threads in all; threads beyond m do nothing.
__global__ void matvec(const int* a, const int* x, int* y, int m, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m) return;
  int sum = 0;
  for (int i = 0; i < n; i++) {
    sum += a[row * n + i] * x[i];
  }
  y[row] = sum;
}
