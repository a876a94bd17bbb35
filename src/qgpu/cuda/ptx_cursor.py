"""A place in a list of tokens, with the small steps every part of the PTX parser takes, and its one way to complain."""

from collections.abc import Iterable
from typing import NoReturn

from qgpu.cuda.ptx_lexer import Token, integer
from qgpu.errors import PtxError

MAXIMUM_DEPTH = 64
MAXIMUM_SIGNS = 8


class Cursor:
    """Walks over tokens; ``token`` is the one not yet taken, ``previous`` the one taken last.

    The last token has kind "end" and is never passed. Tokens are asked for one at a time, so that text which is no PTX
    costs no more than what stands before its first fault.
    """

    def __init__(self, tokens: Iterable[Token], file: str) -> None:
        self.tokens = iter(tokens)
        self.file = file
        self.token = next(self.tokens)
        self.previous = self.token

    def next(self) -> Token:
        """Takes the current token."""
        self.previous = self.token
        self.token = next(self.tokens, self.token)
        return self.previous

    def at(self, text: str) -> bool:
        return self.token.text == text

    def at_kind(self, kind: str) -> bool:
        return self.token.kind == kind

    def take(self, text: str) -> bool:
        """Takes the current token if it reads ``text``."""
        if self.token.text == text:
            self.next()
            return True
        return False

    def expect(self, text: str, expected: str = "") -> Token:
        if self.token.text != text:
            self.fail(expected or repr(text))
        return self.next()

    def expect_kind(self, kind: str, expected: str) -> Token:
        if self.token.kind != kind:
            self.fail(expected)
        return self.next()

    def fail(self, expected: str) -> NoReturn:
        """Raises PtxError at the current token."""
        raise PtxError(f"{self.file}:{self.token.line}: expected {expected}, found {self.token}")

    def fail_at_previous(self, expected: str) -> NoReturn:
        """Raises PtxError at the token taken last."""
        self.token = self.previous
        self.fail(expected)

    def error(self, line: int, message: str) -> NoReturn:
        """Raises PtxError at a line."""
        raise PtxError(f"{self.file}:{line}: {message}")

    def integer(self, expected: str) -> int:
        """Takes an unsigned integer of at most 64 bits."""
        token = self.expect_kind("integer", expected)
        try:
            value = integer(token.text)
        except ValueError:
            self.fail_at_previous(expected)
        if value >> 64:
            self.fail_at_previous("an integer of at most 64 bits")
        return value

    def constant(self) -> int:
        """Takes an integer with signs before it."""
        sign = 1
        for _ in range(MAXIMUM_SIGNS):
            if self.token.text not in ("-", "+"):
                break
            sign = -sign if self.next().text == "-" else sign
        return sign * self.integer("an integer")

    def offset(self) -> int:
        """Takes ``+ 8`` or ``- 8`` or nothing (then 0)."""
        return self.constant() if self.token.text in ("+", "-") else 0

    def skip_line(self) -> None:
        line = self.token.line
        while self.token.line == line and self.token.kind != "end":
            self.next()

    def skip_statement(self) -> None:
        """Skips to the semicolon and over it."""
        while not self.at(";"):
            if self.at_kind("end"):
                self.fail("';'")
            self.next()
        self.next()

    def skip_group(self) -> None:
        """Skips a parenthesised group."""
        self.expect("(")
        while not self.at(")"):
            if self.at_kind("end"):
                self.fail("')'")
            self.next()
        self.next()

    def skip_section(self) -> None:
        """Skips a debug section: its name, then braces with whatever they hold."""
        self.next()
        self.expect("{")
        depth = 1
        while depth:
            if self.at_kind("end"):
                self.fail("'}' to close the section")
            depth += {"{": 1, "}": -1}.get(self.next().text, 0)
            if depth > MAXIMUM_DEPTH:
                self.fail_at_previous(f"at most {MAXIMUM_DEPTH} nested braces")
