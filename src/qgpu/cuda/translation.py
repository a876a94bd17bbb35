"""The state of translating one kernel from PTX to IR, and the small steps that all translation tables share.

A table's function reads one PTX instruction, emits IR into the translation, or raises `Refused` with a hint. It never
stops at the first refusal: the front end collects them.
"""

from dataclasses import dataclass, field, replace

from qgpu.cuda import ptx
from qgpu.cuda.ir import (
    SHARED_WINDOW,
    Address,
    BasicBlock,
    Compute,
    Const,
    Guard,
    Instruction,
    Jump,
    Operand,
    Origin,
    Param,
    Reg,
    Special,
    Store,
    Terminator,
    Type,
    VariableAddress,
)
from qgpu.cuda.ops import SPECIALS

REGISTER_TYPES: dict[str, Type] = {
    "pred": Type.PRED,
    **dict.fromkeys(("b8", "u8", "s8", "b16", "u16", "s16", "f16", "bf16"), Type.B16),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2", "tf32"), Type.B32),
    **dict.fromkeys(("b64", "u64", "s64", "f64", "f32x2"), Type.B64),
}
"""The IR type that holds a PTX register or value type; floating-point registers are held as their bits."""

CONSTANTS: dict[str, int] = {"WARP_SZ": 32, "smid": 0, "nsmid": 1, "gridid": 0, "cluster_ctarank": 0}
"""Special registers that are the same in every launch."""

TEMPORARY = "."
"""How the names of registers made here begin; no name in PTX begins so."""

FLOATING = "floating point is not there yet: use integers (fixed point, say)"
WIDTH = "an operand has another width than the instruction"


class Refused(Exception):
    """An instruction the machine cannot run; the text is the hint for the user."""


@dataclass
class Frame:
    """A function being translated: the kernel, or a device function in place of a call.

    prefix: before its register and label names. places: where its PTX parameters live, for device functions.
    leave: the label a return goes to; None in the kernel, where a return ends the thread.
    """

    function: ptx.Function
    prefix: str = ""
    places: dict[str, str] = field(default_factory=dict)
    leave: str | None = None


@dataclass
class Translation:
    """What has been emitted so far. ``current`` is the ptx instruction being translated."""

    module: ptx.Module
    frames: list[Frame]
    parameters: dict[str, int]
    """byte offsets of the kernel's parameters"""
    blocks: list[BasicBlock] = field(default_factory=list)
    label: str | None = "entry"
    pending: list[Instruction] = field(default_factory=list)
    variables: dict[str, ptx.Variable] = field(default_factory=dict)
    cells: dict[str, dict[int, int]] = field(default_factory=dict)
    """the pieces of call parameters that have been written: place, offset, width in bytes"""
    lost: set[str] = field(default_factory=set)
    """the places of results of calls that were refused"""
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    temporaries: int = 0
    current: ptx.Instruction | None = None

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    # ---- Emitting ----

    def temporary(self, type_: Type) -> Reg:
        self.temporaries += 1
        return Reg(f"{TEMPORARY}{self.temporaries}", type_)

    def fresh_label(self) -> str:
        self.temporaries += 1
        return f"after{self.temporaries}"

    def origin(self) -> Origin | None:
        return None if self.current is None else Origin(self.current.line, self.current.source)

    def guard(self) -> Guard | None:
        if self.current is None or self.current.guard is None:
            return None
        return Guard(self.register(self.current.guard.register), self.current.guard.negated)

    def emit(self, instruction: Instruction) -> None:
        """Adds an instruction with the guard and origin of the PTX instruction at hand.

        Temporaries are only read by what follows, so they need no guard.
        """
        helper = isinstance(instruction, Compute) and instruction.dest.name.startswith(TEMPORARY)
        guard = None if helper else self.guard()
        self._open()
        self.pending.append(replace(instruction, guard=guard, origin=self.origin()))

    def compute(
        self, op: str, type_: Type, *sources: Operand, dest: Reg | None = None, result: Type | None = None
    ) -> Reg:
        """Emits dest = op(sources); without ``dest`` the result goes to a temporary of type ``result`` or ``type_``."""
        dest = dest or self.temporary(result or type_)
        self.emit(Compute(op, type_, dest, sources))
        return dest

    def _open(self) -> None:
        if self.label is None:
            self.label = self.fresh_label()

    def finish(self, terminator: Terminator) -> None:
        """Closes the block at hand."""
        self._open()
        assert self.label is not None
        closed = replace(terminator, origin=self.origin())
        self.blocks.append(BasicBlock(self.label, tuple(self.pending), closed))
        self.label, self.pending = None, []

    def start(self, label: str) -> None:
        """Opens a block; the one before falls through to it."""
        if self.label is not None:
            self.finish(Jump(label))
        self.label = label

    # ---- Names ----

    def code_label(self, name: str) -> str:
        return self.frame.prefix + name

    def register(self, register: ptx.Register) -> Reg:
        type_ = REGISTER_TYPES.get(register.type)
        if type_ is None:
            raise Refused(f"registers of type .{register.type} are not there")
        return Reg(self.frame.prefix + register.name, type_)

    def variable(self, symbol: ptx.Symbol, type_: Type = Type.B32) -> VariableAddress:
        """The address of a variable, which from now on belongs to the kernel."""
        for variable in (*self.frame.function.variables, *self.module.variables):
            if variable.name == symbol.name and variable.space != "param":
                self.variables[variable.name] = variable
                return VariableAddress(variable.name, symbol.offset, type_)
        if any(function.name == symbol.name for function in self.module.functions):
            raise Refused("pointers to functions are not there: call the function by its name")
        return VariableAddress(self._parameter_in_memory(symbol.name), symbol.offset, type_)

    def shared_window(self) -> VariableAddress:
        """The address at which shared memory starts."""
        self.variables[SHARED_WINDOW] = ptx.Variable("shared", SHARED_WINDOW, "b8", 1, 0, 0)
        return VariableAddress(SHARED_WINDOW, 0)

    def _parameter_in_memory(self, name: str) -> str:
        """The local variable that takes a copy of a parameter, since its address is asked for."""
        copy = f"{self.frame.prefix}{name}.copy"
        parameter = next((p for p in self.frame.function.parameters if p.name == name and not p.register), None)
        if parameter is None or not parameter.size:
            raise Refused(f"there is no variable {name}")
        align = max(parameter.align, 4)
        size = -(-parameter.size // 4) * 4
        self.variables[copy] = ptx.Variable("local", copy, "b8", align, size, parameter.line)
        for offset in range(0, parameter.size, 4):
            value: Operand
            if len(self.frames) == 1:
                value = Param(self.parameters[name] + offset, Type.B32)
            else:
                value = self.read_cell(self.place(name), offset, min(4, parameter.size - offset))
                value = value if value.type is not Type.B16 else self.compute("zext16", Type.B32, value)
            self.emit(Store((value,), "local", Address(VariableAddress(copy, offset)), 4))
        return copy

    # ---- Parameters of calls: each piece that is written is a register, a cell ----

    def place(self, name: str) -> str:
        """Where a parameter that the function at hand calls ``name`` lies."""
        return self.frame.places.get(name, self.frame.prefix + name)

    def write_cell(self, place: str, offset: int, width: int, value: Operand) -> None:
        """Writes ``width`` bytes of a parameter."""
        pieces = self.cells.setdefault(place, {})
        for other, size in list(pieces.items()):
            if other < offset + width and offset < other + size:
                del pieces[other]
        pieces[offset] = width
        cell = _cell(place, offset, width)
        if value.type is cell.type:
            self.compute("mov", cell.type, value, dest=cell)
        else:
            self.compute(f"zext{int(cell.type)}", cell.type, value, dest=cell)

    def read_cell(self, place: str, offset: int, width: int) -> Operand:
        """``width`` bytes of a parameter, put together from the pieces that it was written in."""
        pieces = self.cells.get(place, {})
        if place in self.lost:
            return Const(0, Type(max(width * 8, 16)))
        if pieces.get(offset) == width:
            return _cell(place, offset, width)
        type_ = Type.B64 if width == 8 else Type.B32
        result: Operand | None = None
        at = offset
        while at < offset + width:
            found = next(((other, size) for other, size in pieces.items() if other <= at < other + size), None)
            if found is None:
                raise Refused("a parameter of which a part was not passed")
            start, size = found
            count = min(start + size, offset + width) - at
            cell = _cell(place, start, size)
            piece = self.compute("shr.u", cell.type, cell, Const(8 * (at - start), Type.B32))
            piece = self.compute(f"zext{8 * count}" if count in (1, 2, 4) else "mov", type_, piece)
            piece = self.compute("shl", type_, piece, Const(8 * (at - offset), Type.B32))
            result = piece if result is None else self.compute("or", type_, result, piece)
            at += count
        assert result is not None
        return result

    # ---- Operands ----

    def source(self, operand: ptx.Operand, type_: Type, *, wider: bool = False) -> Operand:
        """An operand to read at ``type_``; ``wider`` lets a wider register stand, as stores do."""
        match operand:
            case ptx.Register():
                register = self.register(operand)
                if register.type is type_ or (wider and register.type > type_):
                    return register
                raise Refused(WIDTH)
            case ptx.Negated(register=negated):
                register = self.register(negated)
                if register.type is not type_ or type_ is not Type.PRED:
                    raise Refused(WIDTH)
                return self.compute("not", Type.PRED, register)
            case ptx.Immediate(value=value):
                return Const(int(value != 0) if type_ is Type.PRED else value & type_.mask, type_)
            case ptx.FloatImmediate(text=text) if text[:2] in ("0f", "0F", "0d", "0D"):
                return Const(int(text[2:], 16) & type_.mask, type_)
            case ptx.SpecialRegister(name=name) if name in CONSTANTS:
                return Const(CONSTANTS[name] & type_.mask, type_)
            case ptx.SpecialRegister(name=name) if name in SPECIALS:
                if type_ is Type.PRED:
                    raise Refused(WIDTH)
                if type_ is Type.B32:
                    return Special(name)
                # Old PTX reads thread and CTA indices as 16-bit numbers, too.
                return self.compute(f"zext{min(int(type_), 32)}", type_, Special(name))
            case ptx.SpecialRegister(name=name):
                raise Refused(f"%{name} has no meaning on this machine")
            case ptx.Symbol():
                return self.variable(operand, type_)
        raise Refused("an operand of a kind this instruction does not take")

    def dest(self, operand: ptx.Operand, type_: Type) -> Reg:
        """An operand to write at ``type_``; ``_`` goes to a temporary nobody reads."""
        if isinstance(operand, ptx.Sink):
            return self.temporary(type_)
        if not isinstance(operand, ptx.Register):
            raise Refused("the result goes to something that is no register")
        register = self.register(operand)
        if register.type is not type_:
            raise Refused(WIDTH)
        return register


def _cell(place: str, offset: int, width: int) -> Reg:
    return Reg(f"{place}+{offset}:{width}", Type(max(width * 8, 16)))


def operand_count(instruction: ptx.Instruction, *counts: int) -> tuple[ptx.Operand, ...]:
    """The operands, of which there must be one of ``counts``."""
    if len(instruction.operands) not in counts:
        raise Refused(f"{len(instruction.operands)} operands, expected {' or '.join(map(str, counts))}")
    return instruction.operands


def register_type(name: str) -> Type:
    """The IR type for values of a PTX integer or bit type. Raises Refused for floating point and for 8 bits."""
    if name[:1] not in ("b", "s", "u") and name != "pred":
        raise Refused(FLOATING)
    type_ = REGISTER_TYPES.get(name) if ptx.TYPE_BYTES.get(name) != 1 else None
    if type_ is None or name.startswith("bf"):
        raise Refused(FLOATING if name.startswith("bf") else f"the type .{name} is not there for this instruction")
    return type_


def is_type(name: str) -> bool:
    """Whether a modifier is a type."""
    return name in ptx.TYPE_BYTES or name == "pred"
