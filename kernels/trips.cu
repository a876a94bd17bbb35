// A loop whose number of trips differs from lane to lane: integer square roots by taking odd numbers away.
//
// a: n integers, none negative. out: n integers; out[i] is the largest number whose square is not above a[i].
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void trips(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int rest = a[i];
  int root = 0;
  for (int odd = 1; rest >= odd; odd += 2) {
    rest -= odd;
    root++;
  }
  out[i] = root;
}
