"""What the scheduling parts hand to one another: how a block ends, who waits, who is left; see ``flow``, ``waits``,
``lanes``. The warp is that of the last EXEC; its lanes are numbered by lane id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.circuit.ir import Expr
from qgpu.circuit.word import Word
from qgpu.isa import tokens

Bits = Sequence[Expr]
LANES, QUADS = tokens.WARP_SIZE, tokens.QUADS_PER_WARP


@dataclass(frozen=True, eq=False)
class Flow:
    """``gathers``, ``blocks``: the last EXEC's block ends with a gather, with a barrier; ``leaps``: with an exit or a
    branch back; ``yields``: with a branch back that lets others go first. ``following`` (8): the block after it.
    ``collects``: the block collects anything; ``ballots``: it collects a ballot, and its late result
    is made of it. ``here``: three bits that are all 1
    for one k, by k: the last EXEC's quad is quad k of its warp. ``pcs`` (8 each), ``exits``: PC and whether a lane
    exits, of an active lane, by what its guard's predicate is."""

    gathers: Expr
    blocks: Expr
    leaps: Expr
    yields: Expr
    following: Word
    collects: Expr
    ballots: Expr
    here: Sequence[tuple[Expr, ...]]
    pcs: tuple[Word, Word]
    exits: tuple[Expr, Expr]


@dataclass(frozen=True, eq=False)
class Go:
    """``quad`` (5) at ``pc`` (8) with mask and leader ``pair`` (5); ``masks``: the mask is another than the quad's, so
    that MASK comes first."""

    quad: Word
    pc: Word
    pair: Word
    masks: Expr


@dataclass(frozen=True, eq=False)
class Gather:
    """A gather that may start a sweep: ``go``, if ``some`` lane waits that it would take and every lane of ``missing``
    (a bit for each of the warp) has exited; ``count``: how many these are."""

    go: Go
    some: Expr
    missing: Bits
    count: Expr


@dataclass(frozen=True, eq=False)
class Waits:
    """``sweeps``: rule 3 holds, ``last.go`` is next. ``last``: the warp's gather; ``first``: that of the first waiting
    lane. ``any``: some lane of the warp waits. ``voters``: a bit for each lane of the warp: the block collects a ballot
    of which the lane is a member that exists."""

    sweeps: Expr
    last: Gather
    first: Gather
    any: Expr
    voters: Bits


@dataclass(frozen=True, eq=False)
class Lanes:
    """After the last EXEC. ``live``, ``runs``: which lanes of its quad are live and runnable; ``pcs`` (8 each): their
    PCs (at a MASK, those of the quad that it names). ``exited``: which lanes of the warp have exited. ``goes_last``:
    ``waits.last.go`` is next; ``may_first``: ``waits.first.go`` is, if nothing of the warp runs."""

    live: Bits
    runs: Bits
    pcs: Sequence[Word]
    exited: Bits
    goes_last: Expr
    may_first: Expr
