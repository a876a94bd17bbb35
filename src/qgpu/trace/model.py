"""A recorded launch as values: what was run, the tokens that were written, and the steps that they spell.

Nothing is executed here. Which quad ran which block, what registers and memory became: all of it follows from the
tokens and the launch, as the machine's grammar says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from qgpu.isa import encoding, tokens, values
from qgpu.isa.program import Dim3, Launch, Spot
from qgpu.trace.records import Record, records

_ATOMIC_NONE = encoding.CHOICES["atomic"].index("none")


@dataclass(frozen=True)
class Array:
    """An array of the launch. ``address``: of its first byte. ``dtype``: as numpy spells it, of a struct "bytes"."""

    name: str
    address: int
    shape: tuple[int, ...]
    dtype: str = "int32"
    itemsize: int = 4

    @property
    def nbytes(self) -> int:
        count = self.itemsize
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True)
class Activity:
    """How many dims of the residual stream each layer changed while a token went through the model.

    ``counts``: uint16, little-endian, [tokens, layers, 2]: by the layer's mixer, by its MLP. Row i is of the pass that
    read the token *before* token i, the one that token i came out of.
    """

    layers: int
    counts: bytes

    @property
    def tokens(self) -> int:
        return len(self.counts) // (4 * self.layers) if self.layers else 0


@dataclass(frozen=True)
class Trace:
    """A launch and the tokens written after its prompt.

    ``file``: the kernel's source; ``sources``: texts of source files by their names. ``message``: how the launch ended,
    where that was not HALT.
    """

    kernel: str
    launch: Launch
    tokens: tuple[int, ...]
    file: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()
    message: str = ""
    activity: Activity | None = None

    @property
    def ended(self) -> str:
        """``HALT``, ``FAULT``, or ``LIMIT`` if neither was written."""
        kind = tokens.decode(self.tokens[-1])[0] if self.tokens else ""
        return kind if kind in ("HALT", "FAULT") else "LIMIT"

    def spot(self, block: int, port: str = "") -> Spot:
        """Where in the source a block stands, or its ``load`` or ``store``."""
        blocks = self.launch.program.blocks
        return blocks[block].spot(port) if block < len(blocks) else Spot()


@dataclass(frozen=True, slots=True)
class Step:
    """A marker with the DATA after it, and what it changes.

    ``at``: position of the marker, from 0 at the first token after the prompt; ``count``: its tokens. ``quad``,
    ``block``: of the last EXEC, for MASK the quad that it is about. ``lanes``: mask of that quad's active lanes, from
    the MASK on. ``leader``: for MASK. ``register``, ``words``: a destination, and (lane, word) of every lane that it is
    written for. ``row``: a memory row and ``words`` its two words; ``atomic``: an atomic wrote it; ``lane``: for which.
    ``cause``: of FAULT, and ``lane``. A group that the trace ends in has no ``words``.
    """

    at: int
    count: int
    kind: str
    cta: Dim3
    quad: int
    block: int
    lanes: int
    leader: int = 0
    register: int | None = None
    row: int | None = None
    words: tuple[tuple[int, int], ...] = ()
    lane: int = 0
    cause: int | None = None
    atomic: bool = False

    @property
    def warp(self) -> int:
        return self.quad // tokens.QUADS_PER_WARP


def steps(trace: Trace) -> Iterator[Step]:
    """The steps of a trace, in order. Tokens that no machine writes (a trace may be anybody's) make steps that change
    nothing."""
    cta: Dim3 = (0, 0, 0)
    blocks = trace.launch.program.blocks
    for record in records(trace.launch, trace.tokens):
        if record.kind == "CTA":
            cta = values.cta_of(record.payloads[:4])
        fields = blocks[record.block].fields if record.block < len(blocks) else {}
        where = Step(
            record.position, 1 + len(record.payloads), record.kind, cta, record.quad, record.block, record.mask
        )
        effect = _EFFECTS.get(record.kind)
        yield where if effect is None else replace(where, **effect(record, fields))


def _destination(record: Record, fields: Mapping[str, int]) -> dict[str, Any]:
    if not record.payloads:
        return {}
    register = record.fields[0] if record.kind != "EXEC" else fields.get("d_e", 0) or fields.get("d_b", 0)
    read = values.lane_values(len(record.lanes), record.payloads, record.kind == "VALW") if record.lanes else None
    return {"register": register, "words": tuple(zip(record.lanes, read, strict=True)) if read else ()}


def _row(record: Record, fields: Mapping[str, int]) -> dict[str, Any]:
    whole = 1 <= len(record.payloads) <= 4
    return {
        "row": record.fields[0],
        "lane": record.fields[1],
        "words": tuple(enumerate(values.row_of(record.payloads))) if whole else (),
        "atomic": fields.get("atomic", 0) != _ATOMIC_NONE,
    }


def _mask(record: Record, fields: Mapping[str, int]) -> dict[str, Any]:
    lanes, leader = tokens.MASK_PAIRS[record.fields[1]]
    return {"quad": record.fields[0], "lanes": lanes, "leader": leader}


def _fault(record: Record, fields: Mapping[str, int]) -> dict[str, Any]:
    return {"cause": record.fields[0], "lane": record.fields[1]}


_EFFECTS: Mapping[str, Callable[[Record, Mapping[str, int]], dict[str, Any]]] = {
    "EXEC": _destination,
    "VAL": _destination,
    "VALW": _destination,
    "MEM": _row,
    "MASK": _mask,
    "FAULT": _fault,
}
"""Kind -> the fields of its step beside those that all have."""
