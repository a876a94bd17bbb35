"""Launches inside a merged model, between texts: the machine's tokens, and what they leave of the base's sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from qgpu.checkpoint.build import notes_of
from qgpu.checkpoint.files import Array

if TYPE_CHECKING:
    from qgpu.engines.transformers import TransformersEngine

TEXT = 12  # tokens of text before and after


class Sample(Protocol):
    """A launch with what it must give, all in ids of the machine. ``reads``: READ token -> its answer."""

    @property
    def prompt(self) -> Sequence[int]: ...
    @property
    def written(self) -> Sequence[int]: ...
    @property
    def reads(self) -> Mapping[int, Sequence[int]]: ...


@dataclass(frozen=True)
class Computed:
    """Launches in a sequence with text before and after, one dtype. ``tokens``: that the machine had to write;
    ``wrong``: that it would not have written. ``untouched``: the base's DeltaNet states are those before the launch,
    to the bit. ``continued``: after a snapshot, a launch and a restore, the text's next tokens are those it would have
    had."""

    dtype: str
    launches: int
    tokens: int
    wrong: int
    untouched: bool
    continued: bool

    @property
    def good(self) -> bool:
        return not self.wrong and self.untouched and self.continued


def computed(folder: Path, samples: Iterable[Sample], dtype: str) -> Computed:
    """Run each sample: text, launch, results by READ, text, results by READ once more; then from a snapshot before the
    launch, the text on. Needs torch and transformers."""
    from qgpu.engines.transformers import TransformersEngine

    notes = notes_of(folder)
    first = notes["first_machine_id"]
    engine = TransformersEngine(folder, dtype)
    rng = np.random.default_rng(0)
    count = tokens = wrong = 0
    untouched = continued = True
    for sample in samples:
        before, after = rng.integers(0, notes["base_vocabulary"], (2, TEXT)).tolist()
        engine.reset()
        engine.feed(before)
        saved, states = engine.snapshot(), _states(engine, notes)
        engine.feed([first + i for i in sample.prompt])
        expected = [(i, True) for i in sample.written] + _answers(sample)
        wrong += _wrong(engine, expected, first)
        untouched &= all(np.array_equal(a, b) for a, b in zip(states, _states(engine, notes), strict=True))
        engine.feed(after)
        wrong += _wrong(engine, _answers(sample), first)
        tokens += sum(own for _, own in expected + _answers(sample))
        engine.restore(saved)
        resumed = [engine.next(), *(engine.feed(after, argmax=True) or [])]
        engine.reset()
        engine.feed(before)
        continued &= resumed == [engine.next(), *(engine.feed(after, argmax=True) or [])]
        count += 1
    return Computed(dtype, count, tokens, wrong, untouched, continued)


def _answers(sample: Sample) -> list[tuple[int, bool]]:
    """(id, whether the machine writes it) of all READs and their answers."""
    found = []
    for read, answer in sample.reads.items():
        found += [(read, False), *((i, True) for i in answer)]
    return found


def _wrong(engine: TransformersEngine, expected: Sequence[tuple[int, bool]], first: int) -> int:
    """How many of the machine's tokens are not the argmax where they stand."""
    said = [engine.next(), *(engine.feed([first + i for i, _ in expected], argmax=True) or [])]
    return sum(own and told != first + i for (i, own), told in zip(expected, said, strict=False))


def _states(engine: TransformersEngine, notes: Mapping[str, int]) -> list[Array]:
    gpu, types = notes["gpu_layers"], engine.config.layer_types
    heads = range(engine.config.linear_num_value_heads)
    return [engine.state(layer, head) for layer in range(gpu, len(types)) if types[layer] == "linear_attention"
            for head in heads]  # fmt: skip
