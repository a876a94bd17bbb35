"""Votes whose members differ between the lanes of a quad: they collect one ballot, and each lane takes its part."""

from __future__ import annotations

from qgpu.cuda.pipeline import compile_source
from qgpu.isa import subset, tokens
from qgpu.isa.interpreter import run
from qgpu.isa.program import Launch

OUT = 1024
SOURCE = """__global__ void votes(unsigned* out) {
  unsigned i = threadIdx.x, pair = 3u << (i & 30u);
  out[i] = __ballot_sync(pair, i % 3u == 0u);
  out[i + 32] = __any_sync(pair, i % 5u == 1u);
  out[i + 64] = __all_sync(pair, i > 6u);
  out[i + 96] = __match_any_sync(pair, i / 3u);
}"""


def test_votes_of_pairs() -> None:
    program = compile_source(SOURCE, "votes.cu").program
    assert subset.program_faults(program) == []
    start = Launch(program, (1, 1, 1), (32, 1, 1), (OUT,), {}, {row: (1 << 64) - 1 for row in range(16, 24)})
    written, machine = run(start)
    assert tokens.text(written[-1]) == "HALT"
    found = [[machine.state.byte_word(OUT + 4 * (32 * part + i)) for i in range(32)] for part in range(4)]
    pairs = [(i & 30, (i & 30) + 1) for i in range(32)]
    assert found[0] == [sum(1 << j for j in pair if j % 3 == 0) for pair in pairs]
    assert found[1] == [int(any(j % 5 == 1 for j in pair)) for pair in pairs]
    assert found[2] == [int(all(j > 6 for j in pair)) for pair in pairs]
    assert found[3] == [sum(1 << j for j in pair if j // 3 == i // 3) for i, pair in enumerate(pairs)]
