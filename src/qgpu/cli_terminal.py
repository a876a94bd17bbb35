"""What people see while they wait: lines and a token counter on standard error, and only if that is a terminal."""

from __future__ import annotations

import sys

CLEAR = "\r\x1b[K"


class Progress:
    """A context: whatever it shows is gone when it ends."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()
        self._open = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def say(self, text: str) -> None:
        """What is being done now."""
        self._show(f"{text} ...")

    def count(self, tokens: int) -> None:
        """How many tokens have been written so far."""
        self._show(f"{tokens:,} tokens")

    def end(self) -> None:
        """Clear the line."""
        if self._open:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
            self._open = False

    def _show(self, text: str) -> None:
        if self._shows:
            sys.stderr.write(CLEAR + text)
            sys.stderr.flush()
            self._open = True
