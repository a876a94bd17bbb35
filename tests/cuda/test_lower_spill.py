"""Kernels that keep more values than the machine has registers or predicates, against the same statements in Python."""

import functools
import random
import re

import numpy as np
import pytest
from tests.cuda.harness import ir_of, launch
from tests.cuda.on_machine import run_on_machine

from qgpu.cuda.flow import liveness
from qgpu.cuda.ir import Type
from qgpu.cuda.lower_order import few_alive, most_alive
from qgpu.cuda.lower_spill import ROOMS, spilled
from qgpu.cuda.optimize import optimize
from qgpu.cuda.pipeline import CompiledKernel, compile_source

MASK = 0xFFFFFFFF
OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
}


class Crowd:
    """A kernel with ``words`` variables and ``flags`` conditions that all live from its start to its end, changed at
    random in a loop; each thread has its own ``words`` words of an array."""

    def __init__(self, seed: int, words: int, flags: int) -> None:
        choose = random.Random(seed)
        self.words, self.flags, self.trips = words, flags, choose.randrange(1, 4)
        name = lambda: choose.randrange(words)  # noqa: E731
        self.body = [
            (choose.choice(["set", "set", "flag", "when"]), name(), name(), name(), choose.choice([*OPERATIONS]),
             choose.randrange(max(flags, 1)))
            for _ in range(words + 2 * flags)
        ]  # fmt: skip

    @property
    def source(self) -> str:
        lines = [f"unsigned v{k} = a[{self.words} * i + {k}];" for k in range(self.words)]
        lines += [f"bool f{k} = v{k} > v{k + 1};" for k in range(self.flags)]
        lines += [f"for (unsigned t = 0; t < {self.trips}; t++) {{"]
        for kind, to, x, y, op, flag in self.body:
            value = f"v{x} {op} (v{y} + t)"
            if kind == "set" or not self.flags:
                lines.append(f"v{to} = {value};")
            elif kind == "flag":
                lines.append(f"f{flag} = v{x} < v{y};")
            else:
                lines.append(f"if (f{flag}) {{ v{to} = {value}; a[{self.words} * i] = v{to}; }}")
        lines += ["}", *(f"a[{self.words} * i + {k}] = v{k} + (f{k % self.flags} ? 1 : 0);" if self.flags
                         else f"a[{self.words} * i + {k}] = v{k};" for k in range(self.words))]  # fmt: skip
        return "__global__ void k(unsigned* a) {\nunsigned i = threadIdx.x;\n" + "\n".join(lines) + "\n}\n"

    def meaning(self, row: list[int]) -> list[int]:
        v = list(row)
        f = [v[k] > v[k + 1] for k in range(self.flags)]
        for t in range(self.trips):
            for kind, to, x, y, op, flag in self.body:
                if kind == "flag" and self.flags:
                    f[flag] = v[x] < v[y]
                elif kind != "when" or not self.flags or f[flag]:
                    v[to] = OPERATIONS[op](v[x], v[y] + t & MASK) & MASK
        return [(v[k] + (f[k % self.flags] if self.flags else 0)) & MASK for k in range(self.words)]


@functools.cache
def compiled(seed: int, words: int, flags: int) -> CompiledKernel:
    return compile_source(Crowd(seed, words, flags).source, "crowd.cu")


CROWDS = [(1, 14, 0), (2, 18, 0), (3, 24, 3), (4, 8, 7), (5, 32, 0), (6, 12, 10), (7, 17, 5), (8, 40, 2)]


@pytest.mark.parametrize(("seed", "words", "flags"), CROWDS)
def test_a_crowd_of_values(seed, words, flags):
    check(Crowd(seed, words, flags), compiled(seed, words, flags), seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_crowds(seed):
    choose = random.Random(seed)
    crowd = Crowd(seed, choose.randrange(10, 26), choose.choice([0, 0, 2, 4]))
    check(crowd, compile_source(crowd.source, "crowd.cu"), seed)


def check(crowd: Crowd, kernel: CompiledKernel, seed: int) -> None:
    choose = random.Random(seed)
    edges = [0, 1, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, MASK]
    rows = [[choose.choice([choose.getrandbits(32), *edges]) for _ in range(crowd.words)] for _ in range(6)]
    result = run_on_machine(kernel, [np.array(rows, np.uint32)], cta=6)
    assert result.fault is None
    assert result.arrays[0].tolist() == [crowd.meaning(row) for row in rows]


def test_some_of_the_crowds_are_too_many_for_the_registers():
    kernels = [compiled(*crowd) for crowd in CROWDS]
    assert sum(kernel.local is not None and kernel.local.spills > 0 for kernel in kernels) >= 4


def test_what_is_spilled_leaves_as_many_values_as_there_is_room_for():
    function = compiled(3, 24, 3).function
    for room in ROOMS[2:]:
        made = spilled(function, room, 0).function
        live = liveness(made)
        words = max(most_alive(block, live.at_end[block.label]) for block in made.blocks)
        assert words <= max(room.registers, 5)
        assert max(sum(r.type is Type.PRED for r in at) for at in live.at_start.values()) <= room.predicates
        assert max(len(block.instructions) for block in made.blocks) <= room.length


def test_an_order_with_fewer_values_is_found_and_means_the_same():
    loads = [f"atom.global.add.u32 %r{k + 2}, [%r0+{4 * k}], 1;" for k in range(17)]
    sums = [f"mul.lo.u32 %r1, %r1, 5; add.u32 %r1, %r1, %r{k + 2};" for k in range(17)]
    body = ["ld.param.u32 %r0, [a];", *loads, "mov.u32 %r1, 7;", *sums, "st.global.u32 [%r0], %r1;", "ret;"]
    many = optimize(ir_of("\n".join(body)))
    few = few_alive(many)
    assert most_alive(few.blocks[0], frozenset()) < 6 < 15 < most_alive(many.blocks[0], frozenset())
    before = np.arange(100, 117, dtype=np.uint32)
    total = 7
    for word in before.tolist():
        total = (total * 5 + word) & MASK
    wanted = [total, *range(102, 118)]
    assert [launch(function, [before])[0].tolist() for function in (many, few)] == [wanted, wanted]


@pytest.mark.parametrize(("seed", "words", "flags"), CROWDS[2:4])
def test_every_room_means_the_same(seed, words, flags):
    crowd = Crowd(seed, words, flags)
    function = compiled(seed, words, flags).function
    rows = np.arange(4 * words, dtype=np.uint32).reshape(4, words) * np.uint32(2654435761)
    wanted = [crowd.meaning(row) for row in rows.tolist()]
    for room in ROOMS[1::4]:
        spill = spilled(few_alive(function), room, 0)
        local = [np.zeros(4 * spill.bytes_per_thread, np.uint8)] * (len(spill.function.parameters) - 1)
        given = [rows, *local]
        assert launch(spill.function, given, (1,), (4,))[0].tolist() == wanted


def test_a_store_never_comes_before_a_load_that_stands_before_it():
    """The load waits in a register until the loop's end, while blocks before it would have room for the store."""
    found = run_on_machine(compiled(4, 8, 7), (np.arange(8, dtype=np.uint32),)).arrays[0]
    assert found.tolist() == Crowd(4, 8, 7).meaning([*range(8)])


def test_local_arrays_and_spilled_words_lie_side_by_side():
    crowd = Crowd(9, 24, 0)
    source = re.sub(
        r"for \(unsigned t",
        "unsigned own[3]; for (unsigned j = 0; j < 3; j++) own[j] = v1 * j; own[v2 % 3] += 7;\nfor (unsigned t",
        crowd.source,
    ).replace("v0;\n", "v0 + own[v3 % 3];\n", 1)
    kernel = compile_source(source, "both.cu")
    assert kernel.local is not None and kernel.placed_bytes == 12 < kernel.local.bytes_per_thread
    rows = np.arange(5 * 24, dtype=np.uint32).reshape(5, 24) * np.uint32(2654435761)
    result = run_on_machine(kernel, [rows.copy()], cta=5)
    assert result.fault is None
    for row, found in zip(rows.tolist(), result.arrays[0].tolist(), strict=True):
        v = crowd.meaning(row)
        assert found[1:] == v[1:]
