// Running sums of up to 128 elements: out[i] = start + a[0] + ... + a[i], wrapping at 32 bits.
//
// a, out: n integers each. start: what the elements before add up to.
// Launch one CTA of n threads. Hillis and Steele's scan in shared memory.
__global__ void cumsum(const int* a, int* out, int n, int start) {
  __shared__ int sums[128];
  int i = threadIdx.x;
  sums[i] = i == 0 ? start + a[0] : a[i];
  for (int reach = 1; reach < n; reach *= 2) {
    __syncthreads();
    int before = i >= reach ? sums[i - reach] : 0;
    __syncthreads();
    sums[i] += before;
  }
  out[i] = sums[i];
}
