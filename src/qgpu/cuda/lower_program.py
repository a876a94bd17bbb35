"""From blocks with names in their fields to a program: targets, register numbers, constants, source lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import normpath
from pathlib import Path

from qgpu.cuda.ir import Function, Instruction, Reg
from qgpu.cuda.lower_place import Cut, stage_numbers
from qgpu.cuda.lower_reads import roots
from qgpu.cuda.lower_registers import NOWHERE, Code, TooMany, numbered
from qgpu.cuda.lower_requests import Memory, Stage, Word
from qgpu.cuda.lower_work import Work
from qgpu.errors import UnsupportedError
from qgpu.isa import encoding
from qgpu.isa.program import FIRST_PARAM, PARAM_WORDS, Block, Program, Spot
from qgpu.isa.tokens import BLOCKS, PREDICATES, REGISTERS


class NoRegisters(UnsupportedError):
    """More values are needed at the same time than there are registers or predicates for."""


class NoBlocks(UnsupportedError):
    """The program memory is too small."""


def codes_of(cuts: Sequence[tuple[Work, Cut]]) -> list[Code]:
    """The blocks of all regions one behind the other, branch targets and stage registers as numbers."""
    starts: dict[str, int] = {}
    count = 0
    for work, cut in cuts:
        starts[work.region.label] = count
        count += len(cut.fields)
    return [code for work, cut in cuts for code in _region_codes(work, cut, starts)]


def _region_codes(work: Work, cut: Cut, starts: Mapping[str, int]) -> list[Code]:
    numbers = stage_numbers(cut)
    assert numbers is not None
    counts, spots = _attributed(work, cut)
    made = []
    first = starts[work.region.label]
    for index, fields in enumerate(cut.fields):
        chosen = {name: numbers[content] if isinstance(content, Stage) else content for name, content in fields.items()}
        target = chosen.pop("target", None)
        following: tuple[int, ...] = (first + index + 1,)
        if chosen.get("branch") == "bra":
            number = starts[str(target)]
            back = number <= first + index
            chosen |= {"target": number, "back": int(back), "yield": int(back and work.region.yields)}
            following = (number, *following) if chosen.get("g_branch") else (number,)
        elif chosen.get("branch") in ("exit", "trap"):
            following = following if chosen.get("g_branch") else ()
        label = work.region.label if index == 0 else ""
        own, ports = spots[index]
        made.append(Code(chosen, following, counts[index], own, label, ports))
    return made


def too_long(name: str, blocks: str, file: str) -> str:
    return (
        f"{file or 'kernel'}: kernel {name} needs {blocks} blocks, and the machine's program memory holds {BLOCKS}: "
        "split it into several kernels"
    )


def program_of(function: Function, codes: Sequence[Code], file: str) -> Program:
    """The program of a kernel. Raises UnsupportedError where it is more than the machine holds, NoRegisters where it is
    for want of these."""
    name = function.name
    here = f"{file or 'kernel'}: kernel {name}"
    parameter_words = -(-max((p.offset + p.size for p in function.parameters), default=0) // 4)
    if len(codes) > BLOCKS:
        raise NoBlocks(too_long(name, str(len(codes)), file))
    try:
        registers = numbered(codes)
    except TooMany as too_many:
        raise NoRegisters(_too_many(name, file, codes, too_many)) from None
    pool: dict[int, int] = {}
    own = _own_file(codes, file)
    blocks = []
    for code in codes:
        fields: dict[str, int] = {}
        for field, content in code.fields.items():
            if field in encoding.BY_NAME:
                number = _number(field, content, registers, FIRST_PARAM + parameter_words, pool)
                if number:
                    fields[field] = number
        spot = _seen_from(own, code.spot)
        ports = {port: _seen_from(own, other) for port, other in code.ports.items()}
        blocks.append(Block(fields, code.instructions, spot.line, code.label, spot.file, ports))
    if FIRST_PARAM + parameter_words + len(pool) > PARAM_WORDS:
        raise UnsupportedError(
            f"{here} has {parameter_words} parameter words and {len(pool)} constants, and the machine has "
            f"{PARAM_WORDS - FIRST_PARAM} words for both: put constants into an array"
        )
    return Program(name, tuple(blocks), parameter_words, tuple(pool))


def _number(field: str, content: object, registers: Mapping[Reg, int], first: int, pool: dict[int, int]) -> int:
    match content:
        case Reg():
            return registers[content]
        case Word(number=number, constant=None):
            return number
        case Word(constant=int() as constant):
            return first + pool.setdefault(constant, len(pool))
        case str():
            return encoding.CHOICES[field].index(content)
        case int():
            return content
    raise TypeError(f"{field} is {content!r}")


def _too_many(name: str, file: str, codes: Sequence[Code], found: TooMany) -> str:
    have, what = (PREDICATES, "predicates") if found.predicates else (REGISTERS - 1, "registers")
    place = _seen_from(_own_file(codes, file), codes[found.block].spot).under(file or "kernel") or file or "kernel"
    return (
        f"{place}: kernel {name} needs {found.needed} {what} at the same time here, and the machine has {have}: "
        "keep fewer values, or split the kernel"
    )


def _own_file(codes: Sequence[Code], file: str) -> str:
    """The kernel's own file as the compiler calls it: ``file`` by its last name, or if no block is of that the file of
    most blocks."""
    known = Counter(code.spot.file for code in codes if code.spot.line)
    named = [name for name in known if Path(name).name == Path(file).name]
    return max(named or known, key=known.__getitem__, default="")


def _seen_from(own: str, spot: Spot) -> Spot:
    """The spot without the kernel's own file's name, another file's without what compilers put before it."""
    if spot.file == own:
        return replace(spot, file="")
    return replace(spot, file=normpath(spot.file)) if spot.line else NOWHERE


def _attributed(work: Work, cut: Cut) -> tuple[list[int], list[tuple[Spot, dict[str, Spot]]]]:
    """How many of the region's instructions each block executes; where in the source each block stands, and its load
    and its store where that is elsewhere."""
    by_request = {goal.request: goal.instructions for goal in work.everything()}
    items = [*work.region.items, work.region.end]
    counted: set[int] = set()
    counts: list[int] = []
    spots: list[tuple[Spot, dict[str, Spot]]] = []
    for index, requests in enumerate(cut.requests):
        here: list[int] = []
        important: list[int] = []
        at_ports: dict[str, list[int]] = {"load": [], "store": []}
        for request in requests:
            important += by_request.get(request, ())
            if isinstance(request, Memory):
                at_ports["store"] += by_request.get(request, ())
            waiting = list(roots(request))
            while waiting:
                node = waiting.pop()
                places = [*(found[1] for found in (cut.registers.get(node), cut.stages.get(node)) if found is not None)]
                if min([*places, cut.predicates.get(node, index)]) < index:
                    continue
                here += work.made.get(node, ())
                if node.kind == "load":
                    important = [*work.made.get(node, ()), *important]
                    at_ports["load"] += work.made.get(node, ())
                waiting += node.args
        new = set(here + important) - counted
        counted |= new
        counts.append(len(new))
        own = _first_spot(items, [*important, *sorted(here)])
        found = {port: _first_spot(items, positions) for port, positions in at_ports.items()}
        spots.append((own, {port: spot for port, spot in found.items() if spot.line and spot != own}))
    return counts, spots


def _first_spot(items: Sequence[Instruction], positions: Sequence[int]) -> Spot:
    """The first known source line of some of the items."""
    origins = (items[position].origin for position in positions)
    known = (origin.source for origin in origins if origin is not None and origin.source is not None)
    return next((Spot(source.line, source.file) for source in known), NOWHERE)
