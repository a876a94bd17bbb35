// The sum of a vector over several CTAs: every thread adds up its part, then adds that to one word.
//
// a: n integers. out: one integer, to which the sum is added; set it to 0 first. Sums wrap at 32 bits.
// Launch any grid: threads stride over the vector by the size of the whole grid.
__global__ void atomic_sum(const int* a, int* out, int n) {
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
  atomicAdd(out, sum);
}
