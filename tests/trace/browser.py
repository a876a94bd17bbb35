"""The installed Chromium, without a window, for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium is installed, so pages cannot be tested: apt-get install chromium"


@contextmanager
def browser() -> Iterator[Any]:
    """A browser of playwright. Skips the test, saying why, where there is no Chromium."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(MISSING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # Chromium's own rule
        started = playwright.chromium.launch(executable_path=found, args=[*root, "--disable-gpu"])
        try:
            yield started
        finally:
            started.close()
