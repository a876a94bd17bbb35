"""A launch made into a trace that can be kept, exported and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qgpu.driver.runners import Runner
from qgpu.errors import LaunchError
from qgpu.isa import program
from qgpu.trace.model import Activity, Array, Trace

if TYPE_CHECKING:
    from qgpu.driver.launch import Launch


def record(launch: Launch, message: str = "", activity: Activity | None = None) -> Trace:
    """The trace of a launch, ended or not. message: how the launch ended, where that was not HALT. activity: as
    `Device.activity` gives it.
    """
    return Trace(
        kernel=launch.kernel,
        launch=launch.request,
        tokens=launch.tokens,
        file=launch.file,
        sources=dict(launch.sources),
        arrays=tuple(Array(p.name, p.address, tuple(p.shape), p.kind, p.itemsize) for p in launch.places),
        message=message,
        activity=activity,
    )


def activity_of(runner: Runner, launch: Launch) -> Activity:
    """What every layer did at every token of a launch, counted while its tokens go through the model once more.

    LaunchError from an engine that cannot count.
    """
    count = getattr(runner, "activity", None)
    found = None if count is None else count(program.prompt(launch.request), launch.tokens)
    if found is None:
        raise LaunchError(f"the {runner.name} engine does not count what its layers do: use the native engine")
    counts = np.ascontiguousarray(found, "<u2")
    return Activity(counts.shape[1], counts.tobytes())
