"""Text to `ptx.Module`: a recursive-descent parser over the tokens of `ptx_lexer`, linear in the text.

It accepts what clang, nvcc and NVRTC write, debug sections and pragmas included, and raises one PtxError naming file,
line and what was expected at the first thing that is no PTX. Function bodies are `ptx_body`'s.
"""

import os
import re
from collections.abc import Mapping, Sequence

from qgpu.cuda.ptx import (
    TYPE_BYTES,
    Function,
    Module,
    Parameter,
    Symbol,
    Variable,
)
from qgpu.cuda.ptx_body import Body
from qgpu.cuda.ptx_cursor import MAXIMUM_DEPTH, Cursor
from qgpu.cuda.ptx_lexer import tokens_of

LINKAGE = frozenset({".extern", ".visible", ".weak", ".common"})
SPACES = frozenset({".global", ".const", ".shared", ".local", ".tex", ".param"})
LIMITS = frozenset(
    {".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".maxnctapersm", ".maxclusterrank", ".reqnctapercluster",
     ".explicitcluster", ".noreturn", ".abi_preserve", ".abi_preserve_control"}
)  # fmt: skip
MAXIMUM_BYTES = 1 << 32
MAXIMUM_ALIGNMENT = 1 << 16

_CALL = re.compile(r"@\[ (.+?):([0-9]{1,9}):[0-9]+ ")


def parse_ptx(text: str, file: str, sources: Mapping[str, str] | None = None) -> Module:
    """The syntax tree of a PTX file; ``file`` is its name in messages. Raises PtxError.

    sources: texts of the user's files by name, for messages that show a line of them.
    """
    lines = {os.path.normpath(name): source.splitlines() for name, source in (sources or {}).items()}
    return _Parser(Cursor(tokens_of(text, file), file), lines, _callers(text)).module()


def _callers(text: str) -> dict[int, list[tuple[str, int]]]:
    """By the line of a ``.loc`` what clang says behind it of the calls that its function was inlined for, the innermost
    first: `// ./math.cuh:2:10 @[ kernel.cu:4:11 ]`. PTX itself has no way to say so before version 7.2."""
    found = {}
    if "@[ " in text:
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith(".loc") and (calls := _CALL.findall(line)):
                found[number] = [(os.path.normpath(file), int(at)) for file, at in calls]
    return found


class _Parser:
    def __init__(self, cursor: Cursor, sources: Mapping[str, Sequence[str]],
                 callers: Mapping[int, Sequence[tuple[str, int]]]) -> None:  # fmt: skip
        self.cursor = cursor
        self.callers = callers
        self.sources = sources
        # .file may follow the code that names it, so lines are resolved after the last token.
        self.files: dict[int, str] = {}
        self.variables: list[Variable] = []
        self.functions: list[Function] = []
        self.bodies: list[tuple[Function, Body]] = []

    def module(self) -> Module:
        cursor = self.cursor
        version, address_size = "", 0
        target: tuple[str, ...] = ()
        if not cursor.at(".version"):
            cursor.fail("the directive .version, with which every PTX file opens")
        while not cursor.at_kind("end"):
            if cursor.take(".version"):
                version = cursor.expect_kind("float", "a version such as 7.0").text
            elif cursor.take(".target"):
                target = tuple(self._words())
            elif cursor.take(".address_size"):
                address_size = cursor.integer("32 or 64")
                if address_size not in (32, 64):
                    cursor.fail_at_previous("32 or 64 after .address_size")
            elif cursor.take(".file"):
                self._file()
            elif cursor.take(".section"):
                cursor.skip_section()
            elif cursor.take(".pragma"):
                cursor.skip_statement()
            elif cursor.take(".alias"):
                cursor.skip_statement()
            elif cursor.take("@"):  # @@DWARF lines of old compilers
                cursor.expect("@", "@@DWARF")
                cursor.skip_line()
            else:
                self._declaration()
        functions = []
        for function, body in self.bodies:
            statements = body.finish(self.files, self.sources, self.callers)
            functions.append(
                Function(
                    function.name, function.entry, function.parameters, function.returns, tuple(body.variables),
                    statements, function.line, function.limits,
                )
            )  # fmt: skip
        return Module(
            cursor.file, version, target, address_size or 32, tuple(self.variables), (*self.functions, *functions)
        )

    def _words(self) -> list[str]:
        words = [self.cursor.expect_kind("word", "a name").text]
        while self.cursor.take(","):
            words.append(self.cursor.expect_kind("word", "a name").text)
        return words

    def _file(self) -> None:
        number = self.cursor.integer("a file number")
        name = self.cursor.expect_kind("string", "a file name in quotes").text[1:-1]
        self.files[number] = os.path.normpath(name)
        while self.cursor.take(","):  # time stamp and size
            self.cursor.integer("a number")

    def _declaration(self) -> None:
        """A variable, kernel or function at module level."""
        cursor = self.cursor
        extern = False
        while cursor.token.text in LINKAGE:
            extern = extern or cursor.token.text in (".extern", ".common")
            cursor.next()
        if cursor.take(".entry"):
            self._function(entry=True)
        elif cursor.take(".func"):
            self._function(entry=False)
        elif cursor.token.text in SPACES:
            self.variables.extend(variables(cursor, extern))
        else:
            cursor.fail("a variable, .entry, .func or another directive")

    def _function(self, *, entry: bool) -> None:
        cursor = self.cursor
        line = cursor.token.line
        if not entry:
            while cursor.take(".attribute"):
                cursor.skip_group()
        returns = self._parameters() if cursor.at("(") else ()
        name = cursor.expect_kind("word", "the name of a function").text
        parameters = self._parameters() if cursor.at("(") else ()
        limits: dict[str, tuple[int, ...]] = {}
        while not (cursor.at("{") or cursor.at(";")):
            if cursor.token.text in LIMITS:
                limit = cursor.next().text.removeprefix(".")
                numbers = [cursor.integer("a number")] if cursor.at_kind("integer") else []
                while cursor.take(","):
                    numbers.append(cursor.integer("a number"))
                limits[limit] = tuple(numbers)
            elif cursor.take(".pragma"):
                cursor.skip_statement()
            else:
                cursor.fail("{ to open the function's body")
        head = Function(name, entry, parameters, returns, (), None, line, limits)
        if cursor.take(";"):
            self.functions.append(head)
            return
        if any(other.name == name for other, _ in self.bodies):
            cursor.error(line, f"the function {name} is here a second time")
        registers = {p.name: p.type for p in (*returns, *parameters) if p.register}
        body = Body(cursor, variables, registers)
        body.parse()
        self.bodies.append((head, body))

    def _parameters(self) -> tuple[Parameter, ...]:
        cursor = self.cursor
        cursor.expect("(")
        found: list[Parameter] = []
        while not cursor.at(")"):
            if found:
                cursor.expect(",")
            found.append(self._parameter())
        cursor.expect(")")
        return tuple(found)

    def _parameter(self) -> Parameter:
        cursor = self.cursor
        line = cursor.token.line
        register = cursor.take(".reg")
        if not register:
            cursor.expect(".param", "a parameter that starts with .param or .reg")
        type_name, align, pointer = "", 0, False
        while cursor.at_kind("directive"):
            directive = cursor.next().text.removeprefix(".")
            if directive == "align":
                alignment = _alignment(cursor)
                # After .ptr, .align tells of what is pointed at.
                align = align if pointer else alignment
            elif directive == "ptr":
                pointer = True
            elif directive in TYPE_BYTES or directive == "pred":
                type_name = directive
            elif not (pointer and f".{directive}" in SPACES) and directive not in ("texref", "samplerref", "surfref"):
                cursor.fail_at_previous("a type such as .u32")
        if not type_name and not cursor.previous.text.endswith("ref"):
            cursor.fail("a type such as .u32")
        name = cursor.expect_kind("word", "the name of a parameter").text
        size = TYPE_BYTES.get(type_name, 0)
        align = align or size
        if cursor.take("["):
            size *= 0 if cursor.at("]") else cursor.integer("a size")
            cursor.expect("]")
        return Parameter(name, type_name, size, align, pointer, line, register)


def _alignment(cursor: Cursor) -> int:
    found = cursor.integer("an alignment")
    if found.bit_count() != 1 or found > MAXIMUM_ALIGNMENT:
        cursor.fail_at_previous("an alignment, a power of two")
    return found


def variables(cursor: Cursor, extern: bool) -> list[Variable]:
    """The variables of one declaration, from its state space on to the semicolon."""
    space = cursor.next().text.removeprefix(".")
    type_name, align, lanes = "", 0, 1
    while cursor.at_kind("directive"):
        directive = cursor.next().text.removeprefix(".")
        if directive == "align":
            align = _alignment(cursor)
        elif directive in ("v2", "v4", "v8"):
            lanes = int(directive[1:])
        elif directive in TYPE_BYTES or directive in ("pred", "texref", "samplerref", "surfref"):
            type_name = directive
        elif directive == "attribute":
            cursor.skip_group()
        else:
            cursor.fail_at_previous("a type such as .b32")
    if not type_name:
        cursor.fail("a type such as .b32")
    found = []
    while True:
        line = cursor.token.line
        name = cursor.expect_kind("word", "the name of a variable").text
        element = TYPE_BYTES.get(type_name, 0)
        size = element * lanes
        unsized = False
        while cursor.take("["):
            if cursor.take("]"):
                unsized = True
                continue
            size *= cursor.integer("a size")
            cursor.expect("]")
            if size > MAXIMUM_BYTES:
                cursor.fail_at_previous(f"an array of at most {MAXIMUM_BYTES} bytes")
        initial = None
        if cursor.take("="):
            values = tuple(_initial_values(cursor))
            initial = (element, values)
            if unsized:
                size, unsized = element * lanes * len(values), False
        found.append(Variable(space, name, type_name, align or element, 0 if unsized else size, line, extern, initial))
        if not cursor.take(","):
            break
    cursor.expect(";")
    return found


def _initial_values(cursor: Cursor) -> list[int | Symbol]:
    """The values of an initialiser, nested braces flattened."""
    values: list[int | Symbol] = []
    depth = 0
    while True:
        if cursor.take("{"):
            depth += 1
            if depth > MAXIMUM_DEPTH:
                cursor.fail_at_previous(f"at most {MAXIMUM_DEPTH} nested braces")
            if cursor.at("}"):
                continue
        if cursor.take("}"):
            depth -= 1
        elif cursor.at_kind("word"):
            values.append(_address(cursor))
        elif not cursor.at("{"):
            values.append(cursor.constant())
        else:
            continue
        while depth and cursor.take("}"):
            depth -= 1
        if depth < 0:
            cursor.fail_at_previous("a value")
        if depth == 0:
            return values
        cursor.expect(",")


def _address(cursor: Cursor) -> Symbol:
    name = cursor.next().text
    generic = name == "generic" and cursor.take("(")
    if generic:
        name = cursor.expect_kind("word", "the name of a variable").text
        cursor.expect(")")
    return Symbol(name, cursor.offset())
