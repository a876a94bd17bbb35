"""Makes stores into a buffer of a kernel's printf calls; the formats stay with the host, which makes text of it later.

The buffer is all 0 when a launch starts. Its first word counts the bytes of all records, those included that found no
place any more. A record is the number of the call's format, from 1 on, then the words of its values.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from qgpu.cuda.ir import (
    Address,
    Atomic,
    BasicBlock,
    Compute,
    Const,
    Function,
    Guard,
    Instruction,
    Load,
    Operand,
    Print,
    Reg,
    Store,
    Type,
    Variable,
    VariableAddress,
)
from qgpu.cuda.printf import render, values, words_of
from qgpu.cuda.refusals import Refusal, refuse
from qgpu.cuda.translation import Refused

BUFFER = "%printf"
"""The name of the buffer among the module's variables."""
BUFFER_BYTES = 1024
WORD = 4


@dataclass(frozen=True)
class Format:
    """What one printf call of a kernel says. ``words``: of its values."""

    text: str
    pointer_bytes: int
    words: int


def expand_prints(function: Function, file: str = "") -> tuple[Function, tuple[Format, ...]]:
    """The function with its Prints made stores into the variable BUFFER, and their formats by number.

    Raises UnsupportedError listing the calls whose format is no literal.
    """
    formats: list[Format] = []
    refusals: list[Refusal] = []
    texts = {variable.name: variable for variable in function.variables}
    blocks = []
    for block in function.blocks:
        items: list[Instruction] = []
        for item in block.instructions:
            if isinstance(item, Print):
                try:
                    format_ = _format(item, texts)
                except Refused as refused:
                    origin = item.origin
                    line, source = (origin.ptx_line, origin.source) if origin else (0, None)
                    refusals.append(Refusal(function.name, line, source, "printf", str(refused)))
                    continue
                if format_ not in formats:
                    formats.append(format_)
                items += _record(item, formats.index(format_), format_, len(items), block)
            else:
                items.append(item)
        blocks.append(replace(block, instructions=tuple(items)))
    if refusals:
        raise refuse(refusals, function.name, file)
    if not formats:
        return function, ()
    buffer = Variable(BUFFER, "global", BUFFER_BYTES, 8, bytes(BUFFER_BYTES))
    return replace(function, variables=(*function.variables, buffer), blocks=tuple(blocks)), tuple(formats)


def _format(item: Print, variables: dict[str, Variable]) -> Format:
    text = item.format
    variable = variables.get(text.name) if isinstance(text, VariableAddress) else None
    if variable is None or variable.initial is None or variable.references:
        raise Refused("the format of printf must be a literal")
    assert isinstance(text, VariableAddress)
    data, end, _ = variable.initial[text.offset :].partition(b"\0")
    if not end:
        raise Refused("the format of printf has no end")
    words = words_of(data.decode("utf-8", "replace"), item.pointer_bytes)
    if (2 + words) * WORD > BUFFER_BYTES:
        raise Refused(f"more values than the {BUFFER_BYTES} bytes of the buffer hold")
    return Format(data.decode("utf-8", "replace"), item.pointer_bytes, words)


def _record(item: Print, number: int, format_: Format, position: int, block: BasicBlock) -> list[Instruction]:
    """place = count; count += size; if there is room: buffer[place ...] = number, values."""
    size = (1 + format_.words) * WORD
    made: list[Instruction] = []
    name = f".print.{block.label}.{position}"
    place, room = Reg(f"{name}.place", Type.B32), Reg(f"{name}.room", Type.PRED)
    buffer = VariableAddress(BUFFER, 0)
    made.append(Atomic("add", place, "global", Address(buffer), WORD, (Const(size, Type.B32),), guard=item.guard))
    most = Const(BUFFER_BYTES - WORD - size, Type.B32)
    made.append(Compute("le.u", Type.B32, room, (place, most)))
    if item.guard is not None:
        own: Operand = item.guard.register
        if item.guard.negated:
            made.append(Compute("not", Type.PRED, Reg(f"{name}.own", Type.PRED), (own,)))
            own = Reg(f"{name}.own", Type.PRED)
        made.append(Compute("and", Type.PRED, room, (room, own)))
    stored: list[tuple[int, Operand]] = [(WORD, Const(1 + number, Type.B32))]
    taken = values(format_.text, item.pointer_bytes)
    for offset in sorted({at for value in taken for at in range(value.offset, value.offset + value.size, WORD)}):
        word = Reg(f"{name}.{offset}", Type.B32)
        made.append(Load((word,), "generic", Address(item.arguments, offset=offset), WORD, guard=item.guard))
        stored.append((2 * WORD + offset, word))
    for offset, content in stored:
        made.append(Store((content,), "global", Address(buffer, place, 0, offset), WORD, guard=Guard(room)))
    return [replace(step, origin=item.origin) for step in made]


def text_of_buffer(data: bytes, formats: tuple[Format, ...], string_at: Callable[[int], str]) -> tuple[str, int]:
    """What a launch has printed, from the bytes of the buffer, and the bytes of records that found no place in it.

    string_at: the text at an address of the device's memory, for ``%s``.
    """
    (count,) = struct.unpack_from("<I", data)
    texts: list[str] = []
    place = WORD
    while place + WORD <= min(WORD + count, BUFFER_BYTES):
        (number,) = struct.unpack_from("<I", data, place)
        if not 1 <= number <= len(formats):
            break
        format_ = formats[number - 1]
        start, place = place + WORD, place + WORD * (1 + format_.words)
        if place > BUFFER_BYTES:
            break
        texts.append(render(format_.text, data[start:place], format_.pointer_bytes, string_at))
    return "".join(texts), max(0, WORD + count - place)
