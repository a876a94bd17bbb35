"""What runs a launch: an engine over the cast network, or the interpreter in its place.

A runner is fed a prompt, writes tokens, and lets its memory be read. It computes nothing on its own: that is the
engine's, and so the model's, part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from qgpu.errors import LaunchError
from qgpu.isa import tokens
from qgpu.isa.interpreter import Interpreter

Array = np.ndarray[Any, Any]
Say = Callable[[str], None]
"""Takes a line about what goes on, for people who wait."""


class Runner(Protocol):
    """``name``: the engine's. ``chunk``: how many tokens are written at once at least."""

    name: str
    chunk: int

    def reset(self) -> None:
        """Back to the empty sequence."""
        ...

    def feed(self, ids: Sequence[int]) -> None:
        """Append the host's tokens."""
        ...

    def generate(self, limit: int, stops: Collection[int]) -> list[int]:
        """Up to ``limit`` tokens of the machine's own, ending after one of ``stops``."""
        ...

    def memory(self) -> Array:
        """All of the machine's memory as it stands, uint32 [4096]."""
        ...

    def snapshot(self) -> object:
        """Where the sequence stands, for ``restore``."""
        ...

    def restore(self, snapshot: object) -> None:
        """Back to where ``snapshot`` was taken, any number of times."""
        ...


class InterpreterRunner:
    """The executable specification as an engine: exact and quick to start, but no weights are in it."""

    name = "interpreter"
    chunk = 1

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._machine = Interpreter()

    def feed(self, ids: Sequence[int]) -> None:
        self._machine.feed(ids)

    def generate(self, limit: int, stops: Collection[int]) -> list[int]:
        written: list[int] = []
        while len(written) < limit and (token := self._machine.next()) is not None:
            written.append(token)
            self._machine.feed([token])
            if token in stops:
                break
        return written

    def memory(self) -> Array:
        return words_of(self._machine.state.memory)

    def snapshot(self) -> object:
        return self._machine.snapshot()

    def restore(self, snapshot: object) -> None:
        assert isinstance(snapshot, Interpreter)
        self._machine = snapshot.snapshot()


def words_of(rows: dict[int, tuple[int, int]]) -> Array:
    """Memory rows as uint32 [4096]; rows that were never written are zero."""
    memory = np.zeros((tokens.ROWS, 2), np.uint32)
    for row, words in rows.items():
        memory[row] = words
    return memory.reshape(-1)


def _interpreter(dtype: str, say: Say, device: str) -> Runner:
    return InterpreterRunner()


def _native(dtype: str, say: Say, device: str) -> Runner:
    from qgpu.driver.network_runner import native

    return native(dtype, say)


def _transformers(dtype: str, say: Say, device: str) -> Runner:
    from qgpu.driver.network_runner import transformers

    return transformers(dtype, say, device)


def _verified(dtype: str, say: Say, device: str) -> Runner:
    from qgpu.driver.network_runner import verified

    return verified(dtype, say, device)


ENGINES: dict[str, tuple[Callable[[str, Say, str], Runner], tuple[str, ...]]] = {
    "native": (_native, ("bfloat16", "float32")),
    "transformers": (_transformers, ("bfloat16", "float32")),
    "verified": (_verified, ("bfloat16", "float32")),
    "interpreter": (_interpreter, ()),
}
"""Name -> (what opens it, the types of activations it can run with, its usual one first)."""


@dataclass(frozen=True)
class Server:
    """Where an OpenAI-compatible server is: ``url`` up to and with ``/v1``; ``model``: its name there, None for the
    first that the server lists; ``first_id``: the id of the machine's DATA 0 in that model: the rows of the base's
    embedding (248320 in every Qwen3.5), 0 in a bare model."""

    url: str
    model: str | None = None
    first_id: int = 248320
    key: str | None = None


def open_runner(
    engine: str, dtype: str | None, say: Say = lambda text: None, device: str | None = None,
    server: Server | None = None,
) -> Runner:  # fmt: skip
    """The runner of that name. device: what torch runs on, for the transformers engine. server: for the openai engine.
    LaunchError for a name, dtype or device there is not, QgpuError for a server that does not answer."""
    if (engine == "openai") != (server is not None):
        raise LaunchError("the openai engine, and no other, needs the url of a server: url=\"http://host:8000/v1\"")
    if server is not None and (dtype or device):
        raise LaunchError("dtype and device of the openai engine are the server's: start it with others")
    if server is not None:
        from qgpu.driver.openai_runner import OpenAIRunner

        return OpenAIRunner(server)
    if engine not in ENGINES:
        raise LaunchError(f"there is no engine {engine!r}; there are: {', '.join(ENGINES)}")
    opener, dtypes = ENGINES[engine]
    if dtype is not None and dtype not in dtypes:
        known = f"has the types {', '.join(dtypes)}" if dtypes else "works on integers and has no dtype"
        raise LaunchError(f"dtype {dtype!r}: the {engine} engine {known}")
    if device not in (None, "cpu") and engine not in ("transformers", "verified"):
        raise LaunchError(f"device {device!r}: the {engine} engine runs on the CPU; transformers takes a device")
    return opener(dtype or (dtypes or ("",))[0], say, device or "cpu")
