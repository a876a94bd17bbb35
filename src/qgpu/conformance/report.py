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


_PLACE = re.compile(r"^  \S+.*?: (?P<what>.+)$")
_OPCODE = re.compile(r"(?:^|[\s;{])(?P<opcode>[a-z]\w*(?:\.[\w:]+)+)")


def causes(message: str) -> list[str]:
    """What is missing, out of a refusal's text: the instruction without its operands, and the hint below it."""
    lines = message.splitlines()
    found = []
    for above, below in zip(lines, lines[1:], strict=False):
        place = _PLACE.match(above)
        if place and below.startswith("    "):
            opcode = _OPCODE.search(place["what"])
            found.append(f"{opcode['opcode'] if opcode else place['what'].split()[0]}: {below.strip()}")
    if not found:
        found = [re.sub(r"\d+", "N", text) for text in lines if "the circuits have no" in text] or [
            re.sub(r"\d+", "N", " ".join(message.split()))[:200]
        ]
    return found


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
