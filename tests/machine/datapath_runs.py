"""Random blocks against one state, EXEC after EXEC: what the datapath's circuit and the interpreter each make of them.

Only context and datapath are built. A *run* is a list of tokens; an EXEC of it carries what the interpreter expects,
a MEM or READ the memory row. No DATA follows an EXEC, so that registers stay as the run's first tokens set them, while
predicates and stage registers go on changing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from qgpu.circuit.builder import Builder
from qgpu.circuit.evaluate import RESTS, Simulator
from qgpu.circuit.ir import Circuit
from qgpu.isa import encoding, tokens, values
from qgpu.isa.execute import run_block
from qgpu.isa.program import Launch, upload
from qgpu.isa.state import State
from qgpu.machine.context import context
from qgpu.machine.datapath import datapath

REPAIRS = range(tokens.STAGE_REGISTERS)  # block k of every run sets stage register k to zero


@cache
def circuit() -> Circuit:
    b = Builder("datapath", tokens.VOCABULARY)
    ctx, writes = context(b)
    datapath(b, ctx, writes)
    return b.finish([ctx.token.kind["EXEC"]] * tokens.CODE_BITS, range(tokens.VOCABULARY))


@cache
def simulator(batch: int) -> Simulator:
    return Simulator(circuit(), batch)


@dataclass(frozen=True)
class Expected:
    """What an EXEC does: by active lane ``early``, ``late`` and ``guard``; ``stores``: lane -> low 14 bits of the
    address; ``fault``: (cause, lane)."""

    early: dict[int, int]
    late: dict[int, int]
    guard: dict[int, bool]
    taken: frozenset[int]
    stores: dict[int, int]
    fault: tuple[int, int] | None


@dataclass
class Run:
    """``blocks``: field values (numbers) of each block. ``expected``, ``rows``: position in ``ids`` -> what must be
    seen there, at EXEC, and at MEM and READ."""

    blocks: list[dict[str, int]]
    state: State = field(default_factory=State)
    ids: list[int] = field(default_factory=list)
    expected: dict[int, Expected] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)

    def execute(self, block: int, quad: int) -> Expected:
        """One EXEC, by the interpreter; a stage register that a fault left unsaid is set to zero on both sides."""
        fields, state = self.blocks[block], self.state
        effect = run_block(state, block, quad)
        active = effect.active
        bits = state.predicates[quad][fields["g_index"]]
        guard = {i: bool(bits >> i & 1 ^ fields["g_neg"]) for i in active}
        words = dict(effect.destinations)
        fault = effect.fault[:2] if effect.fault else None
        found = Expected(
            dict(words[fields["d_e"]]), dict(words[fields["d_b"]]), guard,
            frozenset(i for i in active if guard[i] or not fields["g_branch"]),
            {store.lane: store.address & 0x3FFF for store in effect.stores}, fault,
        )  # fmt: skip
        self.expected[len(self.ids)] = found
        self.ids.append(tokens.encode("EXEC", block, quad))
        if fault and fields["stage_w"]:
            self.execute(fields["stage_wi"], quad)
        return found

    def mask(self, quad: int, lanes: int, leader: int) -> None:
        self.state.mask[quad], self.state.leader[quad] = lanes, leader
        self.ids.append(tokens.mask(quad, lanes, leader))

    def read(self, row: int) -> None:
        self._sees(row)
        self.ids.append(tokens.encode("READ", row))

    def write(self, row: int, low: int, high: int) -> None:
        """MEM with its DATA; the MEM itself still sees the old row."""
        self._sees(row)
        self.ids += [tokens.encode("MEM", row, 0), *values.row_form(low, high)]
        self.state.memory[row] = (low, high)

    def _sees(self, row: int) -> None:
        low, high = self.state.memory.get(row, (0, 0))
        self.rows[len(self.ids)] = low | high << 32

    def set_register(self, quad: int, register: int, words: Sequence[int]) -> None:
        """VALW for all four lanes (they must be active)."""
        for lane, value in enumerate(words):
            self.state.registers[quad][lane][register] = value
        self.ids += [tokens.encode("VALW", register), *(half for value in words for half in values.halves(value))]


def start(launch: Launch, blocks: list[dict[str, int]], quads: Sequence[int]) -> Run:
    """The upload and GO; thread rows only of the quads that run. ``blocks``: the launch's, all fields given."""
    run = Run(blocks)
    skip = False
    for token in upload(launch):
        name, fields = tokens.decode(token)
        skip = skip if name == "DATA" else name == "THREADS" and fields[0] not in quads
        if not skip:
            run.ids.append(token)
    run.ids.append(tokens.encode("GO"))
    state, (x, y, z) = run.state, launch.cta
    state.program = {i: list(encoding.encode(dict(f))) for i, f in enumerate(blocks)}
    words = [*launch.cta, *launch.grid, *launch.parameters, *launch.program.pool, 0]
    state.parameters = {i // 2: words[i] | words[i + 1] << 32 for i in range(0, len(words) - 1, 2)}
    for thread in range(min(x * y * z, tokens.THREADS_PER_CTA)):
        if thread // tokens.LANES in quads:
            state.threads[thread] = 1 << 31 | thread % x | thread // x % y << 8 | thread // (x * y) << 16
    state.allocated = dict(launch.allocated)
    state.memory = dict(launch.rows)
    state.start_cta()
    return run


def full(fields: dict[str, int | str]) -> dict[str, int]:
    """All fields as numbers; those left out are zero."""
    numbers = {
        name: encoding.CHOICES[name].index(value) if isinstance(value, str) else value for name, value in fields.items()
    }
    return {name: numbers.get(name, 0) for name in encoding.BY_NAME}


def repair(stage: int) -> dict[str, int]:
    return full({"stage_w": "R", "stage_wi": stage, "d_e": 1, "d_b": 2})


def mismatches(runs: Sequence[Run]) -> Iterator[str]:
    """Every difference between circuit and interpreter, as text."""
    sim = simulator(len(runs))
    sim.reset()
    for position in range(max(len(run.ids) for run in runs)):
        here = [run.ids[position] if position < len(run.ids) else RESTS for run in runs]
        sim.step(np.array(here))
        named = [(i, run.rows[position]) for i, run in enumerate(runs) if position in run.rows]
        row = sim.probe_word("row") if named else None
        for i, bits64 in named:
            if row is not None and int(row[i]) != bits64:
                yield f"run {i}, token {position}, {tokens.text(here[i])}: row {int(row[i]):#x}, expected {bits64:#x}"
        due = [(i, run.expected[position]) for i, run in enumerate(runs) if position in run.expected]
        if not due:
            continue
        words = {(name, i): sim.probe_word(f"{name}{i}") for name in ("early", "late", "address") for i in range(4)}
        bits = {name: sim.probe(name) for name in ("guard", "taken", "store", "fault")}
        for i, expected in due:
            seen = {k: int(v[i]) for k, v in words.items()}
            for text in _compare(expected, seen, {k: v[:, i] for k, v in bits.items()}):
                block = tokens.decode(here[i])[1][0]
                shown = {k: v for k, v in runs[i].blocks[block].items() if v}
                yield f"run {i}, token {position}, {tokens.text(here[i])}: {text}; block {shown}"


def _compare(e: Expected, words: dict[tuple[str, int], int], bits: dict[str, np.ndarray]) -> Iterator[str]:  # type: ignore[type-arg]
    fault, *rest = (int(bit) for bit in bits["fault"])
    number = sum(bit << i for i, bit in enumerate(rest))
    found = (number & 15, number >> 4) if fault else None
    if found != e.fault:
        yield f"fault {found}, expected {e.fault}"
    for name, expected in (("early", e.early), ("late", e.late), ("address", e.stores)):
        for lane, value in expected.items():
            if words[name, lane] != value:
                yield f"{name}{lane} {words[name, lane]:#x}, expected {value:#x}"
    for name in ("early", "late"):
        for lane in {*range(4)} - {*e.guard}:
            if words[name, lane]:
                yield f"{name}{lane} {words[name, lane]:#x} in a lane that is not active"
    for lane, guard in e.guard.items():
        if bits["guard"][lane] != guard:
            yield f"guard of lane {lane} is {bits['guard'][lane]}"
    for name, lanes in (("taken", e.taken), ("store", frozenset(e.stores))):
        seen = frozenset(lane for lane in range(4) if bits[name][lane])
        if seen != lanes:
            yield f"{name} lanes {sorted(seen)}, expected {sorted(lanes)}"
