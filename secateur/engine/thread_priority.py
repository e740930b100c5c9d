"""Threads of kernels that work on many rows stand behind the event loop and short statements.

On a busy machine, a lookup otherwise waits for its turn behind the statement that scans a table: the operating system
gives every thread the same share, and a heavy statement has many. Threads that run users' Python are not lowered:
they hold the interpreter's lock while they wait for a core, and the event loop would wait with them.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

NICENESS: Final = 10
"""The niceness of these threads above that of the process: a tenth of the share of a thread that is not nice.

SCHED_IDLE was worse: a thread that never gets a core keeps DuckDB's locks, and the heavy statements took twice as
long.
"""
_NICEST: Final = 19

_log = logging.getLogger(__name__)
T = TypeVar("T")


def lower_priority() -> None:
    """Let the other threads of this machine go before the one that calls. Calling twice does nothing more.

    Only on Linux, where threads have a niceness of their own; elsewhere, and where the system refuses, nothing changes.
    Threads that the calling one starts later inherit it. Cost: two system calls.
    """
    if sys.platform != "linux":
        return
    try:
        wanted = min(os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS, _NICEST)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), wanted)
    except OSError as error:
        _warn_once(str(error))


def call_with_low_priority(call: Callable[[], T]) -> T:
    """Return what a call returns that runs in a thread of low priority, as do the threads that it starts.

    The calling thread keeps its priority: without a privilege it could not get it back.
    """
    if sys.platform != "linux":
        return call()
    with ThreadPoolExecutor(1, thread_name_prefix="secateur-low-priority", initializer=lower_priority) as thread:
        return thread.submit(call).result()


@functools.cache
def _warn_once(reason: str) -> None:
    _log.warning(
        "the priority of kernel threads stays as it is, so heavy statements can delay lookups on a busy machine: %s",
        reason,
    )
