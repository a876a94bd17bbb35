"""One table of kernels, run at every level. Expected results come from plain Python, not from anything of qgpu."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qgpu.driver.device import Device
from qgpu.driver.launch import Launch

KERNELS = Path(__file__).parents[2] / "kernels"
EDGES = [1, -2, 2147483647, -2147483648, 40000, -40000, 7, 0, 123456789, -987654321]


def wrapped(value: int) -> int:
    """As a 32-bit two's complement number."""
    return (value + 2**31) % 2**32 - 2**31


@dataclass(frozen=True)
class Case:
    """``arguments``: lists become arrays, ints scalars. ``expected``: what array argument ``output`` holds
    afterwards."""

    name: str
    kernel: str
    grid: tuple[int, int, int]
    cta: tuple[int, int, int]
    arguments: tuple[int | list[int], ...]
    output: int
    expected: list[int]

    def run(self, device: Device, check: bool = False) -> tuple[list[int], Launch]:
        """The output array as the device's memory holds it, and the launch."""
        arrays = [device.array(a) if isinstance(a, list) else a for a in self.arguments]
        launch = device.kernel(KERNELS / f"{self.kernel}.cu", self.kernel)[self.grid, self.cta](*arrays, check=check)
        return arrays[self.output].numpy().reshape(-1).tolist(), launch  # type: ignore[union-attr]


def _elements(kernel: str, function: Callable[[int, int], int]) -> Case:
    other = EDGES[3:] + EDGES[:3]
    expected = [wrapped(function(x, y)) for x, y in zip(EDGES, other, strict=True)]
    return Case(kernel, kernel, (3, 1, 1), (4, 1, 1), (EDGES, other, [0] * 10, 10), 2, expected)


def _matmul(size: int) -> Case:
    a = [(7 * i * i - 20 * i + 3) for i in range(size * size)]
    b = [(i - 5) * 1000003 for i in range(size * size)]
    n = range(size)
    product = [wrapped(sum(a[size * i + k] * b[size * k + j] for k in n)) for i in n for j in n]
    shape = (size, size, 1)
    return Case(
        f"matmul {size}x{size}", "matmul", (1, 1, 1), shape, (a, b, [0] * size**2, size, size, size), 2, product
    )


def _root(value: int) -> int:
    return int(value**0.5)


CASES = (
    Case("dot", "dot", (1, 1, 1), (3, 1, 1), ([1, 2, 3], [4, 5, 6], [0], 3), 2, [32]),
    Case("dot over two CTAs", "dot", (2, 1, 1), (4, 1, 1), (EDGES[:7], EDGES[3:], [5], 7), 2,
         [wrapped(5 + sum(x * y for x, y in zip(EDGES[:7], EDGES[3:], strict=True)))]),
    _elements("vector_add", lambda x, y: x + y),
    _elements("vector_sub", lambda x, y: x - y),
    _elements("vector_mul", lambda x, y: x * y),
    Case("saxpy", "saxpy", (1, 1, 1), (10, 1, 1), (-77777, EDGES, EDGES[::-1], 10), 2,
         [wrapped(-77777 * x + y) for x, y in zip(EDGES, EDGES[::-1], strict=True)]),
    *(_matmul(size) for size in (2, 3, 4)),
    Case("divergent", "divergent", (1, 1, 1), (10, 1, 1), (EDGES, [0] * 10, 10), 1,
         [wrapped(3 * EDGES[i - 1] + EDGES[i]) if i & 1 else wrapped(EDGES[i] ^ wrapped(EDGES[i] << 1)) for i in range(10)]),  # noqa: E501
    Case("trips", "trips", (1, 1, 1), (6, 1, 1), ([0, 1, 15, 16, 50, 99], [-1] * 6, 6), 1,
         [_root(x) for x in (0, 1, 15, 16, 50, 99)]),
    Case("atomic sum over three CTAs", "atomic_sum", (3, 1, 1), (2, 1, 1), (EDGES, [0], 10), 1, [wrapped(sum(EDGES))]),
)  # fmt: skip

DECODED = ("dot", "saxpy", "matmul 2x2")
"""Those that the dense engine decodes one token at a time; the others it checks in one prefill."""
