"""Launches that have nothing to do with each other, each in one of several processes with an engine of its own.

A worker is a Python process that reads jobs from its standard input and answers on its standard output, in pickles:
both ends are this page. So a caller's script needs no guard around its main part, as it would if it were imported anew.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from qgpu.driver.runners import Array, open_runner
from qgpu.errors import LaunchError, QgpuError
from qgpu.isa import program

CHUNK = 512  # tokens between looks at whether the caller still lives
_SERVE = "from qgpu.driver.parallel import serve; serve()"


@dataclass(frozen=True)
class Job:
    """A launch, and how many tokens it may write."""

    launch: program.Launch
    max_tokens: int


@dataclass(frozen=True)
class Outcome:
    """What the model wrote, and all its memory afterwards, uint32 [4096]."""

    tokens: tuple[int, ...]
    memory: Array


class Finished:
    """A launch that has run elsewhere, as a runner that can only be asked for its memory."""

    chunk = 1

    def __init__(self, name: str, outcome: Outcome) -> None:
        self.name, self._outcome = name, outcome

    def memory(self) -> Array:
        return self._outcome.memory

    def snapshot(self) -> None:
        """It cannot go on."""


class Workers:
    """``count`` processes with an engine each, which loads while the first job waits. Close them after use."""

    def __init__(self, engine: str, dtype: str | None, count: int) -> None:
        self.count = count
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = [sys.executable, "-c", _SERVE, engine, dtype or "", str(os.getpid())]
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            while len(self._processes) < count:
                self._processes.append(subprocess.Popen(command, **pipes))  # type: ignore[call-overload]
        except BaseException:  # Ctrl-C among them
            self.close()
            raise

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run all jobs, each by the next worker that is free. QgpuError if a worker cannot open its engine or dies; the
        workers are closed then, as they are at Ctrl-C."""
        waiting = deque(enumerate(jobs))
        found: dict[int, Outcome] = {}
        failed: list[str] = []

        def work(process: subprocess.Popen[bytes]) -> None:
            assert process.stdin is not None and process.stdout is not None
            while waiting and not failed:
                try:
                    index, job = waiting.popleft()
                except IndexError:  # another worker has just taken the last one
                    return
                try:
                    _send(process.stdin, job)
                    answer = pickle.load(process.stdout)
                except (OSError, EOFError, pickle.UnpicklingError):
                    failed.append(f"a worker process ended with status {process.wait()}")
                    return
                if isinstance(answer, str):
                    failed.append(answer)
                    return
                found[index] = answer

        threads = [threading.Thread(target=work, args=(process,), daemon=True) for process in self._processes]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            self.close()
            raise
        if failed:
            self.close()
            raise QgpuError(failed[0])
        return [found[index] for index in range(len(jobs))]

    def close(self) -> None:
        """End the processes. Closing twice is harmless."""
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what was still to be sent goes nowhere
                        pipe.close()
        self._processes = []


def serve() -> None:
    """A worker's life: jobs until the input ends."""
    jobs, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever else is printed is no answer
    engine, dtype, parent = sys.argv[1:4]
    try:
        runner = open_runner(engine, dtype or None)
    except QgpuError as error:
        _send(answers, str(error))
        return
    from qgpu.driver.launch import STOPS

    while True:
        try:
            job: Job = pickle.load(jobs)
        except (EOFError, KeyboardInterrupt):
            return
        try:
            runner.reset()
            runner.feed(program.prompt(job.launch))
            written: list[int] = []
            while len(written) < job.max_tokens and not (written and written[-1] in STOPS):
                if os.getppid() != int(parent):  # nobody waits for an answer any more
                    return
                step = runner.generate(min(CHUNK, job.max_tokens - len(written)), STOPS)
                written += step
                if not step:
                    break
        except KeyboardInterrupt:
            return
        except QgpuError as error:
            _send(answers, str(error))
            return
        _send(answers, Outcome(tuple(written), np.array(runner.memory())))


def _send(pipe: IO[bytes], value: object) -> None:
    pickle.dump(value, pipe, pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def workers_for(engine: str, asked: int | None) -> int:
    """How many processes to use: as many as asked for, or one a core. LaunchError for a number that is none, or an
    engine that fills the cores by itself."""
    if engine not in ("native", "interpreter"):
        raise LaunchError(
            f"launch_many: the {engine} engine uses all cores by itself: run its launches one after the other"
        )
    if asked is not None and (not isinstance(asked, int) or asked < 1):
        raise LaunchError(f"launch_many: workers={asked!r}: give at least 1")
    return asked or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
