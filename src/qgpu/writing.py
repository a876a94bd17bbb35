"""Files that are there whole or not at all. A leaf module, as ``errors`` is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from qgpu.errors import QgpuError


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write a text file, given whole or in pieces, under another name, then rename it; its folder is made if it is not
    there. QgpuError where that cannot be, and then nothing has changed."""
    fresh = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines([text] if isinstance(text, str) else text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(fresh, 0o666 & ~mask)
        os.replace(fresh, path)
    except OSError as error:
        raise QgpuError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if fresh:
            Path(fresh).unlink(missing_ok=True)  # there is none after the rename
