"""Writes IR in place of an instruction: fresh registers, constants folded on the way, blocks split for loops.

Registers made here have names that start with "%"; what they hold is no instruction of the user's, and is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from qgpu.cuda.ir import (
    BasicBlock,
    Compute,
    Const,
    Function,
    Instruction,
    Operand,
    Origin,
    Reg,
    Terminator,
    Type,
    writes,
)
from qgpu.cuda.ops import OPS, evaluate

HELPER = "%"
"""What names of registers that the user's code has not start with."""

Change = Callable[["Emitter", Instruction], bool]
"""Writes what stands for an instruction and says so, or leaves it as it is."""


def word(value: int) -> Const:
    return Const(value & Type.B32.mask, Type.B32)


ZERO, ONE, ONES = word(0), word(1), word(-1)


@dataclass
class Emitter:
    """``items`` of the block ``label`` so far; ``done``: the blocks before it that are closed."""

    label: str
    numbers: Iterator[int]
    items: list[Instruction] = field(default_factory=list)
    done: list[BasicBlock] = field(default_factory=list)
    origin: Origin | None = None

    def fresh(self, type_: Type = Type.B32) -> Reg:
        return Reg(f"{HELPER}{next(self.numbers)}", type_)

    def fresh_label(self, what: str) -> str:
        return f"{self.label.split(HELPER)[0]}{HELPER}{what}{next(self.numbers)}"

    def emit(self, item: Instruction) -> None:
        self.items.append(replace(item, origin=item.origin or self.origin))

    def close(self, terminator: Terminator, label: str) -> None:
        """Ends the block, and starts one of this name."""
        closed = replace(terminator, origin=terminator.origin or self.origin)
        self.done.append(BasicBlock(self.label, tuple(self.items), closed))
        self.label, self.items = label, []

    def op(self, op: str, *sources: Operand, type: Type = Type.B32, dest: Reg | None = None) -> Operand:
        """The result of an operation; what is known without one is not computed, unless it has to go to ``dest``."""
        result = OPS[op].result_type(type) or (dest.type if dest is not None else type)
        known = _simple(op, type, result, sources)
        if known is None:
            target = dest or self.fresh(result)
            self.emit(Compute(op, type, target, sources))
            return target
        if dest is not None:
            self.emit(Compute("mov", result, dest, (known,)))
            return dest
        return known

    def let(self, dest: Reg, value: Operand) -> None:
        self.emit(Compute("mov", dest.type, dest, (value,)))

    def not_(self, predicate: Operand) -> Operand:
        return self.op("not", predicate, type=Type.PRED)

    def choose(self, predicate: Operand, yes: Operand, no: Operand) -> Operand:
        return self.op("select", yes, no, predicate, type=yes.type)


def _simple(op: str, type_: Type, result: Type, sources: tuple[Operand, ...]) -> Operand | None:
    """What an operation gives, if no operation is needed for that."""
    values = [source.value for source in sources if isinstance(source, Const)]
    if len(values) == len(sources):
        return Const(evaluate(op, type_, result, *values), result)
    if op == "mov":
        return sources[0]
    if op == "select":
        yes, no, choice = sources
        if yes == no:
            return yes
        return (yes if choice.value else no) if isinstance(choice, Const) else None
    if len(sources) != 2:
        return None
    a, b = sources
    if isinstance(a, Const) and OPS[op].commutative:
        a, b = b, a
    if not isinstance(b, Const):
        return None
    neutral = {"add": 0, "sub": 0, "or": 0, "xor": 0, "shl": 0, "shr.u": 0, "shr.s": 0, "mul": 1, "and": type_.mask}
    if neutral.get(op) == b.value:
        return a
    if b.value == 0 and op in ("and", "mul", "mulhi.u", "mulhi.s", "carry"):
        return Const(0, result)
    return None


def rewrite(function: Function, change: Change, numbers: Iterator[int] | None = None) -> Function:
    """The function with every instruction that ``change`` takes replaced by what it writes."""
    numbers = numbers or count(_first_free(function))
    blocks: list[BasicBlock] = []
    for block in function.blocks:
        emitter = Emitter(block.label, numbers)
        for item in block.instructions:
            emitter.origin = item.origin
            if not change(emitter, item):
                emitter.items.append(item)
        blocks += [*emitter.done, BasicBlock(emitter.label, tuple(emitter.items), block.terminator)]
    return replace(function, blocks=tuple(blocks))


def _first_free(function: Function) -> int:
    """A number that no helper has yet."""
    names = [r.name for b in function.blocks for item in b.instructions for r in writes(item)]
    names += [block.label for block in function.blocks]
    found = [int(digits) for name in names if HELPER in name and (digits := _digits(name))]
    return max(found, default=0) + 1


def _digits(name: str) -> str:
    tail = name.split(HELPER)[-1]
    return "".join(character for character in tail if character.isdigit())
