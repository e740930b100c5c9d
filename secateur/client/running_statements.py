"""The statements of a connection that are under way: their time-outs, and how they are interrupted."""

from __future__ import annotations

import threading
from weakref import WeakSet

from secateur.client.execution.statement_timeout import NO_TIMEOUT, call_timeout
from secateur.errors import JobCancelledError
from secateur.forks import free_in_forks
from secateur.wire import CallControl


class RunningStatements:
    """Ends the calls of a statement when it is cancelled or its time is over. Thread-safe.

    Attributes:
        statement_timeout: The time that each statement has, unless its call names another.
    """

    def __init__(self) -> None:
        self.statement_timeout = NO_TIMEOUT
        self._lock = free_in_forks(threading.Lock())  # of the whole session
        self._local = threading.local()  # the control of the statement that a thread works on
        self._statements_running: set[CallControl] = set()
        self._results_read: WeakSet[CallControl] = WeakSet()  # of statements whose rows come in parts

    @property
    def control(self) -> CallControl | None:
        """The object that ends the calls of the statement on which this thread works; None between statements."""
        return getattr(self._local, "control", None)

    def check_control(self) -> None:
        """Raise when the statement that this thread works on has been ended, or has run out of time."""
        control = self.control
        if control is not None:
            control.check()

    def begin_statement(self, timeout_s: float | None = None) -> CallControl:
        """This thread begins a statement, whose calls end with :attr:`statement_timeout`, or with :meth:`interrupt`.

        A ``timeout_s`` takes the place of :attr:`statement_timeout`.

        End it with :meth:`end_statement`.
        """
        timeout = self.statement_timeout
        if timeout_s is not None:
            control = call_timeout(timeout_s)
        else:
            control = timeout.control() if timeout.milliseconds else CallControl()
        self._statements_running.add(control)  # in one step, as all that is done with this set
        self._local.control = control
        return control

    def end_statement(self, control: CallControl) -> None:
        """This thread has ended its statement; its result, if it comes in parts, may still be read."""
        self._local.control = None
        self._statements_running.discard(control)
        control.deadline_s = None  # the rest of a result comes as fast as it is read

    def work_for(self, control: CallControl | None) -> CallControl | None:
        """From now on this thread works for another statement, or for none; returns the one before."""
        before, self._local.control = self.control, control
        return before

    def interrupt(self) -> None:
        """End every statement of this session that is under way or whose result is being read."""
        with self._lock:
            controls = [*self._statements_running, *self._results_read]
        for control in controls:
            control.end(JobCancelledError("the statement was cancelled: connection.interrupt() was called"))
