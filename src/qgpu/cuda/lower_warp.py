"""Exchanges across a warp or a CTA that the machine has not, made of shuffles, ballots and barriers, which it has.

What is left: shuffles whose clamp and segment are known, ballots, syncwarp, and plain barriers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qgpu.cuda.flow import loops
from qgpu.cuda.ir import (
    Address,
    Atomic,
    Barrier,
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
    Type,
    Variable,
    VariableAddress,
    WarpOp,
)
from qgpu.cuda.lower_emit import HELPER, ONE, ONES, ZERO, Emitter, rewrite, word

WHOLE = word(31)
"""Clamp and segment of a shuffle over all 32 lanes."""
TALLY = f"{HELPER}tally"
"""The shared variable in which barriers that reduce count."""
YES = Const(1, Type.PRED)


def plain_exchanges(function: Function) -> Function:
    """The function with shuffles, ballots, syncwarp and activemask as its only WarpOps."""

    def change(e: Emitter, item: Instruction) -> bool:
        if not isinstance(item, WarpOp):
            return False
        kind, _, mode = item.op.partition(".")
        build = _WRITTEN.get(kind)
        return build is not None and build(e, item, mode)

    return rewrite(function, change)


def ballot(e: Emitter, members: Operand, vote: Operand) -> Operand:
    """The lanes of ``members`` that are there and vote so. Lanes of a quad collect one ballot: where their members may
    differ, each takes its part."""
    result = e.fresh()
    e.emit(WarpOp("vote.ballot", Type.PRED, (result,), (vote, members)))
    return result if isinstance(members, Const) else e.op("and", result, members)


def from_lane(e: Emitter, members: Operand, value: Operand, lane: Operand) -> Reg:
    result = e.fresh()
    e.emit(WarpOp("shuffle.idx", Type.B32, (result,), (value, lane, WHOLE, members)))
    return result


def _lowest(e: Emitter, mask: Operand) -> Operand:
    """The place of a mask's lowest one."""
    return e.op("clz", e.op("reverse", mask))


def _vote(e: Emitter, item: WarpOp, mode: str) -> bool:
    vote, members = item.sources
    if mode == "ballot" and isinstance(members, Const):
        return False
    (dest,) = item.dests
    assert dest is not None
    if mode == "ballot":
        e.let(dest, ballot(e, members, vote))
        return True
    if mode == "any":
        e.emit(Compute("ne", Type.B32, dest, (ballot(e, members, vote), ZERO)))
        return True
    against = ballot(e, members, e.not_(vote))
    if mode == "uni":  # nobody is for it, or nobody is against it
        against = e.op("min.u", against, ballot(e, members, vote))  # type: ignore[assignment]
    e.emit(Compute("eq", Type.B32, dest, (against, ZERO)))
    return True


def _shuffle(e: Emitter, item: WarpOp, mode: str) -> bool:
    """A shuffle whose clamp or segment is known at run time only: the lane it reads from is computed."""
    value, b, c, members = item.sources
    if isinstance(c, Const):
        return False
    lane: Operand = Special("laneid")
    distance, clamp = (e.op("and", x, WHOLE) for x in (b, c))
    segment = e.op("and", e.op("shr.u", c, word(8)), WHOLE)
    outside = e.op("xor", segment, word(31))
    last = e.op("or", e.op("and", lane, segment), e.op("and", clamp, outside))
    if mode == "idx":
        source = e.op("or", e.op("and", lane, segment), e.op("and", distance, outside))
    else:
        source = e.op({"up": "sub", "down": "add", "bfly": "xor"}[mode], lane, distance)
    inside = e.op("ge.s" if mode == "up" else "le.s", source, last)
    dest, *more = item.dests
    e.emit(
        replace(item, op="shuffle.idx", dests=(dest,), sources=(value, e.choose(inside, source, lane), WHOLE, members))
    )
    for known in more:
        if known is not None:
            e.let(known, inside)
    return True


def _match(e: Emitter, item: WarpOp, mode: str) -> bool:
    value, members = item.sources
    parts = [value]
    if value.type is Type.B64:
        parts = [e.op("zext32", value, type=Type.B32, dest=e.fresh()), e.op("high", value, type=Type.B32)]
    everyone = ballot(e, members, YES)
    dest, *more = item.dests
    if mode == "all":
        first = [from_lane(e, members, part, _lowest(e, everyone)) for part in parts]
        alike = ballot(e, members, _equal(e, parts, first))
        same = e.op("eq", alike, everyone)
        for known in more:
            if known is not None:
                e.let(known, same)
        if dest is not None:
            e.let(dest, e.choose(same, everyone, ZERO))
        return True
    # One round for each value there is: that of the lowest lane which has not been asked.
    left, result, go_on = e.fresh(), e.fresh(), e.fresh(Type.PRED)
    loop, rest = e.fresh_label("match"), e.fresh_label("matched")
    parts = [e.op("mov", part, dest=e.fresh()) for part in parts]
    members = e.op("mov", members, dest=e.fresh()) if isinstance(members, Reg) else members
    e.let(left, everyone)
    e.let(result, ZERO)
    e.close(Jump(loop), loop)
    asked = [from_lane(e, members, part, _lowest(e, left)) for part in parts]
    mine = _equal(e, parts, asked)
    alike = ballot(e, members, mine)
    e.let(result, e.choose(mine, alike, result))
    e.let(left, e.op("xor", left, alike))
    e.emit(Compute("ne", Type.B32, go_on, (left, ZERO)))
    e.close(Branch(go_on, False, loop, rest), rest)
    if dest is not None:
        e.let(dest, result)
    return True


def _equal(e: Emitter, first: list[Operand], second: list[Reg]) -> Operand:
    differences = [e.op("xor", a, b) for a, b in zip(first, second, strict=True)]
    if len(differences) == 1:
        return e.op("eq", first[0], second[0])
    return e.op("eq", e.op("or", *differences), ZERO)


def _reduce(e: Emitter, item: WarpOp, mode: str) -> bool:
    """Five exchanges with ever nearer lanes if all are there, else one for each lane that is."""
    value, members = item.sources
    (dest,) = item.dests
    if dest is None:
        return True
    value = e.op("mov", value, dest=e.fresh())
    members = e.op("mov", members, dest=e.fresh()) if isinstance(members, Reg) else members
    whole, loop, some, rest = (e.fresh_label(what) for what in ("whole", "each", "some", "reduced"))
    result, left, go_on = e.fresh(), e.fresh(), e.fresh(Type.PRED)
    e.let(left, ballot(e, members, YES))
    e.let(result, value)
    full = e.op("eq", left, ONES)
    assert isinstance(full, Reg)
    e.close(Branch(full, False, whole, some), whole)
    for distance in (16, 8, 4, 2, 1):
        other = e.fresh()
        e.emit(WarpOp("shuffle.bfly", Type.B32, (other,), (result, word(distance), WHOLE, members)))
        e.let(result, e.op(mode, result, other))
    e.close(Jump(rest), some)
    e.let(result, from_lane(e, members, value, _lowest(e, left)))
    without = e.op("and", left, e.op("sub", left, ONE))
    e.let(left, without)
    e.emit(Compute("ne", Type.B32, go_on, (left, ZERO)))
    e.close(Branch(go_on, False, loop, rest), loop)
    e.let(result, e.op(mode, result, from_lane(e, members, value, _lowest(e, left))))
    e.let(left, e.op("and", left, e.op("sub", left, ONE)))
    e.emit(Compute("ne", Type.B32, go_on, (left, ZERO)))
    e.close(Branch(go_on, False, loop, rest), rest)
    e.let(dest, result)
    return True


_WRITTEN: dict[str, Callable[[Emitter, WarpOp, str], bool]] = {
    "vote": _vote, "shuffle": _shuffle, "match": _match, "reduce": _reduce,
}  # fmt: skip


# ---- Barriers that reduce ----


def plain_barriers(function: Function) -> Function:
    """The function with barriers that count or ask made of plain ones and a word of shared memory.

    Threads add to that word before a barrier and read it behind. It is 0 when a CTA starts and is never set back: each
    thread remembers what it read last. In a loop a second barrier keeps fast threads from adding too early.
    """
    places = [
        (block.label, item)
        for block in function.blocks
        for item in block.instructions
        if isinstance(item, Barrier) and item.op != "sync"
    ]
    if not places:
        return function
    before = Reg(f"{HELPER}0tallied", Type.B32)
    again = len(places) > 1 or any(places[0][0] in loop.blocks for loop in loops(function))
    tally = Address(VariableAddress(TALLY, 0))

    def change(e: Emitter, item: Instruction) -> bool:
        if not isinstance(item, Barrier) or item.op == "sync":
            return False
        assert item.dest is not None and item.source is not None
        counted = e.not_(item.source) if item.op == "and" else item.source
        if isinstance(counted, Const):
            e.emit(Atomic("add", None, "shared", tally, 4, (word(counted.value),)))
        else:
            assert isinstance(counted, Reg)
            e.emit(Atomic("add", None, "shared", tally, 4, (ONE,), guard=Guard(counted)))
        e.emit(Barrier())
        total, count = e.fresh(), e.fresh()
        e.emit(Load((total,), "shared", tally, 4))
        if again:
            e.emit(Barrier())
            e.emit(Compute("sub", Type.B32, count, (total, before)))
            e.let(before, total)
        else:
            e.let(count, total)
        if item.op == "popc":
            e.let(item.dest, count)
        else:
            e.emit(Compute("eq" if item.op == "and" else "ne", Type.B32, item.dest, (count, ZERO)))
        return True

    changed = rewrite(function, change)
    first = changed.blocks[0]
    start = (Compute("mov", Type.B32, before, (ZERO,)),) if again else ()
    blocks = (replace(first, instructions=(*start, *first.instructions)), *changed.blocks[1:])
    return replace(changed, blocks=blocks, variables=(*changed.variables, Variable(TALLY, "shared", 4, 4)))
