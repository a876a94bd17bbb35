"""What a gather stores: a bit whose port is off must be off by a whole unit, not on SiLU's bend.

The constant's row is read millions of times louder than the data, and it is written exactly while the port is off.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Circuit, Port
from qgpu.circuit.memory import Field
from qgpu.foundry import FoundryError, Options, cast
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


def gathering() -> Circuit:
    b = Builder("gather", 16)
    x = b.token_word("x", lambda i: i, 4)
    both = (x[0] + x[1]).assume(0, 1)
    got = b.memory("g", [Field("v", x[2:4])], Port((x[0],), (both, x[2])), Port((), (x[3],)), gather=True)["v"]
    return b.finish([*got, *x[2:4]], lambda i: i)


def test_the_loud_row_is_proved_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """With once the enables instead of twice, a bit would stand on SiLU's bend while nothing is written: refused."""
    cast(gathering(), Options(heads=1))

    def once(cell: MemoryCell, column: ColumnSpec) -> Affine:
        right = stored(cell, column)
        data = dict(column.data.terms)
        asked = {signal: (coef - data.get(signal, 0)) // 2 for signal, coef in right.terms}
        terms = {signal: asked.get(signal, 0) + data.get(signal, 0) for signal in asked | data}
        return replace(right, terms=tuple(sorted(terms.items())), const=(right.const - column.data.const) // 2)

    monkeypatch.setattr("qgpu.foundry.prove.stored", once)
    with pytest.raises(FoundryError, match="memory 'g', column 0 while nothing is written: margin -0.5"):
        cast(gathering(), Options(heads=1))
