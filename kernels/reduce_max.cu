// The largest element of a vector.
//
// a: n integers. out: one integer, which the largest replaces if that is larger; set it to an element first.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void reduce_max(const int* a, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMax(out, a[i]);
}
