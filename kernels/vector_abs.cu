// The magnitude of every element. That of the lowest integer, 2^31, wraps to itself.
//
// a: n integers. out: n integers.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void vector_abs(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] < 0 ? 0 - (unsigned)a[i] : a[i];
}
