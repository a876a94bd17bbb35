"""Where a base comes from: a local folder, or a repository of the Hugging Face hub, downloaded.

The hub's own library does the work: a connection that breaks is taken up again where it broke, files that are complete
are kept from call to call, sizes are checked, and HF_HOME, HF_TOKEN, HF_HUB_OFFLINE and HF_ENDPOINT mean what they mean
everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qgpu.checkpoint.errors import MergeError

DEFAULT_BASE = "Qwen/Qwen3.5-2B"
PATTERNS = ("*.safetensors", "*.json", "*.jinja", "*.txt", "LICENSE*")
Say = Callable[[str], None]

# the library's error -> what to do about it; the first one that fits
_REMEDIES = (
    ("GatedRepoError", "this repository wants its terms accepted: do that on its page, then set HF_TOKEN"),
    ("RepositoryNotFoundError", "there is no such repository, or HF_TOKEN does not let you see it: check the name"),
    ("RevisionNotFoundError", "there is no such revision: leave --revision out, or name a branch, tag or commit"),
    ("OfflineModeIsEnabled", "HF_HUB_OFFLINE is set and the base is not in the cache: unset it, or name a folder"),
    ("LocalEntryNotFoundError", "the hub cannot be reached and the cache has no whole copy: go online and call again "
     "(whole files are kept), unset HF_HUB_OFFLINE if it is set, or name a local folder"),
    ("IncompleteSnapshotError", "the copy in the cache is not whole: go online and call again, which completes it"),
    ("OSError", "call again, whole files are kept; is there room on the disk of HF_HOME?"),
)  # fmt: skip


def fetch(name: str, revision: str | None = None, say: Say = lambda text: None) -> Path:
    """The folder of a base: ``name`` itself, or the snapshot of the repository ``owner/name`` at ``revision``.

    Raises MergeError, which says what to do, if there is neither or the download fails.
    """
    if Path(name).is_dir():
        if revision is not None:
            raise MergeError(f"{name}: a local folder has no revisions: leave --revision out")
        return Path(name)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise MergeError(f"{name}: there is no such folder (a hub repository is written owner/name)")
    try:
        import huggingface_hub
    except ImportError:
        raise MergeError(f"{name}: downloading needs huggingface_hub: pip install 'qgpu[merge]'") from None
    say(f"downloading {name}")
    try:
        found = huggingface_hub.snapshot_download(
            name, revision=revision, allow_patterns=list(PATTERNS), tqdm_class=_bars()
        )
    except Exception as error:  # the library raises its own, its HTTP client's and OS errors
        raise MergeError(f"{name}: cannot be downloaded: {_reason(error)}") from None
    return Path(found)


def _bars() -> Any:
    """The library's progress bars, where somebody sees them."""
    from huggingface_hub.utils import tqdm

    class Bars(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            if not sys.stderr.isatty():
                options["disable"] = True
            super().__init__(*args, **options)

    return Bars


def _reason(error: Exception) -> str:
    """The library's first line, and the remedy."""
    text = str(error).strip()
    first = text.splitlines()[0].rstrip(".") if text else type(error).__name__
    kinds = {kind.__name__ for kind in type(error).__mro__}
    remedy = next((remedy for kind, remedy in _REMEDIES if kind in kinds), "name a local folder, or look at HF_TOKEN")
    return f"{remedy} ({first})"
