"""The device: an engine, its memory, and the launches on it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.driver import arguments, arrays
from qgpu.driver.arrays import DeviceArray
from qgpu.driver.code import Code
from qgpu.driver.dtypes import host_array
from qgpu.driver.kernel import Call, Kernel, Module
from qgpu.driver.kernel_memory import KernelMemory, Variables
from qgpu.driver.launch import (
    DEFAULT_MAX_TOKENS,
    Launch,
    Progress,
    Request,
    check_launch,
    execute,
    finish,
    may,
    resume,
    silent,
)
from qgpu.driver.memory import Allocator, allocation_map
from qgpu.driver.parallel import Finished, Job, Workers, workers_for
from qgpu.driver.recording import activity_of
from qgpu.driver.runners import Runner, Say, Server, open_runner
from qgpu.driver.stock import resolve
from qgpu.driver.trace import Place
from qgpu.errors import LaunchError, LaunchInterrupted, StoppedError
from qgpu.isa import program
from qgpu.isa.program import Dim3
from qgpu.trace.model import Activity


class Device:
    """A GPU made of weights.

    engine: "native" (sparse, quick), "transformers" (dense, stock code), "verified" (the same, reading what the
    interpreter drafts: every token is still the model's own) or "interpreter" (the specification; no weights). dtype:
    of the activations, "float32" or "bfloat16"; None for the engine's usual one. say: is told what takes time;
    progress: how many tokens of a launch have been written and which share of its CTAs is done. printed: takes what
    kernels write with printf, once their launch has ended. device: what torch runs on, for the dense engines: "cpu"
    (the usual one), "cuda", "mps". url: of an OpenAI-compatible server, for the engine "openai"; model: as it is called
    there (None: the first one listed); first_id: where the machine's ids begin in it (None: where they do behind every
    Qwen3.5; 0 in a bare model); key: for servers that want one.

    A device may be used by several threads: its launches run one after the other, each with all its reading and
    writing of arrays, in the order in which they come; what threads do to one array between launches is for them to
    order. As a context it is closed at the end, which frees its arrays.
    """

    def __init__(
        self,
        engine: str = "native",
        dtype: str | None = None,
        say: Say = lambda text: None,
        progress: Progress = silent,
        printed: Say = lambda text: print(text, end=""),
        device: str | None = None,
        url: str | None = None,
        model: str | None = None,
        first_id: int | None = None,
        key: str | None = None,
    ) -> None:
        self._lock = threading.RLock()
        server = None if url is None else Server(url, model, Server.first_id if first_id is None else first_id, key)
        self._runner: Runner | None = open_runner(engine, dtype, say, device, server)
        self._progress, self._printed = progress, printed
        self.engine, self.dtype = engine, dtype
        self._workers: Workers | None = None
        self.allocator = Allocator()
        self._variables = Variables(self.allocator)
        self._arrays: weakref.WeakSet[DeviceArray] = weakref.WeakSet()
        # the arrays of launches that can go on, held as long as somebody holds the launch
        self._paused: weakref.WeakKeyDictionary[Launch, list[DeviceArray]] = weakref.WeakKeyDictionary()

    # -- memory

    def array(self, values: Any, dtype: Any = None, name: str = "") -> DeviceArray:
        """A new array with a copy of ``values``: a numpy array of integers of 8 to 64 bits, of bool, or of structs of
        these; or nested lists of integers, which become int32 where that holds them. Laid out in C order.

        Raises LaunchError for other types and for integers that do not fit, MemoryFullError if it finds no place.
        """
        host = host_array(values, dtype, name)
        with self._lock:
            self._open()
            made = DeviceArray(host, self.allocator, name, self)
            self._arrays.add(made)
        return made

    def zeros(self, shape: int | Sequence[int], dtype: Any = np.int32, name: str = "") -> DeviceArray:
        """A new array of zeros; see ``array``. LaunchError for a size that is none."""
        sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        if not all(isinstance(size, int | np.integer) and size >= 0 for size in sizes):
            raise LaunchError(f"zeros({shape!r}): give a size, or several, as integers of at least 0")
        return self.array(np.zeros(sizes, dtype), dtype, name)

    @property
    def arrays(self) -> list[DeviceArray]:
        """The arrays that have memory, by address; no views."""
        with self._lock:
            return sorted((array for array in self._arrays if array.alive), key=lambda array: array.address)

    @property
    def memory_info(self) -> tuple[int, int]:
        """(free, total) bytes of memory for arrays; ``free`` is the largest piece that one array can have."""
        return self.allocator.largest(), self.allocator.end - self.allocator.first

    def close(self) -> None:
        """Free all arrays and the engine; the device cannot be used after that. Closing twice is harmless."""
        with self._lock:
            for array in self.arrays:
                array.free()
            self._variables.free()
            self._end_workers()
            self._runner = None

    def __enter__(self) -> Device:
        self._open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._runner is None:
            return f"Device({self.engine}: closed)"
        count = len(self.arrays)
        return f"Device({self.engine}: {count} array{'s' * (count != 1)}, {self.memory_info[0]:,} bytes free)"

    def _open(self) -> Runner:
        if self._runner is None:
            raise LaunchError("the device is closed: make a new one")
        return self._runner

    # -- code

    def module(self, source: str | Path) -> Module:
        """A ``.cu`` or ``.ptx`` file, a compiled ``.qgpu`` file, a stock kernel by its name, or CUDA C text, which is
        told by its ``__global__``. CompileError if it cannot be read or compiled."""
        if isinstance(source, str) and "__global__" in source:
            return Module(self, Path("kernel.cu"), source)
        return Module(self, resolve(source))

    def kernel(self, source: str | Path, name: str | None = None) -> Kernel:
        """A kernel of a module; see ``module``.

        name: of the kernel; None where there is only one. Raises CompileError, PtxError, UnsupportedError.
        """
        return self.module(source).kernel(name)

    # -- launches

    def launch(
        self,
        code: Code,
        grid: Dim3,
        cta: Dim3,
        values: Sequence[arguments.Argument],
        *,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        check: bool = False,
        shared: int = 0,
        sanitize: bool = False,
    ) -> Launch:
        """Run a compiled kernel with its arguments in order; see ``kernel.Configured``."""
        with self._lock:
            runner = self._open()
            wanted, live, _ = self._wanted(Call(code, grid, cta, tuple(values), shared), check, sanitize)
            return self._taking(live, lambda: execute(runner, wanted, max_tokens, self._progress))

    def launch_many(
        self,
        calls: Sequence[Call],
        *,
        workers: int | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        check: bool = False,
        sanitize: bool = False,
        errors: bool = False,
    ) -> list[Any]:
        """Independent launches, ``kernel[grid, cta].bound(...)`` each, in several processes at a time.

        Every one finds the arrays as they are now, and none sees what another writes; when all have ended, the arrays
        hold what the one launch that wrote to each has left there. workers: processes, one a core if None. The answer
        has a Launch for each call, in their order; where one did not end well, its error is raised when all have ended
        (the first of several), or with ``errors`` stands in its place. A launch that met its limit cannot go on.
        LaunchError where two launches have written to the same array, whose elements then stay as they were.
        """
        with self._lock:
            self._open()
            count = workers_for(self.engine, workers)
            wanted = [self._wanted(call, check, sanitize) for call in calls]
            for request, _, _ in wanted:
                check_launch(request, self.engine)
                may(self.engine, max_tokens, check)
            jobs = [Job(request.launch, max_tokens) for request, _, _ in wanted]
            outcomes = self._workers_of(min(count, max(1, len(jobs)))).run(jobs)
            found: list[Any] = []
            for (request, _, _), outcome in zip(wanted, outcomes, strict=True):
                try:
                    found.append(finish(Finished(self.engine, outcome), request, outcome.tokens))
                except StoppedError as error:
                    found.append(error)
            launches = [finished for one in found if isinstance(finished := getattr(one, "launch", one), Launch)]
            for launch in launches:
                if launch.printed:
                    self._printed(launch.printed)
            self._take_apart(launches, [live for _, live, _ in wanted], [skipped for _, _, skipped in wanted])
        failed = next((one for one in found if isinstance(one, StoppedError)), None)
        if failed is not None and not errors:
            raise failed
        return found

    def _workers_of(self, count: int) -> Workers:
        if self._workers is None or self._workers.count < count:
            self._end_workers()
            self._workers = Workers(self.engine, self.dtype, count)
        return self._workers

    def _end_workers(self) -> None:
        if self._workers is not None:
            self._workers.close()
        self._workers = None

    def _take_apart(
        self, launches: Sequence[Launch], live: Sequence[list[DeviceArray]], skipped: Sequence[DeviceArray | None]
    ) -> None:
        """Every array from the launch that changed it."""
        changed: dict[DeviceArray, list[int]] = {}
        for index, (launch, present) in enumerate(zip(launches, live, strict=True)):
            for array in present:
                if array is not skipped[index] and arrays.differs(array, launch.memory):
                    changed.setdefault(array, []).append(index)
        for array, numbers in changed.items():
            if len(numbers) == 1:
                arrays.take([array], launches[numbers[0]].memory)
        clashes = {array: numbers for array, numbers in changed.items() if len(numbers) > 1}
        if clashes:
            listed = "; ".join(
                f"{array.label} by calls {', '.join(map(str, numbers))}" for array, numbers in clashes.items()
            )
            raise LaunchError(f"launch_many: several launches have written to the same array: {listed}")

    def _wanted(self, call: Call, check: bool, sanitize: bool) -> tuple[Request, list[DeviceArray], DeviceArray | None]:
        """The launch of a call, the arrays that are then in memory, and of these the one that printf writes to."""
        code, extra = call.code, KernelMemory()
        if code.image is not None:
            extra = self._variables.memory_of(code.image, call.cta, call.shared)
        own = self.arrays
        words = list(arguments.words(code.name, code.parameters, call.values, code.program.parameter_words, own))
        for word, address in extra.words.items():
            words[word] = address
        live = sorted([*own, *extra.arrays], key=lambda array: array.address)
        spans = [*((array.address, array.nbytes) for array in live), *extra.spans]
        request = program.Launch(
            program=code.program_for(call.grid, call.cta),
            grid=call.grid,
            cta=call.cta,
            parameters=tuple(words),
            rows=arrays.memory_rows(live),
            allocated=allocation_map(spans),
        )
        places = _places(code, call.values, live)
        sources = {} if code.image is None else code.image.sources
        wanted = Request(
            code.name, request, code.file, places, extra.printed, check, sanitize, extra.zeroed, sources, extra.shared
        )
        return wanted, live, extra.buffer

    def resume(self, launch: Launch, *, max_tokens: int = DEFAULT_MAX_TOKENS, check: bool = False) -> Launch:
        """Go on with a launch that met its limit (``LimitError.launch``), for up to ``max_tokens`` more tokens.

        What the host wrote to arrays since then is not seen. Raises as a launch does.
        """
        with self._lock:
            runner = self._open()
            live = [array for array in self._paused.get(launch, ()) if array.alive]
            before = len(launch.printed)
            return self._taking(live, lambda: resume(runner, launch, max_tokens, check, self._progress), before)

    def activity(self, launch: Launch) -> Activity:
        """What every layer of the model did at every token of a launch: its tokens go through the model once more.

        LaunchError from an engine that does not count; the native one does.
        """
        with self._lock:
            return activity_of(self._open(), launch)

    def _taking(self, live: list[DeviceArray], run: Callable[[], Launch], before: int = 0) -> Launch:
        """Run, then take the arrays out of the machine's memory, however it ended. ``before``: how much of what printf
        wrote has been told."""

        def tell(launch: Launch) -> None:
            if text := launch.printed[before:]:
                self._printed(text)

        try:
            done = run()
        except (StoppedError, LaunchInterrupted) as error:
            if isinstance(error.launch, Launch):
                tell(error.launch)
                arrays.take(live, error.launch.memory)
                if error.launch.paused is not None:
                    self._paused[error.launch] = live
            raise
        tell(done)
        arrays.take(live, done.memory)
        return done


def _places(code: Code, values: Sequence[arguments.Argument], live: Sequence[DeviceArray]) -> list[Place]:
    """The arrays as messages and traces call them: by their own names, else by their parameters'."""
    names = {
        id(value.base): parameter.name
        for parameter, value in zip(code.parameters, values, strict=True)
        if isinstance(value, DeviceArray)
    }
    return [
        Place(
            array.name or names.get(id(array), f"array at 0x{array.address:04x}"),
            array.address,
            array.shape,
            array.dtype.kind == "i",
            array.dtype.itemsize,
            str(array.dtype),
        )
        for array in live
    ]
