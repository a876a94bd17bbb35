"""PTX loads, stores, atomics, fences, barriers and exchanges between lanes, to IR."""

from collections.abc import Callable
from dataclasses import dataclass

from qgpu.cuda import ptx
from qgpu.cuda.ir import (
    Address,
    Atomic,
    Barrier,
    Const,
    Fence,
    Load,
    Operand,
    Param,
    Reg,
    Special,
    Store,
    Type,
    WarpOp,
)
from qgpu.cuda.translate_compute import only_type, sign
from qgpu.cuda.translation import FLOATING, Refused, Translation, is_type, operand_count, register_type

Handler = Callable[[Translation, ptx.Instruction], None]

SPACES = frozenset({"global", "shared", "local", "const", "param"})
_WAITS = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
# Ordering scopes and cache hints say nothing to a machine with neither cache nor reordering.
_HINTS = frozenset("weak cta cluster gpu sys nc ca cg cs lu cv wb wt unified".split())


@dataclass(frozen=True)
class _Access:
    """The modifiers of a load or store, read: type is None where the instruction has no type."""

    space: str
    lanes: int
    type: str
    volatile: bool
    rest: tuple[str, ...]

    @property
    def width(self) -> int:
        return ptx.TYPE_BYTES[self.type]


def _access(instruction: ptx.Instruction) -> _Access:
    space, lanes, types, volatile, rest = "generic", 1, [], False, []
    for modifier in instruction.modifiers:
        name = modifier.split("::")[0]
        if name in SPACES:
            space = name
        elif name in ("v2", "v4", "v8"):
            lanes = int(name[1:])
        elif is_type(name):
            types.append(name)
        elif name in _WAITS:
            volatile = True
        elif name not in _HINTS and not ("::" in modifier and name in ("L1", "L2", "level")):
            rest.append(name)
    if len(types) != 1 or types[0] == "pred":
        raise Refused(f"{len(types)} types, expected one")
    if types[0] == "b128":
        raise Refused("there are no accesses of 128 bits at once: use a vector type such as int4")
    if lanes * ptx.TYPE_BYTES[types[0]] > 16:
        raise Refused("there are no accesses of more than 16 bytes")
    return _Access(space, lanes, types[0], volatile, tuple(rest))


def _plain(access: _Access) -> None:
    if access.rest:
        raise Refused(f"the modifier .{access.rest[0]} is not there")


def _elements(operand: ptx.Operand, access: _Access) -> tuple[ptx.Operand, ...]:
    found = operand.elements if isinstance(operand, ptx.Vector) else (operand,)
    if len(found) != access.lanes:
        raise Refused(f"{len(found)} values, expected {access.lanes}")
    return found


def _memory(operand: ptx.Operand) -> ptx.Memory:
    if not isinstance(operand, ptx.Memory):
        raise Refused("an address in brackets is missing")
    if operand.extra:
        raise Refused("textures and surfaces are not there: use global memory")
    return operand


def _address(t: Translation, memory: ptx.Memory) -> Address:
    """A 32-bit address; of a 64-bit one the low word counts, since all memory lies below 2 ** 32."""
    match memory.base:
        case None:
            return Address(Const(memory.offset & Type.B32.mask, Type.B32))
        case ptx.Symbol(name=name, offset=offset):
            return Address(t.variable(ptx.Symbol(name, offset + memory.offset)))
        case ptx.Register() as register:
            base = t.register(register)
            if base.type is Type.B64:
                base = t.compute("zext32", Type.B32, base)
            if base.type is not Type.B32:
                raise Refused("an address must be 32 or 64 bits wide")
            return Address(base, offset=memory.offset)


def _held(access: _Access) -> Type:
    """The narrowest register that holds a value of the access; floats are held as their bits."""
    return Type(max(access.width * 8, 16))


# ---- Loads and stores ----


def _load(t: Translation, instruction: ptx.Instruction) -> None:
    access = _access(instruction)
    _plain(access)
    destination, source = operand_count(instruction, 2)
    elements = _elements(destination, access)
    memory = _memory(source)
    dests = []
    for element in elements:
        held = t.register(element).type if isinstance(element, ptx.Register) else _held(access)
        if held < _held(access):
            raise Refused("a result register is narrower than what is loaded")
        dests.append(t.dest(element, held))
    if access.space == "param" and isinstance(memory.base, ptx.Symbol):
        for lane, dest in enumerate(dests):
            offset = memory.base.offset + memory.offset + lane * access.width
            _load_parameter(t, access, memory.base.name, offset, dest)
    else:
        address = _address(t, memory)
        signed = access.type[0] == "s"
        # A parameter whose address was taken is a copy in local memory.
        space = "generic" if access.space == "param" else access.space
        t.emit(Load(tuple(dests), space, address, access.width, signed, access.volatile))


def _extend(t: Translation, access: _Access, source: Operand, dest: Reg) -> None:
    if access.width * 8 == dest.type and source.type is dest.type:
        t.compute("mov", dest.type, source, dest=dest)
    else:
        extension = "sext" if access.type[0] == "s" else "zext"
        t.compute(f"{extension}{access.width * 8}", dest.type, source, dest=dest)


def _load_parameter(t: Translation, access: _Access, name: str, offset: int, dest: Reg) -> None:
    """A parameter of the kernel is an operand; one of a device function is a register of its own."""
    if name in t.parameters:
        size = next(p.size for p in t.frames[0].function.parameters if p.name == name)
        if not 0 <= offset <= size - access.width:
            raise Refused("this reads beyond the parameter")
        offset += t.parameters[name]
        if offset % access.width:
            raise Refused("a misaligned parameter")
        if access.width < 4:
            word = Param(offset & ~3, Type.B32)
            shifted = t.compute("shr.u", Type.B32, word, Const(offset % 4 * 8, Type.B32))
            _extend(t, access, shifted, dest)
        else:
            _extend(t, access, Param(offset, Type(access.width * 8)), dest)
        return
    _extend(t, access, t.read_cell(t.place(name), offset, access.width), dest)


def _store(t: Translation, instruction: ptx.Instruction) -> None:
    access = _access(instruction)
    _plain(access)
    destination, source = operand_count(instruction, 2)
    memory = _memory(destination)
    values = tuple(t.source(element, _held(access), wider=True) for element in _elements(source, access))
    if access.space != "param":
        t.emit(Store(values, access.space, _address(t, memory), access.width, access.volatile))
        return
    if not isinstance(memory.base, ptx.Symbol):
        raise Refused("a parameter array indexed at run time: pass a pointer instead")
    for lane, value in enumerate(values):
        offset = memory.base.offset + memory.offset + lane * access.width
        t.write_cell(t.place(memory.base.name), offset, access.width, value)


# ---- Atomics ----

_ATOMIC_OPS = {"add": "add", "exch": "exch", "and": "and", "or": "or", "xor": "xor", "inc": "inc", "dec": "dec"}


def _atomic(t: Translation, instruction: ptx.Instruction) -> None:
    """``atom`` and ``red``; memory order and scope change nothing on a machine that is always in order."""
    access = _access(instruction)
    if access.type[0] == "f" or access.type.startswith("bf"):
        raise Refused(FLOATING)
    if len(access.rest) != 1 or access.lanes != 1 or access.width not in (2, 4, 8):
        raise Refused("this kind of atomic is not there")
    name = access.rest[0]
    op = f"{name}.{sign(access.type)}" if name in ("min", "max") else "cas" if name == "cas" else _ATOMIC_OPS.get(name)
    if op is None or (access.width == 2 and op != "cas"):
        raise Refused(f"the atomic .{name} is not there")
    type_ = register_type(access.type)
    count = 2 if op == "cas" else 1
    result: Reg | None = None
    if instruction.opcode == "atom":
        destination, target, *rest = operand_count(instruction, 2 + count)
        result = None if isinstance(destination, ptx.Sink) else t.dest(destination, type_)
    else:
        target, *rest = operand_count(instruction, 1 + count)
    sources = tuple(t.source(operand, type_) for operand in rest)
    t.emit(Atomic(op, result, access.space, _address(t, _memory(target)), access.width, sources))


# ---- Barriers and fences ----


def _fence(t: Translation, instruction: ptx.Instruction) -> None:
    t.emit(Fence())


def _whole_cta(operand: ptx.Operand) -> None:
    if operand != ptx.Immediate(0):
        raise Refused("named barriers are not there: __syncthreads() is")


def _barrier(t: Translation, instruction: ptx.Instruction) -> None:
    _whole_cta(operand_count(instruction, 1)[0])
    t.emit(Barrier())


def _barrier_reduce(t: Translation, instruction: ptx.Instruction) -> None:
    op = next(modifier for modifier in instruction.modifiers if modifier in ("popc", "and", "or"))
    dest, barrier, source = operand_count(instruction, 3)
    _whole_cta(barrier)
    result = t.dest(dest, Type.B32 if op == "popc" else Type.PRED)
    t.emit(Barrier(op, result, t.source(source, Type.PRED)))


# ---- Spaces ----


def _is_space(t: Translation, instruction: ptx.Instruction) -> None:
    """``isspacep``: shared memory lies above all other memory."""
    dest, source = operand_count(instruction, 2)
    space = instruction.modifiers[0].split("::")[0]
    if space not in ("shared", "global"):
        raise Refused("of a pointer's space it can be asked whether it is shared or global only")
    if not isinstance(source, ptx.Register):
        raise Refused("an address in a register is missing")
    address: Operand = t.register(source)
    if address.type is Type.B64:
        address = t.compute("zext32", Type.B32, address)
    op = "ge.u" if space == "shared" else "lt.u"
    t.compute(op, Type.B32, address, t.shared_window(), dest=t.dest(dest, Type.PRED))


# ---- Lanes of a warp ----


def _pair(t: Translation, operand: ptx.Operand, type_: Type) -> tuple[Reg | None, ...]:
    if not isinstance(operand, ptx.Pair):
        return (t.dest(operand, type_),)
    second = None if isinstance(operand.second, ptx.Sink) else t.dest(operand.second, Type.PRED)
    return (t.dest(operand.first, type_), second)


def _shuffle(t: Translation, instruction: ptx.Instruction) -> None:
    _, mode, *_ = instruction.modifiers
    dest, *rest = operand_count(instruction, 5)
    sources = tuple(t.source(operand, Type.B32) for operand in rest)
    t.emit(WarpOp(f"shuffle.{mode}", Type.B32, _pair(t, dest, Type.B32), sources))


def _vote(t: Translation, instruction: ptx.Instruction) -> None:
    _, mode, *_ = instruction.modifiers
    dest, source, members = operand_count(instruction, 3)
    result = t.dest(dest, Type.B32 if mode == "ballot" else Type.PRED)
    t.emit(WarpOp(f"vote.{mode}", Type.PRED, (result,), (t.source(source, Type.PRED), t.source(members, Type.B32))))


def _match(t: Translation, instruction: ptx.Instruction) -> None:
    type_ = register_type(only_type(instruction))
    dest, source, members = operand_count(instruction, 3)
    sources = (t.source(source, type_), t.source(members, Type.B32))
    t.emit(WarpOp(f"match.{instruction.modifiers[0]}", type_, _pair(t, dest, Type.B32), sources))


def _reduce(t: Translation, instruction: ptx.Instruction) -> None:
    name = only_type(instruction)
    if name not in ("b32", "s32", "u32"):
        raise Refused(FLOATING if name[0] == "f" else f"not for the type .{name}")
    op = instruction.modifiers[1]
    op = f"{op}.{sign(name)}" if op in ("min", "max") else op
    dest, *rest = operand_count(instruction, 3)
    sources = tuple(t.source(operand, Type.B32) for operand in rest)
    t.emit(WarpOp(f"reduce.{op}", Type.B32, (t.dest(dest, Type.B32),), sources))


def _elect(t: Translation, instruction: ptx.Instruction) -> None:
    """``elect.sync d|p, members``: the first member, and whether this lane is it."""
    dest, members = operand_count(instruction, 2)
    if not isinstance(dest, ptx.Pair):
        raise Refused("two results are expected, d|p")
    mask = t.source(members, Type.B32)
    t.emit(WarpOp("syncwarp", Type.B32, (), (mask,)))
    first = t.compute("clz", Type.B32, t.compute("reverse", Type.B32, mask))
    t.compute("eq", Type.B32, first, Special("laneid"), dest=t.dest(dest.second, Type.PRED))
    t.compute("mov", Type.B32, first, dest=t.dest(dest.first, Type.B32))


def _nothing(t: Translation, instruction: ptx.Instruction) -> None:
    """What only hints at something that this machine does not have."""


def _activemask(t: Translation, instruction: ptx.Instruction) -> None:
    t.emit(WarpOp("activemask", Type.B32, (t.dest(operand_count(instruction, 1)[0], Type.B32),), ()))


def _syncwarp(t: Translation, instruction: ptx.Instruction) -> None:
    t.emit(WarpOp("syncwarp", Type.B32, (), (t.source(operand_count(instruction, 1)[0], Type.B32),)))


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("bar.sync", "bar.cta.sync", "barrier.sync", "barrier.cta.sync"), _barrier),
    **dict.fromkeys(("barrier.sync.aligned", "barrier.cta.sync.aligned"), _barrier),
    **{f"bar{cta}.red.{op}": _barrier_reduce for cta in ("", ".cta") for op in ("popc", "and", "or")},
    **{f"barrier{cta}.red.{op}{aligned}": _barrier_reduce
       for cta in ("", ".cta") for op in ("popc", "and", "or") for aligned in ("", ".aligned")},
    "bar.warp.sync": _syncwarp,
    **{f"shfl.sync.{mode}": _shuffle for mode in ("idx", "up", "down", "bfly")},
    **{f"vote.sync.{mode}": _vote for mode in ("all", "any", "uni", "ballot")},
    **{f"match.{mode}.sync": _match for mode in ("any", "all")},
    **{f"redux.sync.{op}": _reduce for op in ("add", "min", "max", "and", "or", "xor")},
    "activemask": _activemask,
    "elect.sync": _elect,
}  # fmt: skip

BY_OPCODE: dict[str, Handler] = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
    "membar": _fence,
    "fence": _fence,
    "nanosleep": _fence,
    "isspacep": _is_space,
    **dict.fromkeys(("prefetch", "prefetchu", "applypriority", "discard", "pmevent"), _nothing),
}
