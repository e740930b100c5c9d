"""Locks in a process that is forked while other threads hold them."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from secateur.forks import forks_wait_for, free_in_forks


def in_fork(work: Callable[[], bool]) -> bool:
    """What a child finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are threads
        child = os.fork()
    if not child:
        code = 2
        try:
            code = int(not work())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock])
def test_a_lock_that_another_thread_holds_is_free_in_a_fork(kind: Callable[[], Any]) -> None:
    lock, held, done = free_in_forks(kind()), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert in_fork(lambda: lock.acquire(timeout=10))
    assert not lock.acquire(blocking=False), "the parent's is held on"
    done.set()
    thread.join()


@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock])
def test_a_fork_waits_until_a_step_is_done(kind: Callable[[], Any]) -> None:
    lock, steps, held = forks_wait_for(kind()), [0, 0], threading.Event()

    def work() -> None:
        for _ in range(200):
            with lock:
                steps[0] += 1
                held.set()
                for _ in range(1000):
                    pass
                steps[1] += 1

    thread = threading.Thread(target=work)
    thread.start()
    held.wait()
    for _ in range(5):
        assert in_fork(lambda: lock.acquire(timeout=10) and steps[0] == steps[1])
    thread.join()
    assert lock.acquire(blocking=False), "the parent's is free again"
    lock.release()
