"""What a CUDA user knows, in Python: a device, arrays on it, kernels, launches.

device = Device()
a, out = device.array([1, 2, 3]), device.zeros(1)
launch = device.kernel("dot")[1, 3](a, a, out, 3)
out.numpy()  # array([14], dtype=int32)
"""

from qgpu.driver.arrays import DeviceArray
from qgpu.driver.device import Device
from qgpu.driver.kernel import Kernel, Module
from qgpu.driver.launch import Launch

__all__ = ["Device", "DeviceArray", "Kernel", "Launch", "Module"]
