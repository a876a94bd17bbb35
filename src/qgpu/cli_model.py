"""What ``qgpu info``, ``qgpu cast`` and ``qgpu export`` do: facts about the bare model, and its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qgpu.cli_terminal import Progress
from qgpu.driver.bare import bare
from qgpu.errors import QgpuError
from qgpu.foundry.network import Network
from qgpu.isa import tokens
from qgpu.writing import write_text


def facts(network: Network, report: dict[str, Any]) -> dict[str, Any]:
    """All that ``qgpu info`` tells, by name."""
    certificate = network.certificate
    return {
        "layers": network.shape.layers,
        "machine_dims": network.shape.hidden,
        "signals_at_once": report["peak"],
        "neurons_a_layer": network.shape.intermediate,
        "heads_a_layer": network.shape.linear_heads,
        "vocabulary": network.shape.vocabulary,
        "nonzeros": report["nonzeros"],
        "rom_blocks": tokens.BLOCKS,
        "memory_words": tokens.MEMORY_BYTES // 4,
        "threads_per_cta": tokens.THREADS_PER_CTA,
        "warp_size": tokens.WARP_SIZE,
        "lanes": tokens.LANES,
        "registers": tokens.REGISTERS - 1,
        "min_margin_bf16": certificate["min_margin_bf16"],
        "min_margin_float32": certificate["min_margin_float32"],
        "min_gap_float32": certificate["min_gap_float32"],
    }


def _rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: layer[key] for key in ("layer", "heads", "neurons", "alive")} for layer in report["layers"]]


def info(picture: Path | None, as_json: bool) -> None:
    """``qgpu info``. picture: where to draw the layers to, if anywhere."""
    with Progress() as progress:
        network, report = bare(progress.say)
    if picture is not None:
        from qgpu.driver.picture import layer_map

        write_text(picture, layer_map(network, report))
    _show(network, report, as_json)


def cast(as_json: bool) -> None:
    """``qgpu cast``: as ``info``, with the cast made anew."""
    with Progress() as progress:
        network, report = bare(progress.say, force=True)
    _show(network, report, as_json)


def _show(network: Network, report: dict[str, Any], as_json: bool) -> None:
    found, rows = facts(network, report), _rows(report)
    if as_json:
        print(json.dumps({**found, "by_layer": rows}))
        return
    for name, value in found.items():
        print(f"{name.replace('_', ' '):18s} {value:{',' if isinstance(value, int) else '.4g'}}")
    print("\nlayer  heads  neurons  signals")
    for row in rows:
        print(f"{row['layer']:5d}  {row['heads']:5d}  {row['neurons']:7,d}  {row['alive']:7d}")


def export(folder: Path, dtype: str, as_json: bool) -> None:
    """``qgpu export``."""
    from qgpu.engines.export import export_dense

    if folder.is_file() or folder.is_dir() and any(folder.iterdir()) and not (folder / "config.json").is_file():
        raise QgpuError(f"{folder}: there is something else there, no checkpoint: choose another folder")
    with Progress() as progress:
        network, _ = bare(progress.say)
        progress.say("writing the checkpoint")
        try:
            export_dense(network, folder, dtype)
        except OSError as error:
            raise QgpuError(f"{folder}: cannot be written: {error.strerror}") from None
    if as_json:
        print(json.dumps({"folder": str(folder), "layers": network.shape.layers, "dtype": dtype}))
    else:
        print(f"{folder}: {network.shape.layers} layers of a stock Qwen3.5, {dtype}")
