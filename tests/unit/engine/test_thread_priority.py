"""What works on many rows stands behind what answers lookups, as the operating system sees it."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

from secateur.engine import NICENESS, ElasticThreads, call_with_low_priority, lower_priority
from secateur.engine.kernels.duckdb import DuckDBKernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness of threads")

THREADS = Path("/proc/self/task")


def niceness(thread_id: int | None = None) -> int:
    return os.getpriority(os.PRIO_PROCESS, thread_id or threading.get_native_id())


def lowered() -> int:
    return min(niceness(os.getpid()) + NICENESS, 19)


@pytest.mark.parametrize(
    "executor",
    [
        pytest.param(ThreadPoolExecutor(1, initializer=lower_priority), id="pool"),
        pytest.param(ElasticThreads("low", 1, 2, initializer=lower_priority), id="elastic"),
    ],
)
def test_threads_of_an_executor_are_lowered_once_and_others_are_not(executor: Executor) -> None:
    before = niceness()
    with executor:
        assert executor.submit(niceness).result(30) == lowered()
        executor.submit(lower_priority).result(30)
        assert executor.submit(niceness).result(30) == lowered(), "calling it twice lowers it no further"
    assert niceness() == before


def test_threads_of_an_executor_keep_their_priority_by_default() -> None:
    with ElasticThreads("plain", 1, 2) as executor:
        assert executor.submit(niceness).result(30) == niceness(os.getpid())


def test_duckdb_works_in_threads_of_low_priority_and_its_caller_keeps_its_own() -> None:
    before, own = {int(entry.name) for entry in THREADS.iterdir()}, niceness()
    kernel = DuckDBKernel(threads=3)
    try:
        assert kernel.run("SELECT sum(i) AS s FROM range(1000000) AS t(i)", {}).column("s").to_pylist() == [
            499999500000
        ]
        workers = {int(entry.name) for entry in THREADS.iterdir()} - before
        assert len(workers) >= 2
        found = []
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):  # one of another test may have been about to end
                found.append(niceness(worker))
        assert found.count(lowered()) >= 2
        assert niceness() == own
    finally:
        kernel.close()


def test_a_system_that_refuses_is_reported_once_and_the_work_is_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError(1, "no, says the test")

    monkeypatch.setattr(os, "setpriority", refuse)
    with caplog.at_level(logging.WARNING):
        assert [call_with_low_priority(lambda: 7) for _ in range(3)] == [7, 7, 7]
    (record,) = caplog.records
    assert record.getMessage() == (
        "the priority of kernel threads stays as it is, so heavy statements can delay lookups on a busy machine: [Errno"
        " 1] no, says the test"
    )
