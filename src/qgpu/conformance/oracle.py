"""What the kernels of the table must give: their own sources, built as C++ for this host and run thread by thread.

A kernel is run under several schedules of its threads and CTAs. What CUDA leaves open (shared memory before it is
written, what a shuffle reads from a lane that is not there, the bytes around an array) is different in each; a kernel
whose result differs is refused as racy. Undefined behaviour of C++ ends the run.

    python -m qgpu.conformance.oracle --write    write expected.json anew
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.conformance.table import KERNELS, Row, key_of, source_text, table
from qgpu.cuda.cache import cache_directory, content_key
from qgpu.cuda.compile import find_compiler
from qgpu.errors import QgpuError

Array = np.ndarray[Any, Any]

HOST = Path(__file__).parent / "host"
EXPECTED = Path(__file__).parent / "expected.json"
SCHEDULES = ((0, 1), (1, 2), (2, 3), (2, 4))
"""(order, seed): 0 upwards, 1 downwards, 2 at random."""
STATUS = ("", "its threads wait for each other for ever", "it does not end", "it traps",
          "a lane is not in its own member mask", "a thread's stack is too small", "too many threads")  # fmt: skip
GUARD = 64
MOST_ARGUMENTS = 12
FLAGS = (
    "-shared -nostdlib -nostdinc -std=c++17 -O1 -g0 -fPIC -fno-exceptions -fno-rtti -fno-stack-protector "
    "-fno-strict-aliasing -fwrapv -fsanitize=undefined -fno-sanitize=shift-base -fsanitize-trap=undefined -w"
).split()
"""No library is needed. Signed numbers wrap, as everybody's do on a GPU; other undefined behaviour traps."""


class OracleError(QgpuError):
    """A kernel of the table that has no one result, or the oracle cannot be built."""


@cache
def library(path: Path) -> ctypes.CDLL:
    """The kernels of a file as a shared library, built once for each content."""
    host = sorted(file for file in HOST.iterdir() if file.is_file())
    compiler = find_compiler()
    texts = [source_text(path), *(file.read_text(encoding="utf-8") for file in host)]
    name = f"{content_key(compiler.version, sys.platform, ' '.join(FLAGS), *texts)[:32]}.so"
    folder = (cache_directory() or Path(tempfile.mkdtemp())) / "oracle"
    built = folder / name
    if not built.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _build(compiler.command[0], path, built)
    return ctypes.CDLL(str(built))


def _build(zig: str, path: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        made = Path(work) / target.name
        sources = ["-include", str(HOST / "host.hpp"), str(HOST / "fibres.cpp"), "-x", "c++", str(path)]
        command = [zig, "c++", *FLAGS, "-I", str(KERNELS), "-I", str(HOST), *sources, "-o", str(made)]
        result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", cwd=work)
        if result.returncode != 0:
            raise OracleError(f"{path.name} does not compile for this host:\n{result.stderr.strip()[:4000]}")
        os.replace(made, target)


def run_once(one: Row, order: int, seed: int) -> list[Array]:
    """The arrays after the launch under one schedule. OracleError if it cannot end or writes where nothing is."""
    built = library(one.path)
    spoil = np.random.default_rng(seed).integers(0, 256, 1 << 16, np.uint8)
    buffers, values = [], []
    for argument in one.arguments:
        if isinstance(argument, np.ndarray):
            buffer = np.zeros(argument.nbytes + 2 * GUARD + 16, np.uint8)
            start = -buffer.ctypes.data % 16 + GUARD
            buffer[:] = spoil[: len(buffer)]
            buffer[start : start + argument.nbytes] = argument.view(np.uint8)
            buffers.append((buffer, start, argument))
            values.append(buffer.ctypes.data + start)
        else:
            values.append(argument % 2**64)
    words = (ctypes.c_uint64 * MOST_ARGUMENTS)(*values)
    sizes = [(ctypes.c_uint32 * 3)(*size) for size in (one.grid, one.cta)]
    kernel = ctypes.cast(getattr(built, one.kernel), ctypes.c_void_p)
    status = built.qgpu_run(kernel, words, *sizes, ctypes.c_int(order), ctypes.c_uint64(seed))
    if status:
        raise OracleError(f"{one.name}: {STATUS[status]} (order {order})")
    found = []
    for buffer, start, argument in buffers:
        end = start + argument.nbytes
        found.append(buffer[start:end].view(argument.dtype).copy())
        buffer[start:end] = spoil[start:end]
        if not np.array_equal(buffer, spoil[: len(buffer)]):
            raise OracleError(f"{one.name}: it writes beside an array (order {order})")
    return found


def result(one: Row) -> list[Array]:
    """The arrays after the launch, the same under every schedule. OracleError if they are not."""
    first, *others = [run_once(one, order, seed) for order, seed in SCHEDULES]
    for (order, _), other in zip(SCHEDULES[1:], others, strict=True):
        for number, (a, b) in enumerate(zip(first, other, strict=True)):
            if not np.array_equal(a, b):
                at = int(np.flatnonzero(a != b)[0])
                raise OracleError(f"{one.name}: racy: array {number} at {at}: {a[at]} or {b[at]} (order {order})")
    return first


def guarded(action: Callable[[], Any], what: str) -> Any:
    """What ``action`` gives, out of a child process: it may run into undefined behaviour, which kills it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        faulthandler.disable()
        try:
            answer: Any = (True, action())
        except Exception as error:  # the child must not go on as if it were its parent
            answer = (False, f"{what}: {error!r}" if not isinstance(error, QgpuError) else str(error))
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise OracleError(f"{what}: undefined behaviour in C++ (the run ended with signal {status & 127})")
    good, value = pickle.loads(data)
    if not good:
        raise OracleError(value)
    return value


def oracle(one: Row) -> list[Array]:
    """As `result`, safe from what the kernel may do to the process."""
    library(one.path)
    found: list[Array] = guarded(lambda: result(one), one.name)
    return found


# ---- What is kept ----


def entry(one: Row, arrays: list[Array]) -> dict[str, Any]:
    """What ``expected.json`` holds of a row: its key, and the arrays that the kernel changed, by number."""
    changed = {
        str(number): after.tolist()
        for number, (before, after) in enumerate(zip(one.arrays, arrays, strict=True))
        if not np.array_equal(before, after)
    }
    return {"key": key_of(one), "arrays": changed}


@cache
def stored() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return loaded


def expected(one: Row) -> list[Array]:
    """The arrays after the launch, as they are stored. OracleError if nothing is, or something older."""
    kept = stored().get(one.name)
    if kept is None or kept["key"] != key_of(one):
        raise OracleError(f"{one.name} has changed: write its result with python -m qgpu.conformance.oracle --write")
    return [
        np.array(kept["arrays"][str(number)], before.dtype) if str(number) in kept["arrays"] else before
        for number, before in enumerate(one.arrays)
    ]


def write(rows: Iterable[Row]) -> int:
    """Store the results of all rows that have one; prints the others and returns how many they are."""
    try:
        old = stored()
    except (OSError, ValueError):
        old = {}
    lines, faults = [], 0
    for one in rows:
        kept = old.get(one.name, {})
        if kept.get("key") != key_of(one):
            try:
                kept = entry(one, oracle(one))
            except OracleError as error:
                print(error)
                faults += 1
                continue
        lines.append(f"{json.dumps(one.name)}: {json.dumps(kept, separators=(',', ':'))}")
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(lines)} results")
    return faults


if __name__ == "__main__":
    if sys.argv[1:] not in (["--write"], ["--all", "--write"]):
        sys.exit("usage: python -m qgpu.conformance.oracle [--all] --write   (--all: also those that are still right)")
    if "--all" in sys.argv:
        EXPECTED.unlink(missing_ok=True)
    sys.exit(1 if write(table().values()) else 0)
