"""From optimised IR to a program of machine blocks: flow, regions, blocks, numbers.

What the machine cannot run is collected over the whole kernel and raised once, as the front end does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qgpu.cuda.ir import Exit, Function, Instruction, KernelParameter, Reg, reads, writes
from qgpu.cuda.ir_text import text_of_instruction
from qgpu.cuda.lower_costs import parting, uniform_registers, weights
from qgpu.cuda.lower_expand import expand
from qgpu.cuda.lower_flow import layout, plain_branches
from qgpu.cuda.lower_goals import Builder
from qgpu.cuda.lower_guards import conversions
from qgpu.cuda.lower_nodes import Graph, Node
from qgpu.cuda.lower_order import few_alive
from qgpu.cuda.lower_place import Cut, Effort
from qgpu.cuda.lower_program import NoBlocks, NoRegisters, codes_of, program_of, too_long
from qgpu.cuda.lower_regions import Region, SideExit, exits_at_once, regions_of, targets_of
from qgpu.cuda.lower_select import REACH, CannotSelect, Selector, TooLong
from qgpu.cuda.lower_spill import ROOMS, spilled
from qgpu.cuda.lower_work import Work
from qgpu.cuda.refusals import Refusal, refuse
from qgpu.isa import subset
from qgpu.isa.program import Launch, Program, faults
from qgpu.isa.tokens import BLOCKS

MAXIMUM_GUARDED = 4
"""Blocks of a region whose last exit of a thread becomes a guard."""
MAXIMUM_CONVERSIONS = 12
"""Branches that are tried without a branch."""


@dataclass(frozen=True)
class Options:
    """``table``: what blocks may say. ``absent``: fields that must stay 0. Both are what circuits implement today.
    ``addresses``: of variables. ``local_bytes``: of local memory, a thread's. ``ptx``: the lines of the PTX, ``file``:
    the name of the source, for messages."""

    table: Mapping[str, frozenset[str]] = field(default_factory=lambda: subset.PRESENT)
    absent: frozenset[str] = field(default_factory=lambda: subset.ABSENT_FIELDS)
    addresses: Mapping[str, int] = field(default_factory=dict)
    local_bytes: int = 0
    ptx: Sequence[str] = ()
    file: str = ""


@dataclass(frozen=True)
class Lowered:
    """``parameters``: of the kernel, hidden ones included. ``local_bytes``: of local memory, a thread's. ``spills``:
    accesses of it put in for want of registers."""

    program: Program
    parameters: tuple[KernelParameter, ...]
    local_bytes: int
    spills: int = 0


def lower(function: Function, options: Options | None = None) -> Lowered:
    """The machine program of a kernel. Raises UnsupportedError listing all that the machine cannot run."""
    options = options or Options()
    lowering = Lowering(options)
    function = expand(function, options.table)
    first = best = lowering.version(function)
    for _ in range(MAXIMUM_CONVERSIONS):
        better = next((v for f in conversions(best.function) if (v := lowering.version(f)).cost < best.cost), None)
        if better is None or lowering.effort.spent:
            break
        best = better
    lowered = _fitting(best, first, lowering)
    program = lowered.program
    found = faults(Launch(program, parameters=(0,) * program.parameter_words))
    found += [text for block in program.blocks for text in subset.rules(block.fields)]
    found += [f"{name} is absent" for block in program.blocks for name in options.absent if block.fields.get(name)]
    assert not found, "\n".join(found)
    return lowered


def _fitting(best: Version, first: Version, lowering: Lowering) -> Lowered:
    """The best version whose values find registers: cut with few values in them, then ever more of them in memory."""
    local = lowering.options.local_bytes
    last: NoRegisters | NoBlocks | None = None
    ordered = few_alive(first.function)
    for way in (best, best.function, first, first.function, ordered):
        try:
            made = way if isinstance(way, Version) else lowering.version(way, tight=True)
            return lowering.lowered(made, local)
        except NoRegisters as none:
            last = none
    for room in ROOMS if lowering.can_spill else ():
        spill = spilled(ordered, room, local)
        lowering.effort = Effort()
        try:
            return lowering.lowered(lowering.version(spill.function, True), spill.bytes_per_thread, spill.count)
        except (NoRegisters, NoBlocks) as none:
            last = last if isinstance(last, NoBlocks) else none
    assert last is not None
    raise last


@dataclass(frozen=True)
class Version:
    """One way to lower a kernel. ``function``: as it was cut up. ``cost``: a guess, in tokens."""

    function: Function
    cuts: list[tuple[Work, Cut]]
    cost: float


@dataclass
class Lowering:
    """``done``: the regions cut so far, by all that a cut depends on."""

    options: Options
    done: dict[object, tuple[Work, Cut]] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)

    def version(self, function: Function, tight: bool = False) -> Version:
        """The function lowered as it is; tight: with few values in registers at a time.

        Raises UnsupportedError listing all that the machine cannot run.
        """
        function = layout(plain_branches(function))
        regions = regions_of(function, "yield" not in self.options.absent)
        exits = frozenset(block.label for block in function.blocks if exits_at_once(block))
        uniform = uniform_registers(function)
        weight = weights(function, uniform)
        builds = [Build(self.options, region, exits, uniform, self.effort, tight) for region in regions]
        self.check(function, builds)
        # Where lanes may overtake others of their quad, a stage register does not keep what it holds.
        stages = not any(region.yields for region in regions) and not any(build.some_lanes for build in builds)
        cuts = []
        cost = parting(function, uniform, weight)
        for region, build in zip(regions, builds, strict=True):
            mentioned = {r for item in (*region.items, region.end) for r in (*reads(item), *writes(item))}
            key = (region, exits.intersection(targets_of(region)), uniform & mentioned, stages, tight)
            if key not in self.done:
                try:
                    self.done[key] = build.best(stages)
                except TooLong:
                    raise NoBlocks(too_long(function.name, f"more than {BLOCKS}", self.options.file)) from None
            cuts.append(self.done[key])
            cost += weight[region.label.split(".after")[0]] * cuts[-1][1].cost
        return Version(function, cuts, cost)

    @property
    def can_spill(self) -> bool:
        """Whether the machine has what finds a thread's place in local memory."""
        return {"warpid", "laneid"} <= self.options.table["x"] and "shl" in self.options.table["m_op"]

    def lowered(self, version: Version, local_bytes: int, spills: int = 0) -> Lowered:
        """The version with register numbers. Raises NoRegisters where there are not enough."""
        function = version.function
        program = program_of(function, codes_of(version.cuts), self.options.file)
        return Lowered(program, function.parameters, local_bytes, spills)

    def check(self, function: Function, builds: Sequence[Build]) -> None:
        """Raises UnsupportedError if there is anything that the machine cannot run."""
        refusals = [refusal for build in builds for refusal in build.refusals(function.name)]
        if refusals:
            raise refuse(refusals, function.name, self.options.file)


@dataclass
class Build:
    """One region on its way to blocks."""

    options: Options
    region: Region
    exits: frozenset[str]
    uniform: frozenset[Reg]
    effort: Effort
    tight: bool = False
    stages: bool = True
    some_lanes: bool = False
    refused: list[tuple[Instruction, str]] = field(default_factory=list)

    def work(self, guarded: bool = False) -> Work:
        """guarded: the last side exit is a guard of what follows it."""
        return Builder(
            Work(self.region, Graph("shl" in self.options.table["m_op"])),
            self.options.table,
            self.uniform,
            lambda item, hint: self.refused.append((item, hint)),
            self.options.addresses,
            self.exits,
            guarded,
            "d_o" not in self.options.absent,
        ).build()

    def refusals(self, kernel: str) -> list[Refusal]:
        self.some_lanes = self.work().some_lanes
        return [self.refusal(kernel, item, hint) for item, hint in self.refused]

    def refusal(self, kernel: str, item: Instruction, hint: str) -> Refusal:
        line = 0 if item.origin is None else item.origin.ptx_line
        known = 0 < line <= len(self.options.ptx)
        text = " ".join(self.options.ptx[line - 1].split()) if known else text_of_instruction(item)
        return Refusal(kernel, line, None if item.origin is None else item.origin.source, text, hint)

    def best(self, stages: bool) -> tuple[Work, Cut]:
        """The region cut into blocks, with guards in place of the last side exit where that takes less.

        stages: whether stage registers may be used.
        """
        self.stages = stages
        work = self.work()
        cut = self.cut(work)
        if any(isinstance(item, SideExit) for item in self.region.items) and isinstance(self.region.end, Exit):
            guarded = self.work(guarded=True)
            if not guarded.two_guards:
                other = self.cut(guarded)
                if other.cost < cut.cost and len(other.fields) <= MAXIMUM_GUARDED:
                    return guarded, other
        return work, cut

    def cut(self, work: Work) -> Cut:
        """The region cut into blocks in the best way found: values that several read are forced into registers one
        by one, each only if that saves something."""
        selector = Selector(work, f"{self.region.label}.")
        forced: frozenset[Node] = frozenset()
        best = self.cut_once(work, forced)
        if work.collect is not None and not self.tight:
            # What is collected may be better off in a register at once.
            other = self.cut_once(work, forced, reach=0)
            best = other if other.cost < best.cost else best
        for node in selector.reached:
            if self.tight or self.effort.spent:
                break
            if not node.leaf and not node.test and selector.users[node] > 1 and node not in best.registers:
                cut = self.cut_once(work, forced | {node})
                if cut.cost < best.cost:
                    best, forced = cut, forced | {node}
        return best

    def cut_once(self, work: Work, forced: frozenset[Node], reach: int = REACH) -> Cut:
        """One try; where it ends at a value that cannot be had, one without stage registers, and one in which all that
        is loaded goes to registers first."""
        for stages, careful in ((self.stages, False), (False, False), (False, True)):
            try:
                return Selector(
                    work, f"{self.region.label}.", self.tight,
                    stages=stages, forced=forced, effort=self.effort, reach=reach, careful=careful,
                ).run()  # fmt: skip
            except CannotSelect:
                if careful:
                    raise
        raise AssertionError("the last try has ended")
