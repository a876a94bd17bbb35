"""Foundry: circuits become Qwen3.5 layers. ``cast(circuit, options)`` is the way in."""

from .cast import Options, cast, cast_with_report
from .errors import FoundryError, NetworkFileError
from .network import Network
from .report import Report

__all__ = ["FoundryError", "Network", "NetworkFileError", "Options", "Report", "cast", "cast_with_report"]
