"""Every command and every piece of Python that the README and the pages beside it show is run, as it stands."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qgpu.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "command-line.md", ROOT / "docs" / "python.md"]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """(command, the output that the page shows, "" for none)."""
    found = []
    for page in PAGES:
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


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem)
def test_python(page, monkeypatch):
    """The pieces of a page run one after the other; a comment behind a last expression is what it gives."""
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(block, names)
        last = block.rstrip().split("\n")[-1]
        if "  # " in last:
            expression, shown = last.split("  # ")
            assert eval(expression, names).tolist() == eval(shown)


def test_links_lead_somewhere():
    for page in [*PAGES, ROOT / "docs" / "how-it-works.md", ROOT / "docs" / "trace.md"]:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


def test_make_knows_the_targets_that_the_readme_names():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([\w-]+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
