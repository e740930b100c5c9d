"""Calls that run at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["together"]


def together(*works: Callable[[], Any]) -> None:
    """Run each call in a thread of its own until all have returned; none of them may raise."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
