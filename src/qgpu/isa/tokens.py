"""Token ids: the one table of the machine's vocabulary, and how an id is spelled.

An id is a *kind* and its fields packed from the kind's first id on. docs/machine.md, "Vocabulary", prints this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LANES: Final = 4
QUADS: Final = 32
QUADS_PER_WARP: Final = 8
WARP_SIZE: Final = LANES * QUADS_PER_WARP
THREADS_PER_CTA: Final = LANES * QUADS
REGISTERS: Final = 16
BLOCKS: Final = 256
PARTS: Final = 4
ROWS: Final = 2048
ROW_BYTES: Final = 8
MEMORY_BYTES: Final = ROWS * ROW_BYTES
SHARED_FIRST_ROW: Final = 1536
MAP_ROWS: Final = 256
PARAM_ROWS: Final = 64
STAGE_REGISTERS: Final = 4
PREDICATES: Final = 4

# (mask, leader) pairs: masks in ascending order, then leaders in ascending order. 32 of them.
MASK_PAIRS: Final = tuple((m, lane) for m in range(1, 16) for lane in range(LANES) if m >> lane & 1)
_PAIR_INDEX: Final = {pair: index for index, pair in enumerate(MASK_PAIRS)}

CAUSES: Final = ("load out of bounds", "load misaligned", "store out of bounds", "store misaligned", "trap", "deadlock")


@dataclass(frozen=True)
class Kind:
    """A kind of token: ``fields`` are (name, number of values), most significant first; ids are ``first`` and up."""

    name: str
    first: int
    fields: tuple[tuple[str, int], ...]
    meaning: str

    @property
    def count(self) -> int:
        count = 1
        for _, size in self.fields:
            count *= size
        return count


def _table() -> tuple[Kind, ...]:
    rows: tuple[tuple[str, tuple[tuple[str, int], ...], str], ...] = (
        ("DATA", (("payload", 65536),), "16 bits; what they mean is set by the marker before"),
        ("EXEC", (("block", BLOCKS), ("quad", QUADS)), "run a block on the quad's masked lanes"),
        ("MEM", (("row", ROWS), ("lane", LANES)), "a memory row follows, written for that lane"),
        ("READ", (("row", ROWS),), "fed by the host: answer with the row's DATA, then HALT"),
        ("MASK", (("quad", QUADS), ("pair", 32)), "the quad's active lanes and their leader"),
        ("PROGRAM", (("block", BLOCKS), ("part", PARTS)), "prompt: 64 bits of a block's encoding follow"),
        ("ALLOC", (("row", MAP_ROWS),), "prompt: allocation bits of 64 bytes follow"),
        ("PARAM", (("row", PARAM_ROWS),), "prompt: two parameter words follow"),
        ("THREADS", (("quad", QUADS), ("half", 2)), "prompt: thread indices of two lanes follow"),
        ("FAULT", (("cause", 16), ("lane", LANES)), "the launch ends with a fault"),
        ("VAL", (("register", REGISTERS),), "values of a further destination follow"),
        ("VALW", (("register", REGISTERS),), "values of a destination follow, lane by lane, low and high half"),
        ("GRID", (), "prompt: the last CTA index follows"),
        ("GO", (), "prompt: start the launch"),
        ("CTA", (), "the next CTA starts; its index follows"),
        ("BAR", (), "every lane blocked at a barrier goes on"),
        ("HALT", (), "the launch, or the answer to READ, is complete"),
    )
    kinds: list[Kind] = []
    first = 0
    for name, fields, meaning in rows:
        kinds.append(Kind(name, first, fields, meaning))
        first += kinds[-1].count
    return tuple(kinds)


KINDS: Final = _table()
BY_NAME: Final = {kind.name: kind for kind in KINDS}
USED_IDS: Final = KINDS[-1].first + KINDS[-1].count
VOCABULARY: Final = -(-USED_IDS // 64) * 64
CODE_BITS: Final = 17  # the output code of an id is the id itself


def encode(name: str, *values: int) -> int:
    """The id of a token, e.g. ``encode("EXEC", block, quad)``. Raises ValueError if a field is out of range."""
    kind = BY_NAME[name]
    if len(values) != len(kind.fields):
        raise ValueError(f"{name} has {len(kind.fields)} fields, {len(values)} given")
    index = 0
    for value, (field, size) in zip(values, kind.fields, strict=True):
        if not 0 <= value < size:
            raise ValueError(f"{name}: {field} {value} is not in 0..{size - 1}")
        index = index * size + value
    return kind.first + index


def decode(token: int) -> tuple[str, tuple[int, ...]]:
    """(kind name, field values) of an id. Raises ValueError for an id outside the vocabulary."""
    if not 0 <= token < USED_IDS:
        raise ValueError(f"token id {token} is not in 0..{USED_IDS - 1}")
    if token < BY_NAME["EXEC"].first:
        return "DATA", (token,)
    kind = next(k for k in KINDS if k.first <= token < k.first + k.count)
    index = token - kind.first
    values = []
    for _, size in reversed(kind.fields):
        values.append(index % size)
        index //= size
    return kind.name, tuple(reversed(values))


def data(payload: int) -> int:
    """DATA token of the low 16 bits of ``payload``."""
    return payload & 0xFFFF


def mask(quad: int, lanes: int, leader: int) -> int:
    """MASK token of a non-empty lane mask and one lane of it."""
    return encode("MASK", quad, _PAIR_INDEX[lanes, leader])


def text(token: int) -> str:
    """A token as people read it: ``EXEC b3 q0``, ``DATA 0x0020``, ``MASK q1 0b0101 leader 2``."""
    name, values = decode(token)
    if name == "DATA":
        return f"DATA 0x{values[0]:04x}"
    if name == "MASK":
        lanes, leader = MASK_PAIRS[values[1]]
        return f"MASK q{values[0]} {lanes:#06b} leader {leader}"
    if name == "FAULT":
        cause = CAUSES[values[0]] if values[0] < len(CAUSES) else f"cause {values[0]}"
        return f"FAULT {cause}, lane {values[1]}"
    letters = {
        "block": "b",
        "quad": "q",
        "register": "r",
        "row": "row ",
        "lane": "lane ",
        "part": "part ",
        "half": "half ",
    }
    kind = BY_NAME[name]
    return " ".join(
        [name, *(f"{letters[field]}{value}" for value, (field, _) in zip(values, kind.fields, strict=True))]
    )
