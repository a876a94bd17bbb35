"""A launch for each operation: every thread runs it on its own operands, which stand in memory, and stores what it
gives; what it should give comes from Python integers (``tests.isa.reference_units``)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.isa import reference_units as units
from tests.machine.harness import block

from qgpu.isa import encoding, subset
from qgpu.isa.program import Block, Launch, Program

EDGES = (0, 1, 2, 3, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0x80000001,
         0xAAAAAAAA, 0x55555555, 0xFFFFFFFE, 0xFFFFFFFF, 0x0102, 0x2004, 0x1F1F, 0x0820, 0x3210, 0xFEDC)  # fmt: skip
THREADS = 32
IN, OUT = 64, 1024  # operands of thread t at IN + 16 t, its results at OUT + 8 t
ALL = {row: (1 << 64) - 1 for row in range(IN // 64, (OUT + 8 * THREADS) // 64)}

Expected = Callable[[int, int, int], tuple[int, int]]


def cases() -> dict[str, tuple[dict[str, int | str], Expected]]:
    """Name -> (fields of the block, (a, b, c) -> (word stored, predicate stored)). r1, r2, r3 are a, b, c."""
    found: dict[str, tuple[dict[str, int | str], Expected]] = {}
    ports: dict[str, int | str] = {"ra": 1, "rb": 2, "rc": 3}
    for op in sorted(subset.REVISED["alu_a"]):
        fields = {**ports, "a_sel": "A", "b_sel": "B", "alu_a": op, "d_e": 4}
        found[f"alu_a {op}"] = fields, lambda a, b, c, op=op: (units.alu(op, a, b), 0)  # type: ignore[misc]
    for op in sorted(subset.QUICK):
        fields = {**ports, "m1_sel": "A", "c_sel": "C", "alu_b": op, "d_b": 4}
        found[f"alu_b {op}"] = fields, lambda a, b, c, op=op: (units.alu(op, a, c), 0)  # type: ignore[misc]
    for op in encoding.M_OPS:
        fields = {**ports, "m1_sel": "A", "m2_sel": "B", "m_op": op, "alu_b": "first", "c_sel": "C", "d_b": 4}
        found[f"m_op {op}"] = fields, lambda a, b, c, op=op: (units.unit_m(op, a, b, c), 0)  # type: ignore[misc]
    for op in sorted(subset.PRODUCTS):
        for alu in ("add", "sub", "rsub"):
            fields = {**ports, "m1_sel": "A", "m2_sel": "B", "m_op": op, "alu_b": alu, "c_sel": "C", "d_b": 4}
            found[f"{op}, {alu}"] = fields, lambda a, b, c, op=op, alu=alu: (  # type: ignore[misc]
                units.alu(alu, units.unit_m(op, a, b, c), c), 0)  # fmt: skip
    for name in encoding.CONDITIONS:
        fields = {**ports, "a_sel": "A", "b_sel": "B", "cond": name, "p_write": 1, "d_e": 4, "alu_a": "first"}
        found[f"a {name}"] = fields, lambda a, b, c, n=name: (a, int(units.condition(n, a, b)))  # type: ignore[misc]
        fields = {**ports, "m1_sel": "A", "c_sel": "C", "cond": name, "p_write": 1, "p_src": "b", "d_b": 4,
                  "alu_b": "first"}  # fmt: skip
        found[f"b {name}"] = fields, lambda a, b, c, n=name: (a, int(units.condition(n, a, c)))  # type: ignore[misc]
    return found


def program(fields: dict[str, int | str]) -> Program:
    """Loads a, b, c, runs the block, stores r4 and predicate 0 (as 1 or 0)."""
    here: dict[str, int | str] = {"a_sel": "X", "x": "tid.x", "b_sel": "X", "alu_a": "second"}
    blocks: list[Block] = [
        block(**here, b_shift=2, m1_sel="R", m2_sel="I", imm=4, m_op="mul.lo", d_b=5),
        *(block(a_sel="A", ra=5, b_sel="I", imm=IN + 4 * n, load="b32", e_sel="L", d_e=n + 1) for n in range(3)),
        block(**here, b_shift=3, d_e=6),
        block(**fields),
        block(sa_sel="A", ra=6, sb_sel="I", imm=OUT, store="b32", m1_sel="B", rb=4),
        block(c_sel="zero", m1_sel="Q", pq=6, g_sel=1, g_index=0, alu_b="first", d_b=7),
        block(sa_sel="A", ra=6, sb_sel="I", imm=OUT + 4, store="b32", m1_sel="B", rb=7, branch="exit"),
    ]
    return Program("unit", tuple(blocks), 0, (1,))


def launch(fields: dict[str, int | str], operands: list[tuple[int, int, int]]) -> Launch:
    """One thread for each of up to 32 triples of operands."""
    rows = {}
    for thread, (a, b, c) in enumerate(operands):
        rows[IN // 8 + 2 * thread], rows[IN // 8 + 2 * thread + 1] = (a, b), (c, 0)
    return Launch(program(fields), (1, 1, 1), (len(operands), 1, 1), (), rows, ALL)


def operands(rng: Random, count: int = THREADS) -> list[tuple[int, int, int]]:
    """Edge cases, near equals, and random words."""

    def word() -> int:
        return rng.choice(EDGES) if rng.random() < 0.75 else rng.getrandbits(rng.randrange(1, 33))

    found = []
    for _ in range(count):
        a, b = word(), word()
        if rng.random() < 0.2:
            b = (a + rng.randrange(-1, 2)) & 0xFFFFFFFF
        found.append((a, b, word()))
    return found
