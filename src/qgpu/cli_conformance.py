"""What ``qgpu conformance`` does: rows of the conformance table at the levels asked for, as a table or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

import typer

from qgpu.conformance import gpu, levels, report
from qgpu.conformance.levels import Outcome
from qgpu.conformance.table import Row, table
from qgpu.errors import QgpuError


def rows_named(names: Sequence[str]) -> list[Row]:
    """The rows of these names, or with kernels of these names; all if there are none. QgpuError lists the unknown."""
    known = table()
    found = [row for row in known.values() if not names or row.name in names or row.kernel in names]
    have = {row.name for row in found} | {row.kernel for row in found}
    unknown = [name for name in names if name not in have]
    if unknown:
        raise QgpuError(f"no such kernel in the table: {', '.join(unknown)}; there are: {', '.join(known)}")
    return found


def _outcomes(rows: Sequence[Row], at: Sequence[str], compilers: Sequence[str]) -> Iterator[Outcome]:
    for level in at:
        for compiler in compilers:
            for row in rows:
                yield levels.run(row, level, compiler)


def conformance(names: Sequence[str], at: Sequence[str], compilers: Sequence[str], cuda: bool, as_json: bool) -> None:
    """``qgpu conformance``. Ends with status 1 if a row is not ok."""
    rows = rows_named(names)
    for compiler in compilers:
        if reason := levels.available(compiler):
            raise QgpuError(reason)
    device = gpu.Gpu() if cuda else None
    outcomes = _outcomes(rows, at, compilers) if device is None else (gpu.run(row, device) for row in rows)
    found: list[Outcome] = []
    if not as_json:
        print(report.HEAD)
    interrupted = False
    try:
        for outcome in outcomes:
            found.append(outcome)
            if not as_json:
                print(report.line(outcome), flush=True)
    except KeyboardInterrupt:
        interrupted = True  # what has been run is told all the same
    bad = [outcome for outcome in found if not outcome.ok]
    if as_json:
        print(json.dumps([report.record(outcome) for outcome in found]))
    else:
        print(f"\n{len(found) - len(bad)} of {len(found)} ok")
        if bad:
            print(f"\n{report.grouped(bad)}")
    sys.stdout.flush()
    if interrupted:
        whole = len(rows) * (1 if cuda else len(at) * len(compilers))
        raise KeyboardInterrupt(f"interrupted after {len(found)} of {whole} rows")
    if bad:
        raise typer.Exit(1)
