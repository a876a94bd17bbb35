"""The layer map: a cast network as a picture (SVG), one column a layer. What memories its DeltaNet heads hold, how many
neurons its MLP has, how many signals live in the residual stream behind it; all read off the network and its report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from qgpu.foundry.network import Network

# what a memory is called -> (group, colour); the first that matches. Groups stand in the legend in this order.
GROUPS: tuple[tuple[str, str, str], ...] = (
    (r"\.rom\.", "program", "#7c5cd6"),
    (r"registers", "registers", "#2f7ed8"),
    (r"^memory\.", "memory", "#159a6c"),
    (r"parameters|threads", "parameters, thread indices", "#c98a00"),
    (r"allocated", "allocation map", "#6d8f1d"),
    (r"stage|exchange|ballot", "stage registers, exchange between lanes", "#c2478f"),
    (r"predicates|lanes|quads|waits|exist", "predicates and who runs next", "#d2552f"),
    (r"", "the rest: position, CTA, what was said", "#7d8590"),
)
CELL, GAP, LEFT, TOP = 18, 4, 96, 26
BAR = 90  # height of the bars of neurons and signals

_STYLE = """
svg { font: 11px system-ui, sans-serif; fill: #333; background: none }
.frame { fill: none; stroke: #8884 } .empty { fill: #8882 } .attention { fill: #8881 }
.neurons { fill: #4a90a4 } .signals { fill: none; stroke: #b5533c; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) { svg { fill: #ddd } }
"""


def group_of(memory: str) -> int:
    """The row of GROUPS that a memory belongs to."""
    return next(index for index, (pattern, _, _) in enumerate(GROUPS) if re.search(pattern, memory))


def layer_map(network: Network, report: Mapping[str, Any]) -> str:
    """The SVG text. ``report``: as `bare` gives it (or `dataclasses.asdict` of the foundry's)."""
    shape = network.shape
    step = CELL + GAP
    width = LEFT + shape.layers * step + 20
    heads = TOP + shape.linear_heads * step
    parts = [_text(LEFT - 8, TOP - 10, "layer", "end")]
    held: dict[tuple[int, int], list[str]] = {}
    for name, (layer, head, _, _) in network.states.items():
        held.setdefault((layer, head), []).append(name)
    for layer in range(shape.layers):
        x = LEFT + layer * step
        parts.append(_text(x + CELL / 2, TOP - 10, str(layer), "middle"))
        if layer % 4 == 3:
            parts.append(_rect(x, TOP, CELL, heads - TOP - GAP, "attention", f"layer {layer}: full attention, unused"))
            continue
        for head in range(shape.linear_heads):
            names = held.get((layer, head), [])
            y = TOP + head * step
            if names:
                colour = GROUPS[group_of(names[0])][2]
                parts.append(_rect(x, y, CELL, CELL, "", ", ".join(names), f' style="fill:{colour}"'))
            else:
                parts.append(_rect(x, y, CELL, CELL, "empty", f"layer {layer}, head {head}: free, or a gather"))
    parts.append(_text(LEFT - 8, TOP + (heads - TOP) / 2, f"{shape.linear_heads} heads", "end"))
    rows = {int(row["layer"]): row for row in report["layers"]}
    top = heads + 14
    parts += _neurons(rows, shape.layers, shape.intermediate, top)
    top += BAR + 18
    parts += _signals(rows, shape.layers, shape.hidden, top)
    legend, height = _legend(network.states, top + BAR + 24)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="The layers of {shape.layers}"><style>{_STYLE}</style>{"".join(parts + legend)}</svg>\n'
    )


def _neurons(rows: Mapping[int, Mapping[str, Any]], layers: int, most: int, top: float) -> list[str]:
    parts = [_text(LEFT - 8, top + BAR / 2 - 6, "neurons", "end"), _text(LEFT - 8, top + BAR / 2 + 8, f"of {most:,}", "end")]  # noqa: E501
    for layer in range(layers):
        count = int(rows[layer]["neurons"]) if layer in rows else 0
        height = BAR * count / max(1, most)
        x = LEFT + layer * (CELL + GAP)
        parts.append(_rect(x, top, CELL, BAR, "empty", f"layer {layer}: {count:,} neurons"))
        parts.append(_rect(x, top + BAR - height, CELL, height, "neurons", f"layer {layer}: {count:,} neurons"))
    return parts


def _signals(rows: Mapping[int, Mapping[str, Any]], layers: int, hidden: int, top: float) -> list[str]:
    points = []
    for layer in range(layers):
        alive = int(rows[layer]["alive"]) if layer in rows else 0
        points.append(f"{LEFT + layer * (CELL + GAP) + CELL / 2:.1f},{top + BAR - BAR * alive / hidden:.1f}")
    most = max(int(row["alive"]) for row in rows.values())
    return [
        _text(LEFT - 8, top + BAR / 2 - 13, "signals alive", "end"),
        _text(LEFT - 8, top + BAR / 2 + 1, f"up to {most:,}", "end"),
        _text(LEFT - 8, top + BAR / 2 + 15, f"of {hidden:,} dims", "end"),
        _rect(LEFT, top, layers * (CELL + GAP) - GAP, BAR, "frame", "signals alive behind each layer"),
        f'<polyline class="signals" points="{" ".join(points)}"/>',
    ]


def _legend(memories: Mapping[str, Sequence[int]], top: float) -> tuple[list[str], float]:
    counts = [0] * len(GROUPS)
    for name in memories:
        counts[group_of(name)] += 1
    parts = []
    shown = [index for index, count in enumerate(counts) if count]
    for place, index in enumerate(shown):
        _, label, colour = GROUPS[index]
        x, y = LEFT + 310 * (place % 2), top + 20 * (place // 2)
        parts.append(_rect(x, y - 10, 12, 12, "", label, f' style="fill:{colour}"'))
        count = f"{counts[index]} memor{'y' if counts[index] == 1 else 'ies'}"
        parts.append(_text(x + 18, y, f"{label} ({count})", "start"))
    return parts, top + 20 * -(-len(shown) // 2)


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str, more: str = "") -> str:
    place = f'x="{x:g}" y="{y:.4g}" width="{width:g}" height="{height:.4g}"'
    return f'<rect class="{kind}" {place}{more}><title>{escape(title)}</title></rect>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
