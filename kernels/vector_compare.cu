// A comparison of two vectors, element by element: 1 where it holds, else 0.
//
// a, b: n integers each. out: n integers. how: which of the three cases count, 1 for less, 2 for equal, 4 for greater;
// so 3 is "at most", 5 is "not equal".
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void vector_compare(const int* a, const int* b, int* out, int n, int how) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int place = a[i] < b[i] ? 0 : a[i] == b[i] ? 1 : 2;
  out[i] = how >> place & 1;
}
