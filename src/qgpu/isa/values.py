"""How values become DATA tokens: the prefix code of docs/machine.md, "Forms".

A form is recognised by how many DATA follow a marker; the shortest right one is mandatory.
"""

from __future__ import annotations

from collections.abc import Sequence


def signed(value: int, bits: int = 32) -> int:
    """The two's complement reading of the low ``bits`` bits."""
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def fits(word: int) -> bool:
    """Whether a 32-bit word is the sign extension of its low half."""
    return -0x8000 <= signed(word) <= 0x7FFF


def halves(word: int) -> list[int]:
    return [word & 0xFFFF, word >> 16 & 0xFFFF]


def lane_form(words: Sequence[int]) -> tuple[bool, list[int]]:
    """(wide, payloads) of the active lanes' 32-bit words, lowest lane first; 1 to 4 of them.

    ``wide`` says that the payloads follow VALW; otherwise they follow the EXEC itself or VAL.
    """
    k = len(words)
    same = all(word == words[0] for word in words)
    narrow = all(fits(word) for word in words)
    if same and narrow:
        return False, [words[0] & 0xFFFF]
    if same and k != 2:
        return False, halves(words[0])
    if narrow:
        return False, [word & 0xFFFF for word in words]
    return k > 2, [half for word in words for half in halves(word)]


def lane_values(count: int, payloads: Sequence[int], wide: bool) -> list[int] | None:
    """The 32-bit words of ``count`` lanes in the DATA after EXEC, VAL or VALW (``wide``); None if unfinished."""
    p = list(payloads)
    extended = [signed(payload, 16) & 0xFFFFFFFF for payload in p]
    paired = [p[i] | p[i + 1] << 16 for i in range(0, len(p) - 1, 2)]
    if wide:
        return paired if len(p) == 2 * count else None
    if len(p) == 1:
        return extended * count
    if len(p) == 2 and count != 2:
        return paired * count
    if len(p) == 4 and count == 2:
        return paired
    return extended if len(p) == count else None


def row_form(low: int, high: int) -> list[int]:
    """Payloads of a 64-bit memory row given as its two 32-bit words."""
    if fits(high):
        if fits(low):
            return [low & 0xFFFF] if high == 0 else [low & 0xFFFF, high & 0xFFFF]
        return [*halves(low), high & 0xFFFF]
    return [*halves(low), *halves(high)]


def row_of(payloads: Sequence[int]) -> tuple[int, int]:
    """The two words that 1 to 4 payloads after MEM stand for."""
    p = [*payloads]
    if len(p) == 1:
        return signed(p[0], 16) & 0xFFFFFFFF, 0
    if len(p) == 2:
        return signed(p[0], 16) & 0xFFFFFFFF, signed(p[1], 16) & 0xFFFFFFFF
    return p[0] | p[1] << 16, (signed(p[2], 16) & 0xFFFFFFFF) if len(p) == 3 else p[2] | p[3] << 16


def cta_form(x: int, y: int, z: int) -> list[int]:
    """Payloads of a CTA index: x; x, y; x, y, z; or x low, y, z, x high."""
    if x > 0xFFFF:
        return [x & 0xFFFF, y, z, x >> 16]
    return [x, y, z] if z else [x, y] if y else [x]


def cta_of(payloads: Sequence[int]) -> tuple[int, int, int]:
    """The CTA index that 1 to 4 payloads after CTA stand for."""
    x, y, z, high = (*payloads, 0, 0, 0, 0)[:4]
    return x | high << 16, y, z
