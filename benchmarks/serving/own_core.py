"""Gives the client a core of its own.

Where two processes that talk share a core, each wakes up the other one without an interrupt, and neither finds its
memory gone from the caches. The scheduler lets an echo share one, and seldom a client and a member, which do more
between two messages: a ratio of the two then says more about the scheduler than about the work. On a host with cores to
spare, a client and a member run on different ones.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import psutil

__all__ = ["give_client_a_core", "keep_on"]


def give_client_a_core() -> None:
    """Keep this process on the first of its cores, and all that it has started on the others.

    Raises:
        SystemExit: There is one core only.
    """
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        raise SystemExit("a client cannot have a core of its own: this process may use one core only")
    for process in psutil.Process().children(recursive=True):
        keep_on(process.pid, others)
    keep_on(os.getpid(), [first])


def keep_on(pid: int, cores: Collection[int]) -> None:
    """Keep all threads of a process on these cores, and what they start from now on."""
    try:
        threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
        for thread in threads:
            os.sched_setaffinity(thread, cores)
    except (FileNotFoundError, ProcessLookupError):
        return  # it has ended
