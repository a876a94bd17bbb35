"""Random field values and programs, for tests of the notations."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from qgpu.isa import encoding
from qgpu.isa.program import Block, Program


def _number(name: str, width: int) -> st.SearchStrategy[int]:
    if name in encoding.CHOICES:
        return st.integers(0, len(encoding.CHOICES[name]) - 1)
    if name == "imm":
        return st.integers(-(2**15), 2**15 - 1)
    return st.integers(0, 2**width - 1)


fields = st.fixed_dictionaries({}, optional={f.name: _number(f.name, f.width) for f in encoding.FIELDS})

_labels = st.text("abcxyz_$%.0123456789", min_size=1, max_size=8).filter(
    lambda text: not re.fullmatch(r"\..*|b?[0-9_]+|0[bx].*", text)
)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs as the disassembler gets them: fields without zeros, distinct labels, any branch targets."""
    count = draw(st.integers(1, 6))
    labels = draw(st.lists(_labels, min_size=count, max_size=count, unique=True))
    blocks = tuple(
        Block(
            {name: value for name, value in draw(fields).items() if value},
            draw(st.integers(0, 9)),
            draw(st.integers(0, 999)),
            label if draw(st.booleans()) else "",
        )
        for label in labels
    )
    pool = tuple(draw(st.lists(st.integers(0, 2**32 - 1), max_size=5)))
    return Program("kernel_1", blocks, draw(st.integers(0, 8)), pool)
