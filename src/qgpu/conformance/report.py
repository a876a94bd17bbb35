"""Outcomes as text: a table for people, objects for programs, and what was refused, grouped by what is missing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from qgpu.conformance.levels import Outcome

HEAD = f"{'kernel':32s} {'level':12s} {'compiler':8s} {'':8s} {'tokens':>8s} {'lane ins':>8s} {'tok/ins':>7s} " \
       f"{'blocks':>6s} {'regs':>4s} {'spills':>6s}"  # fmt: skip


def line(outcome: Outcome) -> str:
    """One outcome on a line, as HEAD names its columns, and its message if it is not ok."""

    def number(value: int | None, width: int) -> str:
        return f"{'-' if value is None else f'{value:,}':>{width}s}"

    ratio = outcome.tokens_an_instruction
    ratio_text = "-" if ratio is None else f"{ratio:.2f}"
    text = (
        f"{outcome.kernel:32s} {outcome.level:12s} {outcome.compiler:8s} {outcome.status:8s} "
        f"{number(outcome.tokens, 8)} {number(outcome.lane_instructions, 8)} {ratio_text:>7s} "
        f"{number(outcome.blocks, 6)} {number(outcome.registers, 4)} {number(outcome.spills, 6)}"
    )
    return text if outcome.ok else f"{text}\n    {brief(outcome)}"


def brief(outcome: Outcome) -> str:
    """The message in one line."""
    reasons = causes(outcome.message) if outcome.status == "refused" else []
    return "; ".join(dict.fromkeys(reasons)) if reasons else " ".join(outcome.message.split())[:300]


def record(outcome: Outcome) -> dict[str, Any]:
    """One outcome for JSON."""
    return {
        "kernel": outcome.kernel,
        "level": outcome.level,
        "compiler": outcome.compiler,
        "ok": outcome.ok,
        "status": outcome.status,
        "message": outcome.message,
        "tokens": outcome.tokens,
        "lane_instructions": outcome.lane_instructions,
        "tokens_an_instruction": outcome.tokens_an_instruction,
        "blocks": outcome.blocks,
        "registers": outcome.registers,
        "spills": outcome.spills,
    }


_ENTRY = re.compile(r"  \S.*?: (?P<what>.+)")
_OPCODE = re.compile(r"(?:^|[\s;{])(?P<opcode>[a-z]\w*(?:\.[\w:]+)+)")


def causes(message: str) -> list[str]:
    """What is missing, out of a refusal's text: an instruction without its operands, and the hint about it.

    An entry is the instruction with its place, the source line where it is known, and the hint. Only what is said of
    the first kernel counts: the others of its file follow.
    """
    found: list[str] = []
    opcode = ""
    for number, line in enumerate(message.splitlines()):
        entry = _ENTRY.fullmatch(line) if line[2:3].strip() else None
        if number and not line.startswith("  "):
            break
        if entry:
            name = _OPCODE.search(entry["what"])
            opcode = name["opcode"] if name else entry["what"].split()[0]
            found.append("")
        elif opcode and line.startswith("    "):
            found[-1] = f"{opcode}: {line.strip()}"
    if found:
        return list(filter(None, found))
    absent = [line.split("the circuits have")[-1] for line in message.splitlines() if "the circuits have no" in line]
    return [f"the circuits have{text}" for text in absent] or [_numberless(message)]


def _numberless(message: str) -> str:
    return re.sub(r"\d+", "N", " ".join(message.split()))[:200]


def grouped(outcomes: Iterable[Outcome]) -> str:
    """Everything that is not ok, by status and cause, most frequent first, with the kernels it stops."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.ok:
            continue
        reasons = causes(outcome.message) if outcome.status == "refused" else [" ".join(outcome.message.split())[:300]]
        for reason in dict.fromkeys(reasons):
            groups[outcome.status, reason].append(outcome.kernel)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1]))
    return "\n".join(
        f"{status}: {reason}\n    {len(kernels)}: {', '.join(kernels)}" for (status, reason), kernels in ordered
    )
