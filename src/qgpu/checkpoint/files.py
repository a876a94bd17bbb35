"""Safetensors files by hand, since NumPy has no bfloat16: raw bits stay raw, and no tensor has to stand in memory.

The format: eight bytes of header length, a JSON header of name -> (dtype, shape, offsets), the data
(https://github.com/huggingface/safetensors#format). bfloat16 is handled as its bits, uint16.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.checkpoint.errors import MergeError

Array = np.ndarray[Any, Any]
KINDS: dict[str, np.dtype[Any]] = {"BF16": np.dtype("<u2"), "F32": np.dtype("<f4")}
WIDTH = {"BF16": 2, "F32": 4, "F16": 2, "F64": 8, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
LARGEST_HEADER = 100 << 20


@dataclass(frozen=True)
class Stored:
    """A tensor in a file: ``start`` is the offset of its first byte in the file."""

    path: Path
    kind: str
    shape: tuple[int, ...]
    start: int
    size: int

    def map(self) -> Array:
        """The tensor as a read-only map of the file: BF16 as bits (uint16), F32 as float32, others as bytes."""
        if not self.size:
            return np.zeros(self.shape, KINDS.get(self.kind, np.dtype("u1")))
        if self.kind not in KINDS:
            return np.memmap(self.path, np.uint8, "r", self.start, (self.size,))
        return np.memmap(self.path, KINDS[self.kind], "r", self.start, self.shape)


def stored(path: Path) -> dict[str, Stored]:
    """Name -> tensor of one file. MergeError names the file and what is wrong with it, a cut file above all."""
    try:
        length = path.stat().st_size
        with path.open("rb") as file:
            head = int.from_bytes(file.read(8), "little")
            if length < 8 or head > min(length - 8, LARGEST_HEADER):
                raise ValueError("no header of the length it says")
            header = json.loads(file.read(head))
        found = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            start, end = entry["data_offsets"]
            shape = tuple(int(size) for size in entry["shape"])
            if not 0 <= start <= end or 8 + head + end > length:
                raise ValueError(f"'{name}' ends at byte {8 + head + end} of {length}; the download is not complete")
            if entry["dtype"] in WIDTH and end - start != prod(shape) * WIDTH[entry["dtype"]]:
                raise ValueError(f"'{name}' has {end - start} bytes for {entry['dtype']} {shape}")
            found[name] = Stored(path, entry["dtype"], shape, 8 + head + start, end - start)
        return found
    except OSError as error:
        raise MergeError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MergeError(f"{path}: not a whole safetensors file ({error}); download it again") from None


def floats(values: Array) -> Array:
    """float32 of bits (uint16) or of float32."""
    if values.dtype == np.uint16:
        return (values.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(values, np.float32)


def bits(values: Array) -> Array:
    """bfloat16 bits of float32 values, rounded to nearest, ties to even."""
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16).astype(np.uint16)


@dataclass(frozen=True)
class Stream:
    """A tensor to be written: ``parts`` makes it anew, in order, as arrays of its kind (whatever their shapes)."""

    name: str
    kind: str
    shape: tuple[int, ...]
    parts: Callable[[], Iterator[Array]]

    @property
    def size(self) -> int:
        return prod(self.shape) * WIDTH[self.kind]


def shards(streams: Sequence[Stream], largest: int) -> list[list[Stream]]:
    """The streams in order, as few files as ``largest`` bytes each allow (a larger tensor has a file of its own)."""
    found: list[list[Stream]] = []
    room = 0
    for stream in streams:
        if not found or stream.size > room:
            found.append([])
            room = largest
        found[-1].append(stream)
        room -= stream.size
    return found


def write(path: Path, streams: Sequence[Stream], progress: Callable[[int], None] = lambda count: None) -> None:
    """Write one file; it gets its name when it is complete. MergeError if a stream is not as long as it says."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for stream in streams:
        header[stream.name] = {
            "dtype": stream.kind, "shape": list(stream.shape), "data_offsets": [offset, offset + stream.size]
        }  # fmt: skip
        offset += stream.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with fresh.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for stream in streams:
                count = 0
                for part in stream.parts():
                    data = np.ascontiguousarray(part)
                    file.write(data.data)
                    count += data.nbytes
                    progress(data.nbytes)
                if count != stream.size:
                    raise MergeError(f"{stream.name}: {count} bytes were made, {stream.size} are needed")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise MergeError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        fresh.unlink(missing_ok=True)
