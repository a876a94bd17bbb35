"""A recorded launch as values: what was run, the tokens that were written, and the steps that they spell.

Nothing is executed here. Which quad ran which block, what registers and memory became: all of it follows from the
tokens and the launch, as the machine's grammar says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from qgpu.isa import encoding, tokens, values
from qgpu.isa.program import Dim3, Launch, thread_rows

_FIRST_MARKER = tokens.BY_NAME["EXEC"].first
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

    def line(self, block: int) -> int:
        """The source line of a block; 0 if unknown."""
        blocks = self.launch.program.blocks
        return blocks[block].line if block < len(blocks) else 0


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


@dataclass
class _Reader:
    """Where the reading of a trace stands. ``exist``: mask of each quad's existing lanes."""

    launch: Launch
    exist: list[int]
    masks: list[int]
    cta: Dim3 = (0, 0, 0)
    quad: int = 0
    block: int = 0

    def fields(self) -> Mapping[str, int]:
        blocks = self.launch.program.blocks
        return blocks[self.block].fields if self.block < len(blocks) else {}

    def step(self, at: int, kind: str, fields: tuple[int, ...], payloads: list[int]) -> Step:
        if kind == "EXEC":
            self.block, self.quad = fields
        elif kind == "MASK":
            lanes, leader = tokens.MASK_PAIRS[fields[1]]
            self.masks[fields[0]] = lanes
            return Step(at, 1 + len(payloads), kind, self.cta, fields[0], self.block, lanes, leader)
        elif kind == "CTA":
            self.cta, self.masks = values.cta_of(payloads[:4]), list(self.exist)
        found = Step(at, 1 + len(payloads), kind, self.cta, self.quad, self.block, self.masks[self.quad])
        return self._with_effect(found, fields, payloads)

    def _with_effect(self, step: Step, fields: tuple[int, ...], payloads: list[int]) -> Step:
        made = {name: getattr(step, name) for name in ("at", "count", "kind", "cta", "quad", "block", "lanes")}
        if step.kind == "FAULT":
            return Step(**made, cause=fields[0], lane=fields[1])
        if step.kind == "MEM":
            atomic = self.fields().get("atomic", 0) != _ATOMIC_NONE
            words = tuple(enumerate(values.row_of(payloads))) if 1 <= len(payloads) <= 4 else ()
            return Step(**made, row=fields[0], lane=fields[1], words=words, atomic=atomic)
        if step.kind in ("EXEC", "VAL", "VALW") and payloads:
            own = self.fields()
            register = fields[0] if step.kind != "EXEC" else own.get("d_e", 0) or own.get("d_b", 0)
            active = [i for i in range(tokens.LANES) if step.lanes >> i & 1]
            read = values.lane_values(len(active), payloads, step.kind == "VALW") if active else None
            return Step(**made, register=register, words=tuple(zip(active, read or (), strict=bool(read))))
        return step


def steps(trace: Trace) -> Iterator[Step]:
    """The steps of a trace, in order. Tokens that no machine writes (a trace may be anybody's) make steps that change
    nothing."""
    rows = thread_rows(trace.launch.cta)
    exist = [sum(1 << i for i in range(tokens.LANES) if rows[4 * q + i] >> 31) for q in range(tokens.QUADS)]
    reader = _Reader(trace.launch, exist, list(exist))
    written, at = trace.tokens, 0
    while at < len(written):
        kind, fields = tokens.decode(written[at])
        end = at + 1
        while end < len(written) and written[end] < _FIRST_MARKER:
            end += 1
        yield reader.step(at, kind, fields, list(written[at + 1 : end]))
        at = end
