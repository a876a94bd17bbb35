// Sorts up to 256 integers in place, lowest first: a bitonic network in shared memory.
//
// a: n integers. Launch one CTA of half as many threads as the next power of two from n up (at least 1). Places beyond n
// are taken for the largest integer.
__global__ void sort(int* a, int n) {
  __shared__ int s[256];
  int size = 2 * blockDim.x, i = threadIdx.x;
  for (int k = i; k < size; k += blockDim.x) s[k] = k < n ? a[k] : 0x7fffffff;
  for (int length = 2; length <= size; length *= 2) {
    for (int reach = length / 2; reach > 0; reach /= 2) {
      __syncthreads();
      int low = 2 * i - (i & (reach - 1)), high = low + reach;
      int x = s[low], y = s[high];
      if ((x > y) == ((low & length) == 0)) {
        s[low] = y;
        s[high] = x;
      }
    }
  }
  __syncthreads();
  for (int k = i; k < n; k += blockDim.x) a[k] = s[k];
}
