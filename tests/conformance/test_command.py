"""``qgpu conformance``: rows as text and JSON, and a status that tells whether all are ok."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from qgpu.cli import app
from qgpu.conformance import levels, report
from qgpu.conformance.levels import Outcome

RUN = CliRunner()


def test_rows_as_json() -> None:
    done = RUN.invoke(app, ["conformance", "--kernel", "dot", "--level", "interpreter", "--json"])
    assert done.exit_code == 0
    first, second = json.loads(done.output)
    assert {name: first[name] for name in ("kernel", "level", "compiler", "ok", "status", "tokens")} == {
        "kernel": "dot", "level": "interpreter", "compiler": "clang", "ok": True, "status": "ok", "tokens": 9,
    }  # fmt: skip
    assert second["kernel"] == "dot of two CTAs"
    assert first["lane_instructions"] > 0 and first["tokens_an_instruction"] == 9 / first["lane_instructions"]


def test_a_row_that_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Outcome("dot", "interpreter", "clang", "wrong", "array 2 at 0: 31, expected 32 (1 of 1 differ)")
    monkeypatch.setattr(levels, "run", lambda row, level, compiler: bad)
    done = RUN.invoke(app, ["conformance", "--kernel", "dot", "--level", "interpreter"])
    assert done.exit_code == 1
    assert "dot                              interpreter  clang    wrong" in done.output
    assert "0 of 2 ok" in done.output and "array 2 at 0: 31, expected 32" in done.output


def test_unknown_kernels_are_named() -> None:
    done = RUN.invoke(app, ["conformance", "--kernel", "nix", "--kernel", "dot"])
    assert done.exit_code == 2 and "no such kernel in the table: nix; there are: dot" in done.output


REFUSAL = """a.cu: kernel k holds 2 things this machine cannot run:
  a.cu:5 (PTX line 30): @%p1 shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;
    x += __shfl_xor_sync(ALL, x, 16);
    shuffles are not there
  a.cu:6 (PTX line 31): {.reg .pred p; setp.lt.s64 p, %rd1, %rd2;}
    64-bit arithmetic is not there
b.cu: kernel other holds 1 thing this machine cannot run:
  b.cu:7 (PTX line 99): cnot.b32 %r1, %r2;
    this instruction is not there"""


def test_refusals_are_grouped_by_what_is_missing() -> None:
    two = [Outcome(name, "interpreter", "clang", "refused", REFUSAL) for name in ("a", "b")]
    text = report.grouped([*two, Outcome("c", "interpreter", "clang", "ok")])
    assert text.splitlines() == [
        "refused: setp.lt.s64: 64-bit arithmetic is not there",
        "    2: a, b",
        "refused: shfl.sync.bfly.b32: shuffles are not there",
        "    2: a, b",
    ]
