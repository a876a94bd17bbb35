"""64-bit operations written out in 32-bit ones, against what each operation's own row says."""

import random
import zlib

import pytest

from qgpu.cuda import evaluate
from qgpu.cuda.ir import (
    Address,
    BasicBlock,
    Compute,
    Const,
    Exit,
    Function,
    Instruction,
    KernelParameter,
    Operand,
    Param,
    Reg,
    Store,
    Type,
    operands,
    writes,
)
from qgpu.cuda.lower_wide import split_wide
from qgpu.cuda.ops import EXTENSIONS, OPS
from qgpu.cuda.verify import verify

EDGES = (0, 1, 2, 31, 32, 33, 63, 64, 65, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF,
         0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFE00000001)  # fmt: skip
PARAMETERS = (
    KernelParameter("out", "u32", 0, 4, 4, True),
    *(KernelParameter(f"p{k}", "u64", 8 + 8 * k, 8, 8, False) for k in range(4)),
)
NARROW = frozenset({"mulwide.s", "mulwide.u", "pack", "high"})
"""Their own type is half of that of the pair."""
MISSING = frozenset({"funnel.l.wrap", "funnel.l.clamp", "funnel.r.wrap", "funnel.r.clamp", "permute", "carry",
                     "div.s", "div.u", "rem.s", "rem.u"})  # fmt: skip


def one_operation(op: str, type_: Type, values: list[int], constants: bool) -> Function:
    """out[0] = op(p0, p1, ...), which are ``values``; constants: all but the first stand in the code."""
    row = OPS[op]
    items: list[Instruction] = []
    sources: list[Operand] = []
    for k in range(len(row.sources)):
        kind = row.source_type(k, type_) or Type.B64
        where, register = Param(8 + 8 * k, Type.B64), Reg(f"{'prwd'[[1, 16, 32, 64].index(int(kind))]}{k}", kind)
        if kind is Type.PRED:
            items.append(Compute("ne", Type.B64, register, (where, Const(0, Type.B64))))
        else:
            items.append(Compute("mov" if kind is Type.B64 else "zext32", kind, register, (where,)))
        constant = kind is not Type.PRED and k and (constants or op == "logic3")
        sources.append(
            Const(values[k] & (255 if op == "logic3" and k == 3 else kind.mask), kind) if constant else register
        )
    kind = row.result_type(type_) or type_
    dest = {Type.PRED: Reg("q", Type.PRED), Type.B64: Reg("d0", Type.B64), Type.B32: Reg("x", Type.B32)}[kind]
    items.append(Compute(op, type_, dest, tuple(sources)))
    out = dest
    if kind is Type.PRED:
        out = Reg("x", Type.B32)
        items.append(Compute("select", Type.B32, out, (Const(1, Type.B32), Const(0, Type.B32), dest)))
    items.append(Store((out,), "global", Address(Param(0, Type.B32)), out.type // 8))
    return verify(Function("k", PARAMETERS, (), (BasicBlock("entry", tuple(items), Exit()),)))


def result(function: Function, values: list[int]) -> bytes:
    memory = bytearray(80)
    evaluate.run(function, bytes([64, 0, 0, 0, 0, 0, 0, 0]) + b"".join(v.to_bytes(8, "little") for v in values), memory)
    return bytes(memory[64:72])


@pytest.mark.parametrize("op", [op for op in OPS if op not in MISSING])
def test_operation(op):
    rng = random.Random(zlib.crc32(op.encode()))
    type_ = Type.B32 if op in NARROW else Type.B64
    for round_ in range(24):
        values = [
            rng.choice([rng.choice(EDGES), rng.getrandbits(64), rng.getrandbits(40), rng.getrandbits(7)])
            for _ in range(4)
        ]
        whole = one_operation(op, type_, values, constants=bool(round_ % 2))
        split = verify(split_wide(whole))
        assert result(split, values) == result(whole, values), [hex(value) for value in values]
        registers = {r.type for b in split.blocks for item in b.instructions for r in (*operands(item), *writes(item))}
        assert Type.B64 not in registers


def test_the_table_of_extensions_is_covered():
    assert {f"{sign}ext{bits}" for sign in "sz" for bits in (8, 16, 32)} == set(EXTENSIONS)
