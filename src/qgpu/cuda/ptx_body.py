"""Parses the body of one PTX function: scopes, register declarations, labels, instructions and their operands.

Names are resolved here. Registers and labels declared in a nested scope get the scope's number behind an ``@``, so that
inline assembly that is expanded twice does not clash with itself.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qgpu.cuda.ptx import (
    SPECIAL_REGISTERS,
    TYPE_BYTES,
    BranchTargets,
    FloatImmediate,
    Group,
    Guard,
    Immediate,
    Instruction,
    Label,
    Memory,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    SourceLine,
    SpecialRegister,
    Statement,
    Symbol,
    Variable,
    Vector,
)
from qgpu.cuda.ptx_cursor import MAXIMUM_DEPTH, Cursor

MAXIMUM_MODIFIERS = 20
_OWN = str(Path(__file__).parent) + os.sep
BRANCHES = frozenset({"bra", "brx"})
_SPACES = frozenset({".global", ".const", ".shared", ".local", ".param"})


@dataclass
class _Scope:
    """Declarations between one pair of braces. ranges: prefix -> (count, type), from ``.reg .b32 %r<8>``."""

    number: int
    parent: "_Scope | None"
    registers: dict[str, str]
    ranges: dict[str, tuple[int, str]]
    labels: set[str]

    def spelled(self, name: str) -> str:
        return f"{name}@{self.number}" if self.number else name


class Body:
    """The state of parsing one body; ``parse`` reads it, ``finish`` gives the statements."""

    def __init__(
        self, cursor: Cursor, declare: Callable[[Cursor, bool], list[Variable]], registers: Mapping[str, str]
    ) -> None:
        self.cursor = cursor
        self.declare = declare
        self.variables: list[Variable] = []
        self.scope = _Scope(0, None, dict(registers), {}, set())
        self.scopes = 1
        self.location: tuple[int, int, int] | None = None  # file, line, and the line of the .loc
        self.inlined: dict[int, tuple[int, int]] = {}
        self.found: list[tuple[Statement, _Scope, tuple[int, int, int] | None]] = []

    def parse(self) -> None:
        """Reads from the opening brace to the matching closing one."""
        cursor = self.cursor
        cursor.expect("{")
        depth = 1
        while depth:
            if cursor.take("}"):
                depth -= 1
                self.scope = self.scope.parent or self.scope
            elif cursor.take("{"):
                depth += 1
                if depth > MAXIMUM_DEPTH:
                    cursor.fail_at_previous(f"at most {MAXIMUM_DEPTH} nested scopes")
                self.scope = _Scope(self.scopes, self.scope, {}, {}, set())
                self.scopes += 1
            elif cursor.at_kind("directive"):
                self._directive()
            elif cursor.at_kind("word") or cursor.at("@"):
                self._statement()
            elif not cursor.take(";"):
                cursor.fail("an instruction, a label or '}'")

    def finish(self, files: Mapping[int, str], sources: Mapping[str, Sequence[str]],
               callers: Mapping[int, Sequence[tuple[str, int]]]) -> tuple[Statement, ...]:  # fmt: skip
        """The statements, with labels resolved and source lines named. Raises PtxError at an unknown label.

        callers: by the line of a ``.loc``, where its function has been inlined, the innermost call first. A line of our
        own headers stands for that of the user's call.
        """

        def line_of(number: int, line: int, at: int) -> SourceLine | None:
            sites = [(files[number], line), *callers.get(at, ()), *self._inlined_at(at, files)]
            found = next(((file, line) for file, line in sites if not file.startswith(_OWN)), None)
            if found is None:
                return None
            lines = sources.get(found[0], ())
            return SourceLine(*found, lines[found[1] - 1].strip() if found[1] <= len(lines) else "")

        statements: list[Statement] = []
        for statement, scope, location in self.found:
            if isinstance(statement, Label):
                statements.append(replace(statement, name=scope.spelled(statement.name)))
            elif isinstance(statement, BranchTargets):
                targets = tuple(self._label(target, scope, statement.line) for target in statement.targets)
                statements.append(BranchTargets(scope.spelled(statement.name), targets, statement.line))
            else:
                source = None
                if location is not None and location[0] in files:
                    source = line_of(*location)
                operands = statement.operands
                if statement.opcode in BRANCHES:
                    operands = tuple(self._target(operand, scope, statement.line) for operand in operands)
                statements.append(replace(statement, operands=operands, source=source))
        return tuple(statements)

    def _target(self, operand: Operand, scope: _Scope, line: int) -> Operand:
        return Symbol(self._label(operand.name, scope, line)) if isinstance(operand, Symbol) else operand

    def _label(self, name: str, scope: _Scope | None, line: int) -> str:
        while scope is not None:
            if name in scope.labels:
                return scope.spelled(name)
            scope = scope.parent
        self.cursor.error(line, f"there is no label {name} here")

    # ---- Directives ----

    def _directive(self) -> None:
        cursor = self.cursor
        if cursor.take(".reg"):
            self._registers()
        elif cursor.take(".loc"):
            self._loc()
        elif cursor.take(".pragma") or cursor.take(".callprototype") or cursor.take(".calltargets"):
            cursor.skip_statement()
        elif cursor.take(".section"):
            cursor.skip_section()
        elif cursor.token.text in _SPACES:
            self.variables.extend(self.declare(cursor, False))
        else:
            cursor.fail("a directive of a function's body")

    def _registers(self) -> None:
        cursor = self.cursor
        lanes = cursor.take(".v2") or cursor.take(".v4")
        type_name = cursor.expect_kind("directive", "a register type such as .b32").text.removeprefix(".")
        if lanes or (type_name not in TYPE_BYTES and type_name != "pred"):
            cursor.fail_at_previous("a register type such as .b32")
        while True:
            name = cursor.expect_kind("word", "the name of a register").text
            if cursor.take("<"):
                self.scope.ranges[name] = (cursor.integer("a count of registers"), type_name)
                cursor.expect(">")
            else:
                self.scope.registers[name] = type_name
            if not cursor.take(","):
                break
        cursor.expect(";")

    def _loc(self) -> None:
        """``.loc file line column``, perhaps with more after it. Line 0 means "no line of its own": keep the last."""
        cursor = self.cursor
        line = cursor.token.line
        location = (cursor.integer("a file number"), cursor.integer("a line"), line)
        if location[1]:
            self.location = location
        while cursor.token.line == line and not cursor.at_kind("end"):
            if cursor.take("inlined_at"):
                self.inlined[line] = (cursor.integer("a file number"), cursor.integer("a line"))
            else:
                cursor.next()

    def _inlined_at(self, at: int, files: Mapping[int, str]) -> list[tuple[str, int]]:
        number, line = self.inlined.get(at, (0, 0))
        return [(files[number], line)] if number in files else []

    # ---- Statements ----

    def _statement(self) -> None:
        cursor = self.cursor
        token = cursor.token
        guard = self._guard() if cursor.at("@") else None
        word = cursor.expect_kind("word", "an instruction")
        if guard is None and cursor.take(":"):
            self._labelled(word.text, word.line)
            return
        opcode, *modifiers = word.text.split(".", MAXIMUM_MODIFIERS + 1)
        if len(modifiers) > MAXIMUM_MODIFIERS:
            cursor.fail_at_previous("an instruction")
        operands: list[Operand] = []
        while not cursor.at(";"):
            if operands:
                cursor.expect(",", "',' or ';'")
            operands.append(self._operand())
        cursor.expect(";")
        instruction = Instruction(opcode, tuple(modifiers), tuple(operands), guard, token.line, None)
        self.found.append((instruction, self.scope, self.location))

    def _labelled(self, name: str, line: int) -> None:
        cursor = self.cursor
        if cursor.take(".branchtargets"):
            targets = [cursor.expect_kind("word", "a label").text]
            while cursor.take(","):
                targets.append(cursor.expect_kind("word", "a label").text)
            cursor.expect(";")
            self.found.append((BranchTargets(name, tuple(targets), line), self.scope, None))
        elif cursor.take(".callprototype") or cursor.take(".calltargets"):
            cursor.skip_statement()
            return
        else:
            self.found.append((Label(name, line), self.scope, None))
        if name in self.scope.labels:
            cursor.error(line, f"the label {name} is here a second time")
        self.scope.labels.add(name)

    def _guard(self) -> Guard:
        cursor = self.cursor
        cursor.expect("@")
        negated = cursor.take("!")
        register = self._name(cursor.expect_kind("word", "a predicate register").text)
        if not isinstance(register, Register) or register.type != "pred":
            cursor.fail_at_previous("a predicate register")
        return Guard(register, negated)

    # ---- Operands ----

    def _operand(self, depth: int = 0) -> Operand:
        cursor = self.cursor
        if depth > 4:
            cursor.fail("an operand nested less deeply")
        if cursor.take("{"):
            return Vector(self._list("}", depth))
        if cursor.take("("):
            return Group(self._list(")", depth))
        if cursor.take("["):
            return self._memory(depth)
        if cursor.take("!"):
            name = self._name(cursor.expect_kind("word", "a predicate register").text)
            if not isinstance(name, Register):
                cursor.fail_at_previous("a predicate register")
            return Negated(name)
        if cursor.at_kind("float"):
            return FloatImmediate(cursor.next().text)
        if not cursor.at_kind("word"):
            if not (cursor.at_kind("integer") or cursor.token.text in ("-", "+")):
                cursor.fail("an operand")
            return Immediate(cursor.constant())
        first = self._name(cursor.next().text)
        if cursor.take("|"):
            return Pair(first, self._name(cursor.expect_kind("word", "a register").text))
        if isinstance(first, Symbol) and cursor.token.text in ("+", "-"):
            return Symbol(first.name, cursor.offset())
        return first

    def _list(self, close: str, depth: int) -> tuple[Operand, ...]:
        found: list[Operand] = []
        while not self.cursor.take(close):
            if found:
                self.cursor.expect(",", f"',' or {close!r}")
            found.append(self._operand(depth + 1))
        return tuple(found)

    def _memory(self, depth: int) -> Memory:
        cursor = self.cursor
        base = self._name(cursor.next().text) if cursor.at_kind("word") else None
        if base is not None and not isinstance(base, Register | Symbol):
            cursor.fail_at_previous("a register or a variable as the address")
        offset = cursor.offset() if base is not None else cursor.constant()
        extra = []
        while cursor.take(","):
            extra.append(self._operand(depth + 1))
        cursor.expect("]")
        return Memory(base, offset, tuple(extra))

    def _name(self, text: str) -> Register | SpecialRegister | Symbol | Sink:
        """What a word stands for where it stands: the innermost declared register, else a special one, else a symbol.

        Raises PtxError at a ``%name`` that is neither.
        """
        if text == "_":
            return Sink()
        digits = len(text) - len(text.rstrip("0123456789"))
        # Of a range %r<n> the members are %r0 ... %r(n-1); the prefix itself may end in digits.
        scope: _Scope | None = self.scope
        while scope is not None:
            if text in scope.registers:
                return Register(scope.spelled(text), scope.registers[text])
            for cut in range(len(text) - min(digits, 10), len(text)):
                member = text[cut:]
                if text[:cut] in scope.ranges and (member == "0" or member[0] != "0"):
                    count, type_name = scope.ranges[text[:cut]]
                    if int(member) < count:
                        return Register(scope.spelled(text), type_name)
            scope = scope.parent
        if text == "WARP_SZ":
            return SpecialRegister("WARP_SZ")
        if text.startswith("%") and text != "%":
            base = text[1:].split(".")[0]
            if base in SPECIAL_REGISTERS or base.rstrip("0123456789") in ("envreg", "pm"):
                return SpecialRegister(text[1:])
            self.cursor.fail_at_previous("a declared register")
        return Symbol(text)
