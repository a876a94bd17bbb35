"""What each residual dim may hold after each stage: the claims that a proof from the weights alone starts from.

Boundary 0 is the embedding, boundary 2 l + 1 stands after layer l's DeltaNet, 2 l + 2 after its MLP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .netlist import outputs
from .place import Placement

Array = np.ndarray[Any, Any]


def ranges(placement: Placement, dim_of: Sequence[int], hidden: int) -> Mapping[str, Array]:
    """``lo``, ``hi``: int16 [2 * layers + 1, hidden], zero where a dim is free. Anchors are not in it: they are zero
    here.

    A dim keeps what it holds until an MLP clears it. A signal of several drivers ranges over zero as well before the
    last of them has delivered.
    """
    plan = placement.schedule
    netlist = plan.lowered.netlist
    lo = np.zeros((2 * plan.layers + 1, hidden), np.int16)
    hi = np.zeros_like(lo)
    last = [-2] * len(plan.birth)
    for number, cell in enumerate(netlist.cells):
        for signal in outputs(cell):
            last[signal] = max(last[signal], plan.stage[number])
    cleared: dict[int, int] = {}
    for layer, signals in placement.clears.items():
        for signal in signals:
            cleared[signal] = min(layer, cleared.get(signal, layer))
    for signal, birth in enumerate(plan.birth):
        if birth is None:
            continue
        dim = dim_of[signal]
        end = 2 * cleared[signal] + 2 if signal in cleared else 2 * plan.layers + 1
        whole = max(last[signal], birth) + 1
        low, high = netlist.lo[signal], netlist.hi[signal]
        lo[birth + 1 : min(whole, end), dim], hi[birth + 1 : min(whole, end), dim] = min(low, 0), max(high, 0)
        lo[whole:end, dim], hi[whole:end, dim] = low, high
    return {"lo": lo, "hi": hi}
