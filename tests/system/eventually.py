"""Waiting for what other threads and processes are about to do, without a sleep of a fixed length."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["eventually"]


def eventually(
    holds: Callable[[], bool], what: str = "it did not come about", timeout_s: float = 30.0, pause_s: float = 0.02
) -> None:
    """Return as soon as a condition holds; ``what`` says what is wrong when it does not within the time.

    ``pause_s`` is waited between two looks; looks that take a while would hold up what they wait for.
    """
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s, what
        threading.Event().wait(pause_s)
