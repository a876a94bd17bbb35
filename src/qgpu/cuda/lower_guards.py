"""Small branches made into straight code, whose memory accesses are guarded."""

from __future__ import annotations

from collections.abc import Iterator

from qgpu.cuda.ir import Function


def conversions(function: Function) -> Iterator[Function]:
    yield from ()
