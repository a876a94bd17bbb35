// The dot product of two vectors, added to a single word.
//
// a, b: n integers each. out: one integer, to which the sum of a[i] * b[i] is added; set it to 0 first.
// Launch at least n threads in all; threads beyond n do nothing. Sums wrap at 32 bits.
__global__ void dot(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, a[i] * b[i]);
}
