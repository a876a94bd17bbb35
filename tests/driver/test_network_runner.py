"""Reading memory out of recurrent states, from an engine whose states are made by hand."""

import numpy as np
import pytest

from qgpu.driver.network_runner import NetworkRunner, memory_banks
from qgpu.errors import QgpuError

STATES = {f"gpu.memory.lane{lane}.bank{bank}": (9 + lane, bank, 7, 64) for lane in range(4) for bank in range(16)}


class Engine:
    """Holds given words: bit c of row r is 1024 in dim c, its complement in dim c + 64."""

    def __init__(self, words: dict[int, int]) -> None:
        self.words = words  # row -> 64 bits; rows that are not here were never written
        self.asked: list[tuple[int, int]] = []

    def state(self, layer: int, head: int) -> np.ndarray:
        self.asked.append((layer, head))
        state = np.zeros((128, 128), np.float32)
        for row, bits in self.words.items():
            if row >> 7 == head:
                for column in range(64):
                    state[row & 127, column + 64 * (1 - (bits >> column & 1))] = 1024
        return state


def test_rows_become_words():
    engine = Engine({0: 1, 8: 0xFFFF_FFFF_0000_0005, 2047: 1 << 63})
    memory = NetworkRunner("native", engine, STATES).memory()
    assert memory.dtype == np.uint32 and memory.shape == (4096,)
    assert {i: int(word) for i, word in enumerate(memory) if word} == {0: 1, 16: 5, 17: 2**32 - 1, 4095: 2**31}
    assert engine.asked == [(9, bank) for bank in range(16)]


def test_what_a_wipe_leaves_is_zero():
    engine = Engine({5: 2**64 - 1})
    whole = engine.state
    engine.state = lambda layer, head: whole(layer, head) * 9e-27
    assert not NetworkRunner("native", engine, STATES).memory().any()


@pytest.mark.parametrize("change", [{"memory.lane0.bank3": None}, {"memory.lane0.bank3": (9, 3, 6, 64)},
                                    {"memory.lane0.bank3": (9, 3, 7, 32)}, {"memory.lane0.bank16":
                                     (9, 0, 7, 64)}])  # fmt: skip
def test_a_network_with_another_memory_is_refused(change):
    states = {name.removeprefix("gpu."): where for name, where in STATES.items()} | change
    with pytest.raises(QgpuError, match="cast it anew"):
        memory_banks({name: where for name, where in states.items() if where})
