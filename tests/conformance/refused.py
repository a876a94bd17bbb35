"""The one list of rows that are not there yet: ``refused.txt``, a line each, "level compiler row".

It may only get shorter. A row that fails must stand in it, a row that works must not. After rows have begun to work:

    python -m tests.conformance.refused
"""

from __future__ import annotations

from pathlib import Path

LIST = Path(__file__).parent / "refused.txt"
LEVELS = ("ir", "interpreter", "native")


def refused() -> frozenset[str]:
    return frozenset(LIST.read_text(encoding="utf-8").splitlines())


def line(level: str, compiler: str, row: str) -> str:
    return f"{level} {compiler} {row}"


def _main() -> None:
    from qgpu.conformance.levels import run
    from qgpu.conformance.report import grouped
    from qgpu.conformance.table import table

    outcomes = [run(row, level) for level in LEVELS for row in table().values()]
    broken = [outcome for outcome in outcomes if outcome.status in ("wrong", "failed")]
    lines = [line(o.level, o.compiler, o.kernel) for o in outcomes if o.status == "refused"]
    LIST.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    for level in LEVELS:
        print(f"==== {level}\n{grouped(outcome for outcome in outcomes if outcome.level == level)}\n")
    names = ", ".join(outcome.kernel for outcome in broken) or "none"
    print(f"{len(outcomes)} outcomes, {len(lines)} refused, broken: {names}")


if __name__ == "__main__":
    _main()
