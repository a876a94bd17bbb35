"""Tool calls as Qwen3.5 writes them: text of an assistant's turn to calls, with the faults told in a form that helps.

    <tool_call>
    <function=NAME>
    <parameter=P>
    VALUE
    </parameter>
    </function>
    </tool_call>

One newline after a parameter's tag and one before its end belong to the form; everything between is the value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
_FUNCTION = re.compile(r"\s*<function=([^<>\s]+)>(.*)</function>\s*", re.S)
_PARAMETER = re.compile(r"\s*<parameter=([^<>\s]+)>\n?(.*?)\n?</parameter>", re.S)


@dataclass(frozen=True)
class ToolCall:
    """``arguments``: (name, value) in the order written. ``fault``: what is wrong with the form, "" if right."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    fault: str = ""


def read_calls(text: str) -> tuple[ToolCall, ...]:
    """The calls in ``text``, in order; one whose form is wrong has a fault and no arguments. Raises nothing."""
    return tuple(_read(body) for body in _CALL.findall(text))


def _read(body: str) -> ToolCall:
    function = _FUNCTION.fullmatch(body)
    if function is None:
        return ToolCall("", (), "a tool call holds one <function=NAME> ... </function>")
    name, rest = function.groups()
    arguments: dict[str, str] = {}
    at = 0
    while found := _PARAMETER.match(rest, at):
        if found[1] in arguments:
            return ToolCall(name, (), f"parameter {found[1]} is given twice")
        arguments[found[1]] = found[2]
        at = found.end()
    if rest[at:].strip():
        return ToolCall(name, (), "a function holds only <parameter=NAME> ... </parameter>, each of them closed")
    return ToolCall(name, tuple(arguments.items()))
