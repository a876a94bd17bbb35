"""Small programs written block by block, so that the driver is judged without the compiler."""

from qgpu.driver.code import Code
from qgpu.driver.ctypes import _INTEGERS, Parameter
from qgpu.isa.encoding import CHOICES
from qgpu.isa.program import FIRST_PARAM, Block, Program

INT = _INTEGERS["i"]


def block(line: int, instructions: int = 1, **fields: int | str) -> Block:
    """A block whose fields are numbers or the names of their choices."""
    numbers = {name: CHOICES[name].index(value) if isinstance(value, str) else value for name, value in fields.items()}
    return Block(numbers, instructions, line)


def pointer(name: str, index: int, const: bool = False) -> Parameter:
    text = "const int*" if const else "int*"
    return Parameter(name, 4 * index, 4, True, INT, text, const)


def number(name: str, index: int) -> Parameter:
    return Parameter(name, 4 * index, 4, False, INT, "int")


A, B, OUT = FIRST_PARAM, FIRST_PARAM + 1, FIRST_PARAM + 2

# out[tid] = a[tid] + b[tid], in two blocks
ADD = Code(
    "add",
    Program(
        "add",
        (
            block(3, 2, pa=A, a_sel="P", x="tid.x", b_sel="X", b_shift=2, load="b32", d_e=1, e_sel="L"),
            block(
                4, 3, pa=B, a_sel="P", x="tid.x", b_sel="X", b_shift=2, load="b32", m1_sel="L", rc=1, c_sel="C",
                pt=OUT, sa_sel="T", sb_sel="BS", store="b32", branch="exit",
            ),
        ),
        3,
    ),
    (pointer("a", 0, const=True), pointer("b", 1, const=True), pointer("out", 2)),
    "add.cu",
)  # fmt: skip

# out[0] += value, one thread after the other
COUNT = Code(
    "count",
    Program(
        "count",
        (
            block(
                7, pq=FIRST_PARAM, m1_sel="Q", pt=FIRST_PARAM + 1, sa_sel="T", store="b32", atomic="add", branch="exit",
            ),
        ),
        2,
    ),
    (number("value", 0), pointer("out", 1)),
    "count.cu",
)  # fmt: skip

# jumps to itself for ever
LOOP = (block(2, branch="bra", target=0, back=1), block(3, branch="exit"))
FOREVER = Code("forever", Program("forever", LOOP), (), "forever.cu")

# thread (1, 1) of CTA (0, 2) traps if how == 1; else every thread loads from ``address``
TRAP = Code(
    "trap",
    Program(
        "trap",
        (
            block(
                5, a_sel="P", pa=FIRST_PARAM + 2, b_sel="I", imm=1, p_write=1, cond="eq", g_branch=1, branch="bra",
                target=2,
            ),
            block(6, pa=FIRST_PARAM + 1, a_sel="P", load="b32", branch="exit"),
            block(7, x="tid.x", a_sel="X", p_write=1, cond="eq", g_branch=1, branch="exit"),
            block(7, x="tid.y", a_sel="X", p_write=1, cond="eq", g_branch=1, branch="exit"),
            block(8, y="ctaid.y", a_sel="Y", b_sel="I", imm=2, p_write=1, cond="ne", g_branch=1, branch="exit"),
            block(9, branch="trap"),
        ),
        3,
    ),
    (pointer("out", 0), number("address", 1), number("how", 2)),
    "trap.cu",
)  # fmt: skip
