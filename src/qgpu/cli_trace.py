"""What ``qgpu trace`` does, and what ``qgpu run --record`` leaves behind for it."""

from __future__ import annotations

import json
import sys
import webbrowser
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from qgpu.trace import Trace, exports, files
from qgpu.trace.page import page
from qgpu.writing import write_text


def _page(trace: Trace) -> Iterable[str]:
    return [page(trace)]


def _jsonl(trace: Trace) -> Iterable[str]:
    return (line + "\n" for line in files.lines(trace))


FORMATS: dict[str, tuple[str, Callable[[Trace], Iterable[str]]]] = {
    "html": (".html", _page),
    "jsonl": (".trace.jsonl", _jsonl),
    "chrome": (".chrome.json", exports.chrome),
    "vcd": (".vcd", exports.vcd),
}
"""Format -> (how its files end, what writes their text)."""


def export(file: Path, form: str, output: Path | None, show: bool, as_json: bool = False) -> None:
    """``qgpu trace``: write a trace file in another form. output: where to, ``-`` for standard output; beside the trace
    file if None. show: open the page in the browser. as_json: say what was written as one JSON object.

    Raises TraceError for a file that is no trace, QgpuError for one that cannot be written.
    """
    ending, write = FORMATS[form]
    trace = files.load(file)
    if output is not None and str(output) == "-":
        sys.stdout.writelines(write(trace))
        return
    target = output or file.with_name(_stem(file) + ending)
    if target.resolve() == file.resolve():
        raise files.TraceError(f"{target} is the trace itself: name another file with --output")
    write_text(target, write(trace))
    known = {"kernel": trace.kernel, "tokens": len(trace.tokens), "ended": trace.ended}
    typer.echo(json.dumps({"file": str(target), "format": form, **known}) if as_json else target)
    if show and not webbrowser.open(target.resolve().as_uri()):
        typer.echo(f"no browser could be started: open {target} yourself", err=True)


def _stem(file: Path) -> str:
    """The name without what says that it is a trace: ``dot`` of ``dot.trace.jsonl``."""
    return file.name.removesuffix(".jsonl").removesuffix(".trace") or file.name
