"""The page of a trace: one HTML file that needs nothing else, with the trace in it as data.

``page/`` holds its parts. They are plain scripts that share one scope, so that another page can take those it needs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import replace
from importlib import resources
from typing import Any

from qgpu.isa import tokens
from qgpu.isa.assembly import disassemble
from qgpu.isa.program import Program, thread_rows
from qgpu.trace.model import Trace, steps

SCRIPTS = ("model.js", "words.js", "draw.js", "list.js", "timeline.js", "panels.js", "app.js")
"""In the order in which they need each other."""


def part(name: str) -> str:
    """The text of a file of the page."""
    return (resources.files("qgpu.trace") / "page" / name).read_text(encoding="utf-8")


def page(trace: Trace) -> str:
    """The page as HTML. What the trace holds stands in it as JSON that cannot end its element, and is only ever put in
    as text; the page may run its own script alone and load nothing."""
    script = "\n" + "\n".join(part(name) for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    filled = {
        "policy": f"'sha256-{digest}'",
        "style": part("style.css"),
        "data": json.dumps(data(trace), separators=(",", ":")).replace("<", "\\u003c"),
        "script": script,
    }
    text = part("page.html")
    pieces = text.split("{{")
    return pieces[0] + "".join(filled[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces[1:]))


def data(trace: Trace) -> dict[str, Any]:
    """What the page's scripts are given; ``model.js`` reads it."""
    launch = trace.launch
    exist = [0] * tokens.QUADS
    for lane, row in enumerate(thread_rows(launch.cta)):
        exist[lane // tokens.LANES] |= (row >> 31) << lane % tokens.LANES
    return {
        "kernel": trace.kernel,
        "file": trace.file,
        "ended": trace.ended,
        "message": trace.message,
        "grid": launch.grid,
        "cta": launch.cta,
        "exist": exist,
        "sizes": {
            "quads": tokens.QUADS, "lanes": tokens.LANES, "registers": tokens.REGISTERS, "rows": tokens.ROWS,
            "sharedRow": tokens.SHARED_FIRST_ROW,
        },
        "kinds": [{"name": kind.name, "first": kind.first, "fields": kind.fields} for kind in tokens.KINDS],
        "causes": tokens.CAUSES,
        "maskPairs": tokens.MASK_PAIRS,
        "blocks": blocks(launch.program),
        "sources": dict(trace.sources),
        "arrays": [
            {"name": a.name, "address": a.address, "shape": a.shape, "dtype": a.dtype, "itemsize": a.itemsize,
             "nbytes": a.nbytes}
            for a in trace.arrays
        ],
        "rows": [[row, *words] for row, words in sorted(launch.rows.items())],
        "tokens": trace.tokens,
        "steps": columns(trace),
        "activity": activity(trace),
    }  # fmt: skip


def columns(trace: Trace) -> dict[str, list[int]]:
    """The steps, a list a field. ``what``: a register, a row or a cause. ``words``: (index, word) pairs of all steps
    one behind the other, those of step i from ``pointer[i]`` on; CTA's are its index."""
    names = {kind.name: index for index, kind in enumerate(tokens.KINDS)}
    found: dict[str, list[int]] = {
        name: [] for name in ("at", "kind", "quad", "block", "lanes", "what", "lane", "atomic", "pointer", "words")
    }
    for step in steps(trace):
        what = next((field for field in (step.register, step.row, step.cause) if field is not None), 0)
        row = (step.at, names[step.kind], step.quad, step.block, step.lanes, what, step.lane, int(step.atomic))
        for name, value in zip(("at", "kind", "quad", "block", "lanes", "what", "lane", "atomic"), row, strict=True):
            found[name].append(value)
        found["pointer"].append(len(found["words"]))
        for pair in enumerate(step.cta) if step.kind == "CTA" else step.words:
            found["words"] += pair
    found["pointer"].append(len(found["words"]))
    return found


def blocks(program: Program) -> list[dict[str, Any]]:
    """Where every block and its ports stand in the source, and its fields as the assembly spells them."""
    plain = replace(program, name="kernel", blocks=tuple(replace(block, label="") for block in program.blocks))
    texts: list[str] = []
    for line in disassemble(plain).splitlines():
        if line.startswith("b"):
            texts.append(line)
        elif texts and line.startswith(" "):
            texts[-1] += " " + line.strip()
    spots = [{"": block.spot(), **block.ports} for block in program.blocks]
    return [
        {"text": text, "spots": {port: [spot.file, spot.line] for port, spot in found.items()}}
        for text, found in zip(texts, spots, strict=True)
    ]


def activity(trace: Trace) -> dict[str, Any] | None:
    if trace.activity is None:
        return None
    packed = base64.b64encode(zlib.compress(trace.activity.counts)).decode("ascii")
    return {"layers": trace.activity.layers, "counts": packed}
