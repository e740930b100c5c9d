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


def test_calls_under_way_are_aborted_and_others_do_not_begin() -> None:
    control, first, done, late = CallControl(), Call(), Call(), Call()
    control.begin(first)
    control.begin(done)
    control.done(done)
    control.end(ENDED)
    with pytest.raises(JobCancelledError):
        control.begin(late)
    control.end(ENDED)
    assert (first.aborted, done.aborted, late.aborted) == (2, 0, 0)


def test_a_call_has_ended_only_when_nobody_is_about_to_abort_it() -> None:
    release = threading.Event()
    control, call = CallControl(), Call(release)
    control.begin(call)
    ending = threading.Thread(target=control.end, args=[ENDED])
    ending.start()
    assert call.begun.wait(20)
    seen: list[int] = []
    finishing = threading.Thread(target=lambda: (control.done(call), seen.append(call.aborted)))
    finishing.start()
    time.sleep(0.05)
    assert not seen, "its channel may be lent to another statement, which would be aborted"
    release.set()
    ending.join(20)
    finishing.join(20)
    assert seen == [1]


def test_a_call_that_begins_after_the_deadline_is_refused_and_forgotten() -> None:
    control, call = CallControl(time.monotonic() - 1, ENDED), Call()
    with pytest.raises(JobCancelledError):
        control.begin(call)
    control.end(ENDED)
    assert not call.aborted
