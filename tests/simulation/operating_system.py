"""Puts the virtual machine under the standard library: clocks, threads, locks, blocking sockets and randomness.

It is installed once, in a process that does nothing but simulate, before the product is imported: the product then runs
unchanged.
"""

from __future__ import annotations

import os
import queue
import random
import socket
import sys
import threading
import time
import weakref
from asyncio import events
from collections import deque
from collections.abc import Callable
from typing import Any

from machine import Thread, machine
from network import connect

__all__ = ["install"]


class Lock:
    """A lock of the virtual machine, with the interface of :func:`threading.Lock`."""

    __slots__ = ("__weakref__", "_is_locked", "_waiting")

    def __init__(self) -> None:
        self._is_locked = False
        self._waiting: deque[Thread] | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._is_locked:
            self._is_locked = True
            return True
        if not blocking:
            return False
        world = machine()
        end_s = None if timeout < 0 else world.now_s + timeout
        if self._waiting is None:
            self._waiting = deque()
        me = world.current
        while self._is_locked:
            if end_s is not None and world.now_s >= end_s:
                return False
            self._waiting.append(me)
            was_woken = world.park(None if end_s is None else (end_s - world.now_s) * me.process.pace)
            if not was_woken and me in self._waiting:
                self._waiting.remove(me)
        self._is_locked = True
        return True

    def release(self) -> None:
        if not self._is_locked:
            raise RuntimeError("release unlocked lock")
        self._is_locked = False
        if self._waiting:
            machine().unpark(self._waiting.popleft())

    def locked(self) -> bool:
        return self._is_locked

    def _at_fork_reinit(self) -> None:
        self._is_locked = False

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class Timer(Thread):
    """Calls a function after a while, unless it is cancelled, with the interface of :class:`threading.Timer`."""

    def __init__(self, interval: float, function: Callable[[], object]) -> None:
        super().__init__()
        self._interval = interval
        self._function = function
        self._cancelled = threading.Event()

    def run(self) -> None:
        if not self._cancelled.wait(self._interval):
            self._function()

    def cancel(self) -> None:
        self._cancelled.set()


class Local:
    """Attributes of each thread of its own, with the interface of :class:`threading.local`.

    A step of a thread is never interrupted, so the attributes are exchanged where another thread looks.
    """

    __slots__ = ("__dict__", "__weakref__", "_arguments")

    def __new__(cls, *args: Any, **kwargs: Any) -> Local:
        made = object.__new__(cls)
        object.__setattr__(made, "_arguments", (args, kwargs))
        machine().current.locals[made] = {}
        return made

    def __getattribute__(self, name: str) -> Any:
        _exchange(self)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _exchange(self)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _exchange(self)
        object.__delattr__(self, name)


def _exchange(local: Local) -> None:
    """Give it the attributes of the thread that runs."""
    of_thread = machine().current.locals
    own = of_thread.get(local)
    if own is not None:
        object.__setattr__(local, "__dict__", own)
        return
    of_thread[local] = own = {}
    object.__setattr__(local, "__dict__", own)
    args, kwargs = object.__getattribute__(local, "_arguments")
    type(local).__init__(local, *args, **kwargs)


def _sleep(seconds: float) -> None:
    end_s = _monotonic() + seconds
    while (rest_s := end_s - _monotonic()) > 0:
        machine().park(rest_s)


def _monotonic() -> float:
    return machine().current.process.monotonic_s()


def _time() -> float:
    return machine().current.process.time_s()


def _boot_time(clock: int) -> float:
    if clock == getattr(time, "CLOCK_BOOTTIME", None):
        return machine().current.process.boot_time_s()
    return _monotonic()


def _urandom(size: int) -> bytes:
    return machine().entropy.randbytes(size)


def _nothing() -> None:
    """Virtual threads survive a fork."""


def install() -> None:
    """Put the virtual machine under this process, for good."""
    time.monotonic = time.perf_counter = _monotonic
    time.time = _time
    time.monotonic_ns = time.perf_counter_ns = lambda: int(_monotonic() * 1e9)
    time.time_ns = lambda: int(_time() * 1e9)
    time.sleep = _sleep
    time.clock_gettime = _boot_time
    os.urandom = _urandom
    os.getpid = lambda: 4242
    os.cpu_count = lambda: 1  # DuckDB then has no threads: they do not survive a fork, and no seed decides their order
    os.setpriority = lambda *_: None
    queue.time = _monotonic  # type: ignore[attr-defined]
    vars(random).update(_urandom=_urandom)
    vars(threading).update(_allocate_lock=Lock, _CRLock=None, _time=_monotonic, Lock=Lock, Thread=Thread, Timer=Timer)
    vars(threading)["_after_fork"].__code__ = _nothing.__code__
    threading.current_thread = lambda: machine().current  # type: ignore[assignment, return-value]
    threading.get_ident = lambda: machine().current.ident
    threading.local = Local  # type: ignore[assignment, misc]
    queue.SimpleQueue = queue._PySimpleQueue  # type: ignore[attr-defined, misc]
    socket.create_connection = connect  # type: ignore[assignment]
    sys.set_asyncgen_hooks(firstiter=_first_of, finalizer=_finalize)


_loops: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _first_of(generator: Any) -> None:
    _loops[generator] = events._get_running_loop()


def _finalize(generator: Any) -> None:
    loop = _loops.get(generator)
    if loop is not None and not loop.is_closed():
        loop.call_soon_threadsafe(loop.create_task, generator.aclose())
