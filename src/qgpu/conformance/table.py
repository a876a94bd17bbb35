"""The conformance table: what a row is, and all rows by their names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from qgpu.driver import stock

Array = np.ndarray[Any, Any]
Dim3 = tuple[int, int, int]
Argument = int | Array

KERNELS = Path(__file__).parent / "kernels"
HEADERS = ("ptx.cuh",)
"""What kernels of the table include; part of every source."""

THEMES = ("stock", "instructions", "warps", "meetings", "memory", "control", "algorithms", "library")
"""The modules ``rows_*`` beside this one, each with a list ROWS."""


@dataclass(frozen=True, eq=False)
class Row:
    """A launch of a kernel of the table.

    ``kernel``: the function in ``file``. ``arguments``: arrays go to the device's memory, ints are passed as they are.
    ``shared``: bytes of dynamic shared memory. ``full``: too long for the quick tests.
    """

    name: str
    file: str
    kernel: str
    grid: Dim3
    cta: Dim3
    arguments: tuple[Argument, ...]
    full: bool = False
    shared: int = 0

    @property
    def path(self) -> Path:
        return (stock.folder() if self.file.removesuffix(".cu") in stock.names() else KERNELS) / self.file

    @property
    def arrays(self) -> list[Array]:
        return [argument for argument in self.arguments if isinstance(argument, np.ndarray)]


def row(
    name: str,
    file: str,
    cta: int | Sequence[int],
    *arguments: Argument,
    grid: int | Sequence[int] = 1,
    kernel: str = "",
    full: bool = False,
    shared: int = 0,
) -> Row:
    """A row; the kernel is called as the row, up to its first space, if nothing else is said."""
    return Row(name, f"{file}.cu", kernel or name.split()[0], three(grid), three(cta), arguments, full, shared)


def three(size: int | Sequence[int]) -> Dim3:
    x, y, z = (*((size,) if isinstance(size, int) else size), 1, 1)[:3]
    return x, y, z


@cache
def table() -> dict[str, Row]:
    """Every row by its name, theme after theme."""
    found: dict[str, Row] = {}
    for theme in THEMES:
        for one in import_module(f"qgpu.conformance.rows_{theme}").ROWS:
            assert one.name not in found, f"two rows are called {one.name}"
            found[one.name] = one
    return found


@cache
def source_text(path: Path) -> str:
    """A kernel's file with the headers of the table, as far as it includes them."""
    text = path.read_text(encoding="utf-8")
    return text + "".join((KERNELS / name).read_text(encoding="utf-8") for name in HEADERS if name in text)


def key_of(one: Row) -> str:
    """Changes with all that a row's result depends on."""
    digest = hashlib.sha256(source_text(one.path).encode())
    digest.update(f"{one.kernel} {one.grid} {one.cta}".encode())
    if one.shared:
        digest.update(f" {one.shared} bytes".encode())
    for argument in one.arguments:
        text = f"{argument.dtype}{argument.tolist()}" if isinstance(argument, np.ndarray) else str(argument)
        digest.update(f" {text}".encode())
    return digest.hexdigest()[:16]
