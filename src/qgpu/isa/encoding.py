"""A block's fields and their places: the one table that assembler, interpreter, circuits and lowering read.

A block is 4 parts of 64 bits. A field lies in one part, little-endian. Bits that no field owns are zero. Enumerated
fields take the names of ``CHOICES``; a choice's number is its place in the tuple. docs/machine.md, "Block encoding",
explains each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qgpu.isa.tokens import PARTS

ALU_OPS: Final = ("add", "sub", "and", "or", "xor", "min.s", "max.s", "min.u", "max.u", "rsub", "first", "second",
                  "andn", "orn", "sad.s", "sad.u", "clz", "popc", "brev", "bfind.s", "bfind.u", "prmt", "bfe.s",
                  "bfe.u", "place", "byte.s", "byte.u", "half.s", "half.u", "cnot", "slct", "addc")  # fmt: skip
CONDITIONS: Final = ("eq", "ne", "lt.s", "le.s", "gt.s", "ge.s", "lt.u", "le.u", "gt.u", "ge.u")
M_OPS: Final = ("first", "mul.lo", "mulhi.s", "mulhi.u", "shl", "shr.s", "shr.u", "shf.l.wrap", "shf.l.clamp",
                "shf.r.wrap", "shf.r.clamp")  # fmt: skip

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "x": (
        "zero",
        "tid.x",
        "tid.y",
        "tid.z",
        "laneid",
        "warpid",
        "activemask",
        "lanemask_eq",
        "lanemask_lt",
        "lanemask_le",
        "lanemask_gt",
        "lanemask_ge",
    ),  # fmt: skip
    "y": ("ctaid.x", "ctaid.y", "ctaid.z"),
    "a_sel": ("zero", "A", "P", "Y", "X", "I"),
    "b_sel": ("zero", "B", "I", "X", "P"),
    "sa_sel": ("zero", "A", "B", "T"),
    "sb_sel": ("zero", "BS", "I"),
    "m1_sel": ("zero", "A", "R", "L", "S1", "V", "B", "Q"),
    "m2_sel": ("zero", "B", "I", "Q", "L", "S2", "R", "A"),
    "c_sel": ("zero", "C", "S2", "X", "I", "Q", "V", "L"),
    "alu_a": ALU_OPS,
    "alu_b": ALU_OPS,
    "m_op": M_OPS,
    "load": ("none", "u8", "s8", "u16", "s16", "b32", "b64"),
    "store": ("none", "b8", "b16", "b32", "b64"),
    "atomic": ("none", "add", "min.s", "max.s", "min.u", "max.u", "inc", "dec", "and", "or", "xor", "exch", "cas"),
    "e_sel": ("R", "L", "H"),
    "stage_w": ("none", "R", "L"),
    "cond": CONDITIONS,
    "p_src": ("a", "b", "v"),
    "branch": ("next", "bra", "exit", "bar", "trap", "gather"),
    "collect": ("none", "shfl.idx", "shfl.up", "shfl.down", "shfl.bfly", "ballot", "sync"),
    "member": ("Q", "A"),
}


@dataclass(frozen=True)
class Field:
    """A bit field of a block: bits ``shift``..``shift + width - 1`` of part ``part``."""

    name: str
    part: int
    shift: int
    width: int
    meaning: str


def _layout() -> tuple[Field, ...]:
    rows: tuple[tuple[tuple[str, int, str], ...], ...] = (
        (
            ("ra", 4, "register of port A"),
            ("rb", 4, "register of port B"),
            ("rc", 4, "register of port C"),
            ("d_e", 4, "destination of the early result E, 0 for none"),
            ("d_b", 4, "destination of the late result D, 0 for none"),
            ("d_o", 4, "destination of an atomic's old value, 0 for none"),
            ("imm", 16, "immediate I, sign-extended"),
            ("pa", 7, "parameter word P"),
            ("pq", 7, "parameter word Q"),
            ("pt", 7, "parameter word T"),
        ),
        (
            ("x", 4, "lane special X"),
            ("y", 2, "CTA special Y"),
            ("a_sel", 3, "first operand of ALU A"),
            ("b_sel", 3, "second operand of ALU A, before the shift"),
            ("b_shift", 2, "left shift of the second operand: BS"),
            ("alu_a", 5, "operation of ALU A"),
            ("sa_sel", 2, "base of the store address"),
            ("sb_sel", 2, "offset of the store address"),
            ("load", 3, "load at address R"),
            ("load_wide", 1, "the load must be aligned to 16 bytes"),
            ("e_sel", 2, "early result E"),
            ("stage_w", 2, "what is written to a stage register"),
            ("stage_wi", 2, "stage register written"),
            ("stage_1", 2, "stage register read as S1"),
            ("stage_2", 2, "stage register read as S2"),
            ("collect", 3, "what is collected from the warp as V"),
            ("collect_parity", 1, "exchange buffer that is collected from"),
            ("publish_parity", 1, "exchange buffer that a gather publishes to"),
            ("member", 1, "where a gather's member mask comes from"),
        ),
        (
            ("m1_sel", 3, "first operand of unit M"),
            ("m2_sel", 3, "second operand of unit M"),
            ("m_op", 4, "operation of unit M"),
            ("c_sel", 3, "second operand of ALU B"),
            ("alu_b", 5, "operation of ALU B"),
        ),
        (
            ("cond", 4, "comparison that a predicate write tests"),
            ("p_write", 1, "write a predicate"),
            ("p_index", 2, "predicate written"),
            ("p_src", 2, "what is tested: ALU A's operands, ALU B's, or the shuffle's range"),
            ("g_index", 2, "predicate read as the guard G"),
            ("g_neg", 1, "the guard is the predicate's complement"),
            ("g_sel", 1, "the late result is C where G is false"),
            ("g_load", 1, "no load fault where G is false"),
            ("g_store", 1, "no store or atomic where G is false"),
            ("g_branch", 1, "branch, exit or trap only where G is true"),
            ("store", 3, "store at address S"),
            ("store_wide", 1, "the store must be aligned to 16 bytes"),
            ("atomic", 4, "atomic at address S"),
            ("branch", 3, "how the block ends"),
            ("target", 8, "block that a branch goes to"),
            ("back", 1, "the branch goes to this block or a lower one"),
            ("yield", 1, "a taken back-edge lets other lanes go first"),
        ),
    )
    fields = []
    for part, part_rows in enumerate(rows):
        shift = 0
        for name, width, meaning in part_rows:
            fields.append(Field(name, part, shift, width, meaning))
            shift += width
        assert shift <= 64
    return tuple(fields)


FIELDS: Final = _layout()
BY_NAME: Final = {field.name: field for field in FIELDS}


def encode(values: dict[str, int | str]) -> tuple[int, ...]:
    """Four 64-bit integers from field values (numbers, or names of ``CHOICES``); fields left out are 0.

    Raises ValueError for an unknown field or choice, or a number that does not fit (``imm`` takes -32768..32767).
    """
    parts = [0] * PARTS
    for name, value in values.items():
        field = BY_NAME.get(name)
        if field is None:
            raise ValueError(f"a block has no field {name!r}")
        if isinstance(value, str):
            choices = CHOICES.get(name, ())
            if value not in choices:
                raise ValueError(f"{name} is one of {', '.join(choices) or 'numbers only'}, not {value!r}")
            value = choices.index(value)
        low = -(1 << field.width - 1) if name == "imm" else 0
        high = (1 << field.width - 1) - 1 if name == "imm" else (1 << field.width) - 1
        if not low <= value <= high:
            raise ValueError(f"{name} {value} is not in {low}..{high}")
        parts[field.part] |= (value & (1 << field.width) - 1) << field.shift
    return tuple(parts)


def decode(parts: tuple[int, ...]) -> dict[str, int]:
    """All field values as numbers; ``imm`` sign-extended."""
    values = {f.name: parts[f.part] >> f.shift & (1 << f.width) - 1 for f in FIELDS}
    values["imm"] -= (values["imm"] & 0x8000) << 1
    return values


def choice(name: str, value: int) -> str:
    """The name of an enumerated field's value. Raises ValueError for a number that has no name."""
    choices = CHOICES[name]
    if value >= len(choices):
        raise ValueError(f"{name} {value} is reserved (0..{len(choices) - 1} have a meaning)")
    return choices[value]
