"""Runs a compiled kernel on the machine's interpreter: arrays in, arrays out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qgpu.cuda.pipeline import CompiledKernel
from qgpu.isa import tokens
from qgpu.isa.interpreter import Statistics, run
from qgpu.isa.program import Launch

FIRST_BYTE = 64
SHARED_BYTE = tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES


@dataclass(frozen=True)
class Result:
    """``arrays``: copies, after the launch. ``written``: its tokens. ``fault``: (cause, quad, lane, block, address)."""

    arrays: list[np.ndarray]
    written: list[int]
    statistics: Statistics
    fault: tuple[int, int, int, int, int] | None


def three(size: int | Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*((size,) if isinstance(size, int) else size), 1, 1)[:3]
    return x, y, z


def launch_of(
    kernel: CompiledKernel,
    arguments: Sequence[np.ndarray | int],
    grid: int | Sequence[int],
    cta: int | Sequence[int],
    shaped: bool = True,
    shared: int = 0,
) -> tuple[Launch, list[tuple[int, np.ndarray]]]:
    """The launch, and where each array lies: one after the other, each on a new row, only its own bytes allocated.

    shaped: with the program for this launch's shape, not the one for all shapes. shared: bytes of shared memory.
    """
    memory: dict[int, int] = {}
    allocated: dict[int, int] = {}

    def allocate(first: int, size: int) -> None:
        for byte in range(first, first + size):
            allocated[byte >> 6] = allocated.get(byte >> 6, 0) | 1 << (byte & 63)

    allocate(SHARED_BYTE, shared)
    words = [0] * kernel.program.parameter_words
    places = []
    at = FIRST_BYTE
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        value = argument
        if isinstance(argument, np.ndarray):
            assert argument.itemsize == 4
            places.append((at, argument))
            for offset, word in enumerate(argument.reshape(-1).view(np.uint32)):
                memory[at // 4 + offset] = int(word)
            allocate(at, argument.nbytes)
            value, at = at, -(-(at + argument.nbytes) // tokens.ROW_BYTES) * tokens.ROW_BYTES
        words[parameter.offset // 4] = int(value) & 0xFFFFFFFF
    if kernel.local is not None:
        size = kernel.local.bytes_per_thread * math.prod(three(cta))
        at = -(-at // 16) * 16
        words[kernel.local.word] = at
        allocate(at, size)
        at += size
    assert at <= SHARED_BYTE
    rows = {word >> 1: (memory.get(word & ~1, 0), memory.get(word | 1, 0)) for word in memory}
    program = kernel.program_for(three(grid), three(cta)) if shaped else kernel.program
    return Launch(program, three(grid), three(cta), tuple(words), rows, allocated), places


def run_on_machine(
    kernel: CompiledKernel,
    arguments: Sequence[np.ndarray | int],
    grid: int | Sequence[int] = 1,
    cta: int | Sequence[int] = 1,
    max_tokens: int = 2_000_000,
    shaped: bool = True,
    shared: int = 0,
) -> Result:
    launch, places = launch_of(kernel, arguments, grid, cta, shaped, shared)
    written, machine = run(launch, max_tokens)
    assert machine.next() is None, "the launch does not end"
    arrays = []
    for at, array in places:
        words = [machine.state.byte_word(at + 4 * k) for k in range(array.size)]
        arrays.append(np.array(words, np.uint32).view(array.dtype).reshape(array.shape))
    return Result(arrays, written, machine.statistics, machine.fault)
