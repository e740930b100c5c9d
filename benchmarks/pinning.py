"""Keeps the client on one processor and the servers on another, so that a ratio does not depend on the scheduler.

Servers are pinned before they begin: what a process starts stays on its processors, every thread of it, so none has to
be looked for. The client goes to its own once all of them run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.serving.own_core import keep_on

__all__ = ["PINS", "pinned", "why_not_pinned"]

PINS: Final = ("two", "one", "no")


def why_not_pinned(pin: str, runtime: str) -> str | None:
    """Why this cannot be had here; None if it can."""
    if pin == "no":
        return None
    if not hasattr(os, "sched_setaffinity"):
        return "this platform does not pin processes"
    if pin == "two" and runtime == "embedded":
        return "members of the embedded runtime are threads of the client"
    if pin == "two" and len(os.sched_getaffinity(0)) < 2:
        return "there is one processor only"
    return None


@contextmanager
def pinned(pin: str) -> Iterator[Callable[[], None]]:
    """What is started while this is open is pinned as a server, until the call that it gives, and as a client then."""
    if pin == "no":
        yield lambda: None
        return
    before = os.sched_getaffinity(0)
    client, *others = sorted(before)
    keep_on(os.getpid(), [others[0] if pin == "two" else client])
    try:
        yield lambda: keep_on(os.getpid(), [client])
    finally:
        keep_on(os.getpid(), before)
