"""Signals that only wait share a dim.

Where more signals are alive than there are dims, bits (and other small numbers) that nobody reads for two stages or
more are *packed*: a linear neuron makes one number of several of them, their own dims are free, and just before they
are read again a table of that number brings each of them back as a signal of its own. That costs neurons, no level.

``pack`` looks at a schedule, rewrites its netlist, and leaves all stages as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from .lower import lower
from .netlist import Affine, LayerCell, MemoryCell, Netlist, SumCell
from .plan import Plan, Room
from .schedule import Schedule, finished, resumed

VALUES = 16  # of one packed number: four bits
NEURONS = 2 * VALUES  # that packing and unpacking may cost together
ROUNDS = 4


@dataclass(frozen=True)
class Packing:
    """``members`` wait in one number from the MLP stage ``first`` to the MLP stage ``last``."""

    members: tuple[int, ...]
    first: int
    last: int


def pack(plan: Schedule, room: Room, target: int) -> Schedule:
    """The schedule with as few live dims as packing can make, if there are more than ``target``."""
    for _ in range(ROUNDS):
        if plan.peak <= target:
            break
        found = choose(resumed(plan.lowered, room, plan.layers, plan.stage), target)
        if not found:
            break
        netlist, stages = rewritten(plan, found)
        lowered = lower(netlist, plan.lowered.allowance, restoring=False)
        plan = finished(resumed(lowered, room, plan.layers, stages))
    return plan


def choose(plan: Plan, target: int) -> list[Packing]:
    """Packings against every stage that is too full, the fullest first."""
    alive = plan.occupancy()
    spans = _Spans(plan)
    neurons = [plan.neurons_of(layer) - len(rows) for layer, rows in enumerate(plan.layer_rows)]
    found: list[Packing] = []
    hopeless: set[int] = set()
    while True:
        at = max((i for i in range(len(alive)) if i not in hopeless), key=lambda i: alive[i], default=0)
        if alive[at] <= target or at in hopeless:
            return found
        packing = spans.best(at - 1, alive, target, neurons)
        if packing is None:
            hopeless.add(at)
            continue
        found.append(packing)
        for stage in range(packing.first, packing.last):
            alive[stage + 1] -= len(packing.members) - 1
        neurons[packing.first // 2] -= 1
        neurons[packing.last // 2] -= NEURONS


class _Spans:
    """Idle spans of all signals that may be packed; each is used once."""

    def __init__(self, plan: Plan) -> None:
        netlist = plan.lowered.netlist
        self.values = [high - low + 1 for low, high in zip(netlist.lo, netlist.hi, strict=True)]
        self.left: dict[tuple[int, int], list[int]] = {}  # span -> signals
        for signal in range(len(netlist.names)):
            if plan.packable(signal) and self.values[signal] > 1:
                for span in plan.idle_spans(signal):
                    self.left.setdefault(span, []).append(signal)

    def best(self, stage: int, alive: Sequence[int], target: int, neurons: Sequence[int]) -> Packing | None:
        """The packing over that stage that saves most where it is too full."""

        def worth(first: int, last: int) -> int:
            return sum(max(0, alive[at + 1] - target) for at in range(first, last))

        spans = sorted(
            ((first, last) for first, last in self.left if first <= stage < last), key=lambda span: -worth(*span)
        )
        best: tuple[float, Packing] | None = None
        for span in spans:
            if best is not None and 3 * worth(*span) <= best[0]:
                break
            made = self._group(span, [other for other in spans if other != span])
            if made is None or neurons[made.first // 2] < 1 or neurons[made.last // 2] < NEURONS:
                continue
            gain = (len(made.members) - 1) * worth(made.first, made.last)
            if best is None or gain > best[0]:
                best = gain, made
        if best is None:
            return None
        self._use(best[1])
        return best[1]

    def _group(self, span: tuple[int, int], others: Sequence[tuple[int, int]]) -> Packing | None:
        """Signals of that span, and of those most like it if there are too few."""
        first, last = span
        members: list[int] = []
        room = VALUES
        near = sorted(others, key=lambda other: max(0, other[0] - first) + max(0, last - other[1]))
        for other in (span, *near):
            start, end = max(first, other[0]), min(last, other[1])
            if end <= start:
                continue
            for signal in self.left[other]:
                if self.values[signal] <= room and signal not in members:
                    members.append(signal)
                    room //= self.values[signal]
                    first, last = max(first, other[0]), min(last, other[1])
            if room < 2:
                break
        return Packing(tuple(members), first, last) if len(members) > 1 else None

    def _use(self, made: Packing) -> None:
        for span in list(self.left):
            if span[0] <= made.first and span[1] >= made.last:
                kept = [signal for signal in self.left[span] if signal not in made.members]
                if kept:
                    self.left[span] = kept
                else:
                    del self.left[span]


def rewritten(plan: Schedule, packings: Sequence[Packing]) -> tuple[Netlist, list[int]]:
    """The netlist with packings, cells by stage, and the stages."""
    netlist = plan.lowered.netlist
    writer = _Writer(netlist)
    for packing in packings:
        writer.pack(packing)
    cells = [*zip(plan.stage, netlist.cells, strict=True), *writer.cells]
    cells.sort(key=lambda item: item[0])  # stable, and what reads stands at a later stage than what it reads
    end = 2 * plan.layers
    made = replace(
        netlist,
        names=(*netlist.names, *writer.names),
        lo=(*netlist.lo, *writer.lo),
        hi=(*netlist.hi, *writer.hi),
        cells=tuple(writer.reading(cell, stage) for stage, cell in cells),
        code=tuple(writer.affine(bit, end) for bit in netlist.code),
    )
    return made, [stage for stage, _ in cells]


class _Writer:
    """New signals and cells, and for each packed signal by which name it goes from which stage on."""

    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.names: list[str] = []
        self.lo: list[int] = []
        self.hi: list[int] = []
        self.cells: list[tuple[int, LayerCell]] = []
        self.later: dict[int, list[tuple[int, int]]] = {}  # signal -> (stage, its copy), both rising
        self.known = set(netlist.names)

    def pack(self, packing: Packing) -> None:
        """One number in, several signals out."""
        netlist = self.netlist
        values = [netlist.hi[s] - netlist.lo[s] + 1 for s in packing.members]
        weights = [prod(values[:i]) for i in range(len(values))]
        now = [self._now(signal, packing.first) for signal in packing.members]
        const = -sum(w * netlist.lo[s] for w, s in zip(weights, packing.members, strict=True))
        top = prod(values) - 1
        packed = self._signal(f"packed.{netlist.names[packing.members[0]]}", 0, top)
        sources = Affine(tuple(sorted(zip(now, weights, strict=True))), const, 0, top)
        self.cells.append((packing.first, SumCell(packed, ((sources, tuple(range(top + 1))),))))
        number = Affine(((packed, 1),), 0, 0, top)
        for signal, weight, count in zip(packing.members, weights, values, strict=True):
            low = netlist.lo[signal]
            copy = self._signal(netlist.names[signal], low, netlist.hi[signal])
            table = tuple(n // weight % count + low for n in range(top + 1))
            self.cells.append((packing.last, SumCell(copy, ((number, table),))))
            self.later.setdefault(signal, []).append((packing.last, copy))
            self.later[signal].sort()

    def _signal(self, name: str, low: int, high: int) -> int:
        number = next(n for n in range(1, len(self.known)) if f"{name}~{n}" not in self.known)
        self.known.add(f"{name}~{number}")
        self.names.append(f"{name}~{number}")
        self.lo.append(low)
        self.hi.append(high)
        return len(self.netlist.names) + len(self.names) - 1

    def _now(self, signal: int, stage: int) -> int:
        """What a reader at that stage reads."""
        return next((copy for at, copy in reversed(self.later.get(signal, ())) if at < stage), signal)

    def affine(self, arg: Affine, stage: int) -> Affine:
        """An expression as it is read at a stage."""
        if not any(signal in self.later for signal, _ in arg.terms):
            return arg
        return replace(arg, terms=tuple(sorted((self._now(signal, stage), coef) for signal, coef in arg.terms)))

    def reading(self, cell: LayerCell, stage: int) -> LayerCell:
        """A cell as it reads at its stage."""
        return mapped(cell, self, stage)


def mapped(cell: LayerCell, writer: _Writer, stage: int) -> LayerCell:
    """The cell with all its expressions as read at that stage."""

    def put(arg: Affine) -> Affine:
        return writer.affine(arg, stage)

    if isinstance(cell, SumCell):
        return replace(cell, parts=tuple((put(arg), table) for arg, table in cell.parts))
    if not isinstance(cell, MemoryCell):
        return replace(cell, arg=put(cell.arg))
    ports = [
        replace(port, address=tuple(map(put, port.address)), enable=tuple(map(put, port.enable)))
        for port in (cell.write, cell.read)
    ]
    columns = tuple(
        replace(
            column,
            data=put(column.data),
            select=None if column.select is None else put(column.select),
            where=tuple(map(put, column.where)),
        )
        for column in cell.columns
    )
    wipe = None if cell.wipe is None else put(cell.wipe)
    return replace(cell, write=ports[0], read=ports[1], columns=columns, wipe=wipe)
