"""Locks and what becomes of them in a process that is forked.

That process has one thread. A lock that another thread held at that moment would be held for ever.
"""

from __future__ import annotations

import os
from typing import Any, Final, TypeVar
from weakref import WeakSet

L = TypeVar("L", bound=Any)

_locks: Final[WeakSet[Any]] = WeakSet()


def free_in_forks(lock: L) -> L:
    """A lock that nobody holds in a process that is forked; for what is whole after each step, locked or not."""
    _locks.add(lock)
    return lock


def forks_wait_for(lock: L) -> L:
    """A lock that nobody holds while the process is forked; for what may be half done, and is done soon."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


def _free() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # as the modules of Python do with theirs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
