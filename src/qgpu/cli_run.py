"""What ``qgpu run`` and ``qgpu eval`` do between reading the command line and the driver: text in, text or JSON out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from qgpu.cli_arguments import Typed, host_value, read
from qgpu.cli_terminal import Progress
from qgpu.driver.arguments import Argument, is_struct, order
from qgpu.driver.arrays import DeviceArray
from qgpu.driver.calculator import Calculator, show
from qgpu.driver.code import Code, code_of_file
from qgpu.driver.ctypes import Parameter
from qgpu.driver.device import Device
from qgpu.driver.kernel import Kernel, size_of
from qgpu.driver.launch import Launch
from qgpu.driver.stock import resolve
from qgpu.errors import FaultError, LaunchError, LaunchInterrupted, SanitizeError, StoppedError
from qgpu.isa.assembly import disassemble

FAILED = 1  # exit status of a launch that the sanitizer reports on


@dataclass(frozen=True)
class Recording:
    """Where a launch's trace goes, and whether with what the layers did."""

    file: Path
    activity: bool

    def keep(self, device: Device, launch: object, message: str = "") -> None:
        """Write the trace file. QgpuError if that cannot be done."""
        assert isinstance(launch, Launch)
        launch.save(self.file, message, device.activity(launch) if self.activity else None)


@dataclass(frozen=True)
class Options:
    """What all launches from the command line have in common."""

    engine: str
    dtype: str | None
    check: bool
    max_tokens: int
    json: bool
    sanitize: bool = False
    device: str | None = None


def evaluate(text: str, options: Options) -> None:
    """``qgpu eval``: print the value of an expression."""
    with Progress() as progress:
        device = Device(options.engine, options.dtype, progress.say, progress.count, device=options.device)
        calculator = Calculator(device, options.max_tokens, options.check)
        try:
            value = calculator.evaluate(text)
        except LaunchInterrupted:
            count = len(calculator.launches)
            done = sum(launch.statistics.tokens for launch in calculator.launches)
            text = f"interrupted after {count} whole launch{'es' * (count != 1)}, {done:,} tokens"
            raise KeyboardInterrupt(text) from None
    if options.json:
        print(json.dumps({"result": value.tolist(), "wrapped": calculator.notes, **_numbers(calculator.launches)}))
        return
    print(show(value))
    for note in calculator.notes:
        typer.echo(note, err=True)


def run(
    file: Path,
    name: str | None,
    texts: Sequence[str],
    grid: str,
    block: str,
    trace: bool,
    options: Options,
    shared: int = 0,
    compiler: str | None = None,
    seed: int = 0,
    recording: Recording | None = None,
) -> None:
    """``qgpu run``: launch a kernel, print the arrays that it may have written. shared: bytes of dynamic shared memory.
    compiler: a row of `compile.COMPILERS`. seed: of random arrays. recording: where the trace is to be kept."""
    sizes = _size(grid, "--grid"), _size(block, "--block")
    code = code_of_file(resolve(file), name, compiler)
    typed = _in_order(code, read(texts))
    names = (one.name or parameter.name for one, parameter in zip(typed, code.parameters, strict=True))
    labelled = zip(code.parameters, names, strict=True)
    code = replace(code, parameters=tuple(replace(parameter, name=name) for parameter, name in labelled))
    with Progress() as progress:
        device = Device(
            options.engine, options.dtype, progress.say, progress.count, lambda text: None, device=options.device
        )
        values = _place(device, code.parameters, typed, seed)
        try:
            launch = Kernel(device, code)[(*sizes, shared)](
                *values, max_tokens=options.max_tokens, check=options.check, sanitize=options.sanitize
            )
        except SanitizeError as error:  # the launch itself ended well
            assert isinstance(error.launch, Launch)
            launch = error.launch
            if recording:
                recording.keep(device, launch, str(error))
        except LaunchInterrupted as stop:
            progress.end()
            if recording:
                recording.keep(device, stop.launch, "interrupted")
            assert isinstance(stop.launch, Launch)
            _report_interrupted(stop.launch, code.parameters, values, trace, options)
            raise KeyboardInterrupt(f"interrupted after {_summary(stop.launch)}") from None
        except StoppedError as error:
            progress.end()
            if recording:
                recording.keep(device, error.launch, str(error))
            _report_stopped(error, code.parameters, values, trace, options)
            raise
        if recording and not launch.reports:
            recording.keep(device, launch)
    if options.json:
        print(json.dumps(_document(launch, code.parameters, values, trace)))
        raise typer.Exit(FAILED) if launch.reports else typer.Exit()
    if trace:
        print(launch.trace)
    print(launch.printed, end="")
    _print_arrays(code.parameters, values)
    print(_summary(launch))
    if launch.reports:
        sys.stdout.flush()
        typer.echo("\n".join(f"{report}" for report in launch.reports), err=True)
        typer.echo(f"{len(launch.reports)} reported", err=True)
        raise typer.Exit(FAILED)
    if options.sanitize:
        print("sanitized: no uninitialised reads, no races on shared memory, no barriers with missing threads")


def assembly(
    file: Path, name: str | None, grid: str | None, block: str | None, compiler: str | None, as_json: bool
) -> None:
    """``qgpu asm``: print a kernel's blocks. They are called b0, b1, ... as in a trace."""
    code = code_of_file(resolve(file), name, compiler)
    program = code.program
    if grid is not None or block is not None:
        given = ((grid, "--grid"), (block, "--block"))
        sizes = [size_of(_size("1" if text is None else text, option), option) for text, option in given]
        if min(map(min, sizes)) < 1:
            raise LaunchError(f"grid {sizes[0]} and CTA {sizes[1]} need sizes of at least 1")
        program = code.program_for(*sizes)
    blocks = tuple(replace(block, label="") for block in program.blocks)
    text = disassemble(replace(program, blocks=blocks)).rstrip("\n")
    if not as_json:
        print(text)
        return
    listed = [
        {"fields": dict(one.fields), "line": one.line, "file": one.file or code.file, "instructions": one.instructions}
        for one in blocks
    ]
    facts = {"kernel": code.name, "parameter_words": program.parameter_words, "pool": list(program.pool)}
    print(json.dumps({**facts, "blocks": listed, "assembly": text.splitlines()}))


def _in_order(code: Code, typed: Sequence[Typed]) -> list[Typed]:
    """The arguments in the kernel's order. Names are the source's; where PTX has none, a name is only a label."""
    if all(parameter.name == f"arg{index}" for index, parameter in enumerate(code.parameters)):
        return order(code.name, code.parameters, typed, {})
    named = {one.name: one for one in typed if one.name}
    return order(code.name, code.parameters, [one for one in typed if not one.name], named)


def _place(
    device: Device, parameters: Sequence[Parameter], typed: Sequence[Typed], seed: int
) -> list[Argument]:
    """The arguments on the device. LaunchError lists every one that is no array of integers, or does not fit."""
    found: list[Argument] = []
    faults: list[str] = []
    random = np.random.default_rng(seed)
    for parameter, one in zip(parameters, typed, strict=True):
        try:
            value = host_value(one, parameter, random)
            lies = isinstance(value, np.ndarray) and not is_struct(parameter)
            found.append(device.array(value, name=parameter.name) if lies else value)
        except LaunchError as error:
            faults.append(str(error))
    if faults:
        raise LaunchError("\n".join(faults))
    return found


def _size(text: str, option: str) -> tuple[int, ...]:
    parts = text.lower().replace(",", "x").split("x")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        raise LaunchError(f"{option} {text}: give one to three integers, such as 4 or 4x2")
    return tuple(int(part) for part in parts)


def _numbers(launches: Sequence[Launch]) -> dict[str, Any]:
    return {
        "launches": len(launches),
        "prompt_tokens": sum(launch.statistics.prompt_tokens for launch in launches),
        "tokens": sum(launch.statistics.tokens for launch in launches),
        "exec_tokens": sum(launch.statistics.exec_tokens for launch in launches),
        "lane_instructions": sum(launch.statistics.lane_instructions for launch in launches),
        "checked": bool(launches) and all(launch.checked for launch in launches),
    }


def _document(
    launch: Launch, parameters: Sequence[Parameter], values: Sequence[Argument], trace: bool
) -> dict[str, Any]:
    """What ``qgpu run --json`` prints: every array by its parameter's name, and the launch's numbers."""
    arrays = {
        parameter.name: value.numpy().tolist()
        for parameter, value in zip(parameters, values, strict=True)
        if isinstance(value, DeviceArray)
    }
    found: dict[str, Any] = {"kernel": launch.kernel, "ended": launch.ended, "arrays": arrays, **_numbers([launch])}
    if launch.printed:
        found["printed"] = launch.printed
    if launch.reports:
        found["reports"] = [
            {**asdict(report), "text": str(report)} for report in launch.reports
        ]
    if trace:
        found["trace"] = list(launch.trace)
    return found


def _report_interrupted(
    launch: Launch, parameters: Sequence[Parameter], values: Sequence[Argument], trace: bool, options: Options
) -> None:
    """What had been done when Ctrl-C came."""
    if options.json:
        print(json.dumps(_document(launch, parameters, values, trace)))
    else:
        if trace:
            print(launch.trace)
        print(launch.printed, end="")
        _print_arrays(parameters, values)
    sys.stdout.flush()


def _print_arrays(parameters: Sequence[Parameter], values: Sequence[Argument]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        if isinstance(value, DeviceArray) and not parameter.const:
            print(f"{parameter.name} = {show(value.numpy())}")


def _report_stopped(
    error: StoppedError,
    parameters: Sequence[Parameter],
    values: Sequence[Argument],
    trace: bool,
    options: Options,
) -> None:
    """What can still be read after a launch that did not end well; the message itself is printed by the caller."""
    launch = error.launch
    if not isinstance(launch, Launch):
        return
    if options.json:
        document = {**_document(launch, parameters, values, trace), "error": str(error)}
        if isinstance(error, FaultError):
            document["fault"] = {
                "cause": error.cause,
                "address": error.address,
                "thread": error.thread,
                "cta": error.cta,
                "file": error.file,
                "line": error.line,
                "block": error.block,
            }
        print(json.dumps(document))
    else:
        if trace:
            print(launch.trace)
        print(launch.printed, end="")
    sys.stdout.flush()


def _summary(launch: Launch) -> str:
    numbers = launch.statistics
    text = (
        f"{numbers.tokens:,} token{'' if numbers.tokens == 1 else 's'} ({numbers.exec_tokens:,} EXEC), "
        f"{numbers.lane_instructions:,} lane instructions"
    )
    if launch.verified:
        text += f"; verified: {numbers.tokens:,} tokens, all the model's own argmax"
    return text + ("; checked: every token and all memory as the interpreter has them" if launch.checked else "")
