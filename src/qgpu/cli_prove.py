"""What ``qgpu prove`` does: the margins anew, from the weights of a network file alone."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from qgpu.cli_terminal import Progress
from qgpu.foundry.audit import CONTEXT, Audit, audit
from qgpu.foundry.network import Network

SHOWN = 12
FAILED = 1  # exit status of a proof that does not hold


def prove(file: Path | None, as_json: bool) -> None:
    """``file``: a network file; None: the bare model of this version, cast if need be. Exits with ``FAILED`` if the
    proof does not hold."""
    with Progress() as progress:
        if file is None:
            from qgpu.driver.bare import bare

            network, _ = bare(progress.say)
        else:
            network = Network.load(file)
        progress.say("reading the weights back")
        found = audit(network)
    facts = {
        "holds": not found.faults,
        "faults": found.faults,
        "min_margin_bf16": found.margin_bf16,
        "min_margin_float32": found.margin_float32,
        "weakest": found.weakest,
        "min_gap_float32": found.gap_float32,
        "largest_error_float32": found.largest_error,
        "context": CONTEXT,
        "state_loss": found.state_loss,
        "weights": found.entries,
        "decisions": found.counts,
        "trusted_claims": len(found.trusted),
    }
    print(json.dumps(facts) if as_json else _text(found))
    if found.faults:
        raise typer.Exit(FAILED)


def _text(found: Audit) -> str:
    if found.faults:
        lines = [f"the proof does not hold: {len(found.faults)} faults"]
        lines += [f"  - {text}" for text in found.faults[:SHOWN]]
        return "\n".join(lines + [f"  ... and {len(found.faults) - SHOWN} more"] * (len(found.faults) > SHOWN))
    decisions = ", ".join(f"{count:,} {kind}" for kind, count in found.counts.items())
    return "\n".join([
        f"proved from {found.entries:,} weights: {decisions}",
        f"smallest margin    {found.margin_bf16:.3g} in bfloat16, {found.margin_float32:.3g} in float32, of a unit",
        f"  in float32 at    {found.weakest}",
        f"best over second   {found.gap_float32:.3g} in the logits, in float32",
        f"largest error      {found.largest_error:.3g} of a unit, in float32",
        f"state              loses at most {found.state_loss:.2g} of itself over {CONTEXT:,} tokens",
        f"taken on trust     {len(found.trusted):,} places where cases exclude each other",
    ])  # fmt: skip
