"""What the foundry raises: one error, all faults of a stage in it (the text shows the first of a long list)."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu.errors import QgpuError

SHOWN = 40


class FoundryError(QgpuError):
    """A circuit that cannot be cast. ``faults``: every reason found, each one line that says what to do."""

    def __init__(self, circuit: str, stage: str, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        count = f"{len(self.faults)} fault" + ("s" if len(self.faults) != 1 else "")
        lines = [f"  - {fault}" for fault in self.faults[:SHOWN]]
        if len(self.faults) > SHOWN:
            lines.append(f"  ... and {len(self.faults) - SHOWN} more")
        super().__init__(f"circuit '{circuit}', {stage}: {count}\n" + "\n".join(lines))


class TooFarOff(FoundryError):
    """Sums or reads that no form keeps exact. ``signals``: those that are too far off, by number."""

    def __init__(self, circuit: str, faults: Sequence[str], signals: frozenset[int]) -> None:
        super().__init__(circuit, "lowering", faults)
        self.signals = signals


class NetworkFileError(QgpuError, ValueError):
    """A network file that cannot be read. The text names the file and what is wrong with it."""
