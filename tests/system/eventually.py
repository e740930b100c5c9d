"""Waiting for what other threads and processes are about to do, without a sleep of a fixed length."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["eventually"]


def eventually(holds: Callable[[], bool], what: str = "it did not come about", timeout_s: float = 30.0) -> None:
    """Return as soon as a condition holds; ``what`` says what is wrong when it does not within the time."""
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s, what
        threading.Event().wait(0.02)
