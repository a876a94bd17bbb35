// The sum of a vector over several CTAs: each CTA sums in shared memory, then adds its part to one global word.
//
// a: n integers. out: one integer, to which the sum is added; set it to 0 first. Sums wrap at 32 bits.
// Launch any grid: threads stride over the vector by the size of the whole grid.
__global__ void shared_sum(const int* a, int* out, int n) {
  __shared__ int part;
  if (threadIdx.x == 0) part = 0;
  __syncthreads();
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
  atomicAdd(&part, sum);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, part);
}
