"""Where the ``qgpu`` command, and ``python -m qgpu``, begin.

Ctrl-C while Python still loads ends the process at once, without a traceback; from ``main`` on the commands answer it.
"""

import signal

if __name__ == "__main__" or signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from qgpu.cli import main as run  # noqa: E402


def main() -> None:
    """Run the command that the process's arguments spell."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
