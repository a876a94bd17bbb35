"""The typed intermediate representation between PTX and machine blocks: values that passes read and build anew.

A function is basic blocks of instructions over virtual registers; a block ends in one terminator. Registers may be
written more than once, as in PTX. What does not change while a thread runs (constants, kernel parameters, special
registers, addresses of variables) is an operand, not a register. A guarded instruction does nothing in threads whose
guard is false, so a guarded result keeps its old value there.

Integers are held as unsigned values of their type's width; operations say themselves whether they mean signed ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from qgpu.cuda.ir_operands import (
    Address,
    Const,
    Guard,
    Operand,
    Origin,
    Param,
    Reg,
    Special,
    Type,
    VariableAddress,
)

__all__ = [
    "Address", "Atomic", "Barrier", "BasicBlock", "Branch", "Compute", "Const", "Exit", "Fence", "Function",
    "Guard", "Instruction", "Jump", "KernelParameter", "Load", "Operand", "Origin", "Param", "Print", "Reference",
    "Reg", "SHARED_WINDOW", "Special", "Store", "Switch", "TERMINATORS", "Terminator", "Trap", "Type", "Variable",
    "VariableAddress", "WarpOp", "has_effect", "map_operands", "operands", "reads", "successors", "writes",
]  # fmt: skip


# ---- Instructions ----


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """What all instructions have. Passes use `reads`, `writes` and `map_reads` and need not know the kinds."""

    guard: Guard | None = None
    origin: Origin | None = None


@dataclass(frozen=True)
class Compute(Instruction):
    """dest = op(sources), without any effect. ``op`` is a row of `ops.OPS`; ``type`` is the width it works at."""

    op: str
    type: Type
    dest: Reg
    sources: tuple[Operand, ...]


@dataclass(frozen=True)
class Load(Instruction):
    """Each of ``dests`` takes the next ``width`` bytes, sign- or zero-extended to the register.

    space: "global", "shared", "local", "const" or "generic". Aligned to width * len(dests), else a fault.
    """

    dests: tuple[Reg, ...]
    space: str
    address: Address
    width: int
    signed: bool = False
    volatile: bool = False


@dataclass(frozen=True)
class Store(Instruction):
    """The low ``width`` bytes of each of ``values``, one after the other."""

    values: tuple[Operand, ...]
    space: str
    address: Address
    width: int
    volatile: bool = False


@dataclass(frozen=True)
class Atomic(Instruction):
    """Read-modify-write of one word of ``width`` bytes; dest takes the old value, None if nobody reads it.

    op: a row of `ops.ATOMICS`; cas has two sources (compare, new), the others one.
    """

    op: str
    dest: Reg | None
    space: str
    address: Address
    width: int
    sources: tuple[Operand, ...]


@dataclass(frozen=True)
class Barrier(Instruction):
    """``bar.sync`` (op "sync", no dest) or ``bar.red`` (op "popc", "and" or "or" over ``source``) of the whole CTA."""

    op: str = "sync"
    dest: Reg | None = None
    source: Operand | None = None


@dataclass(frozen=True)
class WarpOp(Instruction):
    """An exchange between the lanes of a warp; ``op`` is a row of `ops.WARP_OPS`, which says what sources it takes.

    dests: the result, and for shuffles and match.all a predicate (or None) as the second.
    """

    op: str
    type: Type
    dests: tuple[Reg | None, ...]
    sources: tuple[Operand, ...]


@dataclass(frozen=True)
class Fence(Instruction):
    """A memory fence: orders nothing on a machine that is always in order, but marks a loop that waits for others."""


@dataclass(frozen=True)
class Print(Instruction):
    """``printf``: format is the address of the text, arguments that of the values, laid out as `printf` says.

    pointer_bytes: how wide ``long`` and pointers among the values are. Lowering never meets a Print: `expand_prints`
    makes stores into a buffer of it.
    """

    format: Operand
    arguments: Operand
    pointer_bytes: int = 4


# ---- Terminators ----


@dataclass(frozen=True)
class Jump(Instruction):
    target: str


@dataclass(frozen=True)
class Branch(Instruction):
    """To ``then`` where the predicate is true (false, if negated), else to ``otherwise``."""

    predicate: Reg
    negated: bool
    then: str
    otherwise: str


@dataclass(frozen=True)
class Switch(Instruction):
    """To ``targets[index]``; an index beyond them is undefined."""

    index: Operand
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Exit(Instruction):
    """The thread ends."""


@dataclass(frozen=True)
class Trap(Instruction):
    """The launch ends with a fault at this line."""


Terminator = Jump | Branch | Switch | Exit | Trap
TERMINATORS = (Jump, Branch, Switch, Exit, Trap)


@dataclass(frozen=True)
class BasicBlock:
    """Straight code with one way in, at the top, and one terminator."""

    label: str
    instructions: tuple[Instruction, ...]
    terminator: Terminator


@dataclass(frozen=True)
class KernelParameter:
    """A parameter of the kernel: ``size`` bytes at ``offset`` of the parameter area."""

    name: str
    type: str
    offset: int
    size: int
    align: int
    pointer: bool


@dataclass(frozen=True)
class Reference:
    """``width`` bytes at ``offset`` of a variable's initial bytes hold the address of another, plus ``addend``."""

    offset: int
    width: int
    variable: str
    addend: int = 0


SHARED_WINDOW = "%shared"
"""The name of a variable of no size that lies where shared memory starts."""


@dataclass(frozen=True)
class Variable:
    """A variable in memory; size 0 is dynamic shared memory. initial: its bytes, None if it starts undefined.

    references: which of these bytes are addresses, filled in where the variables' places are known.
    """

    name: str
    space: str
    size: int
    align: int
    initial: bytes | None = None
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class Function:
    """A kernel: blocks[0] is the entry. variables: those that the kernel names, whatever their space."""

    name: str
    parameters: tuple[KernelParameter, ...]
    variables: tuple[Variable, ...]
    blocks: tuple[BasicBlock, ...]

    def block(self, label: str) -> BasicBlock:
        return next(block for block in self.blocks if block.label == label)


# ---- What an instruction reads and writes ----


def _in_address(address: Address) -> tuple[Operand, ...]:
    return (address.base,) if address.index is None else (address.base, address.index)


def operands(instruction: Instruction) -> tuple[Operand, ...]:
    """What the instruction reads, its guard left out."""
    match instruction:
        case Compute(sources=sources) | WarpOp(sources=sources):
            return sources
        case Load(address=address):
            return _in_address(address)
        case Store(values=values, address=address):
            return (*values, *_in_address(address))
        case Atomic(sources=sources, address=address):
            return (*sources, *_in_address(address))
        case Barrier(source=source) if source is not None:
            return (source,)
        case Branch(predicate=predicate):
            return (predicate,)
        case Switch(index=index):
            return (index,)
        case Print(format=text, arguments=arguments):
            return (text, arguments)
    return ()


def reads(instruction: Instruction) -> tuple[Reg, ...]:
    """The registers the instruction reads; its guard's, and what a guarded result may keep, included."""
    found = [operand for operand in operands(instruction) if isinstance(operand, Reg)]
    if instruction.guard is not None:
        found += [instruction.guard.register, *writes(instruction)]
    return tuple(found)


def writes(instruction: Instruction) -> tuple[Reg, ...]:
    """The registers the instruction writes."""
    match instruction:
        case Compute(dest=dest):
            return (dest,)
        case Load(dests=dests):
            return dests
        case WarpOp(dests=dests):
            return tuple(dest for dest in dests if dest is not None)
        case Atomic(dest=dest) | Barrier(dest=dest) if dest is not None:
            return (dest,)
    return ()


def map_operands(instruction: Instruction, change: Callable[[Operand], Operand]) -> Instruction:
    """The same instruction with each operand it reads changed; a predicate that must stay a register only if it does.

    Returns the very same object when nothing changes.
    """

    def address(old: Address) -> Address:
        index = None if old.index is None else change(old.index)
        return Address(change(old.base), index, old.shift, old.offset)

    changes: dict[str, object] = {}
    match instruction:
        case Compute(sources=sources) | WarpOp(sources=sources):
            changes["sources"] = tuple(map(change, sources))
        case Load(address=old):
            changes["address"] = address(old)
        case Store(values=values, address=old):
            changes["values"] = tuple(map(change, values))
            changes["address"] = address(old)
        case Atomic(sources=sources, address=old):
            changes["sources"] = tuple(map(change, sources))
            changes["address"] = address(old)
        case Barrier(source=source) if source is not None:
            changes["source"] = change(source)
        case Branch(predicate=predicate):
            changed = change(predicate)
            changes["predicate"] = changed if isinstance(changed, Reg) else predicate
        case Switch(index=index):
            changes["index"] = change(index)
        case Print(format=text, arguments=arguments):
            changes["format"], changes["arguments"] = change(text), change(arguments)
    if instruction.guard is not None:
        changed = change(instruction.guard.register)
        if isinstance(changed, Reg):
            changes["guard"] = replace(instruction.guard, register=changed)
    if all(getattr(instruction, name) == value for name, value in changes.items()):
        return instruction
    return replace(instruction, **changes)  # type: ignore[arg-type]


def has_effect(instruction: Instruction) -> bool:
    """Whether the instruction does more than write its registers. Loads count as plain reads unless volatile."""
    match instruction:
        case Compute():
            return False
        case Load(volatile=volatile):
            return volatile
        case WarpOp(op=op):
            return op != "activemask"
    return True


def successors(block: BasicBlock) -> tuple[str, ...]:
    """The labels a block can go on to, each once, in order."""
    match block.terminator:
        case Jump(target=target):
            return (target,)
        case Branch(then=then, otherwise=otherwise):
            return (then,) if then == otherwise else (then, otherwise)
        case Switch(targets=targets):
            return tuple(dict.fromkeys(targets))
    return ()
