"""The stock kernels: where their folder lies, in a checkout and when installed."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from qgpu.errors import CompileError, QgpuError


def folder() -> Path:
    """The folder of the stock kernels; ``qgpu/kernels`` of the package, a link to ``kernels/`` in a checkout."""
    package = Path(str(files("qgpu")))
    for place in (package / "kernels", package.parents[1] / "kernels"):
        if place.is_dir():
            return place
    raise QgpuError(f"{package}: the stock kernels are missing; install qgpu anew")


def names() -> list[str]:
    """The stock kernels, in alphabetical order."""
    return sorted(path.stem for path in folder().glob("*.cu"))


def resolve(path: str | Path) -> Path:
    """``path`` itself, or the stock kernel of that name where there is no such file and the name has no ending.

    CompileError, listing what there is, if there is no stock kernel of that name either.
    """
    found = Path(path)
    if found.exists() or found.suffix or found.name != str(path):
        return found
    if found.name not in names():
        raise CompileError(f"{path}: there is no such file, and no stock kernel of that name: {', '.join(names())}")
    return folder() / f"{found.name}.cu"
