"""PTX as data: the frozen syntax tree that `ptx_parser.parse_ptx` builds and the front end reads.

The tree says what is written, not what it means: opcodes and modifiers are text, registers keep their names. Names are
resolved, though: a register operand is declared, and registers and labels of nested scopes have names of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

TYPE_BYTES: dict[str, int] = {
    "b8": 1, "u8": 1, "s8": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "f32x2": 8,
    "b128": 16,
}  # fmt: skip
"""Bytes of every PTX type that stands for data in memory (predicates do not)."""

SPECIAL_REGISTERS = frozenset(
    """tid ntid ctaid nctaid laneid warpid nwarpid smid nsmid gridid clusterid nclusterid cluster_ctaid cluster_nctaid
    cluster_ctarank cluster_nctarank is_explicit_cluster lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt
    clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi total_smem_size aggr_smem_size dynamic_smem_size
    reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap reserved_smem_offset_0
    reserved_smem_offset_1 current_graph_exec""".split()
)  # envreg0..31 and pm0..7 are told by their prefix


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's source, from ``.loc``: file as the compiler was told it, line from 1, what stands there."""

    file: str
    line: int
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Register:
    """A declared register, with the PTX type of its declaration ("pred", "b32", ...)."""

    name: str
    type: str


@dataclass(frozen=True)
class SpecialRegister:
    """A read-only register of PTX without its ``%``: "tid.x", "laneid", ..."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """An integer as written (negative if written with a minus sign)."""

    value: int


@dataclass(frozen=True)
class FloatImmediate:
    """A floating-point literal as written; no instruction of the machine takes one yet."""

    text: str


@dataclass(frozen=True)
class Symbol:
    """A variable, function, label or other name, plus an offset in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Negated:
    """``!%p``: a predicate read inverted."""

    register: Register


@dataclass(frozen=True)
class Memory:
    """``[base + offset]``; base None is an absolute address. ``extra`` holds further parts, as textures have."""

    base: "Register | Symbol | None"
    offset: int
    extra: "tuple[Operand, ...]" = ()


@dataclass(frozen=True)
class Vector:
    """``{a, b, ...}``"""

    elements: "tuple[Operand, ...]"


@dataclass(frozen=True)
class Pair:
    """``a|b``: two results of one instruction."""

    first: "Operand"
    second: "Operand"


@dataclass(frozen=True)
class Group:
    """``(a, b, ...)``: arguments or results of a call."""

    elements: "tuple[Operand, ...]"


@dataclass(frozen=True)
class Sink:
    """``_``: a result that nobody reads."""


Operand = (
    Register | SpecialRegister | Immediate | FloatImmediate | Symbol | Negated | Memory | Vector | Pair | Group | Sink
)


@dataclass(frozen=True)
class Guard:
    """``@%p`` or ``@!%p`` before an instruction."""

    register: Register
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``opcode`` is what stands before the first dot, ``modifiers`` the rest without dots.

    line: of the PTX text. source: the user's line, or None without line information.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    source: SourceLine | None

    @property
    def name(self) -> str:
        """The opcode with its modifiers, as written."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Label:
    """A place in the code."""

    name: str
    line: int


@dataclass(frozen=True)
class BranchTargets:
    """``name: .branchtargets a, b, ...;``, the table of a ``brx.idx``."""

    name: str
    targets: tuple[str, ...]
    line: int


Statement = Instruction | Label | BranchTargets


@dataclass(frozen=True)
class Variable:
    """A variable in memory.

    space: "global", "const", "shared", "local" or "param". size in bytes, 0 for an ``extern`` array without one.
    initial: (element bytes, values), values being integers or addresses; None when not initialised.
    """

    space: str
    name: str
    type: str
    align: int
    size: int
    line: int
    extern: bool = False
    initial: "tuple[int, tuple[int | Symbol, ...]] | None" = None


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel or function: size and align in bytes; pointer when declared with ``.ptr``.

    register: it is a register of the function, declared with ``.reg``.
    """

    name: str
    type: str
    size: int
    align: int
    pointer: bool
    line: int
    register: bool = False


@dataclass(frozen=True)
class Function:
    """A kernel (``.entry``) or a device function (``.func``). A mere declaration has body None.

    variables: those declared inside, of any space. limits: maxntid and the like, as written.
    """

    name: str
    entry: bool
    parameters: tuple[Parameter, ...]
    returns: tuple[Parameter, ...]
    variables: tuple[Variable, ...]
    body: tuple[Statement, ...] | None
    line: int
    limits: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Module:
    """A whole PTX file. address_size is 32 or 64."""

    file: str
    version: str
    target: tuple[str, ...]
    address_size: int
    variables: tuple[Variable, ...]
    functions: tuple[Function, ...]

    @property
    def kernels(self) -> tuple[Function, ...]:
        """The functions that can be launched."""
        return tuple(function for function in self.functions if function.entry)


def readable_name(name: str) -> str:
    """The name a CUDA user wrote, from a mangled C++ name: "_Z3dotPKiS0_Pii" is "dot"; other names stay as they are.

    Namespaces are kept with "::"; template arguments and parameter types are dropped.
    """
    if not name.startswith("_Z"):
        return name
    position = 2
    nested = name[position : position + 1] == "N"
    position += nested
    parts: list[str] = []
    while position < len(name) and name[position].isdigit():
        end = position
        while end < len(name) and name[end].isdigit():
            end += 1
        length = int(name[position:end][:6])
        if end + length > len(name):
            return name
        parts.append(name[end : end + length])
        position = end + length
        if not nested:
            break
    if not parts or not parts[-1]:
        return name
    return "::".join("(anonymous)" if part.startswith("_GLOBAL__N") else part for part in parts)
