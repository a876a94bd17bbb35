"""Ten small launches of the stock kernels with all the tokens they must give: what an engine is tried with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qgpu.driver.device import Device
from qgpu.driver.stock import resolve
from qgpu.isa import interpreter, tokens
from qgpu.isa.program import Dim3, Launch, prompt

Words = tuple[int, ...]
# kernel, grid, CTA, arguments: a list is an array, an integer a scalar, None the output of that many words
_TABLE: tuple[tuple[str, Dim3 | int, Dim3 | int, tuple[object, ...], int], ...] = (
    ("vector_add", 1, 4, ([1, 2, 3, -4], [10, 20, 30, 40], None, 4), 4),
    ("vector_sub", 1, 3, ([1, 2, 3], [10, -20, 2**31 - 1], None, 3), 3),
    ("vector_mul", 1, 4, ([65537, -3, 7, 0], [65535, 5, -9, 1], None, 4), 4),
    ("scalar_add", 1, 5, ([1, 2, 3, 4, 5], 1000000, None, 5), 5),
    ("scalar_mul", 2, 2, ([1, -2, 3], -77777, None, 3), 3),
    ("dot", 1, 3, ([1, 2, 3], [4, 5, 6], None, 3), 1),
    ("matvec", 1, 2, ([1, 2, 3, 4], [5, -6], None, 2, 2), 2),
    ("divergent", 1, 6, ([5, 6, 7, 8, 9, 10], None, 6), 6),
    ("atomic_sum", 2, 4, ([1, 2, 3, 4, 5, 6, 7, 8, 9], None, 9), 1),
    ("trips", 1, 3, ([0, 9, 17], None, 3), 3),
)


@dataclass(frozen=True)
class Sample:
    """``prompt``: what the host feeds; ``written``: what the machine writes after it; ``reads``: READ token fed after
    that -> the row's DATA and HALT; ``result``: the output array's words, as these carry them."""

    name: str
    launch: Launch
    prompt: Words
    written: Words
    reads: Mapping[int, Words]
    result: Words


def samples(count: int = len(_TABLE)) -> tuple[Sample, ...]:
    """The first ``count`` of them, by the interpreter."""
    found = []
    with Device("interpreter") as device:
        for name, grid, cta, arguments, words in _TABLE[:count]:
            out = device.zeros(words, np.int32)
            given = [out if value is None else device.array(value) if isinstance(value, list) else value
                     for value in arguments]  # fmt: skip
            done = device.kernel(str(resolve(name)))[grid, cta](*given)
            result = tuple(int(word) for word in out.numpy().view(np.uint32))
            found.append(_sample(name, done.request, out.address, result))
    return tuple(found)


def _sample(name: str, launch: Launch, address: int, result: Words) -> Sample:
    written, machine = interpreter.run(launch)
    first, last = address // tokens.ROW_BYTES, (address + 4 * len(result) - 1) // tokens.ROW_BYTES
    reads = {}
    for row in range(first, last + 1):
        read = tokens.encode("READ", row)
        machine.feed([read])
        answer = []
        while (token := machine.next()) is not None:
            answer.append(token)
            machine.feed([token])
        reads[read] = tuple(answer)
    return Sample(name, launch, tuple(prompt(launch)), tuple(written), reads, result)
