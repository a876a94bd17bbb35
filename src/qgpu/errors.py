"""The errors a user of qgpu can meet: every one prints as one clear message, without a traceback.

A leaf module: it imports nothing of qgpu, so that every stage can raise these. The text of the exception is the whole
message (file, line and remedy included); callers print ``str(error)``.
"""


class QgpuError(Exception):
    """Base of all errors that come from the user's input or surroundings, never from a fault in qgpu itself."""


class CompileError(QgpuError):
    """CUDA C that does not compile, or no compiler to compile it with."""


class PtxError(QgpuError):
    """Text that is not PTX, or PTX that breaks its own rules."""


class UnsupportedError(QgpuError):
    """Well-formed PTX that the machine cannot run: the message lists every refusal of every kernel at once."""


class LaunchError(QgpuError):
    """A launch that cannot begin, or arguments that do not fit the kernel: the message lists every fault."""


class MemoryFullError(LaunchError):
    """An array, or what a kernel needs beside its arrays, that finds no place in the machine's memory."""


class EvalError(QgpuError):
    """An expression that cannot be read or whose shapes do not fit; a caret under it shows where."""


class StoppedError(QgpuError):
    """Base of what ends a launch before HALT. ``launch``: the driver's record of it, its tokens and memory readable."""

    def __init__(self, message: str, launch: object = None) -> None:
        super().__init__(message)
        self.launch = launch


class LimitError(StoppedError):
    """A launch that wrote as many tokens as it was allowed to and did not end."""


class CheckError(StoppedError):
    """A launch whose tokens or memory are not what the interpreter writes. ``position`` counts from the first token
    after the prompt; None where only the memory differs."""

    def __init__(self, message: str, launch: object = None, position: int | None = None) -> None:
        super().__init__(message, launch)
        self.position = position


class LaunchInterrupted(KeyboardInterrupt):
    """Ctrl-C while a launch ran. ``launch``: as far as it went; the arrays hold what it had written by then.

    No QgpuError: who catches those means to go on."""

    def __init__(self, launch: object = None) -> None:
        super().__init__("interrupted")
        self.launch = launch


class SanitizeError(StoppedError):
    """A launch that ended well and did what CUDA leaves undefined. ``reports``: what, each with its place."""

    def __init__(self, message: str, launch: object = None, reports: tuple[object, ...] = ()) -> None:
        super().__init__(message, launch)
        self.reports = reports


class FaultError(StoppedError):
    """A launch that the machine ended with FAULT.

    ``cause``: a row of ``isa.tokens.CAUSES``. ``address``: in bytes, None where the cause has none.
    ``thread``: (x, y, z) in the CTA ``cta``.
    ``file``, ``line``: where in the source the access stands (in the kernel's file, or in one that it includes), 0 if
    unknown. ``block``: the machine block that faulted.
    """

    def __init__(
        self,
        message: str,
        launch: object = None,
        *,
        cause: str,
        address: int | None = None,
        thread: tuple[int, int, int] = (0, 0, 0),
        cta: tuple[int, int, int] = (0, 0, 0),
        file: str = "",
        line: int = 0,
        block: int = 0,
    ) -> None:
        super().__init__(message, launch)
        self.cause, self.address, self.thread, self.cta = cause, address, thread, cta
        self.file, self.line, self.block = file, line, block
