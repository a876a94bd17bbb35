// A loop whose number of collatz differs from lane to lane: steps of the Collatz sequence down to 1.
//
// a: n integers, each at least 1. out: n integers; out[i] = steps from a[i] to 1 (odd x -> 3x + 1, even x -> x / 2).
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void collatz(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = a[i];
  int steps = 0;
  while (x != 1) {
    x = (x & 1) ? 3 * x + 1 : x >> 1;
    steps++;
  }
  out[i] = steps;
}
