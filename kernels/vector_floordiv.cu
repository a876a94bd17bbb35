// The quotient of two vectors, element by element, rounded down as Python's // is.
//
// a, b: n integers each, none of b 0. out: n integers. The lowest integer by -1 wraps to itself.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void vector_floordiv(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int quotient = a[i] / b[i];
  int rest = a[i] - quotient * b[i];
  out[i] = rest != 0 && (rest ^ b[i]) < 0 ? quotient - 1 : quotient;
}
