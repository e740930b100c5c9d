from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait

import pytest

from secateur.engine import ElasticThreads

WAIT_S = 30


@pytest.fixture
def threads() -> Iterator[ElasticThreads]:
    executor = ElasticThreads("test", 2, 6, long_after_s=0.01)
    yield executor
    executor.shutdown(cancel_futures=True)


def test_calls_run_in_order_and_say_what_came_of_them(threads: ElasticThreads) -> None:
    order: list[int] = []
    with ElasticThreads("one", 1, 1) as one:
        calls = [one.submit(order.append, number) for number in range(100)]
        wait(calls, WAIT_S)
    assert order == list(range(100))
    assert threads.submit(divmod, 7, 2).result(WAIT_S) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(divmod, 7, 0).result(WAIT_S)


def test_long_calls_do_not_keep_short_ones_waiting(threads: ElasticThreads) -> None:
    release = threading.Event()
    long = [threads.submit(release.wait, WAIT_S) for _ in range(5)]
    assert [threads.submit(abs, -number).result(WAIT_S) for number in range(20)] == list(range(20))
    assert not any(call.done() for call in long)
    release.set()
    assert all(call.result(WAIT_S) for call in long)


def test_there_are_never_more_threads_than_allowed(threads: ElasticThreads) -> None:
    release, lock = threading.Event(), threading.Lock()
    running: set[int] = set()
    full = threading.Event()

    def call() -> int:
        with lock:
            running.add(threading.get_ident())
            if len(running) == 6:
                full.set()
        release.wait(WAIT_S)
        return threading.get_ident()

    calls: list[Future[int]] = [threads.submit(call) for _ in range(20)]
    assert full.wait(WAIT_S)
    release.set()
    assert {one.result(WAIT_S) for one in calls} == running
    assert len(running) == 6


def test_a_call_that_waits_can_be_cancelled_and_the_end_ends_all() -> None:
    executor = ElasticThreads("test", 1, 1)
    release = threading.Event()
    running, waiting = executor.submit(release.wait, WAIT_S), executor.submit(abs, 1)
    assert waiting.cancel()
    queued = executor.submit(abs, 2)
    release.set()
    executor.shutdown(cancel_futures=False)
    assert running.result(0)
    assert queued.result(0) == 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("test-")]
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(abs, 1)
