"""Splits PTX text into tokens with their lines. One regular expression, one pass, linear in the text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qgpu.errors import PtxError

SHOWN = 60
"""How many characters of a token a message shows."""


@dataclass(frozen=True, slots=True)
class Token:
    """kind: "word" (also opcodes with their modifiers), "directive" (``.reg``), "integer", "float", "string",
    "end" or the punctuation character itself."""

    kind: str
    text: str
    line: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the file"
        return repr(self.text if len(self.text) <= SHOWN else f"{self.text[:SHOWN]}...")


_PATTERN = re.compile(
    r"""
      (?P<space>[ \t\r\f\v]+)
    | (?P<newline>\n)
    | (?P<comment>//[^\n]*)
    | (?P<long>/\*)
    | (?P<float>0[fF][0-9a-fA-F]{8}(?!\w) | 0[dD][0-9a-fA-F]{16}(?!\w)
              | [0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?(?!\w) | [0-9]+[eE][+-]?[0-9]+(?!\w))
    | (?P<integer>0[xX][0-9a-fA-F]+U?(?!\w) | 0[bB][01]+U?(?!\w) | [0-9]+U?(?!\w))
    | (?P<word>[A-Za-z_$%][A-Za-z0-9_$]*(?:\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+){0,4}){0,32})
    | (?P<directive>\.[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z0-9_]+){0,4})
    | (?P<string>"[^"\n]*")
    | (?P<punctuation>[][{}()<>,;:@!+\-|=*])
    """,
    re.VERBOSE,
)


def tokens_of(text: str, file: str) -> Iterator[Token]:
    """The tokens of ``text`` one by one, closed by one of kind "end".

    Raises PtxError, naming ``file`` and the line, at a character that starts no token and at an unclosed comment.
    """
    position, line = 0, 1
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            raise PtxError(f"{file}:{line}: expected PTX, found the character {text[position]!r}")
        position = match.end()
        kind = match.lastgroup or ""
        if kind == "newline":
            line += 1
        elif kind == "long":
            end = text.find("*/", position)
            if end < 0:
                raise PtxError(f"{file}:{line}: expected */ to close the comment that opens here")
            line += text.count("\n", position, end)
            position = end + 2
        elif kind not in ("space", "comment"):
            yield Token(match[0] if kind == "punctuation" else kind, match[0], line)
    yield Token("end", "", line)


def integer(text: str) -> int:
    """Value of an integer token; a leading 0 is octal, as in C. Raises ValueError at digits 8 and 9 in octal."""
    digits = text.rstrip("U")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    if digits[:2] in ("0b", "0B"):
        return int(digits, 2)
    return int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)
