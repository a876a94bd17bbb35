"""The launches on a real GPU, with a stand-in for the CUDA driver: what it is handed, and what its errors become."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from qgpu.conformance import gpu
from qgpu.conformance.gpu import Gpu, NoGpuError, load_driver
from qgpu.conformance.oracle import expected
from qgpu.conformance.table import table

TABLE = table()
NOTHING = ("cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuCtxSynchronize", "cuModuleUnload")


class Driver:
    """Memory at addresses it makes up; a launch runs ``kernel`` on (memory, parameter values as bytes)."""

    def __init__(self, kernel: Any = None, devices: int = 1) -> None:
        self.kernel, self.devices = kernel, devices
        self.memory: dict[int, bytearray] = {}
        self.loaded = self.named = b""
        for name in NOTHING:
            setattr(self, name, lambda *arguments: 0)

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return 0

    def cuModuleLoadData(self, module: Any, text: Any) -> int:
        self.loaded = text.value
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: Any) -> int:
        self.named = name.value
        return 0

    def cuMemAlloc_v2(self, place: Any, size: Any) -> int:
        place._obj.value = (len(self.memory) + 1) << 33
        self.memory[place._obj.value] = bytearray(size.value)
        return 0

    def cuMemcpyHtoD_v2(self, place: Any, data: Any, size: Any) -> int:
        self.memory[place.value][:] = ctypes.string_at(data, size.value)
        return 0

    def cuMemcpyDtoH_v2(self, buffer: Any, place: Any, size: Any) -> int:
        ctypes.memmove(buffer, bytes(self.memory[place.value]), size.value)
        return 0

    def cuMemFree_v2(self, place: Any) -> int:
        del self.memory[place.value]
        return 0

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        *sizes, shared, stream, pointers, extra = rest
        assert (shared, stream, extra) == (0, None, None)
        return int(self.kernel(self.memory, sizes, list(pointers)))

    def cuGetErrorName(self, status: int, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_ILLEGAL_ADDRESS"
        return 0


def dot(memory: dict[int, bytearray], sizes: list[int], pointers: list[int]) -> int:
    assert sizes == [1, 1, 1, 3, 1, 1]
    a, b, out = (memory[int.from_bytes(ctypes.string_at(pointer, 8), "little")] for pointer in pointers[:3])
    assert ctypes.string_at(pointers[3], 4) == (3).to_bytes(4, "little")
    numbers = [np.frombuffer(part, np.int32) for part in (a, b)]
    out[:] = int(numbers[0] @ numbers[1]).to_bytes(4, "little")
    return 0


def test_a_launch_hands_over_what_the_kernel_takes() -> None:
    driver = Driver(dot)
    outcome = gpu.run(TABLE["dot"], Gpu(driver), "clang")
    assert (outcome.status, outcome.level, outcome.message) == ("ok", "cuda", "")
    assert b".address_size 64" in driver.loaded and driver.named == b"_Z3dotPKiS0_Pii"
    assert driver.memory == {}


def test_a_wrong_result_is_told() -> None:
    outcome = gpu.run(TABLE["dot"], Gpu(Driver(lambda memory, sizes, pointers: 0)), "clang")
    assert (outcome.status, outcome.message) == ("wrong", "array 2 at 0: 0, expected 32 (1 of 1 differ)")
    assert expected(TABLE["dot"])[2].tolist() == [32]


def test_an_error_of_the_driver_is_told() -> None:
    outcome = gpu.run(TABLE["dot"], Gpu(Driver(lambda memory, sizes, pointers: 700)), "clang")
    assert (outcome.status, outcome.message) == ("failed", "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700)")


def test_no_gpu() -> None:
    with pytest.raises(NoGpuError, match="finds none"):
        Gpu(Driver(devices=0))
    with pytest.raises(NoGpuError, match="driver library is not installed"):
        load_driver(["there-is-no-such-library.so"])
