"""Few live dims: cells move within the slack they have.

What moves together is a *cluster*: the sums of one stage that read exactly the same signals (a decoder, the bits of one
sum), or the memories of one stage that share what they drive (banks). Alone, none of them would gain by moving. A move
costs the stages that its inputs have to stay alive for, and gains those that its outputs are not; stages near the peak
weigh more, and the sweeps are repeated with new weights. Where signals may be packed away while nobody reads them (see
``pack``), a stage at which they could be counts for less.

Sweeps start from two schedules: all cells as early as they can be, and all as late. The best one seen is kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from .netlist import MemoryCell, SumCell
from .plan import Plan, first_idle, last_idle
from .stock import has_deltanet

SWEEPS = 10
PACKED = 0.3  # what a signal that is packed away takes of a dim
SLIGHT = 1e-3  # weight of a stage that is far from full


def spread(plan: Plan, target: int | None) -> None:
    """Sweeps of moves against the peak; with a ``target`` (live dims), those beyond it by as many signals as packing
    cannot bring below."""
    start = list(plan.stage)
    best = (score(plan, target), start)
    for late in (False, True):
        plan.move_all(start)
        if late:
            _as_late_as_possible(plan)
        best = min(best, _sweeps(plan, target), key=lambda found: found[0])
    plan.move_all(best[1])


def score(plan: Plan, target: int | None) -> tuple[float, float]:
    """What to make small: the fullest stage, then how full the others are."""
    alive = loads(plan, target)
    peak = max(alive, default=0.0)
    return max(peak, target or 0), sum(max(0.0, count - (target or 0.9 * peak)) ** 2 for count in alive)


def loads(plan: Plan, target: int | None) -> list[float]:
    """Dims needed after each stage, from the embedding (index 0) on."""
    alive = plan.occupancy()
    if target is None:
        return [float(count) for count in alive]
    return [count - (1 - PACKED) * idle for count, idle in zip(alive, plan.idle(), strict=True)]


def _sweeps(plan: Plan, target: int | None) -> tuple[tuple[float, float], list[int]]:
    best = (score(plan, target), list(plan.stage))
    for sweep in range(SWEEPS):
        moved = _Sweep(plan, target, 2 * sweep).run(down=sweep % 2 == 0)
        best = min(best, (score(plan, target), list(plan.stage)), key=lambda found: found[0])
        if not moved and sweep > 1:
            break
    return best


def _clusters(plan: Plan) -> list[list[int]]:
    clusters: dict[tuple[int, object], list[int]] = {}
    for number, stage in enumerate(plan.stage):
        cell = plan.cells[number]
        key: object = number
        if isinstance(cell, SumCell):
            key = plan.inputs[number]
        elif isinstance(cell, MemoryCell) and plan.outputs[number]:
            first = plan.outputs[number][0]
            key = ("banks", first) if len(plan.drivers[first]) > 1 else number
        clusters.setdefault((stage, key), []).append(number)
    return list(clusters.values())


def _slack(plan: Plan, cells: Sequence[int], ins: Sequence[int], outs: Sequence[int]) -> tuple[int, int]:
    """Earliest and latest stage."""
    earliest = plan.first_stage(cells[0], max((plan.ready(signal) for signal in ins), default=-1))
    latest = 2 * plan.layers - 1
    for signal in outs:
        latest = min(latest, min(plan.read_at[signal], default=2 * plan.layers) - 1)
    return earliest, latest


def _ends(plan: Plan, cells: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Signals that go into a cluster, and that come out of it."""
    if len(cells) == 1:
        return plan.inputs[cells[0]], plan.outputs[cells[0]]
    ins = dict.fromkeys(signal for number in cells for signal in plan.inputs[number])
    return tuple(ins), tuple(dict.fromkeys(signal for number in cells for signal in plan.outputs[number]))


def _as_late_as_possible(plan: Plan) -> None:
    for cells in sorted(_clusters(plan), key=lambda cells: -plan.stage[cells[0]]):
        here = plan.stage[cells[0]]
        _, latest = _slack(plan, cells, (), _ends(plan, cells)[1])
        latest -= (latest - here) % 2
        for stage in range(latest, here, -2):
            if plan.fits(cells, stage):
                _move(plan, cells, stage)
                break


def _move(plan: Plan, cells: Sequence[int], stage: int) -> None:
    for number in cells:
        plan.take(number)
        plan.put(number, stage)


class _Sweep:
    """One sweep. ``whole[s]``: weight of the stages before s; ``from_ready``, ``from_read`` [a][b]: what it costs that
    a signal is there from its being ready, or from a read, at a to a read at b."""

    def __init__(self, plan: Plan, target: int | None, power: int) -> None:
        self.plan = plan
        alive = loads(plan, target)
        peak = max(alive, default=1.0) or 1.0
        weights = [(max(count, 0.0) / peak) ** power + SLIGHT for count in alive]
        # index: stage + 1, so that the embedding's -1 is 0; nothing weighs beyond the last stage
        self.whole = [0.0, *accumulate(weights)]
        self.whole += [self.whole[-1]] * 4
        self.packs = target is not None
        size = 2 * plan.layers + 2
        self.from_ready = [[self._between(a - 1, b - 1, False) for b in range(size)] for a in range(size)]
        self.from_read = [[self._between(a - 1, b - 1, True) for b in range(size)] for a in range(size)]

    def _between(self, event: int, read: int, was_read: bool) -> float:
        """From the stage of the event on, up to the MLP that may clear it if the read is the last one (an excess that
        goes when there is a later one, see ``_tail``)."""
        if read <= event:
            return 0.0
        cost = self.whole[read + 1] - self.whole[event + 1]
        if self.packs:
            first, end = first_idle(event, was_read), last_idle(read)
            if end > first:
                cost -= (1 - PACKED) * (self.whole[end + 1] - self.whole[first + 1])
        return cost

    def _tail(self, read: int) -> float:
        """From a last read to the MLP that may clear it."""
        return self.whole[(read | 1) + 1] - self.whole[read + 1]

    def run(self, down: bool) -> int:
        """How many clusters moved."""
        plan = self.plan
        order = sorted(_clusters(plan), key=lambda cells: plan.stage[cells[0]], reverse=down)
        return sum(self._improve(cells) for cells in order)

    def _improve(self, cells: Sequence[int]) -> bool:
        """Move a cluster to the best stage within its slack, if that is better than where it is."""
        plan = self.plan
        here = plan.stage[cells[0]]
        ins, outs = _ends(plan, cells)
        earliest, latest = _slack(plan, cells, ins, outs)
        latest -= (latest - here) % 2
        if earliest == here == latest:
            return False
        stages = range(earliest, latest + 1, 2)
        costs = [0.0] * len(stages)
        own = set(cells)
        for signal in ins:
            self._add_input(costs, stages, signal, own, here)
        for signal in outs:
            self._add_output(costs, stages, signal, own)
        limit = costs[(here - earliest) // 2] - 1e-9
        for cost, stage in sorted(zip(costs, stages, strict=True)):
            if cost >= limit:
                return False
            if (stage % 2 or has_deltanet(stage // 2)) and plan.fits(cells, stage):
                _move(plan, cells, stage)
                return True
        return False

    def _add_input(self, costs: list[float], stages: range, signal: int, own: set[int], here: int) -> None:
        plan = self.plan
        at = plan.read_at[signal]
        events = [
            stage
            for stage, count in at.items()
            if stage != here or count > sum(signal in plan.inputs[number] for number in own)
        ]
        if signal in plan.code_signals:
            events.append(2 * plan.layers)
        events.sort()
        ready = plan.ready(signal)
        from_read, from_ready = self.from_read, self.from_ready
        for i, stage in enumerate(stages):
            place = bisect_left(events, stage)
            if place < len(events) and events[place] == stage:
                continue
            last, before = (events[place - 1], from_read) if place else (ready, from_ready)
            cost = before[last + 1][stage + 1]
            if place < len(events):
                after = events[place]
                cost += from_read[stage + 1][after + 1] - before[last + 1][after + 1]
            else:
                cost += self._tail(stage) - (self._tail(last) if place else 0.0)
            costs[i] += cost

    def _add_output(self, costs: list[float], stages: range, signal: int, own: set[int]) -> None:
        plan = self.plan
        others = [plan.stage[number] for number in plan.drivers[signal] if number not in own]
        first_read = min(plan.read_at[signal], default=None)
        if first_read is None:
            first_read = 2 * plan.layers if signal in plan.code_signals else None
        for i, stage in enumerate(stages):
            first, ready = (min(stage, *others), max(stage, *others)) if others else (stage, stage)
            end = (stage | 1) if first_read is None else first_read
            costs[i] += self.whole[ready + 1] - self.whole[first + 1] + self.from_ready[ready + 1][max(end, ready) + 1]
