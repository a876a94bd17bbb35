"""Files that are there whole or not at all. A leaf module, as ``errors`` is."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from qgpu.errors import QgpuError


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write a text file, given whole or in pieces, under another name, then rename it; its folder is made if it is not
    there. A link stays one: what it leads to is written. What is no regular file (a device, a pipe) is written as it
    stands. QgpuError where that cannot be, and then no regular file has changed."""
    pieces = [text] if isinstance(text, str) else text
    fresh = ""
    try:
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            with open(target, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces)
            return
        handle, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
        os.chmod(fresh, _new_mode() if mode is None else stat.S_IMODE(mode))
        os.replace(fresh, target)
    except OSError as error:
        raise QgpuError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if fresh:
            Path(fresh).unlink(missing_ok=True)  # there is none after the rename


def _mode(path: Path) -> int | None:
    """What a file is and who may do what with it; None if there is none."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _new_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
