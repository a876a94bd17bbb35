"""Rows for lanes that meet at different places: exchanges pair by kind and members, not by instruction."""

from __future__ import annotations

from qgpu.conformance.inputs import rand, zeros
from qgpu.conformance.table import row

_FILE = "meetings"

ROWS = [
    row("meet_sides", _FILE, 32, rand(32, -99, 99, 6), zeros(32)),
    row("meet_loops", _FILE, 32, rand(4, -99, 99, 7), zeros(32)),
    row("meet_shuffles", _FILE, 32, rand(32, -99, 99, 8), zeros(32)),
    row("meet_counts", _FILE, 32, rand(32, -99, 99, 9), zeros(32)),
    row("meet_continue", _FILE, 32, rand(32, 0, 99, 10), zeros(32)),
    row("meet_switch", _FILE, 32, rand(32, 0, 99, 11), zeros(32), 32),
    row("meet_switch of some", _FILE, 32, rand(32, 0, 99, 11), zeros(32), 18),
]
