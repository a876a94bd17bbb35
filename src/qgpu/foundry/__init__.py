"""Foundry: circuits become Qwen3.5 layers. ``cast(circuit, options)`` is the way in."""

from .cast import Options, cast
from .errors import FoundryError, NetworkFileError
from .network import Network

__all__ = ["FoundryError", "Network", "NetworkFileError", "Options", "cast"]
