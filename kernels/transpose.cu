// A matrix with its rows as columns.
//
// a: m x n integers, out: n x m integers, both row by row.
// Launch a grid that covers n in x and m in y; threads outside do nothing.
__global__ void transpose(const int* a, int* out, int m, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < m && column < n) out[column * m + row] = a[row * n + column];
}
