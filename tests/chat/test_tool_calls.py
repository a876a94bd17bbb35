"""Tool calls read back from text written by the form's own rules."""

from __future__ import annotations

import pytest

from qgpu.chat.tool_calls import ToolCall, read_calls

KERNEL = "__global__ void f(int *a) {\n    if (a[0] < 3 && a[1] > 2)\n        a[0] = 1;\n}\n"


def written(name: str, *arguments: tuple[str, str]) -> str:
    inside = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments)
    return f"<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>"


@pytest.mark.parametrize("value", [KERNEL, "", "\nindented\n", "<b>&amp;</b>", "a <parameter=b> c"])
def test_a_value_comes_back_as_it_was_written(value: str) -> None:
    arguments = (("source", value), ("grid", "1"))
    assert read_calls("I compute it.\n" + written("cuda", *arguments)) == (ToolCall("cuda", arguments),)


def test_calls_keep_their_order() -> None:
    assert [call.name for call in read_calls(written("a") + "\n" + written("b"))] == ["a", "b"]
    assert read_calls("no call at all") == ()


@pytest.mark.parametrize(
    "text, fault",
    [
        ('<tool_call>\n{"name": "cuda"}\n</tool_call>', "holds one <function=NAME>"),
        ("<tool_call>\n<function=cuda>\n<parameter=source>\nint", "holds one <function=NAME>"),
        ("<tool_call><function=cuda><parameter=source>\nint</function></tool_call>", "each of them closed"),
        (written("cuda", ("grid", "1"), ("grid", "2")), "grid is given twice"),
    ],
)
def test_a_wrong_form_is_told(text: str, fault: str) -> None:
    (call,) = read_calls(text)
    assert fault in call.fault
    assert call.arguments == ()
