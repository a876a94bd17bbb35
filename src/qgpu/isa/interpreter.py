"""The executable specification: fed with a prompt, it writes the exact tokens of a launch.

``feed`` takes every token, the host's and the machine's own; ``next`` says which token the machine writes next, or None
where it is the host's turn. docs/machine.md holds the same rules in words; the rule numbers in comments are that
page's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from qgpu.isa import tokens, values
from qgpu.isa.execute import Effect, Store, lead, run_block
from qgpu.isa.operations import ATOMIC
from qgpu.isa.program import Launch, prompt
from qgpu.isa.state import State

WARP = tokens.QUADS_PER_WARP


class ProtocolError(ValueError):
    """A token that the machine cannot take where it stands."""


@dataclass
class Statistics:
    """Tokens the machine wrote, by kind, and lane-instructions executed (needs ``instructions``: block -> count)."""

    tokens: dict[str, int] = field(default_factory=dict)
    lane_instructions: int = 0

    @property
    def total(self) -> int:
        return sum(self.tokens.values())


@dataclass
class Interpreter:
    """``state`` is the machine; ``fault``: (cause, quad, lane, block, address) after a FAULT, until the next GO.
    ``watch`` is told of every EXEC: block, quad and effect, before the effect's stores reach the memory."""

    instructions: Mapping[int, int] = field(default_factory=dict)
    state: State = field(default_factory=State)
    statistics: Statistics = field(default_factory=Statistics)
    fault: tuple[int, int, int, int, int] | None = None
    watch: Callable[[int, int, Effect], None] | None = None
    _queue: list[int] = field(default_factory=list)
    _marker: tuple[str, tuple[int, ...]] = ("HALT", ())
    _payloads: list[int] = field(default_factory=list)
    _quad: int = 0
    _event: bool = False
    _collected: int | None = None
    _block: int = 0

    def feed(self, ids: Iterable[int]) -> None:
        """Take tokens. While the machine writes, each must be what ``next`` says. Raises ProtocolError otherwise."""
        for token in ids:
            try:
                name, fields = tokens.decode(token)
            except ValueError as error:
                raise ProtocolError(str(error)) from None
            if name == "READ":
                self._queue = []  # ends a launch that still runs
            if self._queue:
                if token != self._queue[0]:
                    raise ProtocolError(f"{tokens.text(token)} where the machine writes {tokens.text(self._queue[0])}")
                self._queue.pop(0)
                self.statistics.tokens[name] = self.statistics.tokens.get(name, 0) + 1
            elif name not in ("PROGRAM", "PARAM", "THREADS", "GRID", "ALLOC", "MEM", "DATA", "GO", "READ"):
                raise ProtocolError(f"{tokens.text(token)} is not a token that a prompt may hold")
            self._take(name, fields)

    def next(self) -> int | None:
        """The token the machine writes next; None before GO or READ, and after HALT or FAULT."""
        return self._queue[0] if self._queue else None

    def snapshot(self) -> Interpreter:
        """An independent copy that goes on from here."""
        return copy.deepcopy(self)

    # -- taking tokens

    def _take(self, name: str, fields: tuple[int, ...]) -> None:
        if name == "DATA":
            self._payloads.append(fields[0])
            self._take_data(len(self._payloads))
            return
        self._marker, self._payloads = (name, fields), []
        if name == "GO":
            if not self.state.threads[0] >> 31:
                raise ProtocolError("GO where thread 0 does not exist; upload THREADS first")
            self.state.cta, self.fault = (0, 0, 0), None
            self._start_cta()
        elif name == "READ":
            self._queue = [*values.row_form(*self.state.memory.get(fields[0], (0, 0))), tokens.encode("HALT")]
        elif name == "EXEC":
            self._exec(*fields)
        elif name == "MASK":
            self.state.mask[fields[0]], self.state.leader[fields[0]] = tokens.MASK_PAIRS[fields[1]]
        elif name == "BAR":
            for lane in self.state.lanes:
                lane.blocked = False
            self._event = True  # rule 5: never "this quad" after BAR
            self._collected = None
            self._decide()

    def _take_data(self, count: int) -> None:
        name, fields = self._marker
        p = self._payloads
        if name == "MEM":
            if count > 4:
                raise ProtocolError("a memory row has at most 4 DATA")
            self.state.memory[fields[0]] = values.row_of(p)
        elif name == "CTA":
            if not self._queue:
                self._start_cta()
        elif name in ("PROGRAM", "PARAM", "THREADS", "GRID", "ALLOC"):
            if count > 4:
                raise ProtocolError(f"{name} is followed by 4 DATA")
            if count == 4:
                self._upload(name, fields, p[0] | p[1] << 16 | p[2] << 32 | p[3] << 48)
        elif name not in ("EXEC", "VAL", "VALW", "READ"):
            raise ProtocolError(f"DATA after {name}")

    def _upload(self, name: str, fields: tuple[int, ...], bits: int) -> None:
        state = self.state
        if name == "PROGRAM":
            state.program.setdefault(fields[0], [0] * tokens.PARTS)[fields[1]] = bits
        elif name == "PARAM":
            state.parameters[fields[0]] = bits
        elif name == "ALLOC":
            state.allocated[fields[0]] = bits
        elif name == "THREADS":
            lane = 4 * fields[0] + 2 * fields[1]
            state.threads[lane], state.threads[lane + 1] = bits & 0xFFFFFFFF, bits >> 32
        else:
            state.last_cta = (bits & 0xFFFF | bits >> 48 << 16, bits >> 16 & 0xFFFF, bits >> 32 & 0xFFFF)

    # -- writing tokens

    def _start_cta(self) -> None:
        self.state.start_cta()
        self._queue = [tokens.encode("EXEC", 0, 0)]  # rule 0

    def _exec(self, block: int, quad: int) -> None:
        effect = run_block(self.state, block, quad)
        self._quad, self._block = quad, block
        if self.watch is not None:
            self.watch(block, quad, effect)
        self.statistics.lane_instructions += self.instructions.get(block, 1) * len(effect.active)
        if effect.fault:  # rule 1
            cause, lane, address = effect.fault
            self.fault = (cause, quad, lane, block, address)
            self._queue = [tokens.encode("FAULT", cause, lane)]
            return
        self._event, self._collected = effect.event, effect.gathered
        for position, (register, words) in enumerate(effect.destinations):
            if position == 0:
                self._write(register, words, first=True)
        self._stores(effect)
        self._decide()

    def _write(self, register: int, words: Mapping[int, int], first: bool) -> None:
        """A destination's tokens: the first one's short forms follow the EXEC itself."""
        ordered = sorted(words)
        wide, payloads = values.lane_form([words[i] for i in ordered])
        if wide or not first:
            self._queue.append(tokens.encode("VALW" if wide else "VAL", register))
        self._queue.extend(payloads)
        for i in ordered:
            self.state.registers[self._quad][i][register] = words[i]

    def _stores(self, effect: Effect) -> None:
        """Rule 2: memory rows, then further destinations, an atomic's old value last."""
        old: dict[int, int] = {}
        rows: dict[int, tuple[int, int]] = {}  # as later lanes of this block see them; memory changes with MEM's DATA
        if effect.stores and effect.stores[0].atomic != "none":
            for store in effect.stores:
                old[store.lane] = self._atomic(rows, store)
        else:
            done: set[int] = set()
            for store in effect.stores:
                row = store.address >> 3
                if row in done:
                    continue
                done.add(row)
                self._row(rows, row, store.lane, [s for s in effect.stores if s.address >> 3 == row])
        for register, words in effect.destinations[1:]:
            self._write(register, words, first=False)
        if (register := effect.fields["d_o"]) and old:
            # every active lane is sent, as for any destination: guarded-off lanes resend what they have
            kept = {i: self.state.registers[self._quad][i][register] for i in effect.active}
            self._write(register, kept | old, first=False)

    def _bits(self, rows: Mapping[int, tuple[int, int]], row: int) -> int:
        low, high = rows.get(row, self.state.memory.get(row, (0, 0)))
        return low | high << 32

    def _emit_row(self, rows: dict[int, tuple[int, int]], row: int, lane: int, bits: int) -> None:
        self._queue.append(tokens.encode("MEM", row, lane))
        self._queue.extend(values.row_form(bits & 0xFFFFFFFF, bits >> 32))
        rows[row] = (bits & 0xFFFFFFFF, bits >> 32)

    def _row(self, rows: dict[int, tuple[int, int]], row: int, lane: int, stores: list[Store]) -> None:
        bits = self._bits(rows, row)
        for store in stores:  # in lane order: the highest lane's bytes stay
            ones = (1 << 8 * store.size) - 1
            shift = 8 * (store.address & 7)
            bits = bits & ~(ones << shift) | ((store.words[0] | store.words[1] << 32) & ones) << shift
        self._emit_row(rows, row, lane, bits)

    def _atomic(self, rows: dict[int, tuple[int, int]], store: Store) -> int:
        """Do one lane's atomic; returns the old value's low word."""
        row, shift, ones = store.address >> 3, 8 * (store.address & 7), (1 << 8 * store.size) - 1
        bits = self._bits(rows, row)
        operand, compare = ((pair[0] | pair[1] << 32) & ones for pair in (store.words, store.compare))
        old = bits >> shift & ones
        new = ATOMIC[store.atomic](old, operand, compare, ones)
        self._emit_row(rows, row, store.lane, bits & ~(ones << shift) | new << shift)
        return old & 0xFFFFFFFF

    # -- what runs next

    def _go(self, quad: int, lanes: int, leader: int, pc: int) -> None:
        if lanes != self.state.mask[quad]:
            self._queue.append(tokens.mask(quad, lanes, leader))
        self._queue.append(tokens.encode("EXEC", pc, quad))

    def _waiting(self, quad: int, members: int, block: int) -> int:
        """Mask of the quad's lanes that wait at ``block`` and are in ``members`` (over the warp)."""
        found = 0
        for i in range(4):
            lane = self.state.lanes[4 * quad + i]
            if lane.waiting and lane.gather[1] == block and members >> 4 * (quad % WARP) + i & 1:
                found |= 1 << i
        return found

    def _sweep(self, quads: Iterable[int], members: int, block: int) -> bool:
        """GO on the first of ``quads`` that has lanes waiting at ``block`` in ``members``."""
        for quad in quads:
            if lanes := self._waiting(quad, members, block):
                self._go(quad, lanes, lead(lanes, self.state.leader[quad]), block)
                return True
        return False

    def _covered(self, warp: int, members: int, block: int) -> bool:
        for j in range(tokens.WARP_SIZE):
            lane = self.state.lanes[warp * tokens.WARP_SIZE + j]
            if members >> j & 1 and lane.exists and not lane.exited and not (lane.waiting and lane.gather[1] == block):
                return False
        return True

    def _runnable(self, quad: int) -> bool:
        lanes = self.state.lanes[4 * quad : 4 * quad + 4]
        return any(n.exists and not (n.exited or n.waiting or n.blocked) for n in lanes)

    def _decide(self) -> None:
        """Append what follows the last token of an EXEC or of BAR: rules 3 to 8."""
        state, quad = self.state, self._quad
        warp = quad // WARP
        here = range(warp * WARP, (warp + 1) * WARP)
        if self._collected is not None and self._sweep(range(quad + 1, here.stop), self._collected, self._block):
            return  # rule 3
        members, block = state.warp_gather[warp]
        if self._covered(warp, members, block) and self._sweep(here, members, block):
            return  # rule 4
        lanes = [n for q in here for n in state.lanes[4 * q : 4 * q + 4]]
        first = next((j for j, lane in enumerate(lanes) if lane.waiting), None)
        if first is not None and not any(self._runnable(q) for q in here):
            gather = lanes[first].gather
            if not (self._covered(warp, *gather) and self._sweep([here[first // 4]], *gather)):
                self._deadlock()
            return
        order = [(quad + i) % tokens.QUADS for i in range(1, tokens.QUADS + 1)]
        if not self._event:
            order.insert(0, quad)
        for other in order:  # rule 5
            if self._runnable(other):
                group = state.group[other]
                self._go(other, group.lanes, group.leader, group.pc)
                return
        left = [n for n in state.lanes if n.exists and not n.exited]
        if left and all(n.blocked for n in left):  # rule 6
            self._queue.append(tokens.encode("BAR"))
        elif not left:  # rule 7
            self._advance()
        else:  # rule 8
            self._deadlock()

    def _deadlock(self) -> None:
        self.fault = (tokens.CAUSES.index("deadlock"), self._quad, 0, self._block, 0)
        self._queue.append(tokens.encode("FAULT", tokens.CAUSES.index("deadlock"), 0))

    def _advance(self) -> None:
        (x, y, z), (last_x, last_y, last_z) = self.state.cta, self.state.last_cta
        if (x, y, z) == (last_x, last_y, last_z):
            self._queue.append(tokens.encode("HALT"))
            return
        if x < last_x:
            x += 1
        elif y < last_y:
            x, y = 0, y + 1
        else:
            x, y, z = 0, 0, z + 1
        self.state.cta = (x, y, z)
        self._queue.extend([tokens.encode("CTA"), *values.cta_form(x, y, z)])


def run(launch: Launch, max_tokens: int = 1_000_000) -> tuple[list[int], Interpreter]:
    """The tokens a launch writes after its prompt, and the machine. HALT or FAULT is the last, unless ``max_tokens``
    ends the launch before."""
    machine = Interpreter({i: block.instructions for i, block in enumerate(launch.program.blocks)})
    machine.feed(prompt(launch))
    written: list[int] = []
    while len(written) < max_tokens and (token := machine.next()) is not None:
        written.append(token)
        machine.feed([token])
    return written, machine
