// Two different computations in one warp: threads of odd index take one side of a branch, even ones the other.
//
// a: n integers. out: n integers; where i is odd, out[i] = 3 * a[i - 1] + a[i], else out[i] = a[i] ^ (a[i] << 1).
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void divergent(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i & 1) {
    out[i] = 3 * a[i - 1] + a[i];
  } else {
    out[i] = a[i] ^ (a[i] << 1);
  }
}
