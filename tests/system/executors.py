"""The executors of short requests at members: the native one, and Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from secateur.native import native_module

__all__ = ["EXECUTORS", "answered_by"]

EXECUTORS: Final = ("native", "Python")


@contextmanager
def answered_by(executor: str) -> Iterator[None]:
    """Members of an embedded cluster that start in here answer short requests by one of the executors."""
    if executor == "native" and native_module() is None:
        pytest.skip("secateur-native is not installed: `make native` does")
    with pytest.MonkeyPatch.context() as patch:
        if executor != "native":
            patch.setenv("SECATEUR_NATIVE", "0")
        yield
