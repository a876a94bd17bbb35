"""Threads of a CTA one at a time, as CUDA has them: the oracle for what the machine does four lanes at a time.

A thread runs one block at a step, alone; a schedule picks the thread. Nothing here knows quads, groups, leaders, sweeps
or exchange buffers: a gather waits for its member threads and hands every one of them the words of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.isa import reference_units as units

from qgpu.isa.encoding import CHOICES
from qgpu.isa.program import Launch

SHARED = 12288
LOADS = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "b32": 4, "b64": 8}
STORES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}


class Fault(Exception):
    """A thread did what it must not; the text is the cause."""


@dataclass
class Thread:
    number: int
    index: tuple[int, int, int]
    registers: list[int] = field(default_factory=lambda: [0] * 16)
    predicates: list[bool] = field(default_factory=lambda: [False] * 4)
    stage: list[int] = field(default_factory=lambda: [0] * 4)
    pc: int = 0
    state: str = "ready"  # or waiting, blocked, done
    members: int = 0
    word: int = 0
    vote: bool = False
    votes: Mapping[int, bool] = field(default_factory=dict)
    words: Mapping[int, int] = field(default_factory=dict)  # lane id -> word, of the gather it came from
    steps: int = 0

    @property
    def lane(self) -> int:
        return self.number % 32


Schedule = Callable[[list[Thread], Random], Thread]
SCHEDULES: dict[str, Schedule] = {
    "random": lambda ready, rng: rng.choice(ready),
    "fair": lambda ready, rng: min(ready, key=lambda t: (t.steps, t.number)),
    "fair, last first": lambda ready, rng: min(ready, key=lambda t: (t.steps // 7, -t.number)),
    "alone for a while": lambda ready, rng: (
        ready[rng.randrange(1 << 20) % len(ready)] if rng.random() < 0.1 else ready[0]
    ),
}


@dataclass
class Reference:
    """Runs a launch. ``outcome``: "halt", "deadlock" or a cause; ``memory``: bytes; ``threads``: of the last CTA."""

    launch: Launch
    schedule: str = "fair"
    seed: int = 0
    limit: int = 200_000
    memory: bytearray = field(default_factory=lambda: bytearray(16384))
    outcome: str = ""
    threads: list[Thread] = field(default_factory=list)

    def run(self) -> Reference:
        launch, rng = self.launch, Random(self.seed)
        for row, (low, high) in launch.rows.items():
            self.memory[8 * row : 8 * row + 8] = low.to_bytes(4, "little") + high.to_bytes(4, "little")
        self.words = [*launch.cta, *launch.grid, *launch.parameters, *launch.program.pool]
        self.blocks = [self._named(block.fields) for block in launch.program.blocks]
        before: Sequence[Thread] = ()
        try:
            for z in range(launch.grid[2]):
                for y in range(launch.grid[1]):
                    for x in range(launch.grid[0]):
                        before = self._cta((x, y, z), before, rng)
            self.outcome = "halt"
        except Fault as fault:
            self.outcome = str(fault)
        return self

    @staticmethod
    def _named(fields: Mapping[str, int]) -> dict[str, int | str]:
        named: dict[str, int | str] = {name: choices[fields.get(name, 0)] for name, choices in CHOICES.items()}
        return {**fields, **named}

    def _cta(self, cta: tuple[int, int, int], before: Sequence[Thread], rng: Random) -> list[Thread]:
        sx, sy, sz = self.launch.cta
        self.memory[SHARED:] = bytes(16384 - SHARED)
        self.cta = dict(zip(("ctaid.x", "ctaid.y", "ctaid.z"), cta, strict=True))
        places = [(x, y, z) for z in range(sz) for y in range(sy) for x in range(sx)]
        self.threads = [Thread(n, place) for n, place in enumerate(places)]
        for thread, old in zip(self.threads, before, strict=False):  # a lane's registers outlive the CTA
            thread.registers, thread.predicates, thread.stage = old.registers, old.predicates, old.stage
        pick = SCHEDULES[self.schedule]
        while any(t.state != "done" for t in self.threads):
            ready = [t for t in self.threads if t.state == "ready"]
            if ready:
                thread = pick(ready, rng)
                thread.steps += 1
                self.limit -= 1
                assert self.limit > 0, "the reference does not end"
                self._step(thread)
                self._release(thread.number // 32)
            elif all(t.state in ("done", "blocked") for t in self.threads):
                for thread in self.threads:
                    if thread.state == "blocked":
                        thread.state = "ready"
            else:
                raise Fault("deadlock")
        return self.threads

    def _release(self, warp: int) -> None:
        """Let every complete gather of the warp go on."""
        mates = {t.lane: t for t in self.threads[32 * warp : 32 * warp + 32]}
        for thread in mates.values():
            if thread.state != "waiting":
                continue
            members = [t for lane, t in mates.items() if thread.members >> lane & 1 and t.state != "done"]
            if all(t.state == "waiting" and t.pc == thread.pc for t in members):
                words, votes = {t.lane: t.word for t in members}, {t.lane: t.vote for t in members}
                for t in members:
                    t.state, t.words, t.votes = "ready", words, votes

    def _access(self, address: int, size: int, wide: bool, what: str) -> None:
        if address % (16 if wide else size):
            raise Fault(f"{what} misaligned")
        allowed = self.launch.allocated
        for byte in range(address, address + size):
            if byte >= 16384 or not allowed.get(byte // 64, 0) >> byte % 64 & 1:
                raise Fault(f"{what} out of bounds")

    def _step(self, t: Thread) -> None:
        f = self.blocks[t.pc]
        get = lambda name: int(f.get(name, 0))  # noqa: E731
        registers = t.registers
        ra, rb, rc = (registers[get(port)] if get(port) else 0 for port in ("ra", "rb", "rc"))
        p, q, w = ((self.words[get(port)] if get(port) < len(self.words) else 0) for port in ("pa", "pq", "pt"))
        imm, lane = get("imm") % units.WORD, t.lane
        x = {
            "zero": 0, "tid.x": t.index[0], "tid.y": t.index[1], "tid.z": t.index[2], "laneid": lane,
            "warpid": t.number // 32, "lanemask_eq": 2**lane, "lanemask_lt": 2**lane - 1,
            "lanemask_le": 2 * 2**lane - 1, "lanemask_gt": units.WORD - 2 * 2**lane,
            "lanemask_ge": units.WORD - 2**lane,
        }[str(f["x"])]  # fmt: skip
        a = {"zero": 0, "A": ra, "P": p, "Y": self.cta[str(f["y"])], "X": x, "I": imm}[str(f["a_sel"])]
        b = {"zero": 0, "B": rb, "I": imm, "X": x, "P": p}[str(f["b_sel"])]
        b = b * 2 ** get("b_shift") % units.WORD
        r = units.alu(str(f["alu_a"]), a, b)
        s = {"zero": 0, "A": ra, "B": rb, "T": w}[str(f["sa_sel"])]
        s = (s + {"zero": 0, "BS": b, "I": imm}[str(f["sb_sel"])]) % units.WORD
        guarded = bool(
            get("g_index") or get("g_neg") or any(get(n) for n in ("g_sel", "g_load", "g_store", "g_branch"))
        )
        kind, low, high = str(f["load"]), 0, 0
        if kind != "none":
            start = r % 16384
            value = int.from_bytes(self.memory[start : start + LOADS[kind]], "little", signed=kind[0] == "s")
            low, high = value % units.WORD, value >> 32 & 0xFFFFFFFF if kind == "b64" else 0
        v, inside = self._collect(t, str(f["collect"]), b, imm)
        if f["stage_w"] != "none":
            t.stage[get("stage_wi")] = r if f["stage_w"] == "R" else low
        s1, s2 = t.stage[get("stage_1")], t.stage[get("stage_2")]
        m1 = {"zero": 0, "A": ra, "R": r, "L": low, "S1": s1, "V": v, "B": rb, "Q": q}[str(f["m1_sel"])]
        m2 = {"zero": 0, "B": rb, "I": imm, "Q": q, "L": low, "S2": s2, "R": r, "A": ra}[str(f["m2_sel"])]
        c = {"zero": 0, "C": rc, "S2": s2, "X": x, "I": imm, "Q": q, "V": v, "L": low}[str(f["c_sel"])]
        m = units.unit_m(str(f["m_op"]), m1, m2, rc)
        d = units.alu(str(f["alu_b"]), m, c)
        if get("p_write"):
            sides = {"a": (a, b), "b": (m, c)}.get(str(f["p_src"]))
            t.predicates[get("p_index")] = inside if sides is None else units.condition(str(f["cond"]), *sides)
        g = t.predicates[get("g_index")] != bool(get("g_neg")) if guarded else True
        d = c if get("g_sel") and not g else d
        e = {"R": r, "L": low, "H": high}[str(f["e_sel"])]
        if kind != "none" and (g or not get("g_load")):
            self._access(r, LOADS[kind], bool(get("load_wide")), "load")
        stores = f["store"] != "none" and (g or not get("g_store"))
        if stores:
            self._access(s, STORES[str(f["store"])], bool(get("store_wide")), "store")
        taken = g or not get("g_branch")
        if f["branch"] == "trap" and taken:
            raise Fault("trap")
        old = self._store(f, s, d + rc * units.WORD, e + rb * units.WORD) if stores else None
        for port, word in (("d_e", e), ("d_b", d)):
            if get(port):
                registers[get(port)] = word
        if get("d_o") and old is not None:
            registers[get("d_o")] = old % units.WORD
        t.pc = get("target") if f["branch"] == "bra" and taken else (t.pc + 1) % 256
        if f["branch"] == "exit" and taken:
            t.state = "done"
        elif f["branch"] == "bar":
            t.state = "blocked"
        elif f["branch"] == "gather":
            # the mask is an operand: it is read before this block's destinations are written
            t.state, t.members, t.vote = (
                "waiting",
                ra if f["member"] == "A" else q,
                t.predicates[get("g_index")] != bool(get("g_neg")),
            )
            t.word = d if get("d_b") else ra

    def _collect(self, t: Thread, kind: str, b: int, imm: int) -> tuple[int, bool]:
        if kind.startswith("shfl"):
            source, inside = units.shuffle_source(kind, t.lane, b, imm)
            return t.words[source], inside  # KeyError: the program asks a lane that is not there
        if kind == "ballot":
            return sum(2**lane for lane, vote in t.votes.items() if vote), False
        return 0, False

    def _store(self, f: Mapping[str, int | str], address: int, value: int, compare: int) -> int | None:
        size = STORES[str(f["store"])]
        value, compare = value % 256**size, compare % 256**size
        old = int.from_bytes(self.memory[address : address + size], "little")
        op = str(f["atomic"])
        new = value if op == "none" else units.atomic(op, old, value, compare, 8 * size)
        self.memory[address : address + size] = new.to_bytes(size, "little")
        return None if op == "none" else old
