// The remainder of a division of two vectors, element by element, with the divisor's sign, as Python's % has it.
//
// a, b: n integers each, none of b 0. out: n integers.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void vector_mod(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int rest = a[i] - a[i] / b[i] * b[i];
  out[i] = rest != 0 && (rest ^ b[i]) < 0 ? rest + b[i] : rest;
}
