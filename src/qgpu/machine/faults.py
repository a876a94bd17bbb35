"""Faults of a block: a load or store that may not be done, or a trap."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.circuit import words as w
from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Expr, total
from qgpu.circuit.word import Word
from qgpu.isa import tokens
from qgpu.machine.parts import Context
from qgpu.machine.storage import allocated


def faults(
    b: Builder, ctx: Context, r: Sequence[Word], s: Sequence[Word], loads: Sequence[Expr], stores: Sequence[Expr],
    traps: Sequence[Expr],
) -> tuple[Expr, Word, Word]:  # fmt: skip
    """(whether, cause, lane) of the first fault: loads, then stores, then traps, lowest lane first."""
    with b.scope("fault"):
        wrong, misaligned = [], []
        for name, addresses, lanes in (("load", r, loads), ("store", s, stores)):
            for i, address in enumerate(addresses):
                with b.scope(f"{name}{i}"):
                    misaligned.append(b.or_("misaligned", *address[0:2]))
                    beyond = b.or_("beyond", *address[14:32])
                    # the map is read only for a lane that wants it, so that "wants and may not" is a difference
                    whole = b.lookup("whole", allocated(b, "allocated", ctx, address, lanes[i]), lambda n: int(n == 4))
                    right = b.and_("right", whole, ~misaligned[-1], ~beyond)
                    wrong.append((lanes[i] - right).assume(0, 1))
        hot = w.lowest_set(b, "first", [*wrong, *traps])
        odd = [b.and_(f"odd{k}", hot[k], misaligned[k]) for k in range(8)]
        load, store, trap = (total(hot[k : k + 4]) for k in (0, 4, 8))
        codes = {name: tokens.CAUSES.index(name) for name in tokens.CAUSES}
        assert codes["load out of bounds"] == 0 and codes["load misaligned"] == 1 and codes["store out of bounds"] == 2
        assert codes["store misaligned"] == 3 and codes["trap"] == 4
        cause = Word("cause", (total(odd).assume(0, 1), store.assume(0, 1), trap.assume(0, 1), total([])))
        lane = Word("lane", tuple(total(hot[k] for k in range(12) if k % 4 >> i & 1).assume(0, 1) for i in range(2)))
        return total([load, store, trap]).assume(0, 1), cause, lane
