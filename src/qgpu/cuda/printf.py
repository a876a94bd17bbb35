"""``printf`` of a kernel: which values a format takes, where they lie, and the text they make.

Values lie one after the other as in CUDA's ``vprintf``: integers of 4 or 8 bytes, doubles of 8, pointers and ``long``
of the module's pointer size, each aligned to its own size.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?"
                         r"(?P<length>hh|ll|[hljzt])?(?P<kind>[diouxXcspfFeEgGaA%])")  # fmt: skip
_UNSIGNED = frozenset("ouxX")
_FLOATS = frozenset("fFeEgGaA")
_INTEGER_BYTES = {"hh": 1, "h": 2, "": 4, "l": 0, "ll": 8, "j": 8, "z": 0, "t": 0}  # 0: the pointer size
MAXIMUM_WIDTH = 10_000
"""Of a width or precision; a conversion with a greater one (garbled, most likely) is shown as it is written."""


@dataclass(frozen=True)
class Value:
    """A value that a format takes: ``size`` bytes at ``offset`` of the values."""

    offset: int
    size: int


def values(text: str, pointer_bytes: int) -> tuple[Value, ...]:
    """The values that a format takes, in order."""
    found: list[Value] = []
    end = 0
    for match in _CONVERSION.finditer(text):
        sizes = [4 for star in (match["width"], match["precision"]) if star == "*"]
        if match["kind"] != "%":
            sizes.append(_size(match, pointer_bytes))
        for size in sizes:
            offset = -(-end // size) * size
            found.append(Value(offset, size))
            end = offset + size
    return tuple(found)


def _size(match: re.Match[str], pointer_bytes: int) -> int:
    if match["kind"] in _FLOATS:
        return 8
    if match["kind"] in "sp":
        return pointer_bytes
    if match["kind"] == "c":
        return 4
    return max(_INTEGER_BYTES[match["length"] or ""] or pointer_bytes, 4)


def words_of(text: str, pointer_bytes: int) -> int:
    """How many 32-bit words the values of a format take."""
    return max((-(-(value.offset + value.size) // 4) for value in values(text, pointer_bytes)), default=0)


def render(text: str, data: bytes, pointer_bytes: int, string_at: Callable[[int], str]) -> str:
    """The text that a format makes of its values. ``string_at`` reads the text at an address of the device."""
    places = iter(values(text, pointer_bytes))

    def take(signed: bool = True) -> int:
        value = next(places)
        return int.from_bytes(data[value.offset : value.offset + value.size], "little", signed=signed)

    def one(match: re.Match[str]) -> str:
        if match["kind"] == "%":
            return "%"
        flags, width, precision = match["flags"], match["width"], match["precision"]
        if width == "*":
            number = take()
            flags, width = (flags + "-", str(-number)) if number < 0 else (flags, str(number))
        if precision == "*":
            number = take()
            precision = None if number < 0 else str(number)
        places_of = int(width or 0), None if precision is None else int(precision or 0)
        if max(places_of[0], places_of[1] or 0) > MAXIMUM_WIDTH:
            return match[0]
        number = take(match["kind"] not in _UNSIGNED)
        if match["kind"] == "s":
            return _padded(flags, places_of[0], string_at(number)[: places_of[1]])
        return _converted(match, flags, *places_of, number)

    return _CONVERSION.sub(one, text)


def _padded(flags: str, width: int, text: str) -> str:
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _converted(match: re.Match[str], flags: str, width: int, precision: int | None, number: int) -> str:
    """One conversion of a number, which is signed where the conversion is."""
    kind = match["kind"]
    if kind == "c":
        return _padded(flags, width, chr(number & 0xFF))
    if kind == "p":
        return _padded(flags, width, hex(number))
    point = "" if precision is None else f".{precision}"
    if kind in _FLOATS:
        real = struct.unpack("<d", (number & (1 << 64) - 1).to_bytes(8, "little"))[0]
        if kind in "aA":
            return _padded(flags, width, real.hex().upper() if kind == "A" else real.hex())
        return f"%{flags}{width or ''}{point}{kind}" % real
    bits = 8 * (_INTEGER_BYTES[match["length"] or ""] or 8)
    if bits < 32:
        number &= (1 << bits) - 1
        number -= 0 if kind in _UNSIGNED or not number >> (bits - 1) else 1 << bits
    if precision is not None:
        flags = flags.replace("0", "")
    if kind in _UNSIGNED:
        flags = flags.replace("+", "").replace(" ", "")
    if kind == "o" and "#" in flags:
        return _padded(flags, width, f"0{number:o}")
    return f"%{flags}{width or ''}{point}{'d' if kind in 'diu' else kind}" % number
