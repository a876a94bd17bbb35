// Where a value stands first in a vector.
//
// a: n integers. first: what is added to indices. out: one integer, which the lowest index of `value` replaces if that is
// lower; set it to the largest integer first.
// Launch at least n threads in all; threads beyond n do nothing.
__global__ void first_index(const int* a, int value, int* out, int n, int first) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && a[i] == value) atomicMin(out, first + i);
}
