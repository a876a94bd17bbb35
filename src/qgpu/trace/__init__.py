"""Recorded launches: what a trace holds, its file, what it is exported to, and the page that shows it."""

from qgpu.trace.files import TraceError, load, save
from qgpu.trace.model import Activity, Array, Step, Trace, steps

__all__ = ["Activity", "Array", "Step", "Trace", "TraceError", "load", "save", "steps"]
