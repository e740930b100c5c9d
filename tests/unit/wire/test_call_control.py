"""The calls of a statement, which another thread ends."""

from __future__ import annotations

import threading
import time

import pytest

from secateur.errors import JobCancelledError
from secateur.wire import CallControl

ENDED = JobCancelledError("it was cancelled")


class Call:
    """A call that counts how often it was aborted, and may take a while for it."""

    def __init__(self, wait: threading.Event | None = None) -> None:
        self.aborted = 0
        self.begun = threading.Event()
        self._wait = wait

    def abort(self) -> None:
        self.begun.set()
        if self._wait is not None:
            self._wait.wait(20)
        self.aborted += 1


def test_calls_under_way_are_aborted_and_others_may_not_begin() -> None:
    control, first, done = CallControl(), Call(), Call()
    control.calls += [first, done]
    control.calls.remove(done)
    control.check()
    control.end(ENDED)
    with pytest.raises(JobCancelledError):
        control.check()
    control.end(ENDED)
    assert (first.aborted, done.aborted) == (2, 0)


def test_a_call_has_ended_only_when_nobody_is_about_to_abort_it() -> None:
    release = threading.Event()
    control, call = CallControl(), Call(release)
    control.calls.append(call)
    ending = threading.Thread(target=control.end, args=[ENDED])
    ending.start()
    assert call.begun.wait(20)
    control.calls.remove(call)
    seen: list[int] = []
    finishing = threading.Thread(target=lambda: (control.settle(), seen.append(call.aborted)))
    finishing.start()
    time.sleep(0.05)
    assert not seen, "its channel may be lent to another statement, which would be aborted"
    release.set()
    ending.join(20)
    finishing.join(20)
    assert seen == [1]


def test_after_the_deadline_no_call_may_begin_and_the_error_is_that_of_the_deadline() -> None:
    control = CallControl(time.monotonic() - 1, ENDED)
    with pytest.raises(JobCancelledError):
        control.check()
    control.end(JobCancelledError("too late"))
    assert control.error is ENDED
