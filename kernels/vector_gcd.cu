// Greatest common divisors, element by element, by Euclid's algorithm; never negative, and 0 of two zeros.
//
// a, b: n integers each. out: n integers. Of the lowest integer and itself (or 0) it is 2^31, which wraps.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void vector_gcd(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = a[i] < 0 ? 0u - a[i] : a[i], y = b[i] < 0 ? 0u - b[i] : b[i];
  while (y != 0) {
    unsigned rest = x % y;
    x = y;
    y = rest;
  }
  out[i] = x;
}
