"""Independent launches in one and in two processes, with the native engine: seconds, and how much quicker two are.

    python bench/parallel.py [--launches N]

The workers have loaded their engines before the clock starts. A launch is 128 threads that step a generator.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import qgpu

SOURCE = """__global__ void mix(unsigned *a, int n) {
  unsigned x = a[threadIdx.x];
  for (int i = 0; i < n; i++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
  a[threadIdx.x] = x;
}
"""


def seconds(workers: int, launches: int) -> tuple[float, int]:
    """(wall time, tokens) of that many launches."""
    with qgpu.Device("native") as device:
        kernel = device.kernel(SOURCE)
        first = [device.array(np.arange(1, 33, dtype=np.uint32)) for _ in range(launches)]
        device.launch_many([kernel[1, 32].bound(array, 1) for array in first], workers=workers)
        began = time.perf_counter()
        done = device.launch_many([kernel[1, 32].bound(array, 20) for array in first], workers=workers)
        return time.perf_counter() - began, sum(len(launch.tokens) for launch in done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=16)
    count = parser.parse_args().launches
    print(f"{'processes':>9s} {'seconds':>8s} {'tokens/s':>9s} {'speed-up':>9s}")
    alone = None
    for workers in (1, 2):
        took, tokens = seconds(workers, count)
        alone = alone or took
        print(f"{workers:9d} {took:8.2f} {tokens / took:9,.0f} {alone / took:9.2f}")
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"memory of one worker: {most} MB at most")


if __name__ == "__main__":
    main()
