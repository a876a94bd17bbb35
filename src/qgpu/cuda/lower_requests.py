"""What a machine block can be asked to do, and where a value can be read: the words of selector and matcher."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu.cuda.ir import Reg
from qgpu.cuda.lower_nodes import Node


@dataclass(frozen=True)
class Word:
    """A parameter word: its number, or a constant of the pool."""

    number: int = 0
    constant: int | None = None


@dataclass(frozen=True)
class Stage:
    """A stage register not yet numbered."""

    number: int


@dataclass(frozen=True)
class Place:
    """Where a value can be read: ``kind`` reg, stage, word, imm, x, y, shuffled or ballot, and the field's content."""

    kind: str
    content: object


@dataclass(frozen=True)
class ToRegister:
    """Write a node's value to a register."""

    node: Node
    register: Reg


@dataclass(frozen=True)
class ToStage:
    node: Node
    stage: Stage


@dataclass(frozen=True)
class ToPredicate:
    node: Node
    register: Reg


@dataclass(frozen=True)
class ToPair:
    """Both words of a load of 64 bits to registers."""

    node: Node
    low: Reg
    high: Reg


@dataclass(frozen=True)
class Memory:
    """A store, or an atomic. ``guard``: the predicate it needs. ``old``: the register that takes the old value.

    ``high``: the upper word of 64 bits, in a register. ``compare``: of a compare-and-swap. ``wide``: the address must
    be aligned to 16 bytes.
    """

    address: Node
    value: Node
    width: str
    atomic: str = "none"
    guard: Node | None = None
    negated: bool = False
    old: Reg | None = None
    high: Node | None = None
    compare: Node | None = None
    wide: bool = False


@dataclass(frozen=True)
class Gather:
    """The block ends with a gather: publishes a word, a vote (where the predicate holds; not, if negated), or neither.

    ``scratch``: a register for a word that nobody else wants.
    """

    members: Node
    parity: int
    scratch: Reg
    word: Node | None = None
    vote: Node | None = None
    negated: bool = False


@dataclass(frozen=True)
class Collect:
    """The block collects from the warp. ``lane``: what a shuffle's source lane is made of. ``clamp``: its immediate."""

    op: str
    parity: int
    lane: Node | None = None
    clamp: int = 0


@dataclass(frozen=True)
class Leave:
    """How the block ends: ``kind`` bra, exit, trap or bar, where the guard holds (does not, if negated)."""

    kind: str
    target: str = ""
    guard: Node | None = None
    negated: bool = False


Request = ToRegister | ToStage | ToPredicate | ToPair | Memory | Leave | Gather | Collect
