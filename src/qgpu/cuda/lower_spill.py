"""Values for which there is no register: words lie in local memory instead, predicates become words.

A spilled value is stored behind every instruction that writes it and loaded before those that read it, so that it
needs a register for that long only; what one instruction makes of things that are there anyway is made anew instead.
Basic blocks are cut into short pieces as well, between which only what the IR itself keeps is in registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from qgpu.cuda.flow import liveness
from qgpu.cuda.ir import (
    Address,
    BasicBlock,
    Branch,
    Compute,
    Function,
    Guard,
    Instruction,
    Jump,
    KernelParameter,
    Load,
    Operand,
    Param,
    Reg,
    Special,
    Store,
    Switch,
    Type,
    map_operands,
    reads,
    writes,
)
from qgpu.cuda.lower_costs import uniform_registers, weights
from qgpu.cuda.lower_emit import HELPER, ONE, ZERO, word
from qgpu.cuda.memory import LOCAL
from qgpu.cuda.verify import verify

FRAME = Reg(f"{HELPER}frame", Type.B32)
"""Where a thread's spilled words lie."""
PREFIX = f"{HELPER}spill"
WORD = 4
NEAR = 3
"""Instructions for which a value stays in the register that it has been brought to."""


@dataclass(frozen=True)
class Room:
    """What may be in registers between two instructions. ``length``: instructions of a piece."""

    length: int
    registers: int
    predicates: int


ROOMS = tuple(
    Room(*sizes)
    for sizes in ((24, 15, 4), (8, 15, 4), (24, 14, 4), (8, 14, 3), (24, 13, 4), (8, 13, 3), (12, 12, 3), (4, 12, 3),
                  (6, 11, 3), (2, 11, 2), (1, 10, 2), (1, 8, 2), (1, 6, 1), (1, 5, 1))
)  # fmt: skip
"""From what costs little to what always fits."""


@dataclass(frozen=True)
class Spilled:
    """``bytes_per_thread``: of local memory, what the kernel has itself included. ``count``: accesses put in."""

    function: Function
    bytes_per_thread: int
    count: int


def spilled(function: Function, room: Room, local_bytes: int) -> Spilled:
    """The function with no more values in registers than there is room for, cut into pieces.

    local_bytes: of local memory that a thread has besides.
    """
    function = _words_for_predicates(function, room.predicates)
    function, slots = _slots_for_words(function, room.registers)
    bytes_per_thread = local_bytes
    if slots:
        bytes_per_thread += WORD * len(slots)
        function = _framed(with_local_parameter(function), local_bytes, WORD * len(slots))
    count = sum(_is_spill(item) for block in function.blocks for item in block.instructions)
    return Spilled(verify(_pieces(function, room.length)), bytes_per_thread, count)


def _is_spill(item: Instruction) -> bool:
    return isinstance(item, Load | Store) and item.address.base == FRAME


# ---- What does not fit ----


def _pressure(function: Function, predicates: bool) -> Iterator[tuple[str, frozenset[Reg]]]:
    """For every instruction, its block's label and what must be in registers behind it."""
    live = liveness(function)
    for block in function.blocks:
        now = set(live.at_end[block.label])
        for item in (block.terminator, *reversed(block.instructions)):
            yield block.label, frozenset(r for r in now.union(writes(item)) if _counts(r, predicates))
            now.difference_update(writes(item))
            now.update(reads(item))
        yield block.label, frozenset(r for r in now if _counts(r, predicates))


def _counts(register: Reg, predicates: bool) -> bool:
    return (register.type is Type.PRED) == predicates


def _victim(function: Function, most: int, predicates: bool) -> Reg | None:
    """The register that relieves most for what it costs, None if all fit."""
    crowded = [(label, live) for label, live in _pressure(function, predicates) if len(live) > most]
    if not crowded:
        return None
    weight = weights(function, uniform_registers(function))
    relief: Counter[Reg] = Counter()
    for _, live in crowded:
        relief.update(live)
    cost: Counter[Reg] = Counter()
    for block in function.blocks:
        for item in (*block.instructions, block.terminator):
            for register in (*reads(item), *writes(item)):
                cost[register] += weight[block.label]  # type: ignore[assignment]
    candidates = [r for r in relief if not r.name.startswith(PREFIX) and r != FRAME and r.type is not Type.B64]
    return min(candidates, key=lambda r: (cost[r] / relief[r], r.name), default=None)


# ---- Predicates ----


def _words_for_predicates(function: Function, most: int) -> Function:
    number = 0
    while (victim := _victim(function, most, True)) is not None:
        home = _made_anew(function, victim) or _PredicateHome(Reg(f"{HELPER}kept{number}", Type.B32))
        function = _Rewrite(victim, f"{PREFIX}p{number}.", home).run(function)
        number += 1
    return function


@dataclass(frozen=True)
class _PredicateHome:
    """A predicate that lives in a register as 0 or 1."""

    kept: Reg

    def fetch(self, to: Reg, item: Instruction) -> Instruction:
        return Compute("ne", Type.B32, to, (self.kept, ZERO), origin=item.origin)

    def keep(self, value: Reg, item: Instruction) -> list[Instruction]:
        return [Compute("select", Type.B32, self.kept, (ONE, ZERO, value), origin=item.origin)]


# ---- Words ----


def _slots_for_words(function: Function, most: int) -> tuple[Function, Mapping[Reg, int]]:
    slots: dict[Reg, int] = {}
    number = 0
    while (victim := _victim(function, most - bool(slots), False)) is not None:
        number += 1
        made = _made_anew(function, victim)
        if made is not None:
            function = _Rewrite(victim, f"{PREFIX}m{number}.", made).run(function)
            continue
        slots[victim] = WORD * len(slots)
        home = _SlotHome(Address(FRAME, offset=slots[victim]), victim.type // 8)
        function = _Rewrite(victim, f"{PREFIX}r{len(slots)}.", home).run(function)
    return function, slots


@dataclass(frozen=True)
class _SlotHome:
    """A value that lives in local memory."""

    address: Address
    width: int

    def fetch(self, to: Reg, item: Instruction) -> Instruction:
        return Load((to,), "global", self.address, self.width, origin=item.origin)

    def keep(self, value: Reg, item: Instruction) -> list[Instruction]:
        return [Store((value,), "global", self.address, self.width, origin=item.origin)]


# ---- What is made anew ----


@dataclass(frozen=True)
class _Made:
    """A value that its one instruction makes anew wherever it is read."""

    maker: Compute

    def fetch(self, to: Reg, item: Instruction) -> Instruction:
        return replace(self.maker, dest=to, origin=item.origin)

    def keep(self, value: Reg, item: Instruction) -> list[Instruction]:
        return []


def _made_anew(function: Function, register: Reg) -> _Made | None:
    """How a register's value is made anew, if one instruction makes it of what a thread always has; a predicate may
    also compare a word that is written once."""
    makers: dict[Reg, list[Instruction]] = {}
    for block in function.blocks:
        for item in block.instructions:
            for written in writes(item):
                makers.setdefault(written, []).append(item)

    def steady(operand: Operand) -> bool:
        if not isinstance(operand, Reg):
            return True
        mine = makers.get(operand, [])
        once = len(mine) == 1 and mine[0].guard is None and not operand.name.startswith(PREFIX)
        return operand == FRAME or (register.type is Type.PRED and operand.type is Type.B32 and once)

    mine = makers.get(register, [])
    maker = mine[0] if len(mine) == 1 else None
    if not isinstance(maker, Compute) or maker.guard is not None or not all(map(steady, maker.sources)):
        return None
    return _Made(maker)


def with_local_parameter(function: Function) -> Function:
    """The function with the hidden parameter for local memory, if it has none yet."""
    if any(parameter.name == LOCAL for parameter in function.parameters):
        return function
    end = max((parameter.offset + parameter.size for parameter in function.parameters), default=0)
    parameter = KernelParameter(LOCAL, "u32", -(-end // WORD) * WORD, WORD, WORD, True)
    return replace(function, parameters=(*function.parameters, parameter))


def _framed(function: Function, local_bytes: int, size: int) -> Function:
    """The function with its frame made at the start: behind the kernel's own local memory, thread by thread."""
    offset = next(parameter.offset for parameter in function.parameters if parameter.name == LOCAL)
    made: list[Instruction] = []

    def compute(op: str, *sources: Operand) -> Reg:
        dest = Reg(f"{HELPER}frame{len(made)}", Type.B32)
        made.append(Compute(op, Type.B32, dest, sources))
        return dest

    start: Operand = Param(offset, Type.B32)
    if local_bytes:
        threads: Operand = word(local_bytes)
        for axis in "xyz":
            threads = compute("mul", threads, Special(f"ntid.{axis}"))
        start = compute("add", threads, start)
    rank = compute("add", compute("shl", Special("warpid"), word(5)), Special("laneid"))
    made.append(Compute("add", Type.B32, FRAME, (compute("mul", rank, word(size)), start)))
    first, *rest = function.blocks
    return replace(function, blocks=(replace(first, instructions=(*made, *first.instructions)), *rest))


# ---- Rewriting ----


@dataclass
class _Rewrite:
    """One register's value brought from its home to each instruction that reads it, and back from each that writes."""

    register: Reg
    prefix: str
    home: _PredicateHome | _SlotHome | _Made
    number: int = 0
    there: Reg | None = None
    age: int = 0

    def run(self, function: Function) -> Function:
        return replace(function, blocks=tuple(map(self.block, function.blocks)))

    def block(self, block: BasicBlock) -> BasicBlock:
        items: list[Instruction] = []
        self.there = None
        for item in block.instructions:
            items += self.item(item)
        *before, terminator = self.item(block.terminator)
        return BasicBlock(block.label, (*items, *before), terminator)  # type: ignore[arg-type]

    def item(self, item: Instruction) -> list[Instruction]:
        register = self.register
        reading, writing = register in reads(item), register in writes(item)
        self.age += 1
        if not reading and not writing:
            return [item]
        before: list[Instruction] = []
        if writing or self.there is None or self.age > NEAR:
            self.number += 1
            self.there = Reg(f"{self.prefix}{self.number}", register.type)
            before = [self.home.fetch(self.there, item)] if reading else []
        self.age = 0
        if writing and isinstance(self.home, _Made):
            self.there = None
            return []
        return [*before, _renamed(item, register, self.there), *(self.home.keep(self.there, item) if writing else [])]


def _renamed(item: Instruction, old: Reg, new: Reg) -> Instruction:
    """The instruction with a register replaced wherever it stands."""

    def change(operand: Operand) -> Operand:
        return new if operand == old else operand

    item = map_operands(item, change)
    if item.guard is not None and item.guard.register == old:
        item = replace(item, guard=Guard(new, item.guard.negated))
    if isinstance(item, Branch | Switch | Jump) or old not in writes(item):
        return item
    if hasattr(item, "dests"):
        return replace(item, dests=tuple(new if dest == old else dest for dest in item.dests))  # type: ignore[call-arg]
    return replace(item, dest=new)  # type: ignore[call-arg]


# ---- Pieces ----


def _pieces(function: Function, length: int) -> Function:
    """The function with basic blocks of this many instructions at most, where no pair of words is between."""
    blocks: list[BasicBlock] = []
    for block in function.blocks:
        label, items = block.label, list(block.instructions)
        count = 0
        while len(items) > length:
            cut = length
            while cut < len(items) and _pair_between(items, cut):
                cut += 1
            if cut == len(items):
                break
            count += 1
            following = f"{block.label}{HELPER}piece{count}"
            blocks.append(BasicBlock(label, tuple(items[:cut]), Jump(following, origin=items[cut].origin)))
            label, items = following, items[cut:]
        blocks.append(BasicBlock(label, tuple(items), block.terminator))
    return replace(function, blocks=tuple(blocks))


def _pair_between(items: list[Instruction], cut: int) -> bool:
    """Whether a value of 64 bits, which no register holds, would be needed behind the cut."""
    made = {register for item in items[:cut] for register in writes(item) if register.type is Type.B64}
    return any(not made.isdisjoint(reads(item)) for item in items[cut:])
