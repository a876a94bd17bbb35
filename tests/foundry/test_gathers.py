"""What a gather stores: a bit whose port is off must be off by a whole unit, not on SiLU's bend.

The constant's row is read millions of times louder than the data, and it is written exactly while the port is off.
"""

from __future__ import annotations

from itertools import product

import pytest

from qgpu.foundry.heads import stored
from qgpu.foundry.netlist import Affine, ColumnSpec, MemoryCell, PortSpec


@pytest.mark.parametrize("enables", [1, 2, 3])
def test_a_bit_without_its_enables_is_a_whole_unit_off(enables: int) -> None:
    bit = [Affine(((signal, 1),), 0, 0, 1) for signal in range(enables + 1)]
    port = PortSpec((), tuple(bit[1:2]))
    column = ColumnSpec(bit[0], 0, 9, None, None, where=tuple(bit[2:]))
    cell = MemoryCell("m", port, PortSpec((), ()), (column,), None, True)
    found = stored(cell, cell.columns[0])
    for data, *on in product((0, 1), repeat=enables + 1):
        values = (data, *on)
        value = found.const + sum(coef * values[signal] for signal, coef in found.terms)
        assert found.lo <= value <= found.hi
        if all(on):
            assert value == data
        else:
            assert value <= -1
