"""Faults of a block: a load or store that may not be done, or a trap.

Whether an access is wrong is known before any guard: alignment and the memory's end beside the address, the allocation
map in the layers after it. The guards only say whether it counts, and then the first fault is taken in one level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.memory import Field
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.address import ADDRESS_BITS
from qgpu.machine.gates import any_of
from qgpu.machine.parts import Bits, Context


@dataclass(frozen=True, eq=False)
class Sizes:
    """How much a block's loads, or its stores, touch: ``bytes[n]``: 1 if it is n bytes (1, 2, 4 or 8); ``any``: if it
    is one of them; ``granule[n]``: 1 if n (2, 4, 8 or 16) must divide the address. All zero where nothing is
    touched."""

    bytes: Mapping[int, Expr]
    any: Expr
    granule: Mapping[int, Expr]


def sizes(b: Builder, name: str, is_: Mapping[str, Expr], bytes_of: Mapping[str, int], wide: Expr) -> Sizes:
    """``is_``: choice -> 1 if the block has it, ``bytes_of``: choice -> its bytes. One level."""
    count = {n: total(is_[choice] for choice, of in bytes_of.items() if of == n).assume(0, 1) for n in (1, 2, 4, 8)}
    some = total(count.values()).assume(0, 1)
    with b.scope(name):
        granule = {n: b.and_(f"granule{n}", count[n], ~wide) for n in (2, 4, 8)}
        return Sizes(count, some, {**granule, 16: b.and_("granule16", some, wide)})


def allocated(b: Builder, name: str, ctx: Context, address: Word, asks: Expr) -> Word:
    """The allocation bits of the eight bytes of ``address``'s row (its lowest 14 bits); zero unless ``asks``. One level
    before the read."""
    with b.scope(name):
        here = w.decode(b, "row", address[3:6])
        payload = ctx.token.payload
        fields = [
            Field(f"row{r}", payload[8 * (r % 2) : 8 * (r % 2) + 8], 3 - r // 2, here[r]) for r in range(8)
        ]  # fmt: skip
        write = w.Access(ctx.row[0:8], (ctx.marker["ALLOC"], ctx.position[4]))
        found = b.bus_word("bytes", 8)
        w.register_file(
            b, "map", fields, write, [w.Access(address[6:ADDRESS_BITS], (asks,))],
            into=[{field.name: found for field in fields}],
        )  # fmt: skip
        return found


def access_fault(
    b: Builder, name: str, ctx: Context, address: Word, size: Sizes, active: Expr
) -> tuple[Expr, Expr]:  # fmt: skip
    """(wrong, misaligned) of a lane's access: whether an active lane has one that is misaligned or out of bounds; and
    whether the address is misaligned. The latter takes one level, the former two, the map and one."""
    with b.scope(name):
        terms = [t for n, bit in size.granule.items()
                 for t in b.gated(bit, total(address[0 : n.bit_length() - 1]), lambda k: int(k > 0))]  # fmt: skip
        misaligned = b.sum_of("misaligned", terms, 0, 1)
        beyond = b.or_("beyond", address[ADDRESS_BITS:])
        fine = b.and_("fine", active, size.any, ~misaligned, ~beyond)
        there = allocated(b, "allocated", ctx, address, fine)
        # the map reads as zero unless all else is right: so that the bytes asked for are there says all
        terms = [(active + size.any, {2: 1})]
        for n, bit in size.bytes.items():
            for first in range(0, 8, n):
                places = range(n.bit_length() - 1, 3)
                literals = [address[i] if first >> i & 1 else ~address[i] for i in places]
                case = [bit, *literals, *there[first : first + n]]
                terms.append((total(case), {len(case): -1}))
        return b.sum_of("wrong", terms, 0, 1), misaligned


@dataclass(frozen=True, eq=False)
class Fault:
    """``any``: 1 if the block faults; ``cause`` (4), ``lane`` (2): of the first fault."""

    any: Expr
    cause: Word
    lane: Word


def first_fault(b: Builder, loads: Bits, stores: Bits, traps: Bits, misaligned: Sequence[Expr]) -> Fault:
    """``loads``, ``stores``, ``traps``: 1 a lane if it is at fault; ``misaligned``: of the lanes' loads, then stores.
    Loads come first, then stores, then traps, the lowest lane first. One level."""
    wrong = [*loads, *stores, *traps]
    first = [(wrong[k], *(~bit for bit in wrong[:k])) for k in range(len(wrong))]
    codes = {name: tokens.CAUSES.index(name) for name in tokens.CAUSES}
    assert (codes["load out of bounds"], codes["load misaligned"]) == (0, 1)
    assert (codes["store out of bounds"], codes["store misaligned"], codes["trap"]) == (2, 3, 4)
    with b.scope("fault"):
        odd = any_of(b, "odd", *((*first[k], misaligned[k]) for k in range(8)))
        store = any_of(b, "store", *first[4:8])
        trap = any_of(b, "trap", *first[8:12])
        lane = [any_of(b, f"lane{i}", *(first[k] for k in range(12) if k % 4 >> i & 1)) for i in range(2)]
        return Fault(b.or_("any", *wrong), Word("cause", (odd, store, trap, total([]))), Word("lane", tuple(lane)))
