"""Expressions over integers, vectors and matrices: text to a tree, by recursive descent.

    compare := sum (("==" | "!=" | "<" | "<=" | ">" | ">=") sum)?
    sum     := product (("+" | "-") product)*
    product := factor (("*" | "//" | "%" | "@") factor)*
    factor  := "-" factor | "+" factor | power
    power   := atom ("**" factor)?
    atom    := INTEGER | "(" compare ")" | "[" compare ("," compare)* "]" | NAME "(" compare ("," compare)* ")"

These are Python's own precedences. Every node keeps where it stands in the text, so that errors can point at it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from qgpu.errors import EvalError

LOWEST, HIGHEST = -(2**31), 2**31 - 1
DEEPEST = 100
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\w.]*)|(?P<name>[^\W\d]\w*)|(?P<symbol>\*\*|//|[=!<>]=|[-+*%@<>()\[\],])|(?P<other>\S))"
)
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
OPERATORS = "+ - * // % ** @ == != < <= > >="
INSTEAD = {"/": "use // for the quotient rounded down", "=": "use == to compare", "^": "use ** for powers"}

Span = tuple[int, int]


@dataclass(frozen=True)
class Number:
    value: int
    span: Span


@dataclass(frozen=True)
class Rows:
    """``[a, b, ...]``: a vector of numbers or a matrix of vectors."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True)
class Negative:
    operand: Node
    span: Span


@dataclass(frozen=True)
class Binary:
    """``operator`` is one of OPERATORS; ``at`` is where it stands."""

    operator: str
    left: Node
    right: Node
    at: int
    span: Span


@dataclass(frozen=True)
class Applied:
    """``name(a, b, ...)``; ``at`` is where the name stands."""

    name: str
    arguments: tuple[Node, ...]
    at: Span
    span: Span


Node = Number | Rows | Negative | Binary | Applied


def fail(text: str, span: Span, message: str) -> EvalError:
    """An error with the text and a caret under the place; ``span`` is (first, behind the last) character."""
    start, end = min(span[0], len(text)), max(span[1], span[0] + 1)
    line_start = text.rfind("\n", 0, start) + 1
    line = text[line_start:].split("\n")[0].expandtabs(1)
    marks = "^" * max(1, min(end - start, len(line) - (start - line_start)))
    return EvalError(f"{message}\n  {line}\n  {' ' * (start - line_start)}{marks}")


@dataclass(frozen=True)
class _Token:
    text: str
    span: Span


def parse(text: str) -> Node:
    """The tree of an expression. EvalError with a caret for anything that is not one."""
    if not text.strip():
        raise EvalError('the expression is empty: try "[1, 2, 3] @ [4, 5, 6]"')
    parser = _Parser(text)
    node = parser.compare()
    token = parser.peek()
    if token.text in COMPARISONS:
        raise fail(text, token.span, "comparisons do not chain: put the first one in parentheses")
    if token.text:
        raise fail(text, token.span, f"{token.text!r} is not expected here: an operator ({OPERATORS}) or the end is")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.at = 0
        self.depth = 0
        position = 0
        while match := _TOKEN.match(text, position):
            position = match.end()
            found, span = match[match.lastgroup or ""], match.span(match.lastgroup or "")
            if match["other"]:
                known = f"integers, [ ], ( ), functions and {OPERATORS} are"
                raise fail(text, span, f"{found!r} is no part of an expression: {INSTEAD.get(found, known)}")
            self.tokens.append(_Token(found, span))
        self.tokens.append(_Token("", (len(text.rstrip()), len(text.rstrip()) + 1)))

    def peek(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def compare(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise fail(self.text, self.peek().span, f"brackets are nested more than {DEEPEST} deep")
        node = self.sum()
        if self.peek().text in COMPARISONS:
            node = self.binary(node, self.take(), self.sum())
        self.depth -= 1
        return node

    def sum(self) -> Node:
        node = self.product()
        while self.peek().text in ("+", "-"):
            node = self.binary(node, self.take(), self.product())
        return node

    def product(self) -> Node:
        node = self.factor()
        while self.peek().text in ("*", "//", "%", "@"):
            node = self.binary(node, self.take(), self.factor())
        return node

    def binary(self, left: Node, operator: _Token, right: Node) -> Binary:
        return Binary(operator.text, left, right, operator.span[0], (left.span[0], right.span[1]))

    def factor(self) -> Node:
        signs = []
        while self.peek().text in ("-", "+"):
            signs.append(self.take())
            if len(signs) > DEEPEST:
                raise fail(self.text, signs[-1].span, f"there are more than {DEEPEST} signs in a row")
        token = self.take()
        if token.text[:1].isdigit():
            # the sign is the number's own, but not in -2 ** 2
            minus = bool(signs) and signs[-1].text == "-" and self.peek().text != "**"
            node: Node = self.number(token, signs.pop() if minus else None)
        else:
            node = self.atom(token)
        if self.peek().text == "**":
            operator = self.take()
            self.depth += 1
            if self.depth > DEEPEST:
                raise fail(self.text, operator.span, f"powers are nested more than {DEEPEST} deep")
            node = self.binary(node, operator, self.factor())
            self.depth -= 1
        for sign in reversed(signs):
            if sign.text == "-":
                node = Negative(node, (sign.span[0], node.span[1]))
        return node

    def atom(self, token: _Token) -> Node:
        if token.text == "(":
            inner = self.compare()
            return replace(inner, span=(token.span[0], self.expect(")", token).span[1]))
        if token.text == "[":
            return self.rows(token)
        if token.text[:1].isidentifier():
            return self.applied(token)
        raise fail(self.text, token.span, self.missing(token))

    def applied(self, name: _Token) -> Applied:
        opening = self.peek()
        if opening.text != "(":
            raise fail(self.text, name.span, f"{name.text!r} is a function: give it arguments, {name.text}(...)")
        self.take()
        if self.peek().text == ")":
            raise fail(self.text, (name.span[0], self.peek().span[1]), "a function has at least one argument")
        items = [self.compare()]
        while self.peek().text == ",":
            self.take()
            items.append(self.compare())
        closing = self.expect(")", opening)
        return Applied(name.text, tuple(items), name.span, (name.span[0], closing.span[1]))

    def missing(self, token: _Token) -> str:
        what = "a number, a vector [...], a function or a parenthesis"
        if not token.text:
            return f"the expression ends where {what} is expected"
        return f"{token.text!r} is not expected here: {what} is"

    def number(self, token: _Token, minus: _Token | None) -> Number:
        if not token.text.isascii() or not token.text.isdigit():
            kind = "floating point is not there yet: integers only" if "." in token.text else "this is not an integer"
            raise fail(self.text, token.span, kind)
        digits = token.text.lstrip("0")[:11] or "0"  # the eleventh digit is one too many already
        value = -int(digits) if minus else int(digits)
        start = minus.span[0] if minus else token.span[0]
        if not LOWEST <= value <= HIGHEST:
            raise fail(self.text, (start, token.span[1]), f"this does not fit in 32 bits ({LOWEST}..{HIGHEST})")
        return Number(value, (start, token.span[1]))

    def rows(self, opening: _Token) -> Rows:
        if self.peek().text == "]":
            raise fail(self.text, (opening.span[0], self.peek().span[1]), "a vector has at least one element")
        items = [self.compare()]
        while self.peek().text == ",":
            self.take()
            items.append(self.compare())
        closing = self.expect("]", opening)
        return Rows(tuple(items), (opening.span[0], closing.span[1]))

    def expect(self, text: str, opening: _Token) -> _Token:
        token = self.take()
        if token.text == text:
            return token
        if not token.text:
            raise fail(self.text, opening.span, f"this {opening.text!r} is never closed")
        raise fail(self.text, token.span, f"{token.text!r} is not expected here: {text!r} or an operator is")
