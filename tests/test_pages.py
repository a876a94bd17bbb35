"""Every block of code that the README and the pages show is run as it stands, and the pages are built."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from tests.isa import random_programs
from tests.machine.random_launches import launch
from typer.testing import CliRunner

from qgpu.cli import app
from qgpu.isa.interpreter import run
from qgpu.isa.program import prompt
from qgpu.isa.tokens import BY_NAME, decode, encode

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN_ELSEWHERE = {"trace.md"}  # in tests/trace, which look at what it writes as well
RUN = [page for page in PAGES if page.name not in RUN_ELSEWHERE]
LANGUAGES = {"console", "python", "text"}
"""What a block may be marked as: the first two are run, the last is no code, nor is what has no mark."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """(command, the output that the page shows, "" for none)."""
    found = []
    for page in RUN:
        for block in blocks(page, "console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append((command, output))
    return found


@pytest.mark.parametrize(("command", "output"), commands(), ids=[command for command, _ in commands()])
def test_commands(command, output, monkeypatch):
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "qgpu"
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (result.stdout == output) if output else result.stdout


@pytest.mark.parametrize("page", [page for page in RUN if blocks(page, "python")], ids=lambda page: page.stem)
def test_python(page, monkeypatch):
    """The pieces of a page run one after the other; a comment behind a last expression is what it gives."""
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        *before, last = block.rstrip().split("\n")
        if "  # " not in last:
            exec(block, names)
        else:
            exec("\n".join(before), names)
            expression, shown = last.split("  # ")
            value = eval(expression, names)
            assert (value.tolist() if hasattr(value, "tolist") else value) == eval(shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_say_what_they_are(page):
    marks = re.findall(r"^```(\w*)[^\n]*\n.*?^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert {mark for mark in marks if mark} <= LANGUAGES


def test_links_lead_somewhere():
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert target.startswith("pictures/") or (page.parent / target).is_file(), f"{page.name}: {target}"


def test_the_pages_are_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: make docs needs it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "<svg" in (tmp_path / "site" / "pictures" / "layers.svg").read_text()
    assert '"activity":{"layers"' in (tmp_path / "site" / "pictures" / "trace.html").read_text()
    assert 'src="pictures/layers.svg"' in (tmp_path / "site" / "building.html").read_text()


def test_make_knows_the_targets_that_the_readme_names():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


# ---- the token grammar, as its page gives it


def grammar() -> dict[str, str]:
    text = "".join(blocks(ROOT / "docs" / "grammar.md", "text"))
    return dict(re.findall(r"^(\w+)\s*= (.*)$", text, re.MULTILINE))


def spelled(expression: str, rules: dict[str, str]) -> str:
    """A regular expression over kinds, each followed by a comma. Without backtracking: one kind decides each step."""

    def one(match: re.Match[str]) -> str:
        name = match[0]
        if name.isupper():
            assert name in BY_NAME
            return f"(?:{name},)"
        return f"(?>{spelled(rules[name], rules)})"

    return re.sub(r"[A-Za-z]+", one, expression.replace("*", "*+")).replace(" ", "")


def test_the_grammar_takes_real_launches_and_nothing_cut_short():
    rules = grammar()
    launch_, read = (re.compile(spelled(rules[name], rules)) for name in ("launch", "read"))
    rng = Random(5)
    ended: set[str] = set()
    for number in range(60):
        one = launch(rng) if number % 2 else random_programs.launch(rng)
        answer, machine = run(one, 4000)
        kinds = [decode(token)[0] for token in (*prompt(one), *answer)]
        text = "".join(f"{kind}," for kind in kinds)
        if kinds[-1] not in ("HALT", "FAULT"):
            continue  # it has no end
        ended.update(kinds)
        assert launch_.fullmatch(text), f"launch {number}: {text[-300:]}"
        assert not launch_.fullmatch(text.removesuffix(f"{kinds[-1]},"))
        assert not launch_.fullmatch(text.replace("GO,", ""))
        machine.feed([encode("READ", 8)])
        said = ["READ"]
        while (token := machine.next()) is not None:
            said.append(decode(token)[0])
            machine.feed([token])
        assert read.fullmatch("".join(f"{kind}," for kind in said))
    assert ended == set(BY_NAME) - {"READ"}
