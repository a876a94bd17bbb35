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
from qgpu.driver.kernel import Kernel, Module
from qgpu.driver.kernel_memory import KernelMemory, Variables
from qgpu.driver.launch import DEFAULT_MAX_TOKENS, Launch, Progress, Request, execute, resume, silent
from qgpu.driver.memory import Allocator, allocation_map
from qgpu.driver.recording import activity_of
from qgpu.driver.runners import Runner, Say, open_runner
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
    (the usual one), "cuda", "mps".

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
    ) -> None:
        self._lock = threading.RLock()
        self._runner: Runner | None = open_runner(engine, dtype, say, device)
        self._progress, self._printed = progress, printed
        self.engine = engine
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
            extra = KernelMemory()
            if code.image is not None:
                extra = self._variables.memory_of(code.image, cta, shared)
            own = self.arrays
            words = list(arguments.words(code.name, code.parameters, values, code.program.parameter_words, own))
            for word, address in extra.words.items():
                words[word] = address
            live = sorted([*own, *extra.arrays], key=lambda array: array.address)
            spans = [*((array.address, array.nbytes) for array in live), *extra.spans]
            request = program.Launch(
                program=code.program_for(grid, cta),
                grid=grid,
                cta=cta,
                parameters=tuple(words),
                rows=arrays.memory_rows(live),
                allocated=allocation_map(spans),
            )
            places = _places(code, values, live)
            sources = {} if code.image is None else code.image.sources
            wanted = Request(
                code.name, request, code.file, places, extra.printed, check, sanitize, extra.zeroed, sources,
                extra.shared,
            )  # fmt: skip
            return self._taking(live, lambda: execute(runner, wanted, max_tokens, self._progress))

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
