"""One launch from prompt to result: feed, let the model write, read its memory, check, and say what went wrong.

The host feeds the prompt and stops at HALT, FAULT or the limit. Everything else here reads what the model wrote.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.driver import trace
from qgpu.driver.faults import fault_of
from qgpu.driver.parallel import Finished
from qgpu.driver.recording import record
from qgpu.driver.runners import Runner, words_of
from qgpu.driver.sanitize import Report, sanitized
from qgpu.driver.verified import Disagreement
from qgpu.errors import CheckError, LaunchError, LaunchInterrupted, LimitError, SanitizeError
from qgpu.isa import program, subset, tokens
from qgpu.isa.interpreter import Interpreter
from qgpu.trace import Activity, files

Array = np.ndarray[Any, Any]

Progress = Callable[[int, float], None]
"""Takes the number of tokens written so far, and which share of the grid's CTAs is done, for people who wait."""


def silent(count: int, share: float) -> None:
    """Progress that nobody looks at."""


DEFAULT_MAX_TOKENS = 1_000_000
SHORT = 0.1
"""Seconds that one step of writing should take: between steps the keyboard is heard and progress is told."""

_CTA = tokens.encode("CTA")
_FAULTS = tokens.BY_NAME["FAULT"]
STOPS = frozenset([tokens.encode("HALT"), *range(_FAULTS.first, _FAULTS.first + _FAULTS.count)])


@dataclass(frozen=True, eq=False)
class Launch:
    """A launch that has run, whether it ended or not.

    ``tokens``: what the model wrote after the prompt. ``memory``: all its memory afterwards, uint32 [4096].
    ``checked``: every token and the memory are the interpreter's. ``verified``: the interpreter drafted the tokens and
    the model found each to be its own. ``places``: the arrays that were on the device.
    ``paused``: after the limit, where the runner stood, so that the launch can go on. ``reader``: finds in the memory
    what printf wrote. ``reports``: what a sanitized launch did that CUDA leaves undefined.
    ``interrupted``: by Ctrl-C. ``sources``: texts of the kernel's source files by their names.
    ``shared``: the variables in shared memory.
    """

    kernel: str
    request: program.Launch
    tokens: tuple[int, ...]
    memory: Array
    statistics: trace.Statistics
    checked: bool = False
    verified: bool = False
    file: str = ""
    places: Sequence[trace.Place] = field(default=())
    paused: object = None
    reader: Callable[[Array], str] | None = None
    reports: tuple[Report, ...] = ()
    interrupted: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    shared: Sequence[trace.Place] = ()

    @property
    def printed(self) -> str:
        """What the kernel wrote with printf."""
        return "" if self.reader is None else self.reader(self.memory)

    @property
    def ended(self) -> str:
        """``HALT``, ``FAULT``, or if neither was written ``LIMIT`` or ``INTERRUPT``."""
        kind = tokens.decode(self.tokens[-1])[0] if self.tokens else ""
        return kind if kind in ("HALT", "FAULT") else "INTERRUPT" if self.interrupted else "LIMIT"

    @property
    def stats(self) -> trace.Statistics:
        """``statistics`` by its short name."""
        return self.statistics

    @property
    def trace(self) -> trace.Listing:
        """The launch token by token: its text is ``str(launch.trace)``, its lines are what it iterates over."""
        return trace.Listing(self.request, self.tokens, tuple(self.places), self.file)

    def __repr__(self) -> str:
        sizes = (trace.sizes(size) for size in (self.request.grid, self.request.cta))
        grid, cta = sizes
        numbers = f"{len(self.tokens):,} tokens, {self.statistics.exec_tokens:,} EXEC"
        said = ", checked" * self.checked + ", verified" * self.verified
        return f"Launch({self.kernel}[{grid}, {cta}]: {self.ended}, {numbers}{said})"

    def save(self, path: Path | str, message: str = "", activity: Activity | None = None) -> None:
        """Write the trace file that ``qgpu trace`` reads, whole or not at all.

        message: how the launch ended, where that was not HALT. activity: `Device.activity` of this launch.
        QgpuError if the file cannot be written.
        """
        files.save(record(self, message, activity), path)

    def memory_of_tokens(self) -> Array:
        """The memory as the tokens alone tell it (prompt rows, then every MEM), uint32 [4096]."""
        return words_of(trace.written_rows(self.request, self.tokens))


@dataclass(frozen=True)
class Request:
    """What to run, and how messages call it. ``launch``: for the machine. ``file``: the kernel's source. ``reader``: as
    in `Launch`. ``check``: replay it on the interpreter and compare. ``sanitize``: replay it and look for what CUDA
    leaves undefined; ``zeroed`` is shared memory, (address, size), that may be read before it is written. ``sources``:
    texts of source files by name. ``shared``: the variables in shared memory, for messages."""

    kernel: str
    launch: program.Launch
    file: str
    places: Sequence[trace.Place]
    reader: Callable[[Array], str] | None = None
    check: bool = False
    sanitize: bool = False
    zeroed: Sequence[tuple[int, int]] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    shared: Sequence[trace.Place] = ()


def execute(
    runner: Runner, request: Request, max_tokens: int, progress: Progress = silent
) -> Launch:
    """Run a launch to its end.

    Raises LaunchError for a launch that cannot begin, FaultError, LimitError, CheckError or SanitizeError, each with
    the ``Launch`` as far as it went.
    """
    may(runner.name, max_tokens, request.check)
    prompt = check_launch(request, runner.name)
    runner.reset()
    runner.feed(prompt)
    return finish(runner, request, _write(runner, request, (), max_tokens, progress))


def check_launch(request: Request, engine: str = "") -> list[int]:
    """The prompt of a launch. LaunchError for one that the machine, or what of it is in the weights, cannot run."""
    try:
        prompt = program.prompt(request.launch)
    except ValueError as error:
        raise LaunchError(str(error)) from None
    if engine != "interpreter" and (absent := subset.program_faults(request.launch.program)):
        absent.append("the interpreter runs the whole contract (--engine interpreter)")
        raise LaunchError("\n".join(absent))
    return prompt


def resume(
    runner: Runner, launch: Launch, max_tokens: int, check: bool, progress: Progress = silent
) -> Launch:
    """Let a launch that met its limit write up to ``max_tokens`` more; see ``execute``. Its tokens are all of them."""
    may(runner.name, max_tokens, check)
    if launch.paused is None:
        raise LaunchError(f"the launch of {launch.kernel} ended with {launch.ended}: there is nothing to go on with")
    runner.restore(launch.paused)
    request = Request(
        launch.kernel, launch.request, launch.file, launch.places, launch.reader, check, sources=launch.sources,
        shared=launch.shared,
    )  # fmt: skip
    written = _write(runner, request, launch.tokens, max_tokens, progress)
    return finish(runner, request, written)


def may(engine: str, max_tokens: int, check: bool) -> None:
    """LaunchError for a check that would compare nothing, and a limit that is none."""
    if check and engine == "interpreter":
        raise LaunchError(
            "a check compares an engine's tokens with the interpreter's: with the interpreter as the engine there is "
            "nothing to compare; leave out the check, or choose another engine"
        )
    if max_tokens < 1:
        raise LaunchError(f"a launch may write {max_tokens} tokens: allow at least 1")


def finish(runner: Runner | Finished, request: Request, written: Sequence[int]) -> Launch:
    """Read the memory, check, and raise what the end calls for."""
    prompt = program.prompt(request.launch)
    done = replace(_launch(request, written, runner.memory()), verified=runner.name == "verified")
    if request.check:
        compare(done, prompt)
        done = replace(done, checked=True)
    if request.sanitize:
        places = [*request.places, *request.shared]
        reports = sanitized(request.launch, prompt, done.tokens, places, request.file, request.zeroed)
        done = replace(done, reports=reports)
    if done.ended == "FAULT":
        raise fault_of(done, prompt)
    if done.ended == "LIMIT":
        raise LimitError(
            f"{request.kernel} wrote {len(written):,} tokens and has not ended: an endless loop, or more work than "
            "the limit allows; raise it with max_tokens (--max-tokens)",
            replace(done, paused=runner.snapshot()),
        )
    if done.reports:
        count = len(done.reports)
        head = f"{request.kernel} does what CUDA leaves undefined: {count} report{'s' * (count != 1)}"
        raise SanitizeError("\n".join([head, *(str(report) for report in done.reports)]), done, done.reports)
    return done


def _launch(request: Request, written: Sequence[int], memory: Array, interrupted: bool = False) -> Launch:
    return Launch(
        kernel=request.kernel,
        request=request.launch,
        tokens=tuple(written),
        memory=memory,
        statistics=trace.statistics(request.launch, len(program.prompt(request.launch)), written),
        file=request.file,
        places=request.places,
        reader=request.reader,
        interrupted=interrupted,
        sources=request.sources,
        shared=request.shared,
    )


def _write(
    runner: Runner, request: Request, before: Sequence[int], max_tokens: int, progress: Progress
) -> list[int]:
    """All tokens after ``before`` was written and the machine has gone on until it stops or the limit is reached.

    LaunchInterrupted at Ctrl-C, with the tokens of whole steps and the memory that they tell of.
    """
    written = [*before]
    most = len(before) + max_tokens
    ctas, done, count = math.prod(request.launch.grid), written.count(_CTA), max(16, runner.chunk)
    try:
        while len(written) < most:
            start = time.monotonic()
            step = runner.generate(min(count, most - len(written)), STOPS)
            written += step
            if not step or step[-1] in STOPS:
                break
            count = count * 2 if time.monotonic() - start < SHORT else max(runner.chunk, count // 2)
            done += step.count(_CTA)
            progress(len(written), done / ctas)
    except Disagreement as error:
        agreed = [*written, *error.written]
        own, drafted = (f"{tokens.text(token)} (id {token})" for token in (error.own, error.drafted))
        raise CheckError(
            f"verification failed at token {len(agreed)}: the model writes {own}, the draft has {drafted}",
            _launch(request, agreed, words_of(trace.written_rows(request.launch, agreed))),
            len(agreed),
        ) from None
    except KeyboardInterrupt:
        memory = words_of(trace.written_rows(request.launch, written))
        raise LaunchInterrupted(_launch(request, written, memory, True)) from None
    return written


def compare(done: Launch, prompt: Sequence[int]) -> None:
    """Replay a launch on the interpreter. CheckError at the first token that differs, or the first memory word."""
    machine = Interpreter()
    machine.feed(prompt)
    for position, token in enumerate(done.tokens):
        wanted = machine.next()
        if token != wanted:
            said = "nothing" if wanted is None else f"{tokens.text(wanted)} (id {wanted})"
            raise CheckError(
                f"check failed at token {position} of {len(done.tokens)}: the model wrote {tokens.text(token)} "
                f"(id {token}), the interpreter writes {said}",
                done,
                position,
            )
        machine.feed([token])
    expected = done.memory_of_tokens()  # tokens that the interpreter has just agreed with
    wrong = np.flatnonzero(expected != done.memory)
    if len(wrong):
        word = int(wrong[0])
        raise CheckError(
            f"check failed: every token is right, but {len(wrong)} memory words differ, first the one at address "
            f"0x{4 * word:04x}: the model holds {int(done.memory[word])}, the interpreter {int(expected[word])}",
            done,
        )
