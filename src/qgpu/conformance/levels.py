"""Runs a row of the table at a level: compile, launch, compare with what the oracle says, and count.

Levels: ``ir`` (the compiler's intermediate form on its evaluator: no blocks, no tokens), ``interpreter``, ``native``
and ``transformers``. Whatever happens is an outcome with a status; nothing is skipped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.conformance.oracle import expected
from qgpu.conformance.table import Row, source_text
from qgpu.cuda import evaluate, nvrtc
from qgpu.cuda.cache import cache_directory, content_key
from qgpu.cuda.compile import find_compiler, ptx_of_file
from qgpu.cuda.frontend import translate
from qgpu.cuda.ir import Function
from qgpu.cuda.optimize import optimize
from qgpu.cuda.ptx_parser import parse_ptx
from qgpu.driver.arrays import DeviceArray
from qgpu.driver.code import Code, code_of_file
from qgpu.driver.device import Device
from qgpu.driver.kernel import Kernel
from qgpu.driver.launch import Launch
from qgpu.driver.memory import ALIGNMENT
from qgpu.errors import CompileError, LaunchError, MemoryFullError, QgpuError, UnsupportedError
from qgpu.isa.program import Program

Array = np.ndarray[Any, Any]

LEVELS = ("ir", "interpreter", "native", "transformers")
COMPILERS = ("clang", "nvrtc")
MAX_TOKENS = 1_000_000


@dataclass(frozen=True)
class Outcome:
    """``status``: ok, wrong (other values than the oracle's), refused (the compiler or the machine says it cannot) or
    failed (anything else); ``message`` says more. Counts are None where the level has none; ``spills``: accesses of
    memory that the compiler put in for want of registers."""

    kernel: str
    level: str
    compiler: str
    status: str
    message: str = ""
    tokens: int | None = None
    lane_instructions: int | None = None
    blocks: int | None = None
    registers: int | None = None
    spills: int | None = None

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def tokens_an_instruction(self) -> float | None:
        return self.tokens / self.lane_instructions if self.tokens and self.lane_instructions else None


def run(one: Row, level: str, compiler: str = "clang") -> Outcome:
    """The outcome of a row at a level with a compiler, both by their names above."""
    start = Outcome(one.name, level, compiler, "ok")
    wanted = expected(one)
    try:
        found, outcome = (_on_ir if level == "ir" else _on_device)(one, start)
    except (UnsupportedError, LaunchError) as error:
        status = "failed" if isinstance(error, MemoryFullError) else "refused"
        return replace(start, status=status, message=str(error))
    except QgpuError as error:
        return replace(start, status="failed", message=str(error))
    except Exception as error:
        return replace(start, status="failed", message=f"{type(error).__name__}: {error}")
    fault = difference(found, wanted)
    return replace(outcome, status="wrong", message=fault) if fault else outcome


def difference(found: list[Array], wanted: list[Array]) -> str:
    """Where arrays differ first, and in how many elements; empty if nowhere."""
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        places = np.flatnonzero(a != b)
        if len(places):
            at = int(places[0])
            return f"array {number} at {at}: {a[at]}, expected {b[at]} ({len(places)} of {len(a)} differ)"
    return ""


# ---- Compiling ----


@cache
def ptx_file(path: Path, compiler: str) -> Path:
    """The file that a compiler starts from: the source itself, or PTX that another compiler made of it.

    CompileError also where the compiler is not installed.
    """
    if compiler == "clang":
        return path
    folder = cache_directory()
    if folder is None:
        raise CompileError(f"the PTX of {compiler} finds no place: set QGPU_CACHE_DIR to a folder")
    key = content_key(find_compiler(compiler).version, *nvrtc.OPTIONS, source_text(path))
    made = folder / compiler / key[:32] / f"{path.stem}.ptx"
    if not made.exists():
        text = ptx_of_file(path, compiler).text
        made.parent.mkdir(parents=True, exist_ok=True)
        part = made.with_suffix(f".{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        os.replace(part, made)
    return made


@cache
def code_of(one: Row, compiler: str) -> Code:
    """A row's kernel as blocks. Types are left out: the table's arrays may have any, the driver's only some."""
    code = code_of_file(ptx_file(one.path, compiler), one.kernel)
    bare = tuple(replace(part, element=None, text="", pointer=None) for part in code.parameters)
    return replace(code, parameters=bare)


@cache
def function_of(one: Row, compiler: str) -> Function:
    ptx = ptx_of_file(ptx_file(one.path, compiler))
    return optimize(translate(parse_ptx(ptx.text, ptx.file), one.kernel))


def registers_of(program: Program) -> int:
    """Registers that a program names, r0 not counted."""
    names = ("ra", "rb", "rc", "d_e", "d_b", "d_o")
    return len({block.fields.get(name, 0) for block in program.blocks for name in names} - {0})


# ---- The levels ----


@cache
def _opened(level: str) -> Device | QgpuError:
    try:
        return Device(level)
    except QgpuError as error:  # kept as well: it takes long to fail
        return error


def device(level: str) -> Device:
    """The one device of a level."""
    found = _opened(level)
    if isinstance(found, QgpuError):
        raise found
    return found


def launch(one: Row, on: Device, compiler: str = "clang") -> tuple[list[Array], Launch]:
    """A row's arrays after its launch on a device, and the launch. Every token of an engine is checked against the
    interpreter's. Raises what the driver does."""
    values = [_place(on, argument) if isinstance(argument, np.ndarray) else argument for argument in one.arguments]
    kernel = Kernel(on, code_of(one, compiler))[one.grid, one.cta, one.shared]
    done = kernel(*values, max_tokens=MAX_TOKENS, check=on.engine != "interpreter")
    placed = [value for value in values if isinstance(value, DeviceArray)]
    return [_taken(array, argument) for array, argument in zip(placed, one.arrays, strict=True)], done


def _on_device(one: Row, start: Outcome) -> tuple[list[Array], Outcome]:
    code = code_of(one, start.compiler)
    program, image = code.program_for(one.grid, one.cta), code.image
    found, done = launch(one, device(start.level), start.compiler)
    return found, replace(
        start,
        blocks=len(program.blocks),
        registers=registers_of(program),
        spills=0 if image is None or image.local is None else image.local.spills,
        tokens=len(done.tokens),
        lane_instructions=done.statistics.lane_instructions,
    )


def _place(on: Device, argument: Array) -> DeviceArray:
    """An array of any type on the device, as words."""
    return on.array(np.frombuffer(argument.tobytes() + bytes(-argument.nbytes % 4), np.uint32))


def _taken(array: DeviceArray, like: Array) -> Array:
    return np.frombuffer(array.numpy().tobytes()[: like.nbytes], like.dtype)


def _on_ir(one: Row, start: Outcome) -> tuple[list[Array], Outcome]:
    function = function_of(one, start.compiler)
    memory, places, words = bytearray(64), [], []
    for argument in one.arguments:
        if isinstance(argument, np.ndarray):
            memory.extend(bytes(-len(memory) % ALIGNMENT))
            places.append(len(memory))
            words.append(len(memory))
            memory.extend(argument.tobytes())
        else:
            words.append(argument)
    area = bytearray(sum(parameter.size + 8 for parameter in function.parameters))
    for parameter, value in zip(function.parameters, words, strict=True):
        masked = value % (1 << 8 * parameter.size)
        area[parameter.offset : parameter.offset + parameter.size] = masked.to_bytes(parameter.size, "little")
    try:
        steps = evaluate.run(function, bytes(area), memory, one.grid, one.cta, dynamic_shared=one.shared)
    except evaluate.Fault as error:
        raise QgpuError(f"fault: {error}") from None
    found = [
        np.frombuffer(bytes(memory[place : place + array.nbytes]), array.dtype)
        for place, array in zip(places, one.arrays, strict=True)
    ]
    return found, replace(start, lane_instructions=steps)


def available(compiler: str) -> str:
    """Why a compiler cannot be used here; empty if it can."""
    try:
        find_compiler(None if compiler == "clang" else compiler)
    except CompileError as error:
        return str(error)
    return ""
