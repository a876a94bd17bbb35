"""The picture of ``qgpu verify``: KL at every position of the texts, merged model and the base's own noise."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from qgpu.checkpoint.verify import Fidelity

WIDTH, HEIGHT, LEFT, TOP = 720, 260, 70, 34
LEAST = 1e-16  # what is less counts as this
COLOURS = {"merged against base": "#c2410c", "base, batch 1 against 4": "#1d4ed8"}


def plot(runs: Sequence[Fidelity]) -> str:
    """An SVG, one panel a dtype, KL on a logarithmic scale."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * len(runs)}" '
        'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
    ]
    for number, run in enumerate(runs):
        parts += _panel(run, number * HEIGHT)
    return "".join([*parts, "</svg>\n"])


def _panel(run: Fidelity, top: int) -> list[str]:
    rows = dict(zip(COLOURS, (run.kls, run.noise_kls), strict=True))
    values = [max(kl, LEAST) for kls in rows.values() for kl in kls]
    low, high = floor(log10(min(values))), floor(log10(max(values))) + 1
    height = HEIGHT - 2 * TOP

    def y(kl: float) -> float:
        return top + TOP + height * (high - log10(max(kl, LEAST))) / (high - low)

    longest = max(len(kls) for kls in rows.values())
    title = f"{run.dtype}: KL of next-token distributions, nats"
    parts = [f'<text x="{LEFT}" y="{top + 16}" font-weight="bold">{title}</text>']
    for power in range(low, high + 1, max(1, (high - low) // 5)):
        at = y(10.0**power)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">1e{power}</text>')
    for (name, kls), x0 in zip(rows.items(), (330, 520), strict=True):
        colour = COLOURS[name]
        parts.append(f'<circle cx="{x0}" cy="{top + HEIGHT - 12}" r="3" fill="{colour}"/>')
        parts.append(f'<text x="{x0 + 8}" y="{top + HEIGHT - 8}">{name}</text>')
        for i, kl in enumerate(kls):
            x = LEFT + (WIDTH - 20 - LEFT) * (i + 0.5) / longest
            parts.append(f'<circle cx="{x:.1f}" cy="{y(kl):.1f}" r="2" fill="{colour}"/>')
    parts.append(f'<text x="{LEFT}" y="{top + HEIGHT - 8}">positions of the texts, one after another</text>')
    return parts
