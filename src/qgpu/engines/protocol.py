"""What an engine is: the one small protocol that both evaluators of the weights keep.

An engine holds one sequence. Tokens go in with ``feed``; ``next`` tells the model's own argmax after what was fed, and
does not append it: that is the caller's choice (``feed([id])``), or ``generate``'s, which does it in one go.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from qgpu.errors import QgpuError

Array = np.ndarray[Any, Any]


class EngineError(QgpuError):
    """A network or checkpoint that the engine cannot evaluate, a token id outside the vocabulary, or a call out of
    order."""


@runtime_checkable
class Engine(Protocol):
    """One sequence of tokens under evaluation. All ids are ints in [0, vocabulary); anything else is an EngineError."""

    @property
    def position(self) -> int:
        """Number of tokens fed since the last reset."""
        ...

    def reset(self) -> None:
        """Back to the empty sequence."""
        ...

    def feed(self, ids: Sequence[int], argmax: bool = False) -> list[int] | None:
        """Feed tokens. With ``argmax``: the model's argmax after each of them (len(ids) ints), else None."""
        ...

    def next(self) -> int:
        """The argmax after what was fed; the sequence stays as it is. EngineError if nothing was fed."""
        ...

    def generate(self, limit: int, stops: Collection[int] = ()) -> list[int]:
        """Repeat ``id = next(); feed([id])`` up to ``limit`` times, ending after an id in ``stops``. The ids."""
        ...

    def check(self, ids: Sequence[int]) -> int | None:
        """Feed a trace, all of it, and compare: the first i where ids[i] is not the argmax after what stood before it,
        or None. At position 0 nothing predicts ids[0], so it is taken as given; feed a prompt first, then check the
        rest.
        """
        ...

    def state(self, layer: int, head: int) -> Array:
        """A copy of one DeltaNet state, float32 [128 key dims, 128 value dims]. EngineError where there is no such
        head."""
        ...

    def snapshot(self) -> object:
        """All that the sequence has left behind, to be given to ``restore`` of this engine any number of times."""
        ...

    def restore(self, snapshot: object) -> None:
        """Back to where ``snapshot`` was taken."""
        ...


def check_ids(ids: Sequence[int], vocabulary: int) -> Array:
    """``ids`` as int32 [n]. Raises EngineError naming the first one outside [0, vocabulary)."""
    array = np.asarray(ids, dtype=np.int64).reshape(-1)
    bad = np.flatnonzero((array < 0) | (array >= vocabulary))
    if len(bad):
        raise EngineError(
            f"token {int(array[bad[0]])} at index {int(bad[0])} is outside the vocabulary (0 to {vocabulary - 1})"
        )
    return array.astype(np.int32)


def first_mismatch(predicted: Sequence[int] | Array, ids: Sequence[int] | Array) -> int | None:
    """First index where the two differ, or None. A prediction of -1 stands for "nothing predicts this" and agrees."""
    left, right = np.asarray(predicted), np.asarray(ids)
    wrong = np.flatnonzero((left != right) & (left >= 0))
    return int(wrong[0]) if len(wrong) else None
