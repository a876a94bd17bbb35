"""How the last EXEC's block ends: known from its encoding alone, but for what hangs on a guard.

Where the guard is asked, a lane has two possible PCs, and either leaves or does not; both are made ready early, so that
the guard's predicate only has to choose.
"""

from __future__ import annotations

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.word import Word
from qgpu.isa import encoding
from qgpu.machine.gates import any_of
from qgpu.machine.operands import literals
from qgpu.machine.parts import Context
from qgpu.machine.warp import QUADS, Flow


def flow(b: Builder, ctx: Context) -> Flow:
    """Two levels from the block's fields."""
    rom = ctx.rom
    asked, negated = rom["g_branch"][0], rom["g_neg"][0]
    with b.scope("flow"):
        is_ = {name: literals(rom["branch"], number) for number, name in enumerate(encoding.CHOICES["branch"])}
        counted = w.increment(b, "counted", ctx.exec_block)
        following = Word("following", tuple(b.buffer(f"following{i}", bit) for i, bit in enumerate(counted)))
        true = [((~asked,), (asked, negated)), ((~asked,), (asked, ~negated))]  # by what the predicate is
        jumps = [any_of(b, f"jumps{k}", *((*is_["bra"], *case) for case in true[k])) for k in range(2)]
        leaves = [any_of(b, f"leaves{k}", *((*is_["exit"], *case) for case in true[k])) for k in range(2)]
        pcs = [b.mux(f"pc{k}", [(jumps[k], rom["target"]), (~jumps[k], following)]) for k in range(2)]
        ballot = literals(rom["collect"], encoding.CHOICES["collect"].index("ballot"))
        late = literals(rom["c_sel"], encoding.CHOICES["c_sel"].index("V"))
        return Flow(
            gathers=b.and_("gathers", *is_["gather"]),
            blocks=b.and_("blocks", *is_["bar"]),
            leaps=any_of(b, "leaps", tuple(is_["exit"]), (*is_["bra"], rom["back"][0])),
            yields=b.and_("yields", *is_["bra"], rom["back"][0], rom["yield"][0]),
            following=following,
            collects=b.or_("collects", rom["collect"]),
            ballots=b.and_("ballots", *ballot, *late),
            here=tuple(tuple(literals(ctx.exec_quad[0:3], k)) for k in range(QUADS)),
            pcs=(pcs[0], pcs[1]),
            exits=(leaves[0], leaves[1]),
        )
