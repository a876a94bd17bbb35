"""The native engine: evaluates a cast network's own weights, sparse and without torch, one token after another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.engines.native_step import step
from qgpu.engines.native_weights import HEAD, ROWS, Weights, weights_of
from qgpu.engines.protocol import EngineError, check_ids, first_mismatch
from qgpu.foundry.network import Lookup, Network

Array = np.ndarray[Any, Any]


class Decoder:
    """The argmax over an output head of few columns.

    Every column adds to a logit only what depends on the id's code in it. If each column takes the code that adds most and an
    id with all those codes exists, no id can have more; only otherwise are all logits computed.
    """

    def __init__(self, head: Lookup) -> None:
        self.dims = head.dims
        self.entries = head.codes * head.scales + head.offsets  # [vocabulary, columns]
        self.levels = [np.unique(self.entries[:, j]) for j in range(len(head.dims))]
        ranks = np.stack([np.searchsorted(level, self.entries[:, j]) for j, level in enumerate(self.levels)])
        self.radix = np.concatenate([[1], np.cumprod([len(level) for level in self.levels])[:-1]]).astype(np.int64)
        keys = ranks.T.astype(np.int64) @ self.radix
        self.by_code: dict[int, int] = {}
        for index, key in enumerate(keys.tolist()):
            self.by_code.setdefault(key, index)

    def argmax(self, hidden: Array) -> int:
        """``hidden``: float32 [hidden], after the final norm."""
        values = hidden[self.dims]
        key = 0
        for j, level in enumerate(self.levels):
            if len(level) > 1 and values[j]:
                key += int(self.radix[j]) * (len(level) - 1 if values[j] > 0 else 0)
            elif len(level) > 1:
                return int(np.argmax(self.entries @ values))
        found = self.by_code.get(key)
        return found if found is not None else int(np.argmax(self.entries @ values))


class NativeEngine:
    """See ``protocol.Engine``. Arithmetic is float32 throughout. Raises EngineError for a network that it cannot evaluate."""

    def __init__(self, network: Network | Path | str, dtype: str = "float32") -> None:
        if dtype != "float32":
            raise EngineError(f"the native engine computes in float32, not {dtype}")
        if not isinstance(network, Network):
            network = Network.load(Path(network))
        self.network = network
        self.weights: Weights = weights_of(network)
        self._decoder = Decoder(network.head)
        shape, embedding = network.shape, network.embedding
        self._rows = (embedding.codes * embedding.scales + embedding.offsets).astype(np.float32)
        # dims that every machine token holds alike and that are never written: their part of a sum can be kept
        same = (self._rows == self._rows[0]).all(0) & (self._rows[0] != 0)
        written = np.unique(np.concatenate([self.weights.out_index, self.weights.down_index]))
        constant = [int(d) for d, s in zip(embedding.dims, same, strict=True) if s and d not in written]
        self._anchor_list = np.array(constant, np.int64)
        self._anchors = np.zeros(shape.hidden, np.bool_)
        self._anchors[self._anchor_list] = True
        heads = int(self.weights.head_first[-1])
        f32 = np.float32
        self._x, self._h = np.zeros(shape.hidden, f32), np.zeros(shape.hidden, f32)
        self._live = np.zeros(shape.hidden, np.int64)
        seen = lambda: np.full((shape.layers, len(constant)), np.nan, f32)  # noqa: E731
        self._cache = (
            seen(), np.zeros(heads * ROWS, f32), seen(), np.zeros((shape.layers, shape.intermediate), f32),
            seen(), np.zeros((shape.layers, shape.intermediate), f32),
        )  # fmt: skip
        self._ring = np.zeros((4, heads * ROWS), f32)
        self._state = np.zeros((heads, HEAD, HEAD), f32)
        self._gate, self._up = np.zeros(shape.intermediate, f32), np.zeros(shape.intermediate, f32)
        self._touched = np.zeros(0, np.int64)
        self._place = {
            (layer, int(self.weights.head_number[n])): n
            for layer in range(shape.layers)
            for n in range(int(self.weights.head_first[layer]), int(self.weights.head_first[layer + 1]))
        }
        self._position = 0

    @property
    def position(self) -> int:
        return self._position

    def reset(self) -> None:
        self._ring[:] = 0
        self._state[:] = 0
        self._position = 0

    def _token(self, token: int) -> None:
        self._x[:] = 0
        self._x[self.network.embedding.dims] = self._rows[token]
        step(self.weights, self._x, self._h, self._live, self._anchors, self._anchor_list, *self._cache, self._ring,
             self._position % 4, self._state, self._gate, self._up, self._touched)  # fmt: skip
        self._position += 1

    def _answer(self) -> int:
        hidden = np.where(self._x != 0, self._h, np.float32(0))
        return self._decoder.argmax(hidden)

    def feed(self, ids: Sequence[int], argmax: bool = False) -> list[int] | None:
        answers: list[int] = []
        for token in check_ids(ids, self.network.shape.vocabulary).tolist():
            self._token(token)
            if argmax:
                answers.append(self._answer())
        return answers if argmax else None

    def next(self) -> int:
        if not self._position:
            raise EngineError("nothing was fed yet, so nothing is predicted")
        return self._answer()

    def generate(self, limit: int, stops: Collection[int] = ()) -> list[int]:
        written: list[int] = []
        while len(written) < limit and not (written and written[-1] in stops):
            written.append(self.next())
            self._token(written[-1])
        return written

    def check(self, ids: Sequence[int]) -> int | None:
        if not len(ids):
            return None
        before = self.next() if self._position else -1
        answers = self.feed(ids, argmax=True) or []
        return first_mismatch([before, *answers[:-1]], ids)

    def state(self, layer: int, head: int) -> Array:
        shape = self.network.shape
        if not (0 <= layer < shape.layers and 0 <= head < shape.linear_heads and layer % 4 != 3):
            raise EngineError(f"there is no DeltaNet head {head} in layer {layer}")
        place = self._place.get((layer, head))
        return np.zeros((HEAD, HEAD), np.float32) if place is None else self._state[place].copy()

    def snapshot(self) -> object:
        return self._ring.copy(), self._state.copy(), self._x.copy(), self._h.copy(), self._position

    def restore(self, snapshot: object) -> None:
        ring, state, x, h, position = snapshot  # type: ignore[misc]
        self._ring[:], self._state[:], self._x[:], self._h[:], self._position = ring, state, x, h, position
