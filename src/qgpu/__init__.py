"""A GPU in the weights of a language model: ``qgpu.Device()`` and what a CUDA user expects beside it.

Names are loaded when they are asked for, so that importing qgpu costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qgpu.driver.arrays import DeviceArray as DeviceArray
    from qgpu.driver.decorator import kernel as kernel
    from qgpu.driver.device import Device as Device
    from qgpu.driver.kernel import Kernel as Kernel
    from qgpu.driver.kernel import Module as Module
    from qgpu.driver.launch import Launch as Launch
    from qgpu.errors import CheckError as CheckError
    from qgpu.errors import CompileError as CompileError
    from qgpu.errors import FaultError as FaultError
    from qgpu.errors import LaunchError as LaunchError
    from qgpu.errors import LaunchInterrupted as LaunchInterrupted
    from qgpu.errors import LimitError as LimitError
    from qgpu.errors import MemoryFullError as MemoryFullError
    from qgpu.errors import PtxError as PtxError
    from qgpu.errors import QgpuError as QgpuError
    from qgpu.errors import SanitizeError as SanitizeError
    from qgpu.errors import StoppedError as StoppedError
    from qgpu.errors import UnsupportedError as UnsupportedError

_ERRORS = ("CheckError", "CompileError", "FaultError", "LaunchError", "LaunchInterrupted", "LimitError",
           "MemoryFullError", "PtxError", "QgpuError", "SanitizeError", "StoppedError", "UnsupportedError")  # fmt: skip
_HOMES = {
    "Device": "qgpu.driver.device",
    "DeviceArray": "qgpu.driver.arrays",
    "Kernel": "qgpu.driver.kernel",
    "Launch": "qgpu.driver.launch",
    "Module": "qgpu.driver.kernel",
    "kernel": "qgpu.driver.decorator",
    **dict.fromkeys(_ERRORS, "qgpu.errors"),
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'qgpu' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
