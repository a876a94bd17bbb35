"""What the machine has no block for, written out in what it has: the passes before lowering, in their order."""

from __future__ import annotations

from collections.abc import Mapping

from qgpu.cuda.address import fold_addresses
from qgpu.cuda.coalesce import coalesce
from qgpu.cuda.dead import remove_dead
from qgpu.cuda.ir import Function
from qgpu.cuda.lower_divide import divide_wide, divide_words
from qgpu.cuda.lower_meet import one_place_for_each
from qgpu.cuda.lower_memory import plain_accesses, plain_atomics
from qgpu.cuda.lower_warp import plain_barriers, plain_exchanges
from qgpu.cuda.lower_wide import split_wide
from qgpu.cuda.propagate import propagate
from qgpu.cuda.simplify import simplify_flow
from qgpu.cuda.verify import verify

ROUNDS = 4
PASSES = (
    plain_barriers, one_place_for_each, plain_exchanges, divide_wide, plain_atomics, split_wide, plain_accesses,
    divide_words,
)  # fmt: skip
"""Each may leave work for those behind it."""


def expand(function: Function, table: Mapping[str, frozenset[str]]) -> Function:
    """The function in operations that blocks have, if the machine of ``table`` has all that this takes."""
    if "mulhi.u" not in table["m_op"] or "addc" not in table["alu_a"] or "gather" not in table["branch"]:
        return function
    expanded = function
    for step in PASSES:
        expanded = step(expanded)
    return function if expanded == function else _tidy(verify(expanded))


def _tidy(function: Function) -> Function:
    """Names stay, since they tell what is no instruction of the user's."""
    for _ in range(ROUNDS):
        before = function
        function = remove_dead(propagate(function))
        function = simplify_flow(remove_dead(fold_addresses(coalesce(function))))
        if function == before:
            break
    return verify(function)
