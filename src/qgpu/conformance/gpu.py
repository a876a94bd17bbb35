"""The table on a real NVIDIA GPU: PTX as the compiler wrote it, launched through the CUDA driver by ctypes.

Nothing of the machine is in this. It says whether the oracle, and so the table, means what CUDA means.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.conformance.levels import Outcome, available, difference, ptx_file
from qgpu.conformance.oracle import expected
from qgpu.conformance.table import Row
from qgpu.cuda.compile import FLAGS, HEADER, INCLUDE, find_compiler
from qgpu.cuda.frontend import kernel_named
from qgpu.cuda.ptx import Function
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.errors import CompileError, QgpuError

Array = np.ndarray[Any, Any]
LEVEL = "cuda"


class NoGpuError(QgpuError):
    """There is no NVIDIA GPU here, or no driver for it."""


class Gpu:
    """The first GPU. ``driver``: the CUDA driver library, or what stands in for it. NoGpuError if there is none."""

    def __init__(self, driver: Any = None) -> None:
        self._driver = load_driver() if driver is None else driver
        device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        if self._driver.cuInit(0) or self._driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
            raise NoGpuError("there is no NVIDIA GPU here: the driver library is installed but finds none")
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._driver, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(status, ctypes.byref(text))
            raise QgpuError(f"{name}: {(text.value or b'an error').decode()} ({status})")

    def launch(self, ptx: str, kernel: Function, one: Row) -> list[Array]:
        """The arrays after the launch. QgpuError with the driver's own error."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
        places: list[tuple[ctypes.c_uint64, Array]] = []
        try:
            self._call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(kernel.name.encode()))
            values: list[Any] = []
            for argument, parameter in zip(one.arguments, kernel.parameters, strict=True):
                number = self._upload(argument, places) if isinstance(argument, np.ndarray) else argument
                data = (number % (1 << 8 * parameter.size)).to_bytes(parameter.size, "little")
                values.append(ctypes.create_string_buffer(data, parameter.size))
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            self._call("cuLaunchKernel", function, *one.grid, *one.cta, one.shared, None, pointers, None)
            self._call("cuCtxSynchronize")
            return [self._download(place, argument) for place, argument in places]
        finally:
            for place, _ in places:
                self._driver.cuMemFree_v2(place)
            self._driver.cuModuleUnload(module)

    def _upload(self, argument: Array, places: list[tuple[ctypes.c_uint64, Array]]) -> int:
        place, size = ctypes.c_uint64(), ctypes.c_size_t(argument.nbytes)
        self._call("cuMemAlloc_v2", ctypes.byref(place), size)
        places.append((place, argument))
        data = argument.tobytes()
        self._call("cuMemcpyHtoD_v2", place, ctypes.c_char_p(data), size)
        return place.value

    def _download(self, place: ctypes.c_uint64, like: Array) -> Array:
        buffer = ctypes.create_string_buffer(like.nbytes)
        self._call("cuMemcpyDtoH_v2", buffer, place, ctypes.c_size_t(like.nbytes))
        return np.frombuffer(buffer.raw, like.dtype)


def load_driver(names: Sequence[str] = ()) -> ctypes.CDLL:
    """The CUDA driver library. NoGpuError where there is none."""
    for name in names or (("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NoGpuError("there is no NVIDIA GPU here: the CUDA driver library is not installed")


@cache
def ptx_of(path: Path, compiler: str) -> str:
    """PTX with 64-bit addresses: GPUs take no other any more. CompileError if it does not compile."""
    if compiler == "nvrtc":
        return ptx_file(path, compiler).read_text(encoding="utf-8")
    flags = [flag for flag in FLAGS if flag != "-m32"]
    ours = [f"--cuda-path={INCLUDE}", "-isystem", str(INCLUDE), "-include", str(HEADER), "-iquote", str(path.parent)]
    command = [*find_compiler().command, *flags, *ours, str(path), "-o", "-"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if result.returncode != 0:
        raise CompileError(f"{path.name} does not compile with 64-bit addresses:\n{result.stderr.strip()[:4000]}")
    return result.stdout


def run(one: Row, gpu: Gpu, compiler: str | None = None) -> Outcome:
    """A row on the GPU. compiler: NVRTC where it is installed, if nothing is said, else clang."""
    chosen = compiler or ("clang" if available("nvrtc") else "nvrtc")
    try:
        text = ptx_of(one.path, chosen)
        found = gpu.launch(text, kernel_named(parse_ptx(text, one.file), one.kernel), one)
    except QgpuError as error:
        return Outcome(one.name, LEVEL, chosen, "failed", str(error))
    fault = difference(found, expected(one))
    return Outcome(one.name, LEVEL, chosen, "wrong" if fault else "ok", fault)
