"""What kernels have beside their arguments, launched on the interpreter: variables that stay, local memory, printf."""

import pytest

from qgpu.driver import Device
from qgpu.errors import FaultError, LaunchError

COUNTER = """
__device__ int counter = 5;
__constant__ int table[3] = {10, 20, 30};
__device__ int* pointer = &counter;
__global__ void count(int* out) { out[threadIdx.x] = table[threadIdx.x]; if (threadIdx.x == 0) counter = counter + 1; }
__global__ void read(int* out) { out[0] = *pointer; }
"""


def test_variables_stay_and_are_shared_by_the_kernels_of_a_file():
    device = Device("interpreter")
    out = device.zeros(3)
    count, read = (device.kernel(COUNTER, name) for name in ("count", "read"))
    count[1, 3](out)
    assert out.numpy().tolist() == [10, 20, 30]
    count[1, 3](out)
    read[1, 1](out)
    assert out.numpy().tolist() == [7, 20, 30]
    other = Device("interpreter")
    fresh = other.zeros(1)
    other.kernel(COUNTER, "read")[1, 1](fresh)
    assert fresh.numpy().tolist() == [5]


def test_a_variable_has_its_own_bounds():
    device = Device("interpreter")
    source = "__device__ int v[2];\n__global__ void k(int i) {\n  v[i] = 1;\n}"
    device.kernel(source)[1, 1](1)
    with pytest.raises(FaultError, match=r"(?s)kernel.cu:3: FAULT .*is 1 bytes after .* v \(2 x uint32\)"):
        device.kernel(source)[1, 1](2)


def test_shared_variables_have_their_names_in_messages():
    device = Device("interpreter")
    source = """__global__ void k(int i) {
      __shared__ int a[4], b[2];
      extern __shared__ int more[];
      volatile int* p = i < 100 ? a : i < 1000 ? b : more;
      a[0] = b[0] = 1;
      p[i % 100] = 2;
    }"""
    kernel = device.kernel(source)
    kernel[1, 1](1, shared=8)
    with pytest.raises(FaultError, match="is 1 bytes after the nearest allocation dynamic shared memory at 0x"):
        kernel[1, 1](1002, shared=8)
    with pytest.raises(FaultError, match=r"(?s)__shared__ write .* is 85 bytes after .* allocation a at 0x30\d\d of"):
        kernel[1, 1](25)


def test_local_arrays():
    source = """__global__ void k(int* out, int n) {
      int a[4];
      for (int i = 0; i < 4; i++) a[i] = i * n + threadIdx.x;
      out[threadIdx.x] = a[n & 3];
    }"""
    device = Device("interpreter")
    out = device.zeros(6)
    device.kernel(source)[1, 6](out, 7)
    assert out.numpy().tolist() == [21 + i for i in range(6)]
    free = device.allocator.room()
    device.kernel(source)[1, 6](out, 7)
    assert device.allocator.room() == free


@pytest.mark.parametrize("size", [-1, "8"])
def test_dynamic_shared_memory_of_no_size(size):
    device = Device("interpreter")
    with pytest.raises(LaunchError, match="no number of bytes of dynamic shared memory"):
        device.kernel("__global__ void k(int* o) { o[0] = 1; }")[1, 1, size]


def test_too_much_dynamic_shared_memory():
    device = Device("interpreter")
    kernel = device.kernel("__global__ void k(int* o) { o[0] = 1; }")
    with pytest.raises(LaunchError, match="5,000 of dynamic shared memory are asked for; a CTA has 4,096"):
        kernel[1, 1, 5000](device.zeros(1))


def test_arrays_lie_where_vectors_can_be_read():
    device = Device("interpreter")
    addresses = [device.zeros(size).address for size in (1, 3, 5, 2)]
    assert [address % 16 for address in addresses] == [0] * 4
