"""From optimised IR to a program of machine blocks: regions, blocks, register numbers, fields.

What the machine cannot run is collected over the whole kernel and raised once, as the front end does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qgpu.cuda.flow import liveness, loops
from qgpu.cuda.frontend import Refusal
from qgpu.cuda.ir import (
    Atomic,
    Barrier,
    BasicBlock,
    Compute,
    Exit,
    Fence,
    Function,
    Instruction,
    Load,
    Reg,
    Terminator,
    reads,
    successors,
    writes,
)
from qgpu.cuda.ir_text import text_of_instruction
from qgpu.cuda.lower_flow import Region, SideExit, exits_at_once, layout, merge_exits, plain_branches
from qgpu.cuda.lower_match import Fields, Stage, ToPredicate, ToRegister, ToStage, Word
from qgpu.cuda.lower_nodes import Graph, Node
from qgpu.cuda.lower_region import Builder, Work
from qgpu.cuda.lower_registers import Code, TooMany, numbered
from qgpu.cuda.lower_select import CannotSelect, Cut, Selector, roots, stage_numbers
from qgpu.errors import UnsupportedError
from qgpu.isa import encoding, subset
from qgpu.isa.program import FIRST_PARAM, PARAM_WORDS, Block, Launch, Program, faults
from qgpu.isa.tokens import BLOCKS, PREDICATES, REGISTERS

MAXIMUM_PREDICATED = 4
"""Blocks behind the last exit of a thread that are guarded instead of left."""


@dataclass(frozen=True)
class Options:
    """``table``: what blocks may say. ``complete``: yields and old values of atomics are there. ``addresses``: of variables.
    ``ptx``: the lines of the PTX, for messages."""

    table: Mapping[str, frozenset[str]] = field(default_factory=lambda: subset.PRESENT)
    complete: bool = False
    addresses: Mapping[str, int] = field(default_factory=dict)
    ptx: Sequence[str] = ()
    file: str = ""


def lower(function: Function, options: Options | None = None) -> Program:
    """The machine program of a kernel. Raises UnsupportedError listing all that the machine cannot run."""
    return Lowering(function, options or Options()).run()


@dataclass
class Lowering:
    function: Function
    options: Options
    refusals: list[Refusal] = field(default_factory=list)

    def run(self) -> Program:
        shaped = layout(plain_branches(self.function))
        regions = self.regions(shaped)
        exits = frozenset(block.label for block in shaped.blocks if exits_at_once(block))
        uniform = uniform_registers(shaped)
        works = [self.work(region, uniform, exits, False) for region in regions]
        self.raise_refusals()
        codes: list[Code] = []
        starts: dict[str, int] = {}
        cuts = []
        for number, (region, work) in enumerate(zip(regions, works, strict=True)):
            starts[region.label] = sum(len(cut.fields) for cut, _ in cuts)
            cuts.append(self.selected(region, work, uniform, exits, f"t{number}."))
        for region, (cut, work) in zip(regions, cuts, strict=True):
            codes += self.codes(region, work, cut, starts)
        return self.program(codes)

    # ---- Regions ----

    def regions(self, function: Function) -> list[Region]:
        """The regions in layout order, split at barriers."""
        live = liveness(function)
        depth = {block.label: 0 for block in function.blocks}
        waits: set[str] = set()
        for loop in loops(function):
            for label in loop.blocks:
                depth[label] += 1
            if any(_waits(item) for label in loop.blocks for item in function.block(label).instructions):
                waits.update(loop.latches)
        parts: list[Region] = []
        for label, items, end in merge_exits(function):
            after = frozenset().union(*(live.at_start[target] for target in successors(BasicBlock("", (), end))))
            pieces = _split(label, items, end, after)
            parts += [Region(*piece, depth=depth[label], yields=label in waits) for piece in pieces]
        return [
            Region(part.label, part.items, part.end, part.live, following, part.depth, part.yields)
            for part, following in zip(parts, [*(part.label for part in parts[1:]), ""], strict=True)
        ]

    def work(self, region: Region, uniform: frozenset[Reg], exits: frozenset[str], predicated: bool) -> Work:
        work = Work(region, Graph())
        return Builder(
            work, self.options.table, uniform, self.refuse, self.options.addresses, exits, predicated
        ).build()

    def selected(
        self, region: Region, work: Work, uniform: frozenset[Reg], exits: frozenset[str], prefix: str
    ) -> tuple[Cut, Work]:
        """The region cut into blocks, with guards in place of the last side exit where that takes less."""
        best = self.cut(work, prefix), work
        if any(isinstance(item, SideExit) for item in region.items) and isinstance(region.end, Exit):
            guarded = self.work(region, uniform, exits, True)
            cut = self.cut(guarded, prefix)
            if cut.cost < best[0].cost and len(cut.fields) <= MAXIMUM_PREDICATED:
                best = cut, guarded
        return best

    def cut(self, work: Work, prefix: str) -> Cut:
        """The region cut into blocks in the best way found: values are put into registers early one by one, as long as
        that saves something."""
        best = self.cut_once(work, prefix, frozenset())
        forced: frozenset[Node] = frozenset()
        selector = Selector(work, prefix)
        chances = [node for node in selector.reached if not node.leaf and node.kind != "cmp" and selector.users[node] > 1]
        improved = True
        while improved:
            improved = False
            for node in chances:
                if node not in forced:
                    cut = self.cut_once(work, prefix, forced | {node})
                    if cut.cost < best.cost:
                        best, forced, improved = cut, forced | {node}, True
        return best

    def cut_once(self, work: Work, prefix: str, forced: frozenset[Node]) -> Cut:
        cut = Selector(work, prefix, True, forced).run()
        return cut if stage_numbers(cut) is not None else Selector(work, prefix, False, forced).run()

    # ---- Blocks ----

    def codes(self, region: Region, work: Work, cut: Cut, starts: Mapping[str, int]) -> list[Code]:
        numbers = stage_numbers(cut)
        assert numbers is not None
        counts, lines = _attributed(region, work, cut)
        made = []
        first = starts[region.label]
        for index, fields in enumerate(cut.fields):
            chosen = {
                name: numbers[content] if isinstance(content, Stage) else content for name, content in fields.items()
            }
            following = [first + index + 1]
            if chosen.get("branch") == "bra":
                target = starts[str(chosen["target"])]
                back = target <= first + index
                chosen |= {"target": target, "back": int(back), "yield": int(back and region.yields)}
                following = [target, *(following if chosen.get("g_branch") else [])]
            elif chosen.get("branch") in ("exit", "trap"):
                chosen.pop("target", None)
                following = following if chosen.get("g_branch") else []
            else:
                chosen.pop("target", None)
            label = region.label if index == 0 else ""
            made.append(Code(chosen, tuple(following), counts[index], lines[index], label))
        return made

    def program(self, codes: Sequence[Code]) -> Program:
        name = self.function.name
        parameter_words = -(-max((p.offset + p.size for p in self.function.parameters), default=0) // 4)
        if len(codes) > BLOCKS:
            raise UnsupportedError(
                f"{self.options.file or 'kernel'}: kernel {name} needs {len(codes)} blocks, and the machine's program memory "
                f"holds {BLOCKS}: split it into several kernels"
            )
        try:
            registers = numbered(codes)
        except TooMany as too_many:
            line = codes[too_many.block].line
            have = PREDICATES if too_many.predicates else REGISTERS - 1
            what = "predicates" if too_many.predicates else "registers"
            raise UnsupportedError(
                f"{self.options.file or 'kernel'}{f':{line}' if line else ''}: kernel {name} needs {too_many.needed} {what} at the same time here, "
                f"and the machine has {have}: keep fewer values, or split the kernel"
            ) from None
        pool: dict[int, int] = {}
        blocks = []
        for code in codes:
            fields: dict[str, int] = {}
            for field_name, content in code.fields.items():
                if field_name not in encoding.BY_NAME:
                    continue
                match content:
                    case Reg():
                        number = registers[content]
                    case Word(constant=None):
                        number = content.number
                    case Word(constant=int() as constant):
                        number = FIRST_PARAM + parameter_words + pool.setdefault(constant, len(pool))
                    case str():
                        number = encoding.CHOICES[field_name].index(content)
                    case int():
                        number = content
                    case _:
                        raise AssertionError(f"{field_name} is {content!r}")
                if number:
                    fields[field_name] = number
            blocks.append(Block(fields, code.instructions, code.line, code.label))
        if FIRST_PARAM + parameter_words + len(pool) > PARAM_WORDS:
            raise UnsupportedError(
                f"{self.options.file or 'kernel'}: kernel {name} has {parameter_words} parameter words and {len(pool)} constants, and the "
                f"machine has {PARAM_WORDS - FIRST_PARAM} words for both: put constants into an array"
            )
        program = Program(name, tuple(blocks), parameter_words, tuple(pool))
        found = faults(Launch(program, parameters=(0,) * parameter_words))
        if not self.options.complete:
            found += [text for block in blocks for text in subset.faults(dict(block.fields))]
        assert not found, "\n".join(found)
        return program

    # ---- Refusals ----

    def refuse(self, item: Instruction, hint: str) -> None:
        origin = item.origin
        line = 0 if origin is None else origin.ptx_line
        text = self.options.ptx[line - 1].strip() if 0 < line <= len(self.options.ptx) else text_of_instruction(item)
        self.refusals.append(Refusal(self.function.name, line, None if origin is None else origin.source, text, hint))

    def raise_refusals(self) -> None:
        if self.refusals:
            unique = list(dict.fromkeys(self.refusals))
            things = "1 thing" if len(unique) == 1 else f"{len(unique)} things"
            where = f"{self.options.file}: " if self.options.file else ""
            head = f"{where}kernel {self.function.name} holds {things} this machine cannot run:"
            raise UnsupportedError("\n".join([head, *map(str, unique)]))


def _waits(item: Instruction) -> bool:
    """Whether a loop with this may wait for what other threads do."""
    return isinstance(item, Fence) or (isinstance(item, Load) and item.volatile) or (
        isinstance(item, Atomic) and item.dest is not None
    )  # fmt: skip


def _split(
    label: str, items: tuple[Instruction, ...], end: Terminator, after: frozenset[Reg]
) -> list[tuple[str, tuple[Instruction, ...], Terminator | Barrier, frozenset[Reg]]]:
    """The pieces of a region between barriers, each with what is live after it."""
    pieces: list[tuple[str, tuple[Instruction, ...], Terminator | Barrier, frozenset[Reg]]] = []
    live, last, stop = set(after), end, len(items)
    for position in range(len(items), -1, -1):
        item = items[position] if position < len(items) else end
        if isinstance(item, Barrier):
            pieces.append((f"{label}.after{position}", items[position + 1 : stop], last, after))
            after, last, stop = frozenset(live), item, position
            continue
        live.difference_update(writes(item))
        live.update(reads(item))
        if isinstance(item, SideExit):
            live.add(item.predicate)
    pieces.append((label, items[:stop], last, after))
    return pieces[::-1]


def uniform_registers(function: Function) -> frozenset[Reg]:
    """Registers that hold the same value in all lanes, as a guess for costs: lanes that went other ways are not looked at."""
    uniform = {r for b in function.blocks for item in b.instructions for r in writes(item)}
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            for item in block.instructions:
                if not uniform.issuperset(writes(item)) or not writes(item):
                    continue
                varying = [
                    source for source in _sources(item)
                    if getattr(source, "name", "").startswith(("tid.", "lane")) or (isinstance(source, Reg) and source not in uniform)
                ]  # fmt: skip
                if varying or not isinstance(item, Compute | Load):
                    uniform.difference_update(writes(item))
                    changed = True
    return frozenset(uniform)


def _sources(item: Instruction) -> tuple[object, ...]:
    from qgpu.cuda.ir import operands

    return (*operands(item), *((item.guard.register,) if item.guard else ()))


def _attributed(region: Region, work: Work, cut: Cut) -> tuple[list[int], list[int]]:
    """How many of the region's instructions each block executes, and the source line each stands for."""
    everything = [*work.goals, *work.writes, *([work.end] if work.end else [])]
    by_request = {goal.request: goal.instructions for goal in everything}
    items = [*region.items, region.end]
    counted: set[int] = set()
    counts, lines = [], []
    for index, requests in enumerate(cut.requests):
        here: list[int] = []
        important: list[int] = []
        for request in requests:
            important += by_request.get(request, ())
            waiting = list(roots(request))
            while waiting:
                node = waiting.pop()
                earlier = cut.registers.get(node, (None, index))[1] < index or cut.stages.get(node, (None, index))[1] < index
                if earlier or cut.predicates.get(node, index) < index:
                    continue
                here += work.made.get(node, ())
                if node.kind == "load":
                    important = [*work.made.get(node, ()), *important]
                waiting += node.args
        new = set(here + important) - counted
        counted |= new
        counts.append(len(new))
        known = [_line(items[position]) for position in [*important, *sorted(here)]]
        lines.append(next((line for line in known if line), 0))
    return counts, lines


def _line(item: Instruction) -> int:
    return item.origin.source.line if item.origin is not None and item.origin.source is not None else 0


_ = (ToPredicate, ToRegister, ToStage, Fields, Terminator)
