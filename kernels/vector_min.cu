// The smaller of two elements.
//
// a, b: n integers each. out: n integers.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void vector_min(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = min(a[i], b[i]);
}
