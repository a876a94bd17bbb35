// Powers, element by element, by squaring.
//
// a: n integers. b: n integers of at least 0, the exponents. out: n integers, a[i] to the power b[i], wrapping at 32 bits.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void vector_pow(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned base = a[i], exponent = b[i], result = 1;
  while (exponent != 0) {
    if (exponent & 1) result *= base;
    base *= base;
    exponent >>= 1;
  }
  out[i] = result;
}
