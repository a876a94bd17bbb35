"""Where the variables of a kernel lie: shared memory by address, module and local variables by hidden parameters.

The address of a ``__device__`` or ``__constant__`` variable, and of all threads' local memory, is known to the driver
alone. So each gets a parameter word behind the user's own parameters, and code says "that word plus an offset", which
costs the machine no more than a plain pointer does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from qgpu.cuda.ir import (
    SHARED_WINDOW,
    Address,
    Atomic,
    BasicBlock,
    Compute,
    Const,
    Function,
    Instruction,
    KernelParameter,
    Load,
    Operand,
    Param,
    Reference,
    Reg,
    Special,
    Store,
    Type,
    Variable,
    VariableAddress,
    map_operands,
    operands,
)
from qgpu.errors import UnsupportedError
from qgpu.isa.tokens import MEMORY_BYTES, ROW_BYTES, SHARED_FIRST_ROW

SHARED_FIRST = SHARED_FIRST_ROW * ROW_BYTES
SHARED_BYTES = MEMORY_BYTES - SHARED_FIRST
LOCAL = "%local"
"""The hidden parameter that holds the address of thread 0's local memory; thread i's lies ``local_bytes`` i behind."""


@dataclass(frozen=True)
class ModuleVariable:
    """A variable of the module that a kernel names, and that every kernel of the module shares.

    ``initial``: its bytes at the start, all ``size`` of them. ``references``: which of them are addresses of other
    variables. ``word``: the parameter word that takes its address, counted from the kernel's first.
    """

    name: str
    space: str
    size: int
    align: int
    initial: bytes = field(repr=False)
    references: tuple[Reference, ...]
    word: int


def used_variables(function: Function) -> tuple[Variable, ...]:
    """The variables whose address the function takes, in their order; those that they refer to included."""
    names = {
        operand.name
        for block in function.blocks
        for item in (*block.instructions, block.terminator)
        for operand in operands(item)
        if isinstance(operand, VariableAddress)
    }
    known = {variable.name: variable for variable in function.variables}
    waiting = list(names)
    while waiting:
        for reference in known[waiting.pop()].references:
            if reference.variable not in names:
                names.add(reference.variable)
                waiting.append(reference.variable)
    return tuple(variable for variable in function.variables if variable.name in names)


# ---- Shared memory ----


def shared_addresses(function: Function, file: str = "") -> tuple[dict[str, int], int]:
    """Addresses of the shared variables, and the bytes from the start of shared memory up to the dynamic part.

    Variables of size 0 all lie at that end. Raises UnsupportedError where they need more than there is.
    """
    found: dict[str, int] = {}
    end = 0
    shared = [variable for variable in function.variables if variable.space == "shared"]
    for variable in sorted(shared, key=lambda variable: variable.size == 0):
        end = -(-end // variable.align) * variable.align
        found[variable.name] = SHARED_FIRST + (end if variable.name != SHARED_WINDOW else 0)
        end += variable.size
    if end > SHARED_BYTES:
        raise UnsupportedError(
            f"{file or 'kernel'}: kernel {function.name} declares {end:,} bytes of __shared__ variables, and a CTA has "
            f"{SHARED_BYTES:,}: use smaller arrays, or narrower types"
        )
    return found, end


def has_dynamic_shared(function: Function) -> bool:
    """Whether the function uses shared memory whose size a launch says."""
    return any(v.space == "shared" and not v.size and v.name != SHARED_WINDOW for v in function.variables)


# ---- Local memory and the module's variables, by hidden parameters ----


def place_locals(function: Function) -> tuple[Function, int]:
    """The function with its local variables at offsets from a register that each thread makes at its start, and how
    many bytes a thread has. Local memory is a part of global memory then."""
    local = [variable for variable in function.variables if variable.space == "local"]
    if not local:
        return function, 0
    offsets: dict[str, int] = {}
    end = 0
    for variable in local:
        end = -(-end // variable.align) * variable.align
        offsets[variable.name] = end
        end += variable.size
    align = max(4, *(variable.align for variable in local))
    size = -(-end // align) * align
    function, word = _with_parameter(function, LOCAL)
    base = Reg(".local", Type.B32)
    start = _thread_base(base, word, size)
    function = replace(function, variables=tuple(v for v in function.variables if v.space != "local"))
    first, *rest = map(_in_global, _replaced(function, {name: (base, offset) for name, offset in offsets.items()}))
    return replace(function, blocks=(replace(first, instructions=(*start, *first.instructions)), *rest)), size


def _in_global(block: BasicBlock) -> BasicBlock:
    items = tuple(
        replace(item, space="global") if isinstance(item, Load | Store | Atomic) and item.space == "local" else item
        for item in block.instructions
    )
    return replace(block, instructions=items)


def _thread_base(base: Reg, word: Param, size: int) -> tuple[Instruction, ...]:
    """base = word + size * (the thread's number in its CTA)."""
    made: list[Instruction] = []

    def compute(op: str, *sources: Operand) -> Reg:
        dest = Reg(f".local{len(made)}", Type.B32)
        made.append(Compute(op, Type.B32, dest, sources))
        return dest

    rank: Operand = Special("tid.z")
    for axis in "yx":
        rank = compute("add", compute("mul", rank, Special(f"ntid.{axis}")), Special(f"tid.{axis}"))
    offset = compute("mul", rank, Const(size, Type.B32))
    return (*made, Compute("add", Type.B32, base, (word, offset)))


def place_variables(function: Function) -> tuple[Function, tuple[ModuleVariable, ...]]:
    """The function with addresses of the module's variables taken from hidden parameters, and those variables."""
    used = used_variables(function)
    placed: list[ModuleVariable] = []
    bases: dict[str, tuple[Operand, int]] = {}
    for variable in used:
        if variable.space in ("global", "const"):
            function, word = _with_parameter(function, variable.name)
            initial = (variable.initial or b"").ljust(variable.size, b"\0")
            placed.append(
                ModuleVariable(
                    variable.name, variable.space, variable.size, variable.align, initial, variable.references,
                    word.offset // 4,
                )
            )  # fmt: skip
            bases[variable.name] = word, 0
    left = tuple(variable for variable in used if variable.space not in ("global", "const"))
    function = replace(function, variables=left)
    return (replace(function, blocks=_replaced(function, bases)) if bases else function), tuple(placed)


def _with_parameter(function: Function, name: str) -> tuple[Function, Param]:
    """The function with one more parameter word, a pointer."""
    end = max((parameter.offset + parameter.size for parameter in function.parameters), default=0)
    offset = -(-end // 4) * 4
    parameter = KernelParameter(name, "u32", offset, 4, 4, True)
    return replace(function, parameters=(*function.parameters, parameter)), Param(offset, Type.B32)


def _replaced(function: Function, bases: Mapping[str, tuple[Operand, int]]) -> tuple[BasicBlock, ...]:
    """The blocks with the addresses of these variables written as base + offset."""
    count = 0

    def block(old: BasicBlock) -> BasicBlock:
        items: list[Instruction] = []
        for item in old.instructions:
            items += changed(item)
        return replace(old, instructions=tuple(items))

    def changed(item: Instruction) -> Sequence[Instruction]:
        if isinstance(item, Load | Store | Atomic):
            item = replace(item, address=_address(item.address, bases))
        before: list[Instruction] = []

        def change(operand: Operand) -> Operand:
            nonlocal count
            if not isinstance(operand, VariableAddress) or operand.name not in bases:
                return operand
            base, offset = bases[operand.name]
            value = base
            if offset + operand.offset:
                count += 1
                value = Reg(f".place{count}", Type.B32)
                constant = Const((offset + operand.offset) & Type.B32.mask, Type.B32)
                before.append(Compute("add", Type.B32, value, (base, constant), origin=item.origin))
            if operand.type is not Type.B32:
                count += 1
                wide = Reg(f".place{count}", operand.type)
                before.append(Compute("zext32", operand.type, wide, (value,), origin=item.origin))
                value = wide
            return value

        item = map_operands(item, change)
        return [*before, item]

    return tuple(map(block, function.blocks))


def _address(address: Address, bases: Mapping[str, tuple[Operand, int]]) -> Address:
    """An address with its base replaced, the offset kept out of registers."""
    base = address.base
    if isinstance(base, VariableAddress) and base.name in bases:
        start, offset = bases[base.name]
        return replace(address, base=start, offset=address.offset + offset + base.offset)
    return address
