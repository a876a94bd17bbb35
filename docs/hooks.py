"""Pictures for the pages, drawn from the real cast while the pages are built (see mkdocs.yml)."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Adds pictures/layers.svg, which no source file holds."""
    from qgpu.driver.bare import bare
    from qgpu.driver.picture import layer_map

    network, report = bare(print)
    files.append(File.generated(config, "pictures/layers.svg", content=layer_map(network, report)))
    return files
