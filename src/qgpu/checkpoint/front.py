"""The GPU cast for a base's shape: its output code and its tag stand in dims of their own, so that a tied row serves
both ways.

Dims of the merged model: the base's first, then the output code (``CODE`` dims), the tag, the anchors, the signals.

A machine token's row holds anchors and fields for the way in, and for the way out the +1/-1 pattern of its id in the
code dims and -1 in the tag. The last GPU layer replaces the pattern that the row left there by that of the next id, and
takes the tag off; where the machine makes a bit of the code in that very layer, the same neurons make it twice. Final
norm reads nothing of the machine but code and tag.

On text the anchors are zero, and with them all of that; there pairs of neurons read some text dims, and
silu(x) x + silu(-x) (-x) = x^2 adds up in the tag, so that the -1 of the machine's rows keeps their ids out of text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qgpu.circuit.ir import Circuit
from qgpu.foundry.audit_lines import anchors
from qgpu.foundry.cast import Options, cast
from qgpu.foundry.network import Lookup, Network, Sparse
from qgpu.foundry.numbers import GATE
from qgpu.isa import tokens

Array = np.ndarray[Any, Any]
TAG_DIMS = 64  # text dims that the tag reads
TAG_DOWN = 2.0**-20
TAG_NORM = 2.0**26
CODE_LOGIT = 32.0  # an output row's every bit counts so much, so that a wrong bit costs 64


@dataclass(frozen=True, eq=False)
class Front:
    """``network``: the cast with the merged output, as ``Network``; ``code``: dims of the output code; ``tag``;
    ``anchor``: a dim that is constant on machine tokens, ``level``: what it is after RMSNorm. ``rows``: float32
    [vocabulary, dims]: the machine's rows, over ``row_dims`` (zero elsewhere). ``norm``: dim -> 1 + weight of the final
    norm, zero on all other machine dims."""

    network: Network
    text: int
    code: tuple[int, ...]
    tag: int
    anchor: int
    level: float
    row_dims: Array
    rows: Array
    norm: Mapping[int, float]


def front(
    circuit: Circuit, text: int, intermediate: int, heads: int = 16, say: Callable[[str], None] = lambda text: None
) -> Front:
    """The machine for a base of ``text`` hidden dims whose MLP is ``intermediate`` wide (wider only if it must be).

    Raises FoundryError if it cannot be cast.
    """
    bits = len(circuit.code)
    say("casting the machine for this base")
    made = cast(circuit, Options(heads=heads, text_dims=text + bits + 1, max_intermediate=max(intermediate, 3584)))
    return _output(made, text, bits)


def _output(made: Network, text: int, bits: int) -> Front:
    shape = made.shape
    anchor, _ = anchors(made)
    largest = max(anchor.level, key=lambda dim: anchor.level[dim])
    level = anchor.level[largest]
    code, tag = tuple(range(text, text + bits)), text + bits
    groups = _code(made, set(anchor.level))
    last = shape.layers - 1
    pattern = np.stack([column for _, column in groups], axis=1).astype(np.float32) * 2 - 1
    neurons = _Neurons(made, last, anchor.scale, largest, level)
    for (dims, _), dim in zip(groups, code, strict=True):
        # 2 * bit - 1, minus what the token's own row left there
        neurons.linear(dim, [(dim, -1.0)], -1.0)
        for source in dims:
            neurons.follow(dim, source, 2.0)
    neurons.linear(tag, [(tag, -1.0)], 0.0)
    for dim in range(0, text, max(1, text // TAG_DIMS))[:TAG_DIMS] if text else ():
        neurons.square(tag, dim)
    embedding = made.embedding
    inward = embedding.codes.astype(np.float32) * embedding.scales + embedding.offsets
    rows = np.concatenate([pattern, np.full((shape.vocabulary, 1), -1.0, np.float32), inward], axis=1)
    row_dims = np.concatenate([np.array([*code, tag], np.int64), embedding.dims.astype(np.int64)])
    norm = {dim: CODE_LOGIT * anchor.scale for dim in code} | {tag: TAG_NORM}
    return Front(neurons.done(), text, code, tag, largest, level, row_dims, rows, norm)


def _code(made: Network, anchor: set[int]) -> list[tuple[list[int], Array]]:
    """For each bit of the output code: the dims whose sum it is, and 0/1 by id."""
    head = made.head
    found: dict[bytes, tuple[list[int], Array]] = {}
    for column, dim in enumerate(head.dims.tolist()):
        if dim not in anchor:
            ones = (head.codes[:, column] != 0).astype(np.int8)
            found.setdefault(ones.tobytes(), ([], ones))[0].append(dim)
    return list(found.values())


class _Neurons:
    """More neurons in the MLP of one layer."""

    def __init__(self, made: Network, layer: int, scale: float, anchor: int, level: float) -> None:
        self.made, self.layer = made, layer
        self.scale, self.anchor, self.level = scale, anchor, level
        self.prefix = f"layers.{layer}.mlp."
        self.entries: dict[str, list[tuple[int, int, float]]] = {"gate_proj": [], "up_proj": [], "down_proj": []}
        used = [made.sparse[self._name(part)].rows for part in ("gate_proj",) if self._name(part) in made.sparse]
        self.next = int(max((rows.max(initial=-1) for rows in used), default=-1)) + 1

    def _name(self, part: str) -> str:
        return f"{self.prefix}{part}.weight"

    def linear(self, out: int, terms: list[tuple[int, float]], const: float) -> None:
        """``out += sum(coef * dim) + const`` on machine tokens, nothing on text."""
        row = self.next
        self.next += 1
        self.entries["gate_proj"].append((row, self.anchor, GATE / self.level))
        for dim, coef in terms:
            self.entries["up_proj"].append((row, dim, coef * self.scale))
        if const:
            self.entries["up_proj"].append((row, self.anchor, const / self.level))
        self.entries["down_proj"].append((out, row, 1 / GATE))

    def follow(self, out: int, dim: int, coef: float) -> None:
        """``out += coef * dim``, the dim as it is *after* this MLP: what it holds before and what the MLP adds."""
        self.linear(out, [(dim, coef)], 0.0)
        down = self.made.sparse.get(self._name("down_proj"))
        if down is not None:
            here = down.rows == dim
            for neuron, value in zip(down.cols[here].tolist(), down.values[here].tolist(), strict=True):
                self.entries["down_proj"].append((out, neuron, coef * value))

    def square(self, out: int, dim: int) -> None:
        """``out`` grows by the square of a dim after RMSNorm."""
        for sign in (1.0, -1.0):
            row = self.next
            self.next += 1
            self.entries["gate_proj"].append((row, dim, sign))
            self.entries["up_proj"].append((row, dim, sign))
            self.entries["down_proj"].append((out, row, TAG_DOWN))

    def done(self) -> Network:
        from dataclasses import replace

        shape = self.made.shape
        wide = max(shape.intermediate, -(-self.next // 64) * 64)
        sparse = dict(self.made.sparse)
        if wide != shape.intermediate:
            for name, matrix in sparse.items():
                if name.endswith(("gate_proj.weight", "up_proj.weight")):
                    sparse[name] = replace(matrix, shape=(wide, matrix.shape[1]))
                elif name.endswith("down_proj.weight"):
                    sparse[name] = replace(matrix, shape=(matrix.shape[0], wide))
        for part, entries in self.entries.items():
            name = self._name(part)
            size = (shape.hidden, wide) if part == "down_proj" else (wide, shape.hidden)
            empty = Sparse(size, *(np.zeros(0, kind) for kind in (np.int32, np.int32, np.float32)))
            sparse[name] = _joined(sparse.get(name, empty), entries)
        return replace(self.made, sparse=sparse, shape=replace(shape, intermediate=wide))


def _joined(matrix: Sparse, entries: list[tuple[int, int, float]]) -> Sparse:
    rows, cols, values = (np.array(column) for column in zip(*entries, strict=True))
    rows = np.concatenate([matrix.rows, rows.astype(np.int32)])
    cols = np.concatenate([matrix.cols, cols.astype(np.int32)])
    values = np.concatenate([matrix.values, values.astype(np.float32)])
    order = np.lexsort((cols, rows))
    return Sparse(matrix.shape, rows[order], cols[order], values[order])


def machine_front(text: int, intermediate: int, say: Callable[[str], None] = lambda text: None) -> Front:
    """``front`` of the whole machine."""
    from qgpu.machine.machine import machine_circuit

    made = front(machine_circuit(), text, intermediate, say=say)
    assert len(made.rows) == tokens.VOCABULARY
    return made


def merged_lookup(made: Front) -> Lookup:
    """The machine's rows as one lookup; integers of eight bits, and the anchors as offsets."""
    network = made.network
    extra = len(made.code) + 1
    codes = np.concatenate([made.rows[:, :extra].astype(np.int8), network.embedding.codes], axis=1)
    scales = np.concatenate([np.ones(extra, np.float32), network.embedding.scales])
    offsets = np.concatenate([np.zeros(extra, np.float32), network.embedding.offsets])
    return Lookup((len(made.rows), network.shape.hidden), made.row_dims.astype(np.int32), codes, scales, offsets)
