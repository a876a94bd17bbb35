// The sum of a vector, added to a single word.
//
// a: n integers. out: one integer; set it to 0 first. Sums wrap at 32 bits.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void reduce_sum(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, a[i]);
}
