"""What ``qgpu build`` and ``qgpu verify`` do."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qgpu.cli_terminal import Progress
from qgpu.writing import write_text

if TYPE_CHECKING:
    from qgpu.checkpoint.launches import Computed
    from qgpu.checkpoint.verify import Fidelity

DTYPES = ("float32", "bfloat16")


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


def verify(
    folder: Path, base: str, revision: str | None, weights_only: bool, dtype: str | None, launches: int,
    picture: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """``qgpu verify``: exit status 1 if the merged model is not its base, or does not compute."""
    from qgpu.checkpoint import verify as check
    from qgpu.checkpoint.hub import fetch
    from qgpu.checkpoint.launches import computed
    from qgpu.checkpoint.plot import plot
    from qgpu.driver.samples import samples

    texts: list[Fidelity] = []
    computing: list[Computed] = []
    with Progress() as progress:
        source = fetch(base, revision, progress.say)
        progress.say("recovering the base's weights")
        faults = check.recovered(folder, source)
        for kind in () if weights_only else (dtype,) if dtype else DTYPES:
            texts.append(check.fidelity(folder, source, kind, say=progress.say))
            progress.say(f"launching kernels between texts in {kind}")
            computing.append(computed(folder, samples(launches), kind))
    if picture is not None and texts:
        write_text(picture, plot(texts))
    good = not faults and all(run.embedded and run.machine <= 1e-12 for run in texts)
    good &= all(run.good for run in computing)
    if as_json:
        rows = {"text": [asdict(run) for run in texts], "launches": [asdict(run) for run in computing]}
        print(json.dumps({"ok": good, "weights": faults, **rows}))
    else:
        _show(faults, check.SHOWN, texts, computing)
    if not good:
        raise typer.Exit(1)


def _show(faults: list[str], shown: int, texts: list[Fidelity], computing: list[Computed]) -> None:
    all_there = "every tensor of the base is recovered, bit for bit"
    print(f"weights   {all_there if not faults else f'{len(faults)} tensors differ'}")
    for fault in faults[:shown]:
        print(f"  - {fault}")
    for run in texts:
        print(f"{run.dtype:9s} KL {run.kl:.3g} (the base's own noise: {run.noise_kl:.3g}), first choice agrees at "
              f"{run.top1:.1%} ({run.noise_top1:.1%}), machine ids at most {run.machine:.1g}, "
              f"hidden dims {'the same to the bit' if run.embedded else 'CHANGED'}")  # fmt: skip
    for one in computing:
        print(f"{one.dtype:9s} {one.launches} launches between texts: {one.wrong} of {one.tokens} tokens wrong, "
              f"the base's states {'the same to the bit' if one.untouched else 'CHANGED'}, "
              f"text {'goes on' if one.continued else 'does NOT go on'} after a restore")  # fmt: skip
