// The smallest element of a vector.
//
// a: n integers. out: one integer, which the smallest replaces if that is smaller; set it to an element first.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void reduce_min(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMin(out, a[i]);
}
