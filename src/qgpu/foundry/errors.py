"""What the foundry raises: one error, all faults of a stage in it."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.errors import QgpuError


class FoundryError(QgpuError):
    """A circuit that cannot be cast. ``faults``: every reason found, each one line that says what to do."""

    def __init__(self, circuit: str, stage: str, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        count = f"{len(self.faults)} fault" + ("s" if len(self.faults) != 1 else "")
        super().__init__(f"circuit '{circuit}', {stage}: {count}\n" + "\n".join(f"  - {f}" for f in self.faults))


class NetworkFileError(QgpuError, ValueError):
    """A network file that cannot be read. The text names the file and what is wrong with it."""
