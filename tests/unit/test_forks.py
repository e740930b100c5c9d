"""Locks, imports and libraries in a process that is forked while other threads are busy with them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, Final

import duckdb
import pytest

from secateur.engine.kernels.duckdb import DuckDBKernel
from secateur.forks import forks_wait_for, free_in_forks

PROGRAM: Final = """
import os, signal, sys, threading
import pyarrow, secateur.forks

module, use = sys.argv[1:]
begun, forking = threading.Event(), threading.Event()

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            begun.set()
            forking.wait()

sys.meta_path.insert(0, Finder())
os.register_at_fork(before=forking.set)
thread = threading.Thread(target=exec, args=(use, globals()))
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    exec(use)
    os._exit(0)
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""A thread does something first, which imports a module. A child that is forked meanwhile does the same."""


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


@pytest.mark.parametrize(
    ("module", "use"),
    [
        pytest.param("pandas", "pyarrow.array([1])", id="arrow-looks-for-pandas"),
        pytest.param("pyarrow.pandas_compat", "pyarrow.array([1])", id="arrow-has-found-pandas"),
        pytest.param("numpy.ma", "import pandas", id="what-a-library-imports"),
        pytest.param("secateur.dag.dag", "from secateur import DAG", id="a-name-of-a-room"),
    ],
)
def test_a_fork_waits_for_what_a_call_loads(module: str, use: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, module, use],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fork_waits_while_a_database_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opening, forking, opened = threading.Event(), threading.Event(), threading.Event()
    connect = duckdb.connect

    def connect_slowly(*args: Any, **kwargs: Any) -> duckdb.DuckDBPyConnection:
        opening.set()
        forking.wait()
        connection = connect(*args, **kwargs)
        opened.set()
        return connection

    monkeypatch.setattr(duckdb, "connect", connect_slowly)
    os.register_at_fork(before=forking.set)
    thread = threading.Thread(target=lambda: DuckDBKernel(threads=1).close())
    thread.start()
    opening.wait()
    assert in_fork(opened.is_set)
    thread.join()
