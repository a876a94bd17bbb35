"""Verified mode, over an engine of the tests' own: the interpreter, which may be made to differ at one token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import qgpu
from qgpu.driver import runners, verified
from qgpu.driver.runners import InterpreterRunner
from qgpu.driver.verified import VerifiedRunner
from qgpu.isa import tokens
from qgpu.isa.interpreter import Interpreter

SUM = """__global__ void sums(int* a, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += a[i] * (i + threadIdx.x);
  a[threadIdx.x] = sum;
}
"""


class Reader(InterpreterRunner):
    """An engine that answers as the interpreter does, but for token ``wrong`` of those it is shown after the prompt.
    ``passes``: how many tokens it read at a time."""

    def __init__(self, wrong: int | None = None) -> None:
        super().__init__()
        self.wrong, self.passes, self.seen = wrong, [], 0

    def feed(self, ids: Sequence[int], argmax: bool = False) -> list[int] | None:
        if not argmax:
            super().feed(ids)
            return None
        self.passes.append(len(ids))
        answers = []
        for token in ids:
            super().feed([token])
            self.seen += 1
            answers.append(self.next())
        return answers

    def next(self) -> int:
        token = self._machine.next()
        right = tokens.encode("HALT") if token is None else token
        return tokens.encode("BAR") if self.seen == self.wrong else right


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch):
    def open_with(wrong: int | None = None) -> tuple[qgpu.Device, Reader]:
        reader = Reader(wrong)
        made = VerifiedRunner(reader, reader)
        monkeypatch.setitem(runners.ENGINES, "verified", (lambda dtype, say, device: made, ("bfloat16",)))
        return qgpu.Device("verified"), reader

    return open_with


def run(device: qgpu.Device, count: int = 40, **options: int) -> tuple[qgpu.Launch, np.ndarray]:
    array = device.array(np.arange(count, dtype=np.int32))
    return device.kernel(SUM)[1, 8](array, count, **options), array.numpy()


def test_a_launch_is_what_it_is_elsewhere_and_read_in_chunks(opened) -> None:
    wanted, result = run(qgpu.Device("interpreter"))
    device, reader = opened()
    launch, found = run(device)
    assert launch.tokens == wanted.tokens and (found == result).all()
    assert launch.verified and not wanted.verified and repr(launch).endswith(", verified)")
    assert sum(reader.passes) == len(launch.tokens) > 2 * verified.CHUNK
    assert all(size == verified.CHUNK for size in reader.passes[:-1])


@pytest.mark.parametrize("wrong", [0, 1, 100, verified.CHUNK - 1, verified.CHUNK, verified.CHUNK + 1, 300])
def test_the_first_token_that_is_not_the_models_ends_it(opened, wrong: int) -> None:
    wanted, _ = run(qgpu.Device("interpreter"))
    device, _ = opened(wrong)
    with pytest.raises(qgpu.CheckError) as caught:
        run(device)
    drafted = wanted.tokens[wrong]
    assert caught.value.position == wrong and caught.value.launch.tokens == wanted.tokens[:wrong]
    assert str(caught.value) == (
        f"verification failed at token {wrong}: the model writes BAR (id {tokens.encode('BAR')}), "
        f"the draft has {tokens.text(drafted)} (id {drafted})"
    )


@pytest.mark.parametrize("most", [1, 255, 256, 257, 400])
def test_it_stops_at_the_limit_and_goes_on(opened, most: int) -> None:
    wanted, result = run(qgpu.Device("interpreter"))
    device, _ = opened()
    array = device.array(np.arange(40, dtype=np.int32))
    with pytest.raises(qgpu.LimitError) as caught:
        device.kernel(SUM)[1, 8](array, 40, max_tokens=most)
    assert caught.value.launch.tokens == wanted.tokens[:most]
    assert device.resume(caught.value.launch).tokens == wanted.tokens
    assert (array.numpy() == result).all()


def test_faults_are_verified_too(opened) -> None:
    device, _ = opened()
    with pytest.raises(qgpu.FaultError) as caught:
        device.kernel(SUM)[1, 8](device.zeros(4), 40)
    assert caught.value.launch.verified


def test_the_draft_is_the_interpreters(opened) -> None:
    """Nothing that the engine says goes into the draft: a machine of its own, fed by the host alone, makes it."""
    device, reader = opened()
    run(device)
    assert isinstance(reader._machine, Interpreter)
    assert device._runner is not None and device._runner._machine is not reader._machine  # type: ignore[attr-defined]


