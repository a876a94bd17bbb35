"""Lowering, against the reference evaluator of the IR, which runs one thread after the other."""

import random

import pytest
from tests.cuda.random_ir import Maker

from qgpu.cuda import evaluate
from qgpu.cuda.lower import lower
from qgpu.cuda.optimize import optimize
from qgpu.errors import UnsupportedError
from qgpu.isa import subset, tokens
from qgpu.isa.interpreter import run
from qgpu.isa.program import Launch

SHAPES = [((grid, 1, 1), (cta, 1, 1)) for grid, cta in ((1, 1), (1, 4), (1, 7), (3, 5), (1, 21))]
IN = 64


def agree(function, seed, complaint=None):
    """Run a function on the evaluator and, lowered, on the machine; all memory must be the same."""
    rng = random.Random(seed)
    grid, cta = rng.choice(SHAPES)
    threads = grid[0] * cta[0]
    n = max(1, threads - rng.choice((0, 0, 1, 5)))
    out, sums = IN + 16 * threads, IN + 32 * threads
    words = [rng.choice((rng.randrange(-9, 9), rng.getrandbits(32))) & 0xFFFFFFFF for _ in range(4 * threads)]
    memory = bytearray(IN) + b"".join(word.to_bytes(4, "little") for word in words) + bytes(16 * threads + 8)
    parameters = (IN, out, sums, n)
    before = bytes(memory)
    evaluate.run(function, b"".join(p.to_bytes(4, "little") for p in parameters), memory, grid, cta)
    program = lower(function).program
    rows = {row: (word(before, 2 * row), word(before, 2 * row + 1)) for row in range(len(before) // 8)}
    allocated = {}
    for byte in range(IN, len(before)):
        allocated[byte >> 6] = allocated.get(byte >> 6, 0) | 1 << (byte & 63)
    written, machine = run(Launch(program, grid, cta, parameters, rows, allocated))
    assert machine.fault is None
    assert written[-1] == tokens.encode("HALT")
    got = [machine.state.byte_word(4 * k) for k in range(len(before) // 4)]
    assert got == [word(memory, k) for k in range(len(before) // 4)]
    return program


def word(memory, number):
    return int.from_bytes(memory[4 * number : 4 * number + 4], "little")


@pytest.mark.parametrize("seed", range(40))
def test_random_functions(seed):
    function = Maker(seed, words=4, flags=2 + seed % 2).function
    for version in (function, optimize(function)):
        try:
            program = agree(version, seed)
        except UnsupportedError as error:
            assert "registers" in str(error) or "predicates" in str(error)
            continue
        assert all(subset.faults(dict(block.fields)) == [] for block in program.blocks)
