"""Locks and what becomes of them in a process that is forked.

That process has one thread. A lock that another thread held at that moment would be held for ever: one of ours, that of
a module which was being imported, or one inside of a library.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - as logging
import importlib._bootstrap
import logging  # noqa: F401 - before a fork it takes a lock imports need: after the wait for those, if it came first
import os
import sys
import threading
from typing import Any, Final, TypeVar
from weakref import WeakSet

L = TypeVar("L", bound=Any)

_LOADED_LATE: Final = {"duckdb", "httpx", "numpy", "opentelemetry", "pandas", "polars", "pyarrow", "secateur"}
"""Packages of which parts are loaded when a call first needs them.

Only these are waited for. The import of a program's own module may itself wait for the thread that forks.
"""
_free_locks: Final[WeakSet[Any]] = WeakSet()
_waited_for: Final[list[Any]] = []
_here: Final = threading.local()  # what this thread holds while it forks


def free_in_forks(lock: L) -> L:
    """A lock that nobody holds in a process that is forked; for what is whole after each step, locked or not.

    Or whatever else starts anew there by ``_at_fork_reinit()``.
    """
    _free_locks.add(lock)
    return lock


def forks_wait_for(lock: L) -> L:
    """A lock that nobody holds while the process is forked; for what may be half done, and is done soon."""
    _waited_for.append(lock)
    return lock


def _before() -> None:
    _here.held = []
    _wait_for_imports()
    for lock in _waited_for[::-1]:  # that of decoders last: under others, the collector may run a finalizer with one
        lock.acquire()
        _here.held.append(lock)


def _wait_for_imports() -> None:
    """Let other threads finish the imports that they have begun; nothing is held meanwhile that these might need."""
    bootstrap: Any = importlib._bootstrap
    for module in list(getattr(bootstrap, "_module_locks", ())):  # also of modules that are not found yet
        if module.partition(".")[0] in _LOADED_LATE:
            bootstrap._lock_unlock_module(module)
    array = getattr(sys.modules.get("pyarrow"), "array", None)
    if array is not None and hasattr(sys.modules.get("pandas"), "__version__"):
        array(())  # its first call holds a lock of Arrow's while it imports pandas, and for a little longer


def _release() -> None:
    for lock in _here.held:
        lock.release()


def _after_in_child() -> None:
    _release()
    for lock in list(_free_locks):
        lock._at_fork_reinit()  # as the modules of Python do with theirs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_after_in_child)
