"""``build``: a base and the GPU become a folder, written shard by shard, complete or not there.

The folder is made under another name beside its place; shards that are whole there from an interrupted build of the
same base and the same machine are kept.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qgpu.checkpoint import base as bases
from qgpu.checkpoint import documents, extras, files, surgery
from qgpu.checkpoint.errors import MergeError
from qgpu.checkpoint.front import Front, machine_front
from qgpu.checkpoint.hub import fetch

SHARD = 2 << 30
SPARE = 64 << 20  # bytes of disk beyond the tensors
Say = Callable[[str], None]


@dataclass(frozen=True)
class Built:
    """What ``build`` made."""

    folder: Path
    parameters: int
    bytes: int
    layers: int
    hidden: int
    files: int


def build(
    source: str, folder: Path, *, layout: str = "nested", dtype: str = "bfloat16", revision: str | None = None,
    shard: int = SHARD, front: Front | None = None, say: Say = lambda text: None,
) -> Built:  # fmt: skip
    """Merge base ``source`` (a folder or a hub repository) into ``folder``.

    ``layout``: "nested" or "flat". ``dtype``: "bfloat16" (each tensor as the base has it) or "float32".
    Raises MergeError for a base that does not fit, a folder that is something else, a disk that is too small.
    """
    if layout not in ("nested", "flat"):
        raise MergeError(f"layout {layout!r} is not known: nested or flat")
    if dtype not in ("bfloat16", "float32"):
        raise MergeError(f"dtype {dtype!r} is not known: bfloat16 or float32")
    folder = Path(folder)
    if folder.is_file() or folder.is_dir() and any(folder.iterdir()) and not (folder / documents.NOTES).is_file():
        raise MergeError(f"{folder}: there is something else there, no merged model: choose another folder")
    base = bases.read(fetch(source, revision, say))
    made = surgery.plan(base, front or machine_front(base.sizes.hidden, base.sizes.intermediate, say), dtype)
    nested = layout == "nested"
    named = _named(made, nested)
    total = sum(stream.size for stream in named)
    fresh = folder.with_name(f".{folder.name}.part")
    _begin(fresh, _key(made, layout), total)
    parts = files.shards(named, shard)
    index: dict[str, str] = {}
    done = 0
    for number, streams in enumerate(parts):
        name = f"model-{number + 1:05d}-of-{len(parts):05d}.safetensors" if len(parts) > 1 else bases.SINGLE
        index |= {stream.name: name for stream in streams}
        size = sum(stream.size for stream in streams)
        if not _whole(fresh / name, streams):
            files.write(fresh / name, streams)
        done += size
        say(f"writing the merged model: {done / 1e9:.1f} of {total / 1e9:.1f} GB")
    _finish(made, fresh, source, nested, index if len(parts) > 1 else None, total)
    if folder.exists():
        shutil.rmtree(folder)
    fresh.rename(folder)
    return Built(folder, made.parameters, total, made.sizes.layers, made.sizes.hidden, len(parts))


def _named(made: surgery.Plan, nested: bool) -> list[files.Stream]:
    prefix = "model.language_model." if nested else "model."
    found = []
    for stream in surgery.streams(made):
        full = stream.name if stream.name.startswith("lm_head") else prefix + stream.name
        found.append(files.Stream(full, stream.kind, stream.shape, stream.parts))
    return found + (extras.streams(made) if nested else [])


def _key(made: surgery.Plan, layout: str) -> str:
    """What decides the bytes: sizes, base files, the machine's weights."""
    network = made.front.network
    digest = hashlib.sha256(repr((made.sizes, made.dtype, layout, made.front.code)).encode())
    for name in sorted(network.sparse):
        digest.update(name.encode() + network.sparse[name].values.tobytes() + network.sparse[name].cols.tobytes())
    for name, tensor in sorted((made.base.text | made.base.others).items()):
        stat = tensor.path.stat()
        digest.update(f"{name} {tensor.start} {tensor.size} {stat.st_size} {stat.st_mtime_ns}".encode())
    return digest.hexdigest()


def _begin(fresh: Path, key: str, total: int) -> None:
    """The folder in work; what another build has left there is removed."""
    mark = fresh / "build.key"
    try:
        if fresh.is_dir() and not (mark.is_file() and mark.read_text() == key):
            shutil.rmtree(fresh)
        fresh.mkdir(parents=True, exist_ok=True)
        mark.write_text(key)
        there = sum(path.stat().st_size for path in fresh.iterdir())
        free = shutil.disk_usage(fresh).free
    except OSError as error:
        raise MergeError(f"{fresh.parent}: cannot be written to: {error.strerror}") from None
    if total + SPARE > free + there:
        raise MergeError(f"{fresh.parent}: the model takes {total / 1e9:.1f} GB, {free / 1e9:.1f} GB are free")


def _whole(path: Path, streams: list[files.Stream]) -> bool:
    """Whether a shard is there from an earlier try: files get their names only when they are complete."""
    if not path.is_file():
        return False
    found = files.stored(path)
    return {name: (t.kind, t.shape) for name, t in found.items()} == {s.name: (s.kind, s.shape) for s in streams}


def _finish(
    made: surgery.Plan, fresh: Path, source: str, nested: bool, index: dict[str, str] | None, total: int
) -> None:
    if index is not None:
        documents.write_json(fresh / bases.INDEX, {"metadata": {"total_size": total}, "weight_map": index})
    documents.write_json(fresh / "config.json", documents.config(made, nested))
    documents.write_json(fresh / "generation_config.json", documents.generation_config(made))
    norms = surgery.folded(made) | (extras.folded(made) if nested else {})
    files.write(
        fresh / "qgpu_norms.safetensors",
        [files.Stream(n, "F32", v.shape, lambda v=v: iter([v])) for n, v in norms.items()],  # type: ignore[misc]
    )
    documents.tokenizer(made.base.folder, fresh, made.text)
    documents.write_json(fresh / documents.NOTES, documents.notes(made))
    (fresh / "README.md").write_text(documents.card(made, Path(source).name if Path(source).is_dir() else source))
    (fresh / "build.key").unlink()


def notes_of(folder: Path) -> dict[str, int]:
    """``qgpu.json`` of a merged folder. MergeError if it is none."""
    try:
        found: dict[str, int] = json.loads((Path(folder) / documents.NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise MergeError(f"{folder}: no merged model (it has no {documents.NOTES}); make one with qgpu build") from None
    return found
