// The product of two matrices, C = A B, one thread for each element of C.
//
// a: m x k integers, b: k x n integers, c: m x n integers, all row by row. Sums wrap at 32 bits.
// Launch a grid that covers n in x and m in y; threads outside do nothing.
__global__ void matmul(const int* a, const int* b, int* c, int m, int n, int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  int sum = 0;
  for (int i = 0; i < k; i++) {
    sum += a[row * k + i] * b[i * n + column];
  }
  c[row * n + column] = sum;
}
