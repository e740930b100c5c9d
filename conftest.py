"""Docstrings without an example are not searched for one: that took two fifths of what collecting takes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """All that pytest finds in a file, but for docstrings of which none has an example."""
    found = yield
    if any(isinstance(one, DoctestModule) for one in found) and ">>>" not in file_path.read_text(encoding="utf-8"):
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found
