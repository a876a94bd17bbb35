"""The whole GPU as one circuit: context, datapath, control, and the output code of the next token."""

from __future__ import annotations

from qgpu.circuit.builder import Builder
from qgpu.circuit.ir import Circuit
from qgpu.isa import tokens
from qgpu.machine.context import context
from qgpu.machine.control import control
from qgpu.machine.datapath import datapath


def machine_circuit() -> Circuit:
    """The machine that docs/machine.md describes. Tokens of ids that no kind owns are never written."""
    b = Builder("gpu", tokens.VOCABULARY)
    ctx, writes = context(b)
    path = datapath(b, ctx, writes)
    return b.finish(control(b, ctx, path), range(tokens.VOCABULARY))
