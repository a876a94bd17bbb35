"""One table of cases for both engines: the same tokens as an integer reference, by decoding, by checking, from
snapshots."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engines.builder import BITS, fibonacci, fibonacci_ids

from qgpu.engines.export import export_dense
from qgpu.engines.native import NativeEngine
from qgpu.engines.protocol import Engine, EngineError
from qgpu.engines.transformers import TransformersEngine

ENGINES = ("native bfloat16", "native float32", "native unscreened", "transformers bfloat16", "transformers float32")
TRACE = fibonacci_ids(1, 1, 202)
ZERO = 2**BITS  # the id whose row is zero


def open_engine(name: str, network, folder: Path) -> Engine:
    kind, dtype = name.split()
    if dtype == "unscreened":
        return NativeEngine(network, "float32", screening=False)
    if kind == "native":
        return NativeEngine(network, dtype)
    return TransformersEngine(export_dense(network, folder / dtype, dtype), dtype)


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    network = fibonacci()
    folder = tmp_path_factory.mktemp("checkpoints")
    return {name: open_engine(name, network, folder) for name in ENGINES}


@pytest.fixture(params=ENGINES)
def engine(request, engines) -> Engine:
    chosen: Engine = engines[request.param]
    chosen.reset()
    return chosen


def test_both_keep_the_protocol(engine: Engine) -> None:
    assert isinstance(engine, Engine)


def test_decode(engine: Engine) -> None:
    count = 200 if isinstance(engine, NativeEngine) else 40
    engine.feed(TRACE[:2])
    assert engine.generate(count) == TRACE[2 : 2 + count]
    assert engine.position == 2 + count


def test_next_leaves_the_sequence_alone(engine: Engine) -> None:
    engine.feed([3, 5])
    assert [engine.next(), engine.next(), engine.position] == [8, 8, 2]
    engine.feed([8])
    assert engine.next() == 13


def test_feed_answers_at_every_position(engine: Engine) -> None:
    assert engine.feed([7, 0xFFFF, 2, 9], argmax=True) == [7, 6, 1, 11]
    assert engine.feed([1]) is None


def test_generation_ends_after_a_stop(engine: Engine) -> None:
    engine.feed([1, 1])
    assert engine.generate(10, stops={5, 1000}) == [2, 3, 5]
    assert engine.next() == 8


def test_check(engine: Engine) -> None:
    engine.feed(TRACE[:2])
    assert engine.check(TRACE[2:]) is None
    for place in (0, 77, 199):
        wrong = list(TRACE[2:])
        wrong[place] ^= 1
        engine.reset()
        engine.feed(TRACE[:2])
        assert engine.check(wrong) == place


def test_check_at_the_start_takes_the_first_id_as_given(engine: Engine) -> None:
    # after one token the machine adds it to nothing: the first sum is the token itself
    assert engine.check([6, 6, 12, 18]) is None
    engine.reset()
    assert engine.check([6, 7]) == 1
    assert engine.check([]) is None


def test_snapshot_and_restore(engine: Engine) -> None:
    engine.feed(TRACE[:30])
    kept = engine.snapshot()
    engine.feed([9, 9, 9])
    for _ in range(2):
        engine.restore(kept)
        assert engine.position == 30
        assert engine.generate(6) == TRACE[30:36]
    engine.reset()
    engine.restore(kept)
    assert engine.next() == TRACE[30]


def test_state_holds_the_token_before(engine: Engine) -> None:
    engine.feed([0x1234, 0xBEEF, 0x0F0F])
    state = engine.state(0, 0)
    assert state.shape == (128, 128) and state.dtype == np.float32
    bits = (0xBEEF >> np.arange(BITS)) & 1
    assert np.array_equal(state[0, :BITS] > 1, bits == 1) and np.array_equal(state[0, 64 : 64 + BITS] > 1, bits == 0)
    assert np.abs(state[1:]).max() < 1e-6


def test_states_agree(engines) -> None:
    states = []
    for engine in engines.values():
        engine.reset()
        engine.feed(TRACE[:50])
        states.append(engine.state(0, 0))
    for state in states[1:]:
        assert np.allclose(state, states[0], rtol=1e-3, atol=1e-3)


def test_a_zero_token_leaves_the_state(engine: Engine) -> None:
    engine.feed([5, 6, 7])
    before = engine.state(0, 0)
    engine.feed([ZERO, ZERO])
    assert np.array_equal(engine.state(0, 0), before)
    engine.feed([3, 4])
    assert engine.next() == 7


def test_faults(engine: Engine) -> None:
    with pytest.raises(EngineError, match="nothing was fed"):
        engine.next()
    with pytest.raises(EngineError, match=r"token 65537 at index 1 is outside the vocabulary \(0 to 65536\)"):
        engine.feed([0, 65537])
    with pytest.raises(EngineError, match="layer 3"):
        engine.state(3, 0)
    with pytest.raises(EngineError, match="head 1"):
        engine.state(0, 1)
    with pytest.raises(EngineError, match="no snapshot"):
        engine.restore("yesterday")
