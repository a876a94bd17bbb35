// The sum of every element of a vector and one number.
//
// a: n integers. scalar: the number. out: n integers, out[i] = a[i] + scalar, wrapping at 32 bits.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void scalar_add(const int* a, int scalar, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + scalar;
}
