"""docs/trace.md: its commands and its Python are run, its tables hold what there is."""

import json
import re
import shlex
from pathlib import Path

from tests.trace.launches import fault, mix
from typer.testing import CliRunner

from qgpu.cli import TraceFormat, app
from qgpu.trace import files
from qgpu.trace.page import part

PAGE = (Path(__file__).parents[2] / "docs" / "trace.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_commands_and_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in blocks("console"):
        for part_ in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part_.partition("\n")
            program, *arguments = shlex.split(command)
            assert program == "qgpu"
            done = CliRunner().invoke(app, arguments)
            assert (done.exit_code, done.stderr) == (0, ""), command
            assert not output or done.stdout == output
    assert files.load("dot.trace.jsonl").activity.tokens == len(files.load("dot.trace.jsonl").tokens)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(block, names)
    assert names["lines"] and names["out"].numpy().tolist() == [32]


def test_every_format_and_every_field_is_told_of():
    for form in TraceFormat:
        assert f"| `{form.value}` |" in PAGE
    told = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("## The trace file") :]))
    for trace in (mix(), fault()):
        for line in list(files.lines(trace))[1:]:
            assert set(json.loads(line)) <= told


def test_every_key_is_told_of():
    script = part("app.js")
    letters = set(re.findall(r'^      "?([^\s":]{1,2})"?: \(\) =>', script, re.MULTILINE))
    assert letters >= {"b", "B", "m", "M", "f", "n", "N", "t", "/", "+", "-", "?", "[", "]"}
    assert all(f"`{letter}`" in PAGE for letter in letters)
    assert all(f"<dd>{what}" in part("page.html") for what in ("token", "EXEC", "fault", "search", "zoom"))
