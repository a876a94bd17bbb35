"""Predicates in machine blocks: conditions of several parts, and a guard beside a comparison."""

import numpy as np
import pytest
from tests.cuda.harness import HEAD
from tests.cuda.on_machine import run_on_machine

from qgpu.cuda.ir import Reg, Type
from qgpu.cuda.lower_registers import Code, TooMany, numbered
from qgpu.cuda.pipeline import compile_file

PARTS = """
.visible .entry k(.param .u32 in, .param .u32 out)
{
.reg .pred %p<9>; .reg .b32 %r<9>;
ld.param.u32 %r0, [in];
ld.param.u32 %r1, [out];
mov.u32 %r2, %tid.x;
shl.b32 %r3, %r2, 2;
add.u32 %r0, %r0, %r3;
add.u32 %r1, %r1, %r3;
ld.global.u32 %r4, [%r0];
and.b32 %r5, %r4, 1;
and.b32 %r6, %r4, 2;
and.b32 %r7, %r4, 4;
setp.ne.u32 %p1, %r5, 0;
setp.ne.u32 %p2, %r6, 0;
setp.ne.u32 %p3, %r7, 0;
FIRST.pred %p4, %p1, %p2;
SECOND.pred %p5, %p4, %p3;
@%p5 bra YES;
exit;
YES:
st.global.u32 [%r1], 1;
exit;
}
"""
JOIN = {"and": lambda a, b: a and b, "or": lambda a, b: a or b}


@pytest.mark.parametrize("first", JOIN)
@pytest.mark.parametrize("second", JOIN)
def test_conditions_of_three_parts(first, second, tmp_path):
    """Every part of a condition is tested, for all eight ways the parts can be."""
    path = tmp_path / "k.ptx"
    path.write_text(HEAD + PARTS.replace("FIRST", first).replace("SECOND", second))
    bits = np.arange(8, dtype=np.int32)
    result = run_on_machine(compile_file(path), (bits, np.zeros(8, np.int32)), 1, 8)
    expected = [int(JOIN[second](JOIN[first](k & 1, k >> 1 & 1), k >> 2 & 1)) for k in range(8)]
    assert result.fault is None
    assert result.arrays[1].tolist() == expected


def test_a_guard_is_no_other_predicate_written_beside_it():
    """A block's guard sees what the block itself writes, so that an older predicate it reads has another number."""
    old, new = Reg("old", Type.PRED), Reg("new", Type.PRED)
    numbers = numbered(
        [
            Code({"p_write": 1, "p_index": old}, (1,)),
            Code({"p_write": 1, "p_index": new, "g_index": old, "g_sel": 1}, (2,)),
            Code({"g_index": new, "g_branch": 1, "branch": "exit"}, ()),
        ]
    )
    assert numbers[old] != numbers[new]


def test_a_guard_may_be_what_its_own_block_writes():
    only = Reg("only", Type.PRED)
    assert numbered([Code({"p_write": 1, "p_index": only, "g_index": only, "g_sel": 1}, ())]) == {only: 0}


def test_the_count_of_too_many_predicates_is_more_than_there_are():
    """Four are live over a block that writes the last of them and whose guard is read for the last time: five."""
    flags = [Reg(f"f{k}", Type.PRED) for k in range(5)]
    codes = [Code({"p_write": 1, "p_index": flag}, (k + 1,)) for k, flag in enumerate(flags[:4])]
    codes.append(Code({"p_write": 1, "p_index": flags[4], "g_index": flags[0], "g_sel": 1}, (5,)))
    codes += [Code({"g_index": flag, "g_sel": 1}, (6 + k,)) for k, flag in enumerate(flags[1:4])]
    codes.append(Code({"g_index": flags[4], "g_branch": 1, "branch": "exit"}, ()))
    with pytest.raises(TooMany) as error:
        numbered(codes)
    assert (error.value.block, error.value.needed, error.value.predicates) == (4, 5, True)
