"""Numbers for registers and predicates: what is needed at the same time gets different ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qgpu.cuda.ir import Reg, Type
from qgpu.cuda.lower_reads import read_registers, written_registers
from qgpu.isa.program import Spot
from qgpu.isa.tokens import PREDICATES, REGISTERS

NOWHERE = Spot()


@dataclass(frozen=True)
class Code:
    """A block before numbers are known. ``fields``: as the matcher filled them; ``successors``: block indices.
    ``spot``: where in the source, ``ports``: where its load and its store stand; all with their files' names."""

    fields: Mapping[str, object]
    successors: tuple[int, ...]
    instructions: int = 0
    spot: Spot = NOWHERE
    label: str = ""
    ports: Mapping[str, Spot] = field(default_factory=dict)


class TooMany(Exception):
    """``block``: where ``needed`` registers of a kind hold values at the same time."""

    def __init__(self, block: int, needed: int, predicates: bool) -> None:
        super().__init__(f"{needed} {'predicates' if predicates else 'registers'}")
        self.block, self.needed, self.predicates = block, needed, predicates


def live_after(codes: Sequence[Code]) -> list[frozenset[Reg]]:
    """The registers and predicates whose values may be read after each block."""
    before: list[frozenset[Reg]] = [frozenset()] * len(codes)
    after = list(before)
    changed = True
    while changed:
        changed = False
        for index in range(len(codes) - 1, -1, -1):
            code = codes[index]
            after[index] = frozenset().union(*(before[target] for target in code.successors))
            found = (after[index] - written_registers(code.fields)) | read_registers(code.fields)
            if found != before[index]:
                before[index], changed = found, True
    return after


def numbered(codes: Sequence[Code]) -> dict[Reg, int]:
    """A number for every register (from 1) and predicate (from 0). Raises TooMany where there are not enough."""
    after = live_after(codes)
    rivals: dict[Reg, set[Reg]] = {}
    friends: dict[Reg, list[Reg]] = {}
    for code, live in zip(codes, after, strict=True):
        written = written_registers(code.fields)
        for register in written | read_registers(code.fields):
            rivals.setdefault(register, set())
        for register in written:
            others = {
                other
                for other in live | written | _guards(code.fields)
                if other != register and _same_kind(other, register)
            }
            rivals[register] |= others
            for other in others:
                rivals.setdefault(other, set()).add(register)
        for copy, source in _moves(code.fields):
            friends.setdefault(copy, []).append(source)
            friends.setdefault(source, []).append(copy)
    numbers: dict[Reg, int] = {}
    waiting = dict.fromkeys(sorted(rivals, key=lambda r: r.name))
    while waiting:
        # The one with least choice left comes first.
        chosen = max(waiting, key=lambda r: (len({numbers[o] for o in rivals[r] if o in numbers}), len(rivals[r])))
        del waiting[chosen]
        busy = {numbers[other] for other in rivals[chosen] if other in numbers}
        pool = range(PREDICATES) if chosen.type is Type.PRED else range(1, REGISTERS)
        free = [number for number in pool if number not in busy]
        if not free:
            raise _too_many(codes, after, chosen.type is Type.PRED)
        wished = [numbers[other] for other in friends.get(chosen, ()) if numbers.get(other) in free]
        numbers[chosen] = wished[0] if wished else free[0]
    return numbers


def _guards(fields: Mapping[str, object]) -> set[Reg]:
    """A guard sees the predicate that its own block writes, so that the one it reads lives on through the block."""
    return {guard for guard in (fields.get("g_index"),) if isinstance(guard, Reg)}


def _same_kind(a: Reg, b: Reg) -> bool:
    return (a.type is Type.PRED) == (b.type is Type.PRED)


def _moves(fields: Mapping[str, object]) -> list[tuple[Reg, Reg]]:
    """(target, source) where the two would best be one register: what a block passes on unchanged, or adds to."""
    found = []
    sources = [fields[port] for port in ("ra", "rb", "rc") if isinstance(fields.get(port), Reg)]
    for port in ("d_b", "d_e"):
        target = fields.get(port)
        if isinstance(target, Reg):
            found += [(target, source) for source in sources if isinstance(source, Reg) and source != target]
    return found


def _too_many(codes: Sequence[Code], after: Sequence[frozenset[Reg]], predicates: bool) -> TooMany:
    def count(index: int) -> int:
        fields = codes[index].fields
        written = written_registers(fields)
        live = (
            after[index]
            | written
            | (_guards(fields) if any(register.type is Type.PRED for register in written) else set())
        )
        return sum((register.type is Type.PRED) == predicates for register in live)

    block = max(range(len(codes)), key=count)
    return TooMany(block, count(block), predicates)
