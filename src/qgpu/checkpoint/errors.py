"""What merging raises."""

from qgpu.errors import QgpuError


class MergeError(QgpuError):
    """A base that cannot be merged, or a folder that cannot be written. The text names every reason."""
