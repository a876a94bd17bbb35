"""From optimised IR to a program of machine blocks."""

from __future__ import annotations

from qgpu.cuda.ir import Function
from qgpu.errors import UnsupportedError
from qgpu.isa.program import Program


def lower(function: Function) -> Program:
    """The machine program of a kernel. Raises UnsupportedError listing all that the machine cannot run."""
    raise UnsupportedError(f"kernel {function.name}: lowering to machine blocks is not there yet")
