// The difference of two vectors, element by element.
//
// a, b: n integers each. out: n integers, out[i] = a[i] - b[i], wrapping at 32 bits.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void vector_sub(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] - b[i];
}
