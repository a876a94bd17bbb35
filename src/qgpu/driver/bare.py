"""The bare model: the machine cast into weights, once for each state of its sources, kept in the user's cache.

An entry is a folder named by a hash over the sources that decide the weights; it gets its name when it is complete, so
that processes may cast at the same time. Where no cache can be written, the network is cast in memory each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import qgpu
from qgpu.cuda.cache import cache_directory
from qgpu.errors import QgpuError
from qgpu.foundry.network import Network

PACKAGES = ("isa", "circuit", "foundry", "machine")
KEPT = 4  # entries, of this and of older states of the sources
NETWORK, REPORT = "network.safetensors", "report.json"
Say = Callable[[str], None]


def source_key() -> str:
    """A hash over the text of every source file that the weights come from."""
    root = Path(qgpu.__file__ or "").parent
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            data = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()


def entry() -> Path | None:
    """Where this state of the sources is kept, whether it is there or not; None if there is no cache."""
    directory = cache_directory()
    return None if directory is None else directory / "bare" / source_key()[:32]


def bare(say: Say = lambda text: None, force: bool = False) -> tuple[Network, dict[str, Any]]:
    """The bare network and its report, from the cache unless ``force``; cast now if it is not there.

    Raises FoundryError if the machine cannot be cast.
    """
    place = entry()
    if place is not None and not force and (found := _kept(place)):
        return found
    say("casting the machine into weights (once; the result is kept)")
    from qgpu.foundry.cast import cast_with_report
    from qgpu.machine.machine import machine_circuit

    network, report = cast_with_report(machine_circuit())
    if place is not None:
        _keep(place, network, asdict(report), force)
    return network, asdict(report)


def _kept(place: Path) -> tuple[Network, dict[str, Any]] | None:
    """An entry that is there and whole."""
    try:
        return Network.load(place / NETWORK), json.loads((place / REPORT).read_text(encoding="utf-8"))
    except (QgpuError, OSError, ValueError):
        return None


def _keep(place: Path, network: Network, report: dict[str, Any], force: bool) -> None:
    """Write an entry under another name, then rename it; without effect where that is not allowed. An entry that
    another process has completed meanwhile stays, unless ``force``: somebody may be writing a checkpoint into it."""
    fresh: Path | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}."))
        network.save(fresh / NETWORK)
        (fresh / REPORT).write_text(json.dumps(report, indent=1), encoding="utf-8")
        if not force and _kept(place):
            shutil.rmtree(fresh, ignore_errors=True)
            return
        old = Path(f"{fresh}.old")
        if place.exists():
            os.rename(place, old)
        os.rename(fresh, place)
        shutil.rmtree(old, ignore_errors=True)
        _forget(place.parent)
    except OSError:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)


def _forget(folder: Path) -> None:
    """Remove all but the youngest entries."""
    entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    for path in sorted(entries, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


def dense_checkpoint(dtype: str, say: Say = lambda text: None) -> Path:
    """The folder of the dense bare checkpoint in the cache, written now if it is not there.

    Raises QgpuError where there is no cache to write it to.
    """
    from qgpu.engines.export import export_dense

    network, _ = bare(say)
    place = entry()
    if place is None:
        raise QgpuError("there is no folder for caches: set QGPU_CACHE_DIR, or export the checkpoint to a folder")
    folder = place / f"dense-{dtype}"
    if not (folder / "config.json").is_file():
        say(f"writing the dense checkpoint ({dtype})")
        try:
            export_dense(network, folder, dtype)
        except OSError as error:
            raise QgpuError(f"{folder}: the dense checkpoint cannot be written: {error.strerror}") from None
    return folder
