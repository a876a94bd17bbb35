"""A runner over the cast network: an engine that evaluates the weights, and memory read from its recurrent state."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from qgpu.cuda.cache import cache_directory
from qgpu.driver import bare
from qgpu.driver.runners import Array, Runner, Say
from qgpu.driver.verified import VerifiedRunner
from qgpu.engines.protocol import Engine
from qgpu.errors import QgpuError
from qgpu.isa import tokens

BANK = re.compile(r"(?:^|\.)memory\.lane0\.bank(\d+)$")
WORDS_A_ROW = 2
Where = tuple[int, int, int, int]
LEAST_BIT = 1.0  # a stored bit is 256 or more, what a wiped row leaves is below 1e-20


class NetworkRunner:
    """``states``: memory name -> (layer, head, row bits, columns), as the network tells them."""

    chunk = 1

    def __init__(self, name: str, engine: Engine, states: Mapping[str, Where]) -> None:
        self.name = name
        self._engine = engine
        self._banks = memory_banks(states)

    def reset(self) -> None:
        self._engine.reset()

    def feed(self, ids: Sequence[int]) -> None:
        self._engine.feed(ids)

    def generate(self, limit: int, stops: Collection[int]) -> list[int]:
        return self._engine.generate(limit, stops)

    def activity(self, prompt: Sequence[int], written: Sequence[int]) -> Array | None:
        """What the layers did to write each of ``written`` after the prompt, as `NativeEngine.activity` counts it; None
        from an engine that does not. The sequence begins anew, and stands before the last token afterwards."""
        count = getattr(self._engine, "activity", None)
        if count is None:
            return None
        self._engine.reset()
        self._engine.feed(prompt[:-1])
        found: Array = count([prompt[-1], *written][: len(written)])
        return found

    def memory(self) -> Array:
        return np.concatenate([self._rows(where) for where in self._banks]).reshape(-1)

    def snapshot(self) -> object:
        return self._engine.snapshot()

    def restore(self, snapshot: object) -> None:
        self._engine.restore(snapshot)

    def _rows(self, where: Where) -> Array:
        """The rows of one bank, uint32 [rows, 2]: bit c of a row is on where value dim c outweighs dim c + 64."""
        layer, head, bits, columns = where
        state = self._engine.state(layer, head)[: 1 << bits]
        on = state[:, :columns] > state[:, 64 : 64 + columns] + LEAST_BIT
        return np.packbits(on, axis=1, bitorder="little").view(np.uint32)


def memory_banks(states: Mapping[str, Where]) -> list[Where]:
    """Where the machine's memory lies, bank by bank from row 0 on. Every lane's port has a copy; this is lane 0's."""
    found = {int(match[1]): where for name, where in states.items() if (match := BANK.search(name))}
    rows = sum(1 << bits for _, _, bits, columns in found.values() if columns == WORDS_A_ROW * 32)
    if sorted(found) != list(range(len(found))) or rows != tokens.ROWS:
        raise QgpuError(f"the network holds {rows} memory rows in {len(found)} banks, not {tokens.ROWS}: cast it anew")
    return [found[bank] for bank in sorted(found)]


def native(dtype: str, say: Say) -> Runner:
    """The sparse engine over the bare network."""
    from qgpu.engines.native import NativeEngine

    network, _ = bare.bare(say)
    cache = cache_directory()
    folder = None if cache is None else cache / "native"
    return NetworkRunner("native", NativeEngine(network, dtype, folder=folder), network.states)


def transformers(dtype: str, say: Say, device: str) -> Runner:
    """Stock code over the dense bare checkpoint. device: what torch runs on."""
    return NetworkRunner("transformers", *_dense(dtype, say, device))


def verified(dtype: str, say: Say, device: str) -> Runner:
    """The same model, reading what the interpreter drafts."""
    engine, states = _dense(dtype, say, device)
    return VerifiedRunner(engine, NetworkRunner("verified", engine, states))


def _dense(dtype: str, say: Say, device: str) -> tuple[Engine, Mapping[str, Where]]:
    try:
        from qgpu.engines.transformers import TransformersEngine
    except ImportError as error:
        raise QgpuError(
            f"the transformers engine needs torch and transformers ({error}): pip install 'qgpu[transformers]'"
        ) from None
    network, _ = bare.bare(say)
    say("loading the dense checkpoint")
    return TransformersEngine(bare.dense_checkpoint(dtype, say), dtype, device), network.states
