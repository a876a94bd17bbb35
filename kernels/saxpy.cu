// A vector scaled and added to another, in place: "integer a times x plus y".
//
// a: the factor. x: n integers. y: n integers, y[i] becomes a * x[i] + y[i], wrapping at 32 bits.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void saxpy(int a, const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
