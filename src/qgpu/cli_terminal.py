"""What people see while they wait: lines, a token counter, its rate and the time left, on standard error, and only if
that is a terminal."""

from __future__ import annotations

import sys
import time

CLEAR = "\r\x1b[K"


class Progress:
    """A context: whatever it shows is gone when it ends."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()
        self._open = False
        self._start, self._last = time.monotonic(), 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def say(self, text: str) -> None:
        """What is being done now."""
        self._show(f"{text} ...")

    def count(self, tokens: int, share: float = 0.0) -> None:
        """How many tokens of a launch have been written so far, and which share of it is done (0 if unknown)."""
        if tokens <= self._last or not self._last:  # a launch begins: what came before it is not its time
            self._start = time.monotonic()
        self._last = tokens
        self._show(status(tokens, share, time.monotonic() - self._start))

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


def status(tokens: int, share: float, seconds: float) -> str:
    """``12,345 tokens, 5,100 tokens/s, 37 %, 0:12 left``, as far as it is known after ``seconds``."""
    parts = [f"{tokens:,} tokens"]
    if seconds >= 0.5:
        parts.append(f"{tokens / seconds:,.0f} tokens/s")
        if 0 < share < 1:
            left = round(seconds * (1 - share) / share)
            hours, minutes = divmod(left // 60, 60)
            clock = f"{hours}:{minutes:02d}:{left % 60:02d}" if hours else f"{minutes}:{left % 60:02d}"
            parts.append(f"{100 * share:.0f} %, {clock} left")
    return ", ".join(parts)
