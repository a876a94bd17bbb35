// A number minus every element of a vector (for the other order, add the negated number with scalar_add).
//
// scalar: the number. a: n integers. out: n integers, out[i] = scalar - a[i], wrapping at 32 bits.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void scalar_sub(int scalar, const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = scalar - a[i];
}
