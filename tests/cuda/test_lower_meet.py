"""Which exchanges of a warp go through one block: those that lanes may meet at from different places, and no others.

That they give what they must is asked in the conformance table (``kernels/meetings.cu``); here random programs ask it.
"""

import random

import numpy as np
import pytest
from tests.cuda.on_machine import run_on_machine

from qgpu.cuda.lower_meet import one_place_for_each
from qgpu.cuda.pipeline import compile_source


def merged(body: str) -> bool:
    """Whether any exchange of a kernel of this body is given a block with others."""
    source = f"__global__ void k(int* a, int n) {{ int t = threadIdx.x; {body} }}"
    function = compile_source(source, "k.cu").function
    return one_place_for_each(function) != function


SHUFFLE, SYNC = "a[t] += __shfl_down_sync(~0u, a[t], {});", "__syncwarp();"


@pytest.mark.parametrize(
    "body",
    [
        "".join(SHUFFLE.format(d) for d in (16, 8, 4, 2, 1)),
        "if (t >= n) return; for (int s = 16; s; s >>= 1) { a[t] += s; __syncwarp(); } __syncwarp(); a[t]++;",
        f"if (n > 3) {{ {SYNC} a[t] = 1; }} else {{ a[t + 1] = 2; {SYNC} a[t] = 5; }}",
        f"if (t < 32) {{ {SYNC} a[t]++; {SYNC} a[t] *= 3; }}",
        "if (t & 1) a[t] = __shfl_sync(~0u, a[t], 1); else a[t] = __shfl_up_sync(~0u, a[t], 1);",
        "if (t < 16) a[t] = __shfl_sync(0xffffu, a[t], 1); else a[t] += __shfl_sync(0xffff0000u, a[t], 20);",
    ],
    ids=["in_line", "uniform_loop", "uniform_branch", "one_side", "other_kinds", "other_members"],
)
def test_places_that_keep_their_blocks(body):
    assert not merged(body)


@pytest.mark.parametrize(
    "body",
    [
        f"if (a[t]) {{ {SYNC} a[t] = 1; }} else {{ a[t + 1] = 2; {SYNC} a[t] = 5; }}",
        "if (t & 1) a[t] = __shfl_sync(~0u, a[t], 1); else a[t] = 3 * __shfl_sync(~0u, a[t], 2);",
        "if (t & 1) a[t] = __shfl_sync(n, a[t], 1); else a[t] = 3 * __shfl_sync(~0u, a[t], 2);",
        "for (int k = 0; k < a[t]; k++) { __syncwarp(); a[k]++; } __syncwarp(); a[t] = 7;",
    ],
    ids=["sides", "shuffles", "members_of_a_register", "loop_and_behind"],
)
def test_places_that_become_one(body):
    assert merged(body)


class Apart:
    """A tree of branches; in every leaf a lane publishes a word, gets another's, and does something of its own with it.

    ``rounds`` of that one after the other, each with its own kind of exchange.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rounds = [(self.random.choice(["xor", "idx", "ballot", "any"]), self.tree(3)) for _ in range(3)]

    def tree(self, depth: int):
        if depth == 0 or self.random.random() < 0.2:
            return self.random.randrange(1, 50), self.random.randrange(1, 31)
        mask, value = self.random.randrange(1, 32), self.random.randrange(0, 9)
        return mask, value, self.tree(depth - 1), self.tree(depth - 1)

    def leaf(self, tree, lane: int, x: int) -> tuple[int, int]:
        while len(tree) == 4:
            mask, value, yes, no = tree
            tree = yes if ((x ^ lane) & mask) > value else no
        return tree

    def text(self, kind: str, tree) -> str:
        if len(tree) == 4:
            mask, value, yes, no = tree
            return (f"if ((int)((x ^ t) & {mask}) > {value}) {{ {self.text(kind, yes)} }}"
                    f" else {{ {self.text(kind, no)} }}")  # fmt: skip
        add, lane = tree
        given = f"x * {add}u + t"
        got = {
            "xor": f"__shfl_xor_sync(~0u, {given}, {lane})",
            "idx": f"__shfl_sync(~0u, {given}, t + {lane})",
            "ballot": f"__ballot_sync(~0u, ({given}) & 4)",
            "any": f"(unsigned)__any_sync(~0u, ({given}) == 77u)",
        }[kind]
        return f"x = {got} + {add}u;"

    @property
    def source(self) -> str:
        rounds = " ".join(self.text(kind, tree) for kind, tree in self.rounds)
        return f"__global__ void k(unsigned* a) {{ unsigned t = threadIdx.x, x = a[t]; {rounds} a[t] = x; }}"

    def meaning(self, words: list[int]) -> list[int]:
        x = list(words)
        for kind, tree in self.rounds:
            leaves = [self.leaf(tree, t, x[t]) for t in range(32)]
            given = [(x[t] * leaves[t][0] + t) % 2**32 for t in range(32)]
            for t, (add, lane) in enumerate(leaves):
                got = {
                    "xor": given[t ^ lane],
                    "idx": given[(t + lane) & 31],
                    "ballot": sum(1 << j for j in range(32) if given[j] & 4),
                    "any": int(77 in given),
                }[kind]
                x[t] = (got + add) % 2**32
        return x


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(6, 60))])
def test_random_trees_of_branches(seed):
    program = Apart(seed)
    words = [random.Random(seed).getrandbits(32) >> random.Random(seed + t).choice([0, 20, 28]) for t in range(32)]
    result = run_on_machine(compile_source(program.source, "apart.cu"), [np.array(words, np.uint32)], cta=32)
    assert result.fault is None
    assert result.arrays[0].tolist() == program.meaning(words)
