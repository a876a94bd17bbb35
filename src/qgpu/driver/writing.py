"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from qgpu.errors import QgpuError


def write_text(path: Path, text: str) -> None:
    """Write a text file under another name, then rename it; its folder is made if it is not there. QgpuError where that
    cannot be, and then nothing has changed."""
    fresh = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(fresh, 0o666 & ~mask)
        os.replace(fresh, path)
    except OSError as error:
        if fresh:
            Path(fresh).unlink(missing_ok=True)
        raise QgpuError(f"{path}: cannot be written: {error.strerror}") from None
