"""What the parts of the machine hand to one another: named words between context, datapath and control.

Every token runs through all parts; ``Context`` says what the token is and where it stands, ``Datapath`` is what the
last EXEC's block computes with the present registers (meaningful at an EXEC token, harmless elsewhere), ``control``
writes the next token. Lists of four are one entry a lane. Bits are 0/1 expressions, words little-endian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qgpu.circuit.ir import Expr
from qgpu.circuit.word import Word
from qgpu.machine.warp import Flow, Lanes, Waits

Bits = Sequence[Expr]


@dataclass(frozen=True, eq=False)
class TokenFields:
    """Straight from the embedding, zero where the token has no such field. ``kind``: name -> 1 at tokens of that
    kind."""

    kind: Mapping[str, Expr]
    payload: Word  # 16, DATA
    block: Word  # 8, EXEC and PROGRAM
    quad: Word  # 5, EXEC, MASK and THREADS
    row: Word  # 11, MEM, READ, ALLOC and PARAM
    sub: Word  # 2, MEM lane, PROGRAM part, THREADS half
    register: Word  # 4, VAL and VALW
    mask: Word  # 4, MASK
    leader: Word  # 2, MASK


@dataclass(frozen=True, eq=False)
class Context:
    """``marker``: kind -> 1 while that marker's DATA (or itself) runs; ``row``, ``sub``, ``register``, ``block``,
    ``quad``
    are the marker's fields. ``position[d]``: 1 at the d-th DATA after the marker (d = 0: at the marker), d <= 8.
    ``third``: 1 at the third DATA or a later one, known before which it is.
    ``payloads[t]``: the payload t tokens ago, 0..3. ``exec_block``, ``exec_quad``: of the last EXEC, this token
    included.
    ``rom``: field name (isa.encoding) -> word, of the last EXEC's block. ``active``, ``leader``: the last EXEC's
    quad's mask
    and leader. ``start``: 1 at GO and CTA."""

    token: TokenFields
    marker: Mapping[str, Expr]
    row: Word
    sub: Word
    register: Word
    block: Word
    quad: Word
    position: Bits
    third: Expr
    payloads: Sequence[Word]
    exec_block: Word
    exec_quad: Word
    rom: Mapping[str, Word]
    active: Bits
    leader: Word
    exists: Bits  # of the last EXEC's quad
    cta: Word  # 64: x low, y, z, x high
    start: Expr
    ranks: Ranks


@dataclass(frozen=True, eq=False)
class Ranks:
    """The active lanes of the last EXEC's quad in order: ``of[lane][r]`` is 1 if the lane is active and ``r`` active
    lanes are below it; ``two``, ``three``, ``four``: whether that many are active."""

    of: Sequence[Bits]
    two: Expr
    three: Expr
    four: Expr


@dataclass(frozen=True, eq=False)
class Writes:
    """What the present DATA writes. Registers: ``values[lane]`` (32) into (``quad``, ``register``) where
    ``enable[lane]``. Memory: ``row_data`` (64) into ``row`` where ``row_enable``."""

    values: Sequence[Word]
    enable: Bits
    register: Word
    quad: Word
    row_data: Word
    row: Word
    row_enable: Expr


@dataclass(frozen=True, eq=False)
class Datapath:
    """At an EXEC: ``early[lane]``, ``late[lane]`` (32 bits each), zero in lanes that are not active; ``guard[lane]``;
    ``taken[lane]``: the branch field's action holds for an active lane (active, and guard true or not asked for);
    ``store_lane[lane]``: the lane stores or does an atomic; ``store_address[lane]`` (14); ``fault``: 1 if the block
    faults, with ``fault_cause`` (4) and ``fault_lane`` (2), already by priority. At MEM and READ: ``row`` (64 bits) is
    the memory row the token names, before anything this token writes. ``b[lane]``, ``c[lane]`` (32): registers of ports
    B and C, the latter at EXEC only, else zero. ``flow``, ``waits``, ``lanes``: see ``warp``."""

    early: Sequence[Word]
    late: Sequence[Word]
    guard: Bits
    taken: Bits
    store_lane: Bits
    store_address: Sequence[Word]
    fault: Expr
    fault_cause: Word
    fault_lane: Word
    row: Word
    b: Sequence[Word]
    c: Sequence[Word]
    flow: Flow
    waits: Waits
    lanes: Lanes
