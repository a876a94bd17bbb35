"""Regenerates the prebuilt PTX beside stock kernels: ``python -m qgpu.cuda.prebuild kernels/*.cu``.

A file is only written when its stamp is not fresh. With ``--check`` nothing is written and stale files are listed.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from qgpu.cuda.compile import build_ahead, prebuilt_stamp, read_source
from qgpu.errors import QgpuError


def stale(paths: Iterable[Path]) -> list[Path]:
    """Those of the ``.cu`` files whose prebuilt PTX is missing or was made from another source, header or flags."""
    found = []
    for path in paths:
        ptx = path.with_suffix(".ptx")
        if not ptx.exists() or not read_source(ptx).startswith(prebuilt_stamp(read_source(path))):
            found.append(path)
    return found


def main(arguments: list[str]) -> int:
    paths = [Path(argument) for argument in arguments if argument != "--check"]
    try:
        waiting = stale(paths)
        for path in waiting:
            print(f"{path}: {'stale' if '--check' in arguments else 'built'}")
            if "--check" not in arguments:
                path.with_suffix(".ptx").write_text(build_ahead(path), encoding="utf-8", newline="\n")
    except QgpuError as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if waiting and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
