"""The requests that a connection makes of the controller, which may be being started anew."""

from __future__ import annotations

import re
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar
from weakref import WeakSet

from secateur.client.channel_pool import ChannelOptions
from secateur.client.execution.retry_policy import CONTROLLER_WAIT_S
from secateur.errors import (
    DeadlineError,
    InterfaceError,
    JobCancelledError,
    MemberLostError,
    ParameterError,
    UnreachableError,
)
from secateur.forks import free_in_forks
from secateur.protocol.message import Message, as_repeated
from secateur.protocol.operations import operation_of
from secateur.wire import Answer, CallControl, Channel, Payload, Waits

_SETS_TIMEOUT: Final = re.compile(r"\s*SET\s+(SESSION\s+)?statement_timeout\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StatementTimeout:
    """The setting of one connection.

    Attributes:
        text: As the user wrote it, such as ``5s``.
        milliseconds: The same as a number; 0 for none.
    """

    text: str
    milliseconds: int

    def control(self) -> CallControl:
        """Return the control that ends the calls of a statement that begins now. For a setting that is not 0."""
        late = DeadlineError(
            f"the statement took longer than statement_timeout = '{self.text}' and was cancelled; its work"
            " ends on every member. Raise it with SET statement_timeout = '...', or lift it with SET"
            " statement_timeout = 0",
            setting="statement_timeout",
        )
        return CallControl(time.monotonic() + self.milliseconds / 1000, late)


NO_TIMEOUT: Final = StatementTimeout("0", 0)


def sets_timeout(sql: str) -> bool:
    """Whether a statement sets the time-out of its connection: one that is too short for this could not be lifted."""
    return _SETS_TIMEOUT.match(sql) is not None


def call_timeout(timeout_s: float) -> CallControl:
    """Return the control for a call that has a timeout of its own.

    Raises:
        ParameterError: It is not a positive number of seconds.
    """
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not 0 < timeout_s < float("inf"):
        raise ParameterError(
            f"timeout={timeout_s!r}: a positive number of seconds, or None for the connection's setting"
        )
    late = DeadlineError(
        f"the statement took longer than its timeout={timeout_s:g} seconds and was cancelled; its work ends on every"
        " member",
        setting="timeout",
    )
    return CallControl(time.monotonic() + timeout_s, late)


R = TypeVar("R")

_PAUSE_S: Final = 0.05
"""Between two tries to reach a controller that is being started anew."""


class _RunningStatements:
    """Ends the calls of a statement when it is cancelled or its time is over. Thread-safe.

    Attributes:
        statement_timeout: The time that each statement has, unless its call names another.
        sleep: Waits for so many seconds.
        running: What ends the statements that are under way. Each change of this set is one step.
    """

    def __init__(self, waits: Waits) -> None:
        self.statement_timeout = NO_TIMEOUT
        self.sleep = waits.sleep
        self._waits = waits
        self._lock = free_in_forks(threading.Lock())  # of the whole session; nobody waits for a peer with it
        self._local = waits.local()  # the control of the statement that a caller works on
        self.running: set[CallControl] = set()
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

    def timed_control(self, timeout_s: float | None = None) -> CallControl:
        """What is to end the calls of a statement that begins now, after ``timeout_s`` or the session's time."""
        if timeout_s is not None:
            return call_timeout(timeout_s)
        return self.statement_timeout.control() if self.statement_timeout.milliseconds else CallControl()

    def begin_statement(self) -> CallControl:
        """This thread begins a statement, whose calls end with :attr:`statement_timeout`, or with :meth:`interrupt`.

        End it with :meth:`end_statement`.
        """
        control = self.timed_control()
        self.running.add(control)
        self._local.control = control
        return control

    def end_statement(self, control: CallControl) -> None:
        """This thread has ended its statement; its result, if it comes in parts, may still be read."""
        self._local.control = None
        self.running.discard(control)
        control.deadline_s = None  # the rest of a result comes as fast as it is read

    def work_for(self, control: CallControl | None) -> CallControl | None:
        """From now on this thread works for another statement, or for none; returns the one before."""
        before, self._local.control = self.control, control
        return before

    def apart(self, work: Callable[[], R]) -> R:
        """Do work for the statement of this caller that waits for threads of its own, or for files."""
        control = self.control or CallControl()  # which a load by itself does not have

        def under_control() -> R:
            before = self.work_for(control)
            try:
                return work()
            finally:
                self.work_for(before)

        def give_up() -> None:
            control.end(JobCancelledError("the statement was cancelled: the task that executed it was"))

        return self._waits.apart(under_control, give_up)

    def interrupt(self) -> None:
        """End every statement of this session that is under way or whose result is being read."""
        with self._lock:
            controls = [*self.running, *self._results_read]
        for control in controls:
            control.end(JobCancelledError("the statement was cancelled: connection.interrupt() was called"))


class ControllerCalls(_RunningStatements, ABC):
    """Asks the controller, over one connection that all threads share. Thread-safe.

    Attributes:
        closed: Whether the session has been closed.
        controller_wait_s: Seconds for which a request waits for a controller that cannot be reached.
    """

    def __init__(self, controller: Channel, options: ChannelOptions) -> None:
        super().__init__(options.waits)
        self.closed = False
        self.controller_wait_s = CONTROLLER_WAIT_S
        self._channel_options = options
        self._alone: set[Channel] = set()
        self._controller = controller
        self._cluster_id = controller.hello.cluster_id

    @abstractmethod
    def note(self, said: object) -> None:
        """Hear of newer versions from an answer of the controller."""

    @property
    def address(self) -> str:
        return f"secateur://{self._controller.address}"

    def ask(
        self, message: Message[R], payload: Payload = b"", *, timeout_s: float | None = None, waits: bool = True
    ) -> Answer[R]:
        """Send a request to the controller; wait for it if it is being started anew.

        A request is sent again after its connection broke if repeating it does no harm: the controller recognises loads
        and DDL by their ids. A load or change that was sent, and cannot be asked for again, may have been made.

        Args:
            message: The request.
            payload: Bytes to go with it.
            timeout_s: Seconds that the answer may take.
            waits: Whether to wait for a controller that cannot be reached, for :attr:`controller_wait_s`.

        Raises:
            MemberLostError: It has ended before it answered.
            Error: It answers with an error, or cannot be reached.
        """
        self.check_open()
        wait_s = self.controller_wait_s if waits else 0.0
        end_s: float | None = None  # counted from the first failure: the request may have waited long for its answer
        first = message
        repeatable = operation_of(message).is_idempotent
        while True:
            try:
                answer = self._controller.request(message, payload, timeout_s=timeout_s, control=self.control)
                break
            except UnreachableError as error:
                end_s = end_s or time.monotonic() + wait_s
                if time.monotonic() >= end_s:
                    gone = self._controller_gone(error)
                    if message is not first:
                        raise MemberLostError(f"the controller has ended before it answered; {gone.message}") from error
                    raise gone from error
            except MemberLostError:
                end_s = end_s or time.monotonic() + wait_s
                if not repeatable or time.monotonic() >= end_s:
                    raise
                message = as_repeated(message)
            self.check_control()
            self.check_open()
            self.sleep(_PAUSE_S)
        if self._controller.hello.cluster_id != self._cluster_id:
            raise UnreachableError(
                f"{self.address} belongs to another cluster now: the one this connection was made for has gone; connect"
                " again",
                retry_safe=False,
            )
        self.note(answer.message)
        return answer

    def _controller_gone(self, error: UnreachableError) -> UnreachableError:
        """The error for a controller that was there when this connection was made."""
        is_gone = isinstance(error.__cause__, ConnectionRefusedError)
        return UnreachableError(
            f"the controller of this cluster {'is gone' if is_gone else 'cannot be reached'}: {error.message}."
            " Statements that this connection has already planned still run on the members; new statements, DDL"
            " and loads need the controller"
            + ("; if it does not come back, start the cluster anew" if is_gone else ""),
            address=self._controller.address,
            is_controller=True,
        )

    def poll_on_own_channel(self, messages: Iterable[Message[R]]) -> Iterator[Answer[R]]:
        """Send requests to the controller, each when the next answer is asked for.

        Over a connection of its own: a request that waits there would hold up all others.

        Raises:
            Error: It answers with an error, or cannot be reached.
        """
        with self._channel_alone(self._controller.host, self._controller.port) as channel:
            for message in messages:
                answer = channel.request(message)
                self.note(answer.message)
                yield answer

    def check_open(self) -> None:
        """Raise unless the connection is open.

        Raises:
            InterfaceError: It is closed.
        """
        if self.closed:
            raise InterfaceError("the connection is closed; open another with secateur.connect()")

    @contextmanager
    def _channel_alone(self, host: str, port: int) -> Iterator[Channel]:
        """A connection for one caller, which has no time-out and ends with the session."""
        channel = self._channel_options.channel(host, port, timeout_s=None)
        with self._lock:
            self.check_open()
            self._alone.add(channel)
        try:
            yield channel
        finally:
            with self._lock:
                self._alone.discard(channel)
            channel.close()


def connect_to_controller(
    host: str, port: int, options: ChannelOptions, wait_s: float, refused_s: float | None = None
) -> Channel:
    """Connect; the address of a controller that is being started anew refuses connections for a while.

    Raises:
        UnreachableError: No process answers at this address for ``wait_s``, or it has refused for ``refused_s``; None
            is ``wait_s``.
        AuthenticationError: The token is missing or wrong.
        ProtocolError: Something answers that is not a cluster of ours.
    """
    begin_s = time.monotonic()
    controller = options.channel(host, port, timeout_s=options.timeout_s)
    try:
        while True:
            try:
                controller.connect()
            except UnreachableError as error:
                is_refused = isinstance(error.__cause__, ConnectionRefusedError)
                patience_s = refused_s if is_refused and refused_s is not None else wait_s
                if isinstance(error.__cause__, socket.gaierror) or time.monotonic() >= begin_s + patience_s:
                    raise
            else:
                return controller
            options.waits.sleep(_PAUSE_S)
    except BaseException:
        controller.close()
        raise
