"""Engines: what evaluates the weights, token by token. Import the module you need (``native`` or ``transformers``)."""
