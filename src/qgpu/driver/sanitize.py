"""A launch replayed on the interpreter, and watched for what CUDA leaves undefined.

- reads of shared or local memory that nothing has written in this CTA;
- races: two threads of a CTA reach the same byte of shared memory, one of them writes, and neither a barrier
  (``__syncthreads``, ``__syncwarp``) nor an atomic on a common word stands between the two. Atomics do not race with
  each other, and neither do writes of equal values;
- barriers that are passed though threads of the CTA have left, or stand at another barrier.

Races are found by vector clocks, so that they are found in whatever order the machine ran the threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from qgpu.driver import faults, trace
from qgpu.isa import tokens
from qgpu.isa.encoding import CHOICES
from qgpu.isa.execute import Effect, Store
from qgpu.isa.interpreter import Interpreter, ProtocolError
from qgpu.isa.program import Launch

SHARED_FIRST = tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES
_BRANCH, _COLLECT, _ATOMIC = CHOICES["branch"], CHOICES["collect"], CHOICES["atomic"]
HAZARDS = {("read", "write"): "WAR", ("write", "read"): "RAW"}

Clock = list[int]


@dataclass(frozen=True)
class Report:
    """One fault of a kernel at one place, as it was first met. ``count``: how often. ``str`` gives the whole text.

    ``kind``: uninitialized, race or barrier. ``file``, ``line``: where in the source, 0 if unknown.
    ``address``: None for a barrier.
    """

    kind: str
    text: str
    file: str
    line: int
    block: int
    thread: tuple[int, int, int]
    cta: tuple[int, int, int]
    address: int | None = None
    count: int = 1

    def __str__(self) -> str:
        return self.text + (f"{faults.INDENT}(and {self.count - 1:,} more like it)" if self.count > 1 else "")


@dataclass(frozen=True)
class _Access:
    thread: int
    time: int
    block: int
    kind: str
    value: int = 0

    @property
    def port(self) -> str:
        return "load" if self.kind == "read" else "store"


@dataclass
class _Byte:
    """A byte of shared memory: its last write, and who has read it or done an atomic on it since."""

    write: _Access | None = None
    others: dict[tuple[int, str], _Access] = field(default_factory=dict)


class _Watcher:
    """Follows a replay. ``reports``: by what makes two of them the same."""

    def __init__(self, launch: Launch, places: Sequence[trace.Place], file: str, machine: Interpreter,
                 zeroed: Sequence[tuple[int, int]]) -> None:  # fmt: skip
        self.zeroed = {byte for address, size in zeroed for byte in range(address, address + size)}
        self.launch, self.places, self.file, self.machine = launch, places, file, machine
        local = (place for place in places if place.name.startswith(faults.LOCAL))
        self.local = [(place.address, place.address + place.nbytes) for place in local]
        self.reports: dict[tuple[object, ...], Report] = {}
        self.start_cta()

    def start_cta(self) -> None:
        count = tokens.THREADS_PER_CTA
        self.clocks: list[Clock] = [[int(i == j) for j in range(count)] for i in range(count)]
        self.published: list[dict[int, Clock]] = [{}, {}]
        self.bytes: dict[int, _Byte] = {}
        self.written = set(self.zeroed)
        self.atomics: dict[int, Clock] = {}
        self.barriers: dict[int, int] = {}  # thread that waits -> block

    # -- what happens

    def exec(self, block: int, quad: int, effect: Effect) -> None:
        """Take an EXEC: what it collects, reads, writes, and what it ends with."""
        fields, base = effect.fields, 4 * quad
        warp = quad // tokens.QUADS_PER_WARP * tokens.WARP_SIZE
        if _COLLECT[fields["collect"]] == "sync" and effect.gathered:
            heard = [self.published[fields["collect_parity"]].get(warp + j)
                     for j in range(tokens.WARP_SIZE) if effect.gathered >> j & 1]  # fmt: skip
            for i in effect.active:
                self._join(base + i, heard)
        if effect.fault:
            return
        for i, address, size in effect.loads:
            self._load(base + i, block, address, size)
        for store in effect.stores:
            self._store(base + store.lane, block, store)
        kind = _BRANCH[fields["branch"]]
        if kind == "gather":
            for i in effect.active:
                self.published[fields["publish_parity"]][base + i] = [*self.clocks[base + i]]
                self._tick(base + i)
        if kind == "bar":
            self.barriers.update({base + i: block for i in effect.active})

    def bar(self) -> None:
        """Everybody who waits goes on; before the machine takes the token."""
        lanes = self.machine.state.lanes
        gone = [t for t, lane in enumerate(lanes) if lane.exists and lane.exited]
        waiting = sorted(self.barriers)
        if waiting:
            first = waiting[0]
            home = self.barriers[first]
            apart = [t for t in waiting if self._differs(self.barriers[t], home)]
            for missing, why in ((gone, "exited without arriving"), (apart, "arrived at another barrier")):
                if missing:
                    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
                    lines = ["Barrier error detected. Divergent thread(s) in CTA", f"{self._at(home)}",
                             f"by {self._who(first)}",
                             f"thread {faults.triple(self._thread(missing[0]))}{more} {why}"]  # fmt: skip
                    self._report("barrier", home, first, None, lines, (why, home))
        joined = [max(column) for column in zip(*self.clocks, strict=True)]
        for t in waiting:
            self.clocks[t] = [*joined]
            self._tick(t)
        self.barriers.clear()

    def _differs(self, block: int, other: int) -> bool:
        """Whether two blocks stand for two barriers of the source: a compiler may have copied one."""
        spots = faults.spot_of(self.launch.program, block), faults.spot_of(self.launch.program, other)
        return block != other and (spots[0] != spots[1] or not spots[0].line)

    def _load(self, thread: int, block: int, address: int, size: int) -> None:
        space = faults.space_of(address, self.places)
        if space == "__global__":
            return
        if any(byte not in self.written for byte in range(address, address + size)):
            lines = [f"Uninitialized {space} memory read of size {size} bytes", self._at(block, "load"),
                     f"by {self._who(thread)}",
                     f"Address 0x{address:04x}, {self._name(address)}, has not been written in this CTA"]  # fmt: skip
            self._report("uninitialized", block, thread, address, lines, (space, block), "load")
        if space == "__shared__":
            self._reach(_Access(thread, self.clocks[thread][thread], block, "read"), address, size, 0)

    def _store(self, thread: int, block: int, store: Store) -> None:
        space = faults.space_of(store.address, self.places)
        span = range(store.address, store.address + store.size)
        atomic = store.atomic != "none"
        if atomic:
            known = self.atomics.get(store.address)
            if known is not None:
                self._join(thread, [known])
        if space != "__global__":
            if atomic and any(byte not in self.written for byte in span):
                lines = [f"Uninitialized {space} memory atomic of size {store.size} bytes", self._at(block, "store"),
                         f"by {self._who(thread)}",
                         f"Address 0x{store.address:04x}, {self._name(store.address)}, "
                         "has not been written in this CTA"]  # fmt: skip
                self._report("uninitialized", block, thread, store.address, lines, (space, block), "store")
            self.written.update(span)
        if space == "__shared__":
            value = store.words[0] | store.words[1] << 32
            access = _Access(thread, self.clocks[thread][thread], block, "atomic" if atomic else "write")
            self._reach(access, store.address, store.size, value)
        if atomic:
            self.atomics[store.address] = [*self.clocks[thread]]
            self._tick(thread)

    def _reach(self, access: _Access, address: int, size: int, value: int) -> None:
        """An access to shared memory: compare it with those before it, then remember it."""
        clock = self.clocks[access.thread]
        told: set[tuple[int, str, int]] = set()  # once for all bytes of an access
        for at in range(address, address + size):
            byte = self.bytes.setdefault(at, _Byte())
            mine = replace(access, value=value >> 8 * (at - address) & 0xFF)
            before = [byte.write] if byte.write is not None else []
            if mine.kind != "read":
                before += byte.others.values()
            for other in before:
                if other.thread == mine.thread or clock[other.thread] >= other.time or _friendly(mine, other):
                    continue
                if (who := (other.thread, other.kind, other.block)) not in told:
                    told.add(who)
                    self._race(mine, other, at)
            if mine.kind == "write":
                self.bytes[at] = _Byte(mine)
            else:
                byte.others[mine.thread, mine.kind] = mine

    def _race(self, access: _Access, other: _Access, address: int) -> None:
        def text(one: _Access) -> str:
            by = faults.triple(self._thread(one.thread))
            return f"{one.kind.capitalize()} access by thread {by} {self._at(one.block, one.port)}"

        hazard = HAZARDS.get((other.kind, access.kind), "WAW" if access.kind == other.kind else "atomic")
        lines = [f"Race reported between {text(other)}", f"and {text(access)} ({hazard} hazard)",
                 f"Address 0x{address:04x}, {self._name(address)}, in CTA {faults.triple(self._cta())}"]  # fmt: skip
        key = (other.block, other.kind, access.block, access.kind)
        self._report("race", access.block, access.thread, address, lines, key, access.port)

    # -- clocks

    def _tick(self, thread: int) -> None:
        self.clocks[thread][thread] += 1

    def _join(self, thread: int, heard: Iterable[Clock | None]) -> None:
        for clock in heard:
            if clock is not None:
                self.clocks[thread] = list(map(max, self.clocks[thread], clock))

    # -- words

    def _report(self, kind: str, block: int, thread: int, address: int | None, lines: Sequence[str],
                key: tuple[object, ...], port: str = "") -> None:  # fmt: skip
        if (found := self.reports.get((kind, *key))) is not None:
            self.reports[kind, *key] = replace(found, count=found.count + 1)
            return
        spot = faults.spot_of(self.launch.program, block, port)
        text = faults.INDENT.join(lines)
        self.reports[kind, *key] = Report(
            kind, text, spot.file or self.file, spot.line, block, self._thread(thread), self._cta(), address
        )

    def _thread(self, thread: int) -> tuple[int, int, int]:
        return trace.thread_of(self.launch.cta, thread // 4, thread % 4)

    def _cta(self) -> tuple[int, int, int]:
        return self.machine.state.cta

    def _who(self, thread: int) -> str:
        return faults.who(self._thread(thread), self._cta())

    def _at(self, block: int, port: str = "") -> str:
        where = faults.spot_of(self.launch.program, block, port).under(self.file)
        return f"at {faults.site(self.launch.program, block)}{' in ' if where else ''}{where}"

    def _name(self, address: int) -> str:
        return faults.name_of(address, self.places)


def _friendly(access: _Access, other: _Access) -> bool:
    """Whether two unordered accesses are no race all the same."""
    both = {access.kind, other.kind}
    return both == {"atomic"} or both == {"write"} and access.value == other.value


def sanitized(
    launch: Launch,
    prompt: Sequence[int],
    written: Sequence[int],
    places: Sequence[trace.Place],
    file: str,
    zeroed: Sequence[tuple[int, int]] = (),
) -> tuple[Report, ...]:
    """What a launch did that CUDA leaves undefined, in the order in which it came up. Tokens that are not the
    interpreter's end the search: then ``check`` tells more. zeroed: (address, size) of what starts as 0."""
    machine = Interpreter()
    machine.feed(prompt[:-1])
    watcher = _Watcher(launch, places, file, machine, zeroed)
    machine.watch = watcher.exec
    machine.feed(prompt[-1:])
    bar, cta = tokens.encode("BAR"), tokens.encode("CTA")
    try:
        for token in written:
            if token == bar:
                watcher.bar()
            if token == cta:
                watcher.start_cta()
            machine.feed([token])
    except ProtocolError:
        pass
    return tuple(watcher.reports.values())
