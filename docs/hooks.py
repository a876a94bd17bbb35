"""Pictures for the pages, drawn from the real cast and a real launch while the pages are built (see mkdocs.yml)."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Adds pictures/layers.svg and pictures/trace.html, which no source file holds."""
    from qgpu.driver.bare import bare
    from qgpu.driver.picture import layer_map

    network, report = bare(print)
    files.append(File.generated(config, "pictures/layers.svg", content=layer_map(network, report)))
    files.append(File.generated(config, "pictures/trace.html", content=example_trace()))
    return files


def example_trace() -> str:
    """The page of a launch of the model's own: square roots, whose loops differ from lane to lane."""
    from qgpu.driver.device import Device
    from qgpu.driver.recording import record
    from qgpu.trace.page import page

    with Device() as device:
        squares = device.array([i * i * 7 % 199 for i in range(32)])
        launch = device.kernel("trips")[1, 32](squares, device.zeros(32), 32)
        return page(record(launch, activity=device.activity(launch)))
