"""A launch made into a trace that can be kept, exported and shown."""

from __future__ import annotations

from qgpu.driver.code import Code
from qgpu.driver.launch import Launch
from qgpu.trace.model import Activity, Array, Trace


def record(launch: Launch, code: Code | None = None, message: str = "", activity: Activity | None = None) -> Trace:
    """The trace of a launch, ended or not. code: the kernel's, for the text of its source. message: how the launch
    ended, where that was not HALT. activity: as `NetworkRunner.activity` gives it.
    """
    image = None if code is None else code.image
    return Trace(
        kernel=launch.kernel,
        launch=launch.request,
        tokens=launch.tokens,
        file=launch.file,
        sources={} if image is None else dict(image.sources),
        arrays=tuple(Array(p.name, p.address, tuple(p.shape), p.kind, p.itemsize) for p in launch.places),
        message=message,
        activity=activity,
    )
