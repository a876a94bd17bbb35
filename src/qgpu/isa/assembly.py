"""Assembler text and back: a program as people read and write it.

    .program dot
    .parameters 3
    .pool 0x7fffffff 12
    start:  x=tid.x a_sel=P b_sel=X b_shift=2 pa=param0 load=b32 stage_w=L line=4 instructions=3
    b1:     branch=bra target=start       # field back is set by the assembler

A block begins with its label and a colon; lines without one go on with the block above. ``b<n>`` stands for block n,
which need have no label. Fields are those of ``encoding``, 0 where left out; ``line`` and ``instructions`` are the
block's source line and instruction count, ``load.line`` and ``store.line`` the lines of its ports where they have lines
of their own. A line of another file than the kernel's is ``helper.cuh:4``, with blanks and the like as in a URL.
Registers are ``r3``, parameter words ``ntid.x``, ``nctaid.z``, ``param0``, ``pool1``; numbers may stand for every name.
``#`` begins a comment.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

from qgpu.isa import encoding, tokens
from qgpu.isa.program import FIRST_PARAM, NCTAID, NTID, PARAM_WORDS, Block, Program, Spot

WIDTH: Final = 110  # columns of a disassembled line
REGISTER_FIELDS: Final = frozenset({"ra", "rb", "rc", "d_e", "d_b", "d_o"})
PARAMETER_FIELDS: Final = frozenset({"pa", "pq", "pt"})
_SPOTS: Final = {"line": "", "load.line": "load", "store.line": "store"}  # item -> port
_BLOCK_FIELDS: Final = (*_SPOTS, "instructions")
_NAMES: Final = (*(f.name for f in encoding.FIELDS), *_BLOCK_FIELDS)
_LABEL: Final = re.compile(r"([^\s:=#]+):")
_NUMBERED: Final = re.compile(r"b(\d+)")
_BRA: Final = encoding.CHOICES["branch"].index("bra")


class AssemblyError(ValueError):
    """Text that is no program. ``errors``: every fault, as "source:line: what is wrong"."""

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(self.errors))


@dataclass
class _Draft:
    """A block being read: ``pairs`` are (line of the text, field, value as written)."""

    at: int
    label: str
    pairs: list[tuple[int, str, str]] = field(default_factory=list)


def assemble(text: str, source: str = "<assembly>") -> Program:
    """The program that ``text`` spells. Raises AssemblyError with every fault of the text."""
    errors: list[tuple[int, str]] = []
    directives: dict[str, tuple[int, list[str]]] = {}
    drafts: list[_Draft] = []
    for at, full in enumerate(text.splitlines(), 1):
        line = full.split("#", 1)[0].strip()
        if line.startswith("."):
            name, *rest = line.split()
            if name not in (".program", ".parameters", ".pool"):
                errors.append((at, f"unknown directive {name}; there are .program, .parameters and .pool"))
            elif name in directives:
                errors.append((at, f"{name} stands in line {directives[name][0]} already"))
            else:
                directives[name] = (at, rest)
            continue
        if match := _LABEL.match(line):
            drafts.append(_Draft(at, match[1]))
            line = line[match.end() :]
        for item in line.split():
            name, equals, value = item.partition("=")
            if not drafts:
                errors.append((at, f"{item!r} stands before the first block; begin a block with its label and a colon"))
            elif not equals or not value:
                errors.append((at, f"{item!r} is not field=value"))
            else:
                drafts[-1].pairs.append((at, name, value))
    name, parameters, pool = _directives(directives, errors)
    blocks = _blocks(drafts, _words(parameters, len(pool)), errors)
    if not blocks and not errors:
        errors.append((1, "no block; begin one with its label and a colon"))
    if errors:
        raise AssemblyError(f"{source}:{at}: {message}" for at, message in sorted(errors, key=lambda e: e[0]))
    return Program(name, blocks, parameters, pool)


def disassemble(program: Program) -> str:
    """Text that ``assemble`` reads back as the same program (fields that are 0 are left out).

    Raises ValueError for a program name or a label that cannot be spelled, or a label that two blocks have.
    """
    if program.name.split() != [program.name] or "#" in program.name:
        raise ValueError(f"the program name {program.name!r} must be one word without '#'")
    seen: set[str] = set()
    for block in program.blocks:
        if block.label and (block.label in seen or not _can_be_spelled(block.label)):
            raise ValueError(f"the label {block.label!r} cannot be spelled, or two blocks have it")
        seen.add(block.label)
    lines = [f".program {program.name}"]
    if program.parameter_words:
        lines.append(f".parameters {program.parameter_words}")
    if program.pool:
        lines.append(" ".join([".pool", *(str(w) if 0 <= w < 256 else f"{w & 0xFFFFFFFF:#x}" for w in program.pool)]))
    names = {number: name for name, number in _words(program.parameter_words, len(program.pool)).items()}
    labels = [block.label or f"b{index}" for index, block in enumerate(program.blocks)]
    indent = 2 + max((len(label) for label in labels if len(label) < 14), default=0)
    for index, block in enumerate(program.blocks):
        line = f"{labels[index]}:".ljust(indent)
        for item in _items(block, index, labels, names):
            if len(line) + len(item) >= WIDTH:
                lines.append(line.rstrip())
                line = " " * indent
            line += ("" if line.endswith(" ") else " ") + item
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


def _can_be_spelled(label: str) -> bool:
    """Whether it is read as a label, and not as a directive, a block's number or a target's."""
    taken = label.startswith(".") or _NUMBERED.fullmatch(label) or _number(label) is not None
    return not taken and bool(_LABEL.fullmatch(label + ":"))


def _words(parameters: int, pool: int) -> dict[str, int]:
    """Names of the parameter words."""
    names = {f"ntid.{axis}": word for axis, word in zip("xyz", NTID, strict=True)}
    names |= {f"nctaid.{axis}": word for axis, word in zip("xyz", NCTAID, strict=True)}
    names |= {f"param{i}": FIRST_PARAM + i for i in range(parameters)}
    return names | {f"pool{i}": FIRST_PARAM + parameters + i for i in range(pool)}


def _items(block: Block, index: int, labels: list[str], words: Mapping[int, str]) -> list[str]:
    fields = block.fields
    jumps = fields.get("branch", 0) == _BRA
    implied = int(jumps and fields.get("target", 0) <= index)
    items = []
    for f in encoding.FIELDS:
        value = fields.get(f.name, 0)
        if f.name == "back":
            shown = "" if value == implied else str(value)
        elif f.name == "target" and jumps:
            shown = labels[value] if value < len(labels) else str(value)
        elif not value:
            shown = ""
        elif f.name in encoding.CHOICES and value < len(encoding.CHOICES[f.name]):
            shown = encoding.CHOICES[f.name][value]
        elif f.name in REGISTER_FIELDS:
            shown = f"r{value}"
        elif f.name in PARAMETER_FIELDS:
            shown = words.get(value, str(value))
        else:
            shown = str(value)
        if shown:
            items.append(f"{f.name}={shown}")
    for name, port in _SPOTS.items():
        spot = block.spot(port)
        if spot.line and (not port or port in block.ports):
            items.append(f"{name}={f'{quote(spot.file)}:' if spot.file else ''}{spot.line}")
    if block.instructions != 1:
        items.append(f"instructions={block.instructions}")
    return items


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _directives(
    found: Mapping[str, tuple[int, list[str]]], errors: list[tuple[int, str]]
) -> tuple[str, int, tuple[int, ...]]:
    at, name = found.get(".program", (1, []))
    if len(name) != 1:
        errors.append((at, "a program needs its name: .program NAME, one word"))
    at, counts = found.get(".parameters", (1, ["0"]))
    parameters = _number(counts[0]) if len(counts) == 1 else None
    if parameters is None or parameters < 0:
        errors.append((at, "write .parameters COUNT, the number of 32-bit parameter words"))
        parameters = 0
    at, pool_texts = found.get(".pool", (at, []))
    pool = []
    for text in pool_texts:
        word = _number(text)
        if word is None or not -(2**31) <= word < 2**32:
            errors.append((at, f".pool holds 32-bit constants, not {text!r}"))
        else:
            pool.append(word & 0xFFFFFFFF)
    if FIRST_PARAM + parameters + len(pool) > PARAM_WORDS:
        errors.append((at, f"{parameters} parameter words and {len(pool)} constants; there is room for "
                           f"{PARAM_WORDS - FIRST_PARAM} together"))  # fmt: skip
        parameters = 0
    return name[0] if len(name) == 1 else "", parameters, tuple(pool)


def _blocks(drafts: list[_Draft], words: Mapping[str, int], errors: list[tuple[int, str]]) -> tuple[Block, ...]:
    labels: dict[str, int] = {}
    for index, draft in enumerate(drafts):
        numbered = _NUMBERED.fullmatch(draft.label)
        if numbered and int(numbered[1]) != index:
            told = f"this is block {index}, not {draft.label}; write b{index}: or a label of your own"
            errors.append((draft.at, told))
        elif _number(draft.label) is not None:
            errors.append((draft.at, f"{draft.label} is a number, which a branch's target would take for a block's"))
        elif draft.label in labels:
            errors.append((draft.at, f"label {draft.label} stands in line {drafts[labels[draft.label]].at} already"))
        else:
            labels[draft.label] = index
    labels |= {f"b{index}": index for index in range(len(drafts))}
    if len(drafts) > tokens.BLOCKS:
        errors.append((drafts[tokens.BLOCKS].at, f"{len(drafts)} blocks; the program memory holds {tokens.BLOCKS}"))
    return tuple(_block(draft, index, labels, words, errors) for index, draft in enumerate(drafts))


def _block(draft: _Draft, index: int, labels: Mapping[str, int], words: Mapping[str, int],
           errors: list[tuple[int, str]]) -> Block:  # fmt: skip
    values: dict[str, int] = {}
    files: dict[str, str] = {}
    for at, name, text in draft.pairs:
        if name in _SPOTS and ":" in text:
            file, _, text = text.rpartition(":")
            files[name] = unquote(file)
        if name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, 1)
            errors.append((at, f"a block has no field {name!r}" + (f"; is {near[0]} meant?" if near else "")))
        elif name in values:
            errors.append((at, f"{name} is given twice in block {draft.label}"))
        else:
            value, error = _value(name, text, labels, words)
            values[name] = value
            if error:
                errors.append((at, error))
    if values.get("branch", 0) == _BRA:
        values.setdefault("back", int(values.get("target", 0) <= index))
    instructions = values.pop("instructions", 1)
    spots = {port: Spot(values.pop(name), files.get(name, "")) for name, port in _SPOTS.items() if name in values}
    own = spots.pop("", Spot())
    label = "" if _NUMBERED.fullmatch(draft.label) else draft.label
    fields = {name: value for name, value in values.items() if value}
    return Block(fields, instructions, own.line, label, own.file, spots)


def _value(name: str, text: str, labels: Mapping[str, int], words: Mapping[str, int]) -> tuple[int, str]:
    """(value, error or ""): a field's value as written."""
    choices = encoding.CHOICES.get(name, ())
    named: Mapping[str, int] = {}
    kind = "a number"
    if choices:
        named, kind = {choice: number for number, choice in enumerate(choices)}, f"one of {', '.join(choices)}"
    elif name == "target":
        named, kind = labels, "a label of this program, or a block number"
    elif name in PARAMETER_FIELDS:
        named, kind = words, "a parameter word: ntid.x, nctaid.x, param0, pool0, ..., or a number"
    elif name in REGISTER_FIELDS:
        named, kind = {f"r{i}": i for i in range(tokens.REGISTERS)}, f"a register, r0 to r{tokens.REGISTERS - 1}"
    if text in named:
        return named[text], ""
    value = _number(text)
    if value is None:
        return 0, f"{name} is {kind}, not {text!r}"
    if name in _BLOCK_FIELDS:
        return value, "" if value >= 0 else f"{name} {value} is below 0"
    try:
        encoding.encode({name: value})
    except ValueError as error:
        return 0, str(error)
    return value, ""
