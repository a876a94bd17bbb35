"""What ``qgpu build`` and ``qgpu verify`` do."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer

from qgpu.cli_terminal import Progress


def build(base: str, folder: Path, layout: str, dtype: str, revision: str | None, as_json: bool) -> None:
    """``qgpu build``."""
    from qgpu.checkpoint.build import build as merge

    with Progress() as progress:
        made = merge(base, folder, layout=layout, dtype=dtype, revision=revision, say=progress.say)
    if as_json:
        print(json.dumps({**asdict(made), "folder": str(made.folder)}))
        return
    print(f"{made.folder}: {made.layers} layers, hidden {made.hidden}, {made.parameters / 1e9:.2f}e9 parameters, "
          f"{made.bytes / 1e9:.1f} GB in {made.files} file{'s' * (made.files != 1)}")  # fmt: skip


def verify(folder: Path, base: str, weights_only: bool, as_json: bool) -> None:
    """``qgpu verify``: exit status 1 if the merged model is not its base."""
    from qgpu.checkpoint import verify as check
    from qgpu.checkpoint.hub import fetch

    with Progress() as progress:
        source = fetch(base, say=progress.say)
        progress.say("recovering the base's weights")
        faults = check.recovered(folder, source)
        runs = [] if weights_only else [
            check.fidelity(folder, source, dtype, say=progress.say) for dtype in ("float32", "bfloat16")
        ]  # fmt: skip
    good = not faults and all(run.embedded and run.machine <= 1e-12 for run in runs)
    if as_json:
        print(json.dumps({"ok": good, "weights": faults, "text": [asdict(run) for run in runs]}))
    else:
        all_there = "every tensor of the base is recovered, bit for bit"
        print(f"weights   {all_there if not faults else f'{len(faults)} tensors differ'}")
        for fault in faults[: check.SHOWN]:
            print(f"  - {fault}")
        for run in runs:
            print(f"{run.dtype:9s} KL {run.kl:.3g} (the base's own noise: {run.noise_kl:.3g}), first choice agrees at "
                  f"{run.top1:.1%} ({run.noise_top1:.1%}), machine ids at most {run.machine:.1g}, "
                  f"hidden dims {'the same to the bit' if run.embedded else 'CHANGED'}")  # fmt: skip
    if not good:
        raise typer.Exit(1)
