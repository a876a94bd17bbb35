"""Device memory: which bytes belong to which array, and the allocation map that tells the machine so.

Global memory is rows 8 to 1535. The first 64 bytes are nobody's, so that null pointers and small offsets from them
fault; shared and local memory stand above. Behind every array a row is nobody's either, so that an index that is one
too high or too low faults instead of reaching the next array.
"""

from __future__ import annotations

from collections.abc import Iterable

from qgpu.errors import MemoryFullError
from qgpu.isa import tokens

ALIGNMENT = 16  # what a vector of four words needs
GUARD = tokens.ROW_BYTES
FIRST_BYTE = 64
END_BYTE = tokens.SHARED_FIRST_ROW * tokens.ROW_BYTES
MAP_BYTES = 64  # bytes whose bits one row of the allocation map holds


class Allocator:
    """First-fit allocation of ``[first, end)``; ``blocks`` maps addresses to sizes in bytes, both as given out."""

    def __init__(self, first: int = FIRST_BYTE, end: int = END_BYTE) -> None:
        self.first, self.end = first, end
        self.blocks: dict[int, int] = {}

    def allocate(self, size: int, what: str) -> int:
        """The address of ``size`` bytes (at least 1), aligned to 16. MemoryFullError names ``what`` does not fit."""
        place = self.first
        for address in sorted(self.blocks):
            if place + footprint(size) <= address:
                break
            place = address + footprint(self.blocks[address])
        if place + footprint(size) > self.end:
            raise MemoryFullError(
                f"{what} needs {size} bytes of device memory; of its {self.end - self.first} bytes, the largest free "
                f"piece has {self.largest()}: pass smaller arrays, or split the work over several launches"
            )
        self.blocks[place] = size
        return place

    def free(self, address: int) -> None:
        """Give a block back. KeyError for an address that ``allocate`` did not return."""
        del self.blocks[address]

    def _gaps(self) -> Iterable[int]:
        place = self.first
        for address in sorted(self.blocks):
            yield address - place
            place = address + footprint(self.blocks[address])
        yield self.end - place

    def largest(self) -> int:
        """The largest block that could be allocated now, in bytes."""
        return max(0, max(self._gaps()) - GUARD)

    def room(self) -> int:
        """Bytes that the footprints of further blocks can fill, if they are allocated one after the other."""
        return max(self._gaps())


def footprint(size: int) -> int:
    """Bytes that a block of ``size`` bytes takes, alignment and guard included."""
    return -(-(size + GUARD) // ALIGNMENT) * ALIGNMENT


def allocation_map(spans: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Rows of the allocation map, row -> 64 bits, with a bit set for each byte of the (address, size) spans."""
    rows: dict[int, int] = {}
    for address, size in spans:
        end = address + size
        while address < end:
            row, start = divmod(address, MAP_BYTES)
            count = min(MAP_BYTES - start, end - address)
            rows[row] = rows.get(row, 0) | ((1 << count) - 1) << start
            address += count
    return rows
