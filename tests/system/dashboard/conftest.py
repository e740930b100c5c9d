"""A browser without a window, and a cluster with statements, a job and a dashboard in front of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make install")

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REQUIRED = "SECATEUR_BROWSER"
"""Set to ``required`` where a missing browser is a failure, as it is in continuous integration."""


# Playwright keeps an event loop running in the thread of the tests for as long as it is there, so that no other test
# could run one: it ends with the file.
@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    with playwright.sync_playwright() as started:
        if found is None and not Path(started.chromium.executable_path).exists():
            missing = "there is no Chromium: `make browser` installs one"
            if os.environ.get(REQUIRED) == "required":
                pytest.fail(missing)
            pytest.skip(missing)
        # Chromium refuses its sandbox to root, whom containers run as; the pages are our own.
        flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        running = started.chromium.launch(executable_path=found, args=flags)
        yield running
        running.close()
