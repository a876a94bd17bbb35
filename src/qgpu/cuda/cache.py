"""A small content-addressed store on disk for compiled PTX, safe for several processes at once.

An entry is written to a file of its own beside its final place and renamed over it, so that a reader sees a whole entry
or none. A cache that cannot be written is no error: the result is simply computed again next time.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path


def cache_directory() -> Path | None:
    """Where this user's cache lies: ``QGPU_CACHE_DIR`` if set, else the platform's own place; None if there is none."""
    chosen = os.environ.get("QGPU_CACHE_DIR")
    if chosen:
        return Path(chosen)
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home directory at all
        return None
    return base / "qgpu"


def content_key(*parts: str) -> str:
    """A key for exactly these texts in this order; lengths are hashed too, so that parts cannot run together."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def _entry(key: str, suffix: str) -> Path | None:
    directory = cache_directory()
    return None if directory is None else directory / suffix / f"{key}.{suffix}"


def load(key: str, suffix: str) -> str | None:
    """The text stored under ``key``, or None. Entries that are empty or unreadable count as missing."""
    entry = _entry(key, suffix)
    if entry is None:
        return None
    try:
        return entry.read_text(encoding="utf-8") or None
    except (OSError, UnicodeDecodeError):
        return None


def store(key: str, suffix: str, text: str) -> None:
    """Keeps ``text`` under ``key``; does nothing where the cache cannot be written."""
    entry = _entry(key, suffix)
    if entry is None:
        return
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=entry.parent, prefix=f".{key[:16]}.", suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(name, entry)
    except OSError:
        Path(name).unlink(missing_ok=True)
