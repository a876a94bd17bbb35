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
