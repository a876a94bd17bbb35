"""``qgpu run --record`` and ``qgpu trace`` as they are called."""

import json

import pytest
from typer.testing import CliRunner

from qgpu.cli import app
from qgpu.trace import load

RUN = ["run", "vector_add", "--engine", "interpreter", "--block"]


@pytest.fixture
def cli(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


@pytest.fixture
def recorded(cli):
    done = cli(*RUN, "3", "[1, 2, 3]", "[4, 5, 6]", "zeros:3", "3", "--record", "sum.trace.jsonl")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "out = [5, 7, 9]")
    return "sum.trace.jsonl"


def test_a_launch_is_recorded(recorded, tmp_path):
    trace = load(tmp_path / recorded)
    assert (trace.kernel, trace.ended, trace.message, trace.activity) == ("vector_add", "HALT", "", None)
    assert [array.name for array in trace.arrays] == ["a", "b", "out"]
    assert "__global__ void vector_add" in next(iter(trace.sources.values()))


@pytest.mark.parametrize(
    ("format", "name", "begins"),
    [
        ("html", "sum.html", "<!doctype html>"),
        ("chrome", "sum.chrome.json", '{"displayTimeUnit"'),
        ("vcd", "sum.vcd", "$version qgpu"),
    ],
)
def test_a_trace_is_exported(cli, recorded, tmp_path, format, name, begins):
    done = cli("trace", recorded, "--format", format)
    assert (done.exit_code, done.stdout) == (0, name + "\n")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    assert cli("trace", recorded, "--format", format, "-o", "-").stdout == (tmp_path / name).read_text(encoding="utf-8")


def test_what_was_written_is_said_as_json(cli, recorded):
    said = json.loads(cli("trace", recorded, "--format", "vcd", "--json").stdout)
    tokens = len(load(recorded).tokens)
    assert said == {"file": "sum.vcd", "format": "vcd", "kernel": "vector_add", "tokens": tokens, "ended": "HALT"}


def test_lines_are_written_as_they_were_read(cli, recorded, tmp_path):
    done = cli("trace", recorded, "--format", "jsonl", "--output", "-")
    assert done.stdout == (tmp_path / recorded).read_text(encoding="utf-8")
    assert json.loads(done.stdout.splitlines()[0])["format"] == "qgpu-trace"


def test_a_fault_is_recorded_with_its_message(cli, tmp_path):
    done = cli(*RUN, "8", "[1, 2, 3]", "[4, 5, 6]", "zeros:3", "8", "--record", "f.jsonl")
    assert done.exit_code == 2
    trace = load(tmp_path / "f.jsonl")
    assert trace.ended == "FAULT" and trace.message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trace", "none.jsonl"), "none.jsonl cannot be read: No such file"),
        (("trace", "bad.jsonl"), "bad.jsonl:1: this is no trace"),
        (("trace", "sum.trace.jsonl", "--format", "jsonl"), "is the trace itself"),
        (("trace", "sum.trace.jsonl", "-o", "bad.jsonl/page.html"), "cannot be written"),
        (("trace", "sum.trace.jsonl", "--format", "vcd", "--open"), "can be opened"),
        (("trace", "sum.trace.jsonl", "--json", "-o", "-"), "takes the trace already"),
        ((*RUN, "3", "[1]", "[1]", "zeros:1", "1", "--activity"), "needs --record"),
        ((*RUN, "1", "[1]", "[1]", "zeros:1", "1", "--record", "bad.jsonl/x"), "cannot be written"),
        ((*RUN, "1", "[1]", "[1]", "zeros:1", "1", "--record", "x", "--activity"), "use the native engine"),
    ],
)
def test_mistakes_are_one_message(cli, recorded, tmp_path, arguments, said):
    (tmp_path / "bad.jsonl").write_text("{}\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    done = cli(*arguments)
    assert done.exit_code == 2 and said in " ".join(done.stderr.split()).replace("│ ", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_page_is_opened(cli, recorded, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert cli("trace", recorded, "--open").exit_code == 0
    assert opened == [(tmp_path / "sum.html").as_uri()]
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert "open sum.html yourself" in cli("trace", recorded, "--open").stderr
