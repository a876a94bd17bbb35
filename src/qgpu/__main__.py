"""Where the ``qgpu`` command, and ``python -m qgpu``, begin.

Ctrl-C while Python still loads ends the process at once, without a traceback; from ``main`` on the commands answer it.
"""

import signal

# where Ctrl-C is to be ignored (a shell's background jobs), it stays so
_ANSWERED = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _ANSWERED:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from qgpu.cli import main as run  # noqa: E402


def main() -> None:
    """Run the command that the process's arguments spell."""
    if _ANSWERED:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
