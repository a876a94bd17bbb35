"""What the native engine makes of a network, kept on disk: it follows from the weights and from the engine's sources
alone, and takes seconds to make.

An entry is named by a hash over both; it is written under another name and renamed. An entry that cannot be read, or
a folder that cannot be written, costs time alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from qgpu.engines.native_form import boundaries
from qgpu.engines.native_math import sources
from qgpu.engines.native_nets import Nets, make_nets
from qgpu.engines.native_plan import Plan, make_plan
from qgpu.engines.native_values import Values, make_values
from qgpu.foundry.network import Network

KEPT = 4  # entries


class Prepared(NamedTuple):
    plan: Plan
    nets: Nets | None  # None: the network has no such form
    values: Values


def key_of(network: Network) -> str:
    """A hash over everything that an engine reads of a network, and over this engine's sources."""
    digest = hashlib.blake2b(sources().encode(), digest_size=16)
    digest.update(repr(network.shape).encode())
    for name, matrix in sorted(network.sparse.items()):
        digest.update(f"{name} {matrix.shape}".encode())
        for part in (matrix.rows, matrix.cols, matrix.values):
            digest.update(np.ascontiguousarray(part).data)
    for name, vector in sorted([*network.vectors.items(), *network.ranges.items()]):
        digest.update(f"{name} {vector.shape}".encode())
        digest.update(np.ascontiguousarray(vector).data)
    for table in (network.embedding, network.head):
        for part in (table.dims, table.codes, table.scales, table.offsets):
            digest.update(f"{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def prepare(network: Network, nets: bool = True) -> Prepared:
    """Raises EngineError for what the engine cannot evaluate."""
    plan = make_plan(network)
    return Prepared(plan, make_nets(plan, *boundaries(network, plan)) if nets else None, make_values(plan, True))


def prepared(network: Network, folder: Path | None, nets: bool) -> Prepared:
    """From ``folder`` if it is there; else made, and kept there. Without a folder ``nets`` are made if asked for."""
    if folder is None:
        return prepare(network, nets)
    place = folder / f"{key_of(network)}.safetensors"
    try:
        return _read(place)
    except (OSError, SafetensorError, KeyError, ValueError):
        found = prepare(network)
        _write(place, found)
        return found


def _flat(prefix: str, value: Any, arrays: dict[str, Any], numbers: dict[str, float]) -> None:
    if isinstance(value, np.ndarray):
        arrays[prefix] = np.ascontiguousarray(value)
    elif isinstance(value, tuple):
        for name in value._fields:  # type: ignore[attr-defined]
            _flat(f"{prefix}.{name}", getattr(value, name), arrays, numbers)
    elif value is not None:
        numbers[prefix] = value


def _whole(prefix: str, kind: Any, arrays: Any, numbers: dict[str, float]) -> Any:
    if not (isinstance(kind, type) and issubclass(kind, tuple)):
        return numbers[prefix] if prefix in numbers else arrays.get_tensor(prefix)
    hints = get_type_hints(kind)
    return kind(**{name: _whole(f"{prefix}.{name}", hints[name], arrays, numbers) for name in kind._fields})


def _read(place: Path) -> Prepared:
    with safe_open(place, framework="np") as file:
        numbers = json.loads(file.metadata()["numbers"])
        nets = _whole("nets", Nets, file, numbers) if "nets.at" in file.keys() else None  # noqa: SIM118
        return Prepared(_whole("plan", Plan, file, numbers), nets, _whole("values", Values, file, numbers))


def _write(place: Path, found: Prepared) -> None:
    arrays: dict[str, Any] = {}
    numbers: dict[str, float] = {}
    for name in Prepared._fields:
        _flat(name, getattr(found, name), arrays, numbers)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent, suffix=".tmp")
        os.close(handle)
        save_file(arrays, name, {"numbers": json.dumps(numbers)})
        os.replace(name, place)
        old = sorted(place.parent.glob("*.safetensors"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in old[KEPT:]:
            path.unlink(missing_ok=True)
    except OSError:
        return
