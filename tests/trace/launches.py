"""Launches of real kernels, run on the interpreter and recorded, with the interpreter as oracle beside them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from qgpu.driver import Device
from qgpu.driver.kernel import code_of_file, code_of_source
from qgpu.driver.recording import record
from qgpu.errors import StoppedError
from qgpu.isa import tokens
from qgpu.isa.interpreter import Interpreter
from qgpu.isa.program import prompt
from qgpu.trace import Trace

KERNELS = Path(__file__).parents[2] / "kernels"

SOURCE = """__global__ void mix(const int *a, int *out, int n)
{
    __shared__ int part[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i == 5) return;
    int value = i < n ? a[i] : 0;
    if (value & 1)
        value = 3 * value + 1;
    else
        value /= 2;
    for (int turn = i & 3; turn > 0; turn--)
        value ^= value >> 3;
    part[threadIdx.x] = value;
    __syncthreads();
    value += part[threadIdx.x ^ 1];
    value += __shfl_down_sync(0xffffffff, value, 2);
    atomicAdd(&out[0], value);
    out[i + 1] = value << 8;
}
"""
"""Diverges, meets at a barrier, shuffles, adds atomically: every kind of token."""


def recorded(source: str, grid: int, cta: int, *values: object, file: str = "mix.cu", **options: int) -> Trace:
    """A launch on the interpreter; numpy arrays go to the device."""
    device = Device("interpreter", printed=lambda text: None)
    path = KERNELS / file
    code = code_of_file(path, None) if not source else code_of_source(source, file)
    given = [device.array(value) if isinstance(value, np.ndarray) else value for value in values]
    try:
        launch = device.launch(code, (grid, 1, 1), (cta, 1, 1), given, **options)
    except StoppedError as error:
        return record(error.launch, str(error))
    return record(launch)


def numbers(count: int, scale: int = 7919) -> np.ndarray:
    return (np.arange(count, dtype=np.int64) * scale % 1_000_003 - 500_000).astype(np.int32)


@cache
def mix() -> Trace:
    return recorded(SOURCE, 2, 20, numbers(40), np.zeros(41, np.int32), 37)


@cache
def fault() -> Trace:
    """Thread 5 reads past the end of its array."""
    return recorded("", 1, 8, numbers(5), numbers(8), np.zeros(8, np.int32), 8, file="vector_add.cu")


def oracle(trace: Trace) -> Iterator[tuple[int, Interpreter]]:
    """(tokens fed, the interpreter) after every token; registers run ahead of the DATA that tell of them."""
    machine = Interpreter()
    machine.feed(prompt(trace.launch))
    for position, token in enumerate(trace.tokens):
        machine.feed([token])
        yield position + 1, machine


def settled(trace: Trace, fed: int) -> bool:
    """Whether all that the last EXEC writes has been written, so that both sides must agree."""
    return fed == len(trace.tokens) or tokens.decode(trace.tokens[fed])[0] not in ("DATA", "VAL", "VALW", "MEM")
