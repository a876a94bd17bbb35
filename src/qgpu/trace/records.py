"""The tokens after a prompt, grouped by marker: what everything else that reads a trace begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qgpu.isa import tokens
from qgpu.isa.program import Launch, thread_rows


@dataclass(frozen=True)
class Record:
    """A marker and the DATA after it.

    ``position``: of the marker, from 0 at the first token after the prompt. ``quad``, ``block``: of the last EXEC.
    ``mask``: of that quad's active lanes. ``lanes``: the same as indices, at an EXEC, VAL or VALW.
    """

    position: int
    kind: str
    fields: tuple[int, ...]
    payloads: tuple[int, ...]
    quad: int = 0
    block: int = 0
    lanes: tuple[int, ...] = ()
    mask: int = 0


def records(launch: Launch, written: Sequence[int]) -> Iterator[Record]:
    """The tokens after the prompt, grouped by marker. A trace that stops inside a group gives that group as it is."""
    rows = thread_rows(launch.cta)
    exist = [sum(1 << i for i in range(4) if rows[4 * quad + i] >> 31) for quad in range(tokens.QUADS)]
    masks = list(exist)
    quad = block = position = 0
    while position < len(written):
        kind, fields = tokens.decode(written[position])
        start = position
        position += 1
        payloads = []
        while position < len(written) and written[position] < tokens.BY_NAME["EXEC"].first:
            payloads.append(written[position])
            position += 1
        lanes: tuple[int, ...] = ()
        if kind == "EXEC":
            block, quad = fields
        elif kind == "MASK":
            masks[fields[0]] = tokens.MASK_PAIRS[fields[1]][0]
        elif kind == "CTA":
            masks = list(exist)
        if kind in ("EXEC", "VAL", "VALW"):
            lanes = tuple(i for i in range(4) if masks[quad] >> i & 1)
        yield Record(start, kind, fields, tuple(payloads), quad, block, lanes, masks[quad])
