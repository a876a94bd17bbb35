"""The device as a whole: its life, its threads, its names at the top of the package, kernels as decorated functions."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import qgpu
from qgpu.errors import QgpuError

TRIPLE = "__global__ void triple(int* a, int n) { if (threadIdx.x < n) a[threadIdx.x] *= 3; }"


@pytest.fixture
def device():
    return qgpu.Device("interpreter")


def test_the_first_example(device):
    source = """__global__ void dot(const int* a, const int* b, int* out, int n) {
      if (threadIdx.x < n) atomicAdd(out, a[threadIdx.x] * b[threadIdx.x]); }"""
    k = device.kernel(source, "dot")
    a, b, out = device.array(np.int32([1, 2, 3])), device.array(np.int32([4, 5, 6])), device.zeros(1, np.int32)
    launch = k[1, 4](a, b, out, 3, shared=16, max_tokens=1000)
    assert out.numpy().tolist() == [32]
    assert launch.stats is launch.statistics
    assert len(launch.tokens) == launch.stats.tokens == len(list(launch.trace))
    assert repr(launch) == f"Launch(dot[1, 4]: HALT, {len(launch.tokens)} tokens, {launch.stats.exec_tokens} EXEC)"
    assert repr(launch.trace).startswith(f"Listing({len(launch.tokens)} tokens")
    assert [record.kind for record in launch.trace.records()][-1] == "HALT"


def test_a_kernel_is_called_as_cupys_are(device):
    kernel = device.kernel(
        "__global__ void k(int* a, int n) { extern __shared__ int s[]; s[threadIdx.x] = n; "
        "__syncthreads(); a[threadIdx.x] = s[1 - threadIdx.x]; }", "k",
    )  # fmt: skip
    out = device.zeros(2, np.int32)
    launch = kernel((1,), (2,), (out, 7), shared_mem=8, check=False, max_tokens=100)
    assert out.numpy().tolist() == [7, 7]
    assert launch.tokens == kernel[1, 2, 8](out, 7).tokens
    with pytest.raises(qgpu.LaunchError, match=r"k\(grid, block, args\): args are a tuple"):
        kernel(1, 2, out)


def test_dynamic_shared_memory_by_its_name(device):
    source = "__global__ void k(int* o) { extern __shared__ int s[]; s[threadIdx.x] = 5; o[0] = s[threadIdx.x]; }"
    kernel, out = device.kernel(source), device.zeros(1)
    with pytest.raises(qgpu.FaultError):
        kernel[1, 2](out)
    kernel[1, 2](out, shared=8)
    assert out.item() == 5
    with pytest.raises(qgpu.LaunchError, match="no number of bytes"):
        kernel[1, 2](out, shared=-1)


def test_a_context_closes_the_device():
    with qgpu.Device("interpreter") as device:
        a = device.zeros(2)
        kernel = device.kernel("__device__ int v[2]; __global__ void k(int* a) { a[0] = v[0]++; }")
        kernel[1, 1](a)
        view = a[1:]
        assert repr(device).startswith("Device(interpreter: 1 array, ")
    assert not a.alive and not view.alive
    assert device.allocator.blocks == {}
    assert repr(device) == "Device(interpreter: closed)"
    device.close()
    for call in (lambda: device.zeros(1), lambda: kernel[1, 1](a), lambda: device.__enter__()):
        with pytest.raises(qgpu.LaunchError, match="the device is closed"):
            call()


def test_memory_that_is_left(device):
    free, total = device.memory_info
    assert 0 < free < total == 12224
    whole = device.zeros(free, np.uint8)
    assert whole.nbytes == free
    assert device.memory_info == (0, total)


def test_text_is_a_module_too(device):
    module = device.module("__global__ void a(int* o) { *o = 1; }\n__global__ void b(int* o) { *o = 2; }")
    assert set(module.kernels) == {"a", "b"}
    out = device.zeros(1)
    module.kernel("b")[1, 1](out)
    assert out.item() == 2
    assert repr(module) == "Module(kernel.cu)"


def test_sizes_may_be_numpys(device):
    out = device.zeros(np.int64(2))
    device.kernel(TRIPLE)[np.int32(1), (np.int64(2),)](out, np.uint8(2))


def test_threads_share_a_device(device):
    """Every thread's launches give what they would give alone, though all go over one engine and one memory."""
    kernel = device.kernel(TRIPLE)
    total = device.zeros(1)
    add = device.kernel("__global__ void add(int* t) { atomicAdd(t, 1); }")
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            for step in range(4):
                a = device.array(np.arange(3, dtype=np.int32) + 10 * number)
                kernel[1, 4](a, 3)
                if a.numpy().tolist() != [3 * (10 * number + i) for i in range(3)]:
                    wrong.append((number, step))
                add[1, 2](total)
        except Exception as error:  # told below, in the thread that can fail the test
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert total.item() == 4 * 4 * 2


# ---- names at the top


def test_every_name_is_there():
    assert {getattr(qgpu, name).__name__ for name in qgpu.__all__} == set(qgpu.__all__)
    assert set(qgpu.__all__) <= set(dir(qgpu))
    with pytest.raises(AttributeError, match="no attribute 'Devise'"):
        _ = qgpu.Devise


def test_errors_are_one_tree():
    from qgpu import errors

    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(found) > 8 and all(issubclass(error, QgpuError) for error in found)


def test_importing_qgpu_costs_nothing():
    code = "import sys, qgpu; print(sorted({'numpy', 'numba', 'torch', 'typer', 'qgpu.errors'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


# ---- decorated functions


def test_a_function_is_a_kernel(device):
    @qgpu.kernel
    def triple(a, n):
        """__global__ void triple(int* a, int n) { if (threadIdx.x < n) a[threadIdx.x] *= 3; }"""

    a = device.array([1, 2, 3])
    launch = triple[1, 4](a, 3)
    assert a.numpy().tolist() == [3, 6, 9] and launch.ended == "HALT"
    triple[1, 4](n=1, a=a[1:])
    assert a.numpy().tolist() == [3, 18, 9]
    assert triple.on(device) is triple.on(device)
    assert "triple(a, n)" in repr(triple)
    with pytest.raises(qgpu.LaunchError, match=r"none of its arguments is an array: .* triple.on\(device\)"):
        triple[1, 4](5, 3)
    with pytest.raises(qgpu.LaunchError, match="its arrays are on several devices"):
        triple[1, 4](a, qgpu.Device("interpreter").zeros(1))


def test_a_kernel_from_a_file_or_from_text(device, tmp_path):
    (tmp_path / "t.cu").write_text(TRIPLE)

    @qgpu.kernel(file=tmp_path / "t.cu")
    def triple(a, n): ...

    @qgpu.kernel(source=TRIPLE.replace("3", "5"))
    def quintuple(a, n): ...

    a = device.array([1])
    triple[1, 1](a, 1)
    assert a.item() == 3
    with pytest.raises(QgpuError, match="no kernel quintuple"):
        quintuple[1, 1](a, 1)


def test_functions_that_are_no_kernels(device):
    with pytest.raises(qgpu.CompileError, match="nothing: no CUDA C: write it in the function's docstring"):

        @qgpu.kernel
        def nothing(a): ...

    @qgpu.kernel(source=TRIPLE)
    def triple(x, n): ...

    with pytest.raises(qgpu.CompileError, match=r"the function has the parameters \(x, n\), the kernel \(a, n\)"):
        triple.on(device)
