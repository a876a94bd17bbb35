"""A launch's tokens as people read them: who runs which line, what registers and memory become.

Nothing is executed here: what a token means follows from the tokens before it, as the machine's own grammar says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qgpu.isa import tokens, values
from qgpu.isa.program import Launch, Spot, thread_rows
from qgpu.trace.records import Record, records

Coordinates = tuple[int, int, int]


@dataclass(frozen=True)
class Place:
    """An array of the trace: elements of ``itemsize`` bytes from ``address`` on, integers up to 8 bytes."""

    name: str
    address: int
    shape: tuple[int, ...]
    signed: bool = True
    itemsize: int = 4
    kind: str = "int32"

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def element(self, index: int) -> str:
        """``out[3]``, or ``c[1][2]`` for the element at that place in memory."""
        parts: list[int] = []
        for extent in reversed(self.shape):
            parts.append(index % extent)
            index //= extent
        return self.name + "".join(f"[{part}]" for part in reversed(parts))

    def name_of(self, address: int) -> str:
        """A byte address inside it: ``out[3]``, or ``out[3]+2`` inside an element."""
        index, rest = divmod(address - self.address, self.itemsize)
        return self.element(index) + (f"+{rest}" if rest else "")


@dataclass
class Statistics:
    """``tokens``: written after the prompt; ``kinds``: of each kind. ``lane_instructions``: instructions of the source
    program, counted once for every thread that ran them."""

    prompt_tokens: int = 0
    tokens: int = 0
    lane_instructions: int = 0
    kinds: dict[str, int] = field(default_factory=dict)

    @property
    def exec_tokens(self) -> int:
        return self.kinds.get("EXEC", 0)


def statistics(launch: Launch, prompt_tokens: int, written: Sequence[int]) -> Statistics:
    """Counts over a whole trace."""
    found = Statistics(prompt_tokens, len(written))
    blocks = launch.program.blocks
    for record in records(launch, written):
        found.kinds[record.kind] = found.kinds.get(record.kind, 0) + 1
        if record.payloads:
            found.kinds["DATA"] = found.kinds.get("DATA", 0) + len(record.payloads)
        if record.kind == "EXEC" and record.block < len(blocks):
            found.lane_instructions += blocks[record.block].instructions * len(record.lanes)
    return found


def thread_of(cta: Coordinates, quad: int, lane: int) -> Coordinates:
    """threadIdx of a lane."""
    row = thread_rows(cta)[4 * quad + lane]
    return row & 0xFF, row >> 8 & 0xFF, row >> 16 & 0xFF


def coordinates(index: Coordinates, size: Coordinates) -> str:
    """An index as short as its grid or CTA allows: ``5``, ``(1, 5)``, ``(0, 1, 5)``."""
    used = 3 if size[2] > 1 else 2 if size[1] > 1 else 1
    return str(index[0]) if used == 1 else str(index[:used])


def sizes(size: Coordinates) -> str:
    """A grid or CTA size as it is written in a launch: ``5``, ``(2, 5)``."""
    used = 3 if size[2] > 1 else 2 if size[1] > 1 else 1
    return str(size[0]) if used == 1 else str(size[:used])


@dataclass(frozen=True)
class Listing:
    """A launch token by token. ``str`` gives the text, iteration its lines, ``records()`` what they are made of."""

    launch: Launch
    tokens: tuple[int, ...]
    places: tuple[Place, ...] = ()
    file: str = ""

    def __iter__(self) -> Iterator[str]:
        return Reader(self.launch, self.places, self.file).lines(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def __str__(self) -> str:
        return "\n".join(self)

    def __repr__(self) -> str:
        return f"Listing({len(self.tokens):,} tokens; print it, or iterate over its lines)"

    def records(self) -> Iterator[Record]:
        """The tokens grouped by marker; see ``records``."""
        return records(self.launch, self.tokens)


@dataclass
class Reader:
    """Walks a trace. ``places``: the arrays, for names of addresses. ``file``: the kernel's source, for lines."""

    launch: Launch
    places: Sequence[Place] = ()
    file: str = ""
    memory: dict[int, tuple[int, int]] = field(default_factory=dict)

    def lines(self, written: Sequence[int]) -> Iterator[str]:
        """One line a token: its position, the token, and what it says; what DATA say stands at their last one."""
        self.memory = dict(self.launch.rows)
        for record in records(self.launch, written):
            meaning = _MEANINGS.get(record.kind)
            text = meaning(self, record) if meaning else ""
            head = tokens.text(written[record.position])
            count = len(record.payloads)
            own = record.kind == "EXEC" or not count
            yield _line(record.position, head, (self._exec(record) if record.kind == "EXEC" else text) if own else "")
            for index, payload in enumerate(record.payloads):
                last = index == count - 1
                yield _line(record.position + 1 + index, f"  DATA 0x{payload:04x}", text if last else "")

    def name_of(self, address: int) -> str:
        """A byte address as an element of an array, or as what kind of memory it is."""
        place = self._place_of(address)
        if place is not None:
            return place.name_of(address)
        first_shared = tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES
        if address >= first_shared:
            return f"shared[0x{address - first_shared:03x}]"
        return f"memory[0x{address:04x}]"

    def _threads(self, record: Record) -> str:
        found = [coordinates(thread_of(self.launch.cta, record.quad, i), self.launch.cta) for i in record.lanes]
        consecutive = len(found) > 2 and all(text.isdigit() for text in found)
        consecutive = consecutive and int(found[-1]) - int(found[0]) == len(found) - 1
        listed = f"{found[0]}..{found[-1]}" if consecutive else ", ".join(found)
        return f"thread{'s' if len(found) != 1 else ''} {listed}"

    def _exec(self, record: Record) -> str:
        blocks = self.launch.program.blocks
        spot = blocks[record.block].spot() if record.block < len(blocks) else Spot()
        where = spot.under(self.file) or self.file or "block"
        return f"{where}  {self._threads(record)}"

    def _values(self, record: Record) -> str:
        if not record.payloads:
            return ""
        words = values.lane_values(len(record.lanes), record.payloads, record.kind == "VALW")
        register = record.fields[0] if record.kind != "EXEC" else self._first_destination(record.block)
        if words is None:
            return "(unfinished)"
        numbers = [values.signed(word) for word in words]
        if len(set(numbers)) == 1:
            numbers = numbers[:1]
        return f"r{register} = {', '.join(map(str, numbers))}"

    def _first_destination(self, block: int) -> int:
        fields = self.launch.program.blocks[block].fields
        return fields.get("d_e", 0) or fields.get("d_b", 0)

    def _row(self, record: Record) -> str:
        row = record.fields[0]
        old = self.memory.get(row, (0, 0))
        if not 1 <= len(record.payloads) <= 4:
            return ""
        new = self.memory[row] = values.row_of(record.payloads)
        units = list(self._units(row))
        bits = [word[0] | word[1] << 32 for word in (old, new)]
        parts = [[pair >> 8 * (at & 7) & (1 << 8 * size) - 1 for at, size, _ in units] for pair in bits]
        changed = [index for index in range(len(units)) if parts[0][index] != parts[1][index]]
        known = [index for index in range(len(units)) if self._place_of(units[index][0])]
        listed = []
        for index in changed or known or range(len(units)):
            at, size, signed = units[index]
            number = values.signed(parts[1][index], 8 * size) if signed else parts[1][index]
            listed.append(f"{self.name_of(at)} = {number}")
        return ", ".join(listed) + ("" if changed else "  (as before)")

    def _units(self, row: int) -> Iterator[tuple[int, int, bool]]:
        """(address, bytes, signed) of what a row holds: the elements of an array, words where there is none."""
        at, end = row * tokens.ROW_BYTES, (row + 1) * tokens.ROW_BYTES
        while at < end:
            place = self._place_of(at)
            size = place.itemsize if place is not None and place.itemsize in (1, 2, 8) else 4
            yield at, size, place is None or place.signed
            at += size

    def _place_of(self, address: int) -> Place | None:
        found = (place for place in self.places if place.address <= address < place.address + place.nbytes)
        return next(found, None)

    def _fault(self, record: Record) -> str:
        blocks, cause = self.launch.program.blocks, record.fields[0]
        port = tokens.CAUSES[cause].split(" ")[0] if cause < len(tokens.CAUSES) else ""
        where = blocks[record.block].spot(port).under(self.file) if record.block < len(blocks) else ""
        by = thread_of(self.launch.cta, record.quad, record.fields[1] % tokens.LANES)
        return f"{where}{'  ' if where else ''}thread {coordinates(by, self.launch.cta)}"

    def _mask(self, record: Record) -> str:
        quad, (lanes, _) = record.fields[0], tokens.MASK_PAIRS[record.fields[1]]
        active = Record(0, "", (), (), quad, 0, tuple(i for i in range(4) if lanes >> i & 1))
        return f"{self._threads(active)} next"

    def _cta(self, record: Record) -> str:
        shared = {row: words for row, words in self.memory.items() if row < tokens.SHARED_FIRST_ROW}
        self.memory = shared
        return f"CTA {coordinates(values.cta_of(record.payloads), self.launch.grid)} starts; shared memory is wiped"

    def _barrier(self, record: Record) -> str:
        return "every thread has arrived at the barrier"

    def _halt(self, record: Record) -> str:
        return "the launch is complete"


_MEANINGS: Mapping[str, Callable[[Reader, Record], str]] = {
    "EXEC": Reader._values,
    "VAL": Reader._values,
    "VALW": Reader._values,
    "MEM": Reader._row,
    "MASK": Reader._mask,
    "CTA": Reader._cta,
    "BAR": Reader._barrier,
    "HALT": Reader._halt,
    "FAULT": Reader._fault,
}


def _line(position: int, token: str, meaning: str) -> str:
    return f"{position:6d}  {token:24s}  {meaning}".rstrip()


def written_rows(launch: Launch, written: Sequence[int]) -> dict[int, tuple[int, int]]:
    """The memory that the tokens alone tell of: the rows of the prompt, then every MEM in order, shared memory wiped by
    CTA. Row -> (low word, high word). An unfinished MEM at the end counts as it stands."""
    memory = dict(launch.rows)
    for record in records(launch, written):
        if record.kind == "MEM" and 1 <= len(record.payloads) <= 4:
            memory[record.fields[0]] = values.row_of(record.payloads)
        elif record.kind == "CTA":
            memory = {row: words for row, words in memory.items() if row < tokens.SHARED_FIRST_ROW}
    return memory
