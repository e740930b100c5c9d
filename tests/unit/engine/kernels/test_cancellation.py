from __future__ import annotations

import pytest

from secateur.engine.kernels.duckdb import Cancellation
from secateur.errors import JobCancelledError


class Cursor:
    def __init__(self) -> None:
        self.interrupts = 0

    def interrupt(self) -> None:
        self.interrupts += 1


def test_everything_that_runs_is_interrupted_each_time() -> None:
    cancellation, first, second, finished = Cancellation(), Cursor(), Cursor(), Cursor()
    for cursor in (first, second, finished):
        cancellation.attach(cursor)
    cancellation.detach(finished)
    assert not cancellation.cancelled
    cancellation.cancel()
    cancellation.cancel()
    assert cancellation.cancelled
    assert (first.interrupts, second.interrupts, finished.interrupts) == (2, 2, 0)


def test_what_comes_after_does_not_begin() -> None:
    cancellation = Cancellation()
    cancellation.check()
    cancellation.cancel()
    with pytest.raises(JobCancelledError, match="cancelled before it began"):
        cancellation.attach(Cursor())
    with pytest.raises(JobCancelledError):
        cancellation.check()


def test_one_cursor_may_run_twice() -> None:
    cancellation, cursor = Cancellation(), Cursor()
    cancellation.attach(cursor)
    cancellation.attach(cursor)
    cancellation.detach(cursor)
    cancellation.cancel()
    assert cursor.interrupts == 1
