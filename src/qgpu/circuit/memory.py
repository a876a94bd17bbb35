"""Fields of a memory: words that are written to and read from a row together, laid out in its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .ir import CircuitError, Column, Expr, Port, Signal
from .word import Word, same_width

LARGEST_ADDRESS = 7
LARGEST_ROW = 64


@dataclass(frozen=True, eq=False)
class Field:
    """``data``: what a write puts there, as it was ``delay`` (0 to 3) tokens ago. ``select``: the field reads as zero
    unless this bit is 1. ``read``: whether the field is read at all. ``complement``: whether its complement is read as
    well. ``where``: in a gather, a write puts zero into the field unless these are all 1 (free)."""

    name: str
    data: Word
    delay: int = 0
    select: Expr | None = None
    read: bool = True
    complement: bool = False
    where: tuple[Expr, ...] = ()


def check_port(where: str, port: Port) -> None:
    if len(port.address) > LARGEST_ADDRESS:
        raise CircuitError(
            f"{where}: {len(port.address)} address bits; a memory has at most {1 << LARGEST_ADDRESS} rows "
            f"({LARGEST_ADDRESS} bits), use banks"
        )
    for label, bits in (("address", port.address), ("enable", port.enable)):
        for index, bit in enumerate(bits):
            if not bit.is_bit:
                raise CircuitError(f"{where}: {label} bit {index} ({bit!r}) ranges over {bit.lo}..{bit.hi}, not 0..1")


def columns_of(
    where: str,
    fields: Sequence[Field],
    gather: bool,
    into: Mapping[str, Word | Expr] | None,
    signal: Callable[[str], Signal],
) -> tuple[tuple[Column, ...], dict[str, Word]]:
    """The columns, and what is read by field name. ``signal`` makes the signal for a part such as ``value.bit3``."""
    given = dict(into or {})
    numbers = {key: bus for key, bus in given.items() if isinstance(bus, Expr)}
    targets = {key: word for key, word in given.items() if isinstance(word, Word)}
    found: set[str] = set()
    width = sum(field.data.width for field in fields)
    if width > LARGEST_ROW:
        sizes = ", ".join(f"{field.name} {field.data.width}" for field in fields)
        raise CircuitError(f"memory '{where}': {width} bits a row ({sizes}); a row holds at most {LARGEST_ROW}")
    columns: list[Column] = []
    words: dict[str, Word] = {}
    for field in fields:
        if not 0 <= field.delay <= 3:
            raise CircuitError(
                f"memory '{where}', field '{field.name}': a delay of {field.delay} tokens; 0 to 3 are possible"
            )
        if field.select is not None and not field.select.is_bit:
            raise CircuitError(f"memory '{where}', field '{field.name}': select ({field.select!r}) is not a bit (0..1)")
        if field.complement and (gather or not field.read):
            raise CircuitError(f"memory '{where}', field '{field.name}': a complement needs a plain read, not a gather")
        if field.where and not gather:
            raise CircuitError(f"memory '{where}', field '{field.name}': where is for gathers; use a gate before it")
        if not all(bit.is_bit for bit in field.where):
            raise CircuitError(f"memory '{where}', field '{field.name}': where has expressions that are not bits")
        keys = [field.name] * field.read + [f"{field.name}.not"] * field.complement
        for key in keys:
            if key in found:
                raise CircuitError(f"memory '{where}': two fields are called '{key}'")
            found.add(key)
            if key not in numbers:
                words[key] = _read_word(where, key, field.data, targets, signal)
        for i, data in enumerate(field.data):
            out, out_not = (
                signal_of(f"memory '{where}', {key}", numbers.get(key) or words[key][i]) if key in keys else None
                for key in (field.name, f"{field.name}.not")
            )
            weight = 1 << i if field.name in numbers else 1
            columns.append(Column(data, field.delay, out, out_not, field.select, weight, field.where))
        if field.complement and numbers.keys() & set(keys):
            raise CircuitError(f"memory '{where}', field '{field.name}': a field with its complement is no number")
    stray = sorted(given.keys() - found)
    if stray:
        raise CircuitError(f"memory '{where}': no field that is read is called {', '.join(stray)}")
    return tuple(columns), words


def _read_word(
    where: str, key: str, data: Word, into: Mapping[str, Word], signal: Callable[[str], Signal]
) -> Word:
    if key not in into:
        return Word(f"{where}.{key}", tuple(signal(f"{key}.bit{i}").expr for i in range(data.width)))
    same_width(f"memory '{where}'", data, into[key])
    return into[key]


def signal_of(where: str, target: Expr) -> Signal:
    """The one signal that an expression is. CircuitError if it is more than that."""
    if len(target.terms) != 1 or target.const or set(target.terms.values()) != {1}:
        raise CircuitError(f"{where}: {target.short()} is no signal to drive; give a bus, or what a memory reads")
    return next(iter(target.terms))
