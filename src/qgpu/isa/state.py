"""What the machine remembers, as plain integers; the interpreter changes it, hosts and tests read it."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgpu.isa import tokens


@dataclass
class Lane:
    """One lane of a quad. ``gather``: (member mask over the warp, collect block), set when it waits."""

    exists: bool = False
    exited: bool = False
    waiting: bool = False
    blocked: bool = False
    pc: int = 0
    gather: tuple[int, int] = (0, 0)


@dataclass
class Group:
    """Lanes of a quad that would run next, all at the same pc. ``lanes`` is a mask, 0 for none."""

    lanes: int = 0
    leader: int = 0
    pc: int = 0


@dataclass
class State:
    """Registers [quad][lane][register]; stage [quad][register][lane]; predicates [quad][index] lane masks;
    exchange, votes, members [parity][lane of the CTA]; memory row -> two words; allocated map row -> 64 bits."""

    program: dict[int, list[int]] = field(default_factory=dict)
    parameters: dict[int, int] = field(default_factory=dict)
    threads: list[int] = field(default_factory=lambda: [0] * tokens.THREADS_PER_CTA)
    last_cta: tuple[int, int, int] = (0, 0, 0)
    memory: dict[int, tuple[int, int]] = field(default_factory=dict)
    allocated: dict[int, int] = field(default_factory=dict)
    cta: tuple[int, int, int] = (0, 0, 0)
    registers: list[list[list[int]]] = field(default_factory=list)
    stage: list[list[list[int]]] = field(default_factory=list)
    predicates: list[list[int]] = field(default_factory=list)
    exchange: list[list[int]] = field(default_factory=list)
    votes: list[list[bool]] = field(default_factory=list)
    members: list[list[int]] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    leader: list[int] = field(default_factory=list)
    group: list[Group] = field(default_factory=list)
    warp_gather: list[tuple[int, int]] = field(default_factory=list)

    def start_cta(self) -> None:
        """What GO and CTA do: fresh quads; shared memory wiped. Registers, stage registers and predicates are not."""
        if not self.registers:
            self.registers = [[[0] * tokens.REGISTERS for _ in range(4)] for _ in range(tokens.QUADS)]
            self.stage = [[[0] * 4 for _ in range(tokens.STAGE_REGISTERS)] for _ in range(tokens.QUADS)]
            self.predicates = [[0] * tokens.PREDICATES for _ in range(tokens.QUADS)]
            self.exchange = [[0] * tokens.THREADS_PER_CTA for _ in range(2)]
            self.votes = [[False] * tokens.THREADS_PER_CTA for _ in range(2)]
            self.members = [[0] * tokens.THREADS_PER_CTA for _ in range(2)]
        self.memory = {row: words for row, words in self.memory.items() if row < tokens.SHARED_FIRST_ROW}
        self.lanes = [Lane(exists=bool(row >> 31)) for row in self.threads]
        self.mask, self.leader, self.group = [], [], []
        for quad in range(tokens.QUADS):
            exist = sum(1 << i for i in range(4) if self.lanes[4 * quad + i].exists)
            leader = (exist & -exist).bit_length() - 1 if exist else 0
            self.mask.append(exist)
            self.leader.append(leader)
            self.group.append(Group(exist, leader, 0))
        self.warp_gather = [(0, 0)] * (tokens.QUADS // tokens.QUADS_PER_WARP)

    def byte_word(self, address: int) -> int:
        """The 32-bit word of the aligned word address."""
        return self.memory.get(address >> 3, (0, 0))[address >> 2 & 1]

    def may_touch(self, address: int, size: int) -> bool:
        """Whether all ``size`` bytes from ``address`` are inside the memory and allocated."""
        if address + size > tokens.MEMORY_BYTES:
            return False
        return all(self.allocated.get(a >> 6, 0) >> (a & 63) & 1 for a in range(address, address + size))
