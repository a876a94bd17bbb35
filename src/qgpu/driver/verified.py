"""Verified mode: the interpreter drafts what the model is to write, the model reads the draft in prefill and has the
last word on every token.

A dense model reads hundreds of tokens in the time in which it writes a few, and what it would have written at each
place is its argmax there. So a launch is quick, and every token of it is still the model's own: the first one that is
not ends the launch, with both tokens told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from qgpu.driver.runners import Array, Runner
from qgpu.engines.protocol import Engine
from qgpu.isa.interpreter import Interpreter

CHUNK = 256  # tokens of a draft that the model reads at once


class Disagreement(Exception):
    """``written``: what both agree on; then the model writes ``own``, and the draft has ``drafted``."""

    def __init__(self, written: Sequence[int], own: int, drafted: int) -> None:
        super().__init__(own, drafted)
        self.written, self.own, self.drafted = tuple(written), own, drafted


class VerifiedRunner:
    """A runner whose tokens the interpreter drafts. ``engine``: reads them, and must hold every one; ``inner``: the
    runner over that engine."""

    name = "verified"
    chunk = CHUNK

    def __init__(self, engine: Engine, inner: Runner) -> None:
        self._engine, self._inner = engine, inner
        self._machine = Interpreter()

    def reset(self) -> None:
        self._inner.reset()
        self._machine = Interpreter()

    def feed(self, ids: Sequence[int]) -> None:
        self._inner.feed(ids)
        self._machine.feed(ids)

    def generate(self, limit: int, stops: Collection[int]) -> list[int]:
        """As every runner's; raises Disagreement at the first token that is not the model's own."""
        found: list[int] = []
        while len(found) < limit and not (found and found[-1] in stops):
            draft = self._draft(min(CHUNK, limit - len(found)), stops)
            if not draft:
                break
            own = [self._engine.next(), *(self._engine.feed(draft, argmax=True) or ())]
            for position, (token, drafted) in enumerate(zip(own, draft, strict=False)):
                if token != drafted:
                    raise Disagreement([*found, *draft[:position]], token, drafted)
            found += draft
        return found

    def _draft(self, limit: int, stops: Collection[int]) -> list[int]:
        draft: list[int] = []
        while len(draft) < limit and (token := self._machine.next()) is not None:
            draft.append(token)
            self._machine.feed([token])
            if token in stops:
                break
        return draft

    def memory(self) -> Array:
        return self._inner.memory()

    def snapshot(self) -> object:
        return self._inner.snapshot(), self._machine.snapshot()

    def restore(self, snapshot: object) -> None:
        assert isinstance(snapshot, tuple)
        kept, machine = snapshot
        self._inner.restore(kept)
        self._machine = machine.snapshot()
