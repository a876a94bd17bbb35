"""What IR instructions read and write: register types, registers, constants and the other operands, addresses, guards.

A leaf of the IR: `ir` shows all of it again, and that is where the passes take it from.
"""

from dataclasses import dataclass
from enum import IntEnum

from qgpu.cuda.ptx import SourceLine


class Type(IntEnum):
    """A register type; its value is its width in bits."""

    PRED = 1
    B16 = 16
    B32 = 32
    B64 = 64

    @property
    def mask(self) -> int:
        return (1 << self) - 1

    def __str__(self) -> str:
        return "pred" if self is Type.PRED else f"b{int(self)}"


@dataclass(frozen=True, slots=True)
class Reg:
    """A virtual register, known by its name."""

    name: str
    type: Type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Const:
    """A constant, 0 <= value < 2 ** type. Printed as signed where that is shorter."""

    value: int
    type: Type

    def __str__(self) -> str:
        signed = self.value - (1 << self.type) if self.value >> (self.type - 1) else self.value
        return str(self.value if self.type is Type.PRED else signed)


@dataclass(frozen=True, slots=True)
class Special:
    """A special register: "tid.x", "laneid", ... Always 32 bits wide."""

    name: str

    @property
    def type(self) -> Type:
        return Type.B32

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter word: ``type`` bits at byte ``offset`` of the parameter area, aligned to its size."""

    offset: int
    type: Type

    def __str__(self) -> str:
        return f"param[{self.offset}]" + ("" if self.type is Type.B32 else f":{self.type}")


@dataclass(frozen=True, slots=True)
class VariableAddress:
    """The address of a shared, local, constant or global variable, plus ``offset`` bytes; zero-extended to ``type``."""

    name: str
    offset: int
    type: Type = Type.B32

    def __str__(self) -> str:
        return f"&{self.name}" + (f"{self.offset:+d}" if self.offset else "")


Operand = Reg | Const | Special | Param | VariableAddress


@dataclass(frozen=True, slots=True)
class Address:
    """Where a load, store or atomic goes: base + (index << shift) + offset, modulo 2 ** 32."""

    base: Operand
    index: Operand | None = None
    shift: int = 0
    offset: int = 0

    def __str__(self) -> str:
        text = str(self.base)
        if self.index is not None:
            text += f" + {self.index}" + (f" << {self.shift}" if self.shift else "")
        if self.offset:
            text += f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}"
        return f"[{text}]"


@dataclass(frozen=True, slots=True)
class Guard:
    """The instruction runs in threads where ``register`` is true (false, if negated)."""

    register: Reg
    negated: bool = False

    def __str__(self) -> str:
        return f"@{'!' if self.negated else ''}{self.register}"


@dataclass(frozen=True, slots=True)
class Origin:
    """What an instruction was made from: a line of the PTX, and the user's own source line if that is known."""

    ptx_line: int
    source: SourceLine | None = None
