"""Accesses as the machine has them: 1, 2 or 4 bytes, or pairs and quadruples of words; atomics of one or two words.

What is left: loads and stores of one value of up to 4 bytes, or of 2 or 4 values of 4 bytes; atomics of up to 4 bytes,
and those of 8 bytes that give no old value and compare nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qgpu.cuda.ir import (
    Address,
    Atomic,
    Branch,
    Compute,
    Const,
    Function,
    Guard,
    Instruction,
    Jump,
    Load,
    Operand,
    Reg,
    Special,
    Store,
    Type,
)
from qgpu.cuda.lower_emit import HELPER, Emitter, rewrite, word

WORD = 4
LANES = 4
SECTION = f"{HELPER}section"
"""What the label of a block has in it that no other lane of the quad may come between: it stands before all others."""


# ---- Vectors ----


def plain_accesses(function: Function) -> Function:
    """The function with vectors of narrow values loaded and stored as words. 64-bit values must have been split."""
    return rewrite(function, _change)


def _change(e: Emitter, item: Instruction) -> bool:
    match item:
        case Load(dests=dests, width=width) if len(dests) > 1 and width < WORD:
            words = [e.fresh() for _ in range(-(-len(dests) * width // WORD))]
            e.emit(replace(item, dests=tuple(words), width=min(len(dests) * width, WORD), signed=False))
            for position, dest in enumerate(dests):
                index, place = divmod(position * width, WORD)
                field = word(8 * place), word(8 * width)
                value = e.op(f"extract.{'s' if item.signed else 'u'}", words[index], *field)
                op, type_ = ("mov", Type.B32) if dest.type is Type.B32 else ("zext16", Type.B16)
                e.emit(Compute(op, type_, dest, (value,), guard=item.guard))
            return True
        case Store(values=values, width=width) if len(values) > 1 and width < WORD:
            count = WORD // width
            groups = [values[start : start + count] for start in range(0, len(values), count)]
            packed = tuple(_packed(e, group, width) for group in groups)
            e.emit(replace(item, values=packed, width=min(len(values) * width, WORD)))
            return True
    return False


def _packed(e: Emitter, values: Sequence[Operand], width: int) -> Operand:
    """Values side by side in one word, the first lowest."""
    result: Operand = word(0)
    for position, value in enumerate(values):
        part = value if value.type is Type.B32 else e.op("zext16", value, type=Type.B32)
        if position + 1 < WORD // width:
            part = e.op("and", part, word((1 << 8 * width) - 1))
        result = e.op("or", e.op("shl", part, word(8 * width * position)), result)
    return result


# ---- Atomics of 64 bits ----

_BY_HALVES = frozenset({"add", "and", "or", "xor", "exch"})
"""Atomics whose words can go one after the other: nothing comes between two blocks of a quad that do not wait."""


def plain_atomics(function: Function) -> Function:
    """The function without 64-bit atomics that compare or whose old value is read; these become sections."""

    def change(e: Emitter, item: Instruction) -> bool:
        if not isinstance(item, Atomic) or item.width != 2 * WORD or (item.dest is None and item.op != "cas"):
            return False
        section, rest = e.fresh_label(SECTION.removeprefix(HELPER)), e.fresh_label("rest")
        if item.guard is None:
            e.close(Jump(section), section)
        else:
            e.close(Branch(item.guard.register, item.guard.negated, section, rest), section)
        (_by_halves if item.op in _BY_HALVES else _lane_by_lane)(e, replace(item, guard=None))
        e.close(Jump(rest), rest)
        return True

    return rewrite(function, change)


def _by_halves(e: Emitter, item: Atomic) -> None:
    """The low words of all lanes, then the high ones, which take the carries along."""
    low, high = (e.op("zext32", item.sources[0], type=Type.B32, dest=e.fresh()),
                 e.op("high", item.sources[0], type=Type.B32))  # fmt: skip
    old = e.fresh(), e.fresh()
    upper = replace(item.address, offset=item.address.offset + WORD)
    e.emit(replace(item, dest=old[0], width=WORD, sources=(low,)))
    if item.op == "add":
        high = e.op("add", high, e.op("carry", old[0], low))
    e.emit(replace(item, dest=old[1], width=WORD, sources=(high,), address=upper))
    assert item.dest is not None
    e.emit(Compute("pack", Type.B32, item.dest, old))


def _lane_by_lane(e: Emitter, item: Atomic) -> None:
    """A load and a store for each lane of the quad in its turn."""
    old, result = e.fresh(Type.B64), item.dest or e.fresh(Type.B64)
    turn = e.op("and", Special("laneid"), word(LANES - 1))
    sources = [e.op("mov", source, type=Type.B64, dest=e.fresh(Type.B64)) for source in item.sources]
    found = e.fresh(Type.B64)
    address = _steady(e, item)
    for lane in range(LANES):
        mine = e.op("eq", turn, word(lane))
        assert isinstance(mine, Reg)
        e.emit(Load((old,), item.space, address, 2 * WORD, guard=Guard(mine)))
        if item.op == "cas":
            equal = e.op("eq", old, sources[0], type=Type.B64)
            new = e.choose(equal, sources[1], old)
        else:
            new = e.op(item.op, old, sources[0], type=Type.B64)
        e.emit(Store((new,), item.space, address, 2 * WORD, guard=Guard(mine)))
        e.let(found, e.choose(mine, old, found if lane else Const(0, Type.B64)))
    e.let(result, found)


def _steady(e: Emitter, item: Atomic) -> Address:
    """The address in one register, which the result cannot change."""
    address = item.address
    base = address.base
    if address.index is not None:
        base = e.op("add", base, e.op("shl", address.index, word(address.shift)))
    return replace(address, base=e.op("mov", base, dest=e.fresh()), index=None, shift=0)
