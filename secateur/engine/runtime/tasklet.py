"""A tasklet: the state machine that runs one processor, feeds it input in the contract's order, and sleeps when idle.

One machine serves both kinds of processors. A call to a cooperative processor happens in the turn. A call to another
one is passed to its thread, and the machine is in ``AWAIT_CALL`` until the call is over.

Source: Hazelcast Jet, ``ProcessorTasklet`` and ``ProcessorState``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeVar, assert_never

import pyarrow as pa

from secateur.dag.processor import Processor, ProcessorContext
from secateur.engine.exchange.inbox import Inbox
from secateur.engine.exchange.outbox import DirectOutbox, EdgeWriter, WaitingOutbox
from secateur.engine.failure import located
from secateur.engine.runtime.job_logs import LogScope
from secateur.engine.scheduler import Scheduler
from secateur.engine.threads import LONG_AFTER_S, METER
from secateur.errors import DagError, Error

_log = logging.getLogger(__name__)
T = TypeVar("T")

_SPIN_TURNS: Final = 8
_IDLE_DELAY_S: Final = 0.0001
_IDLE_DELAY_MAX_S: Final = 0.01
_LEAVE_OUT: Final = (
    "Leave out cooperative=True, so that it gets a thread; a Processor says so with its attribute of that name"
)
_TOO_FEW_CORES: Final = (
    "The vertex is one of secateur's own, as those of SQL are, and its turns are short where a core is free: the"
    " machine has too few for what runs on it, or Ray runs the members behind other processes (docs/operations.md, 'A"
    " heavy statement beside lookups')"
)


class TaskletInput(NamedTuple):
    """One inbound edge of a processor."""

    ordinal: int
    priority: int
    inbox: Inbox


class TaskletState(Enum):
    """The states of a tasklet; each names the work of its next turn.

    A turn that cannot move all output out does nothing else.

    ::

        FILL_INBOX --> PROCESS_INBOX --> FILL_INBOX
                   --> COMPLETE_EDGE --> FILL_INBOX, or COMPLETE after the last edge
        COMPLETE   --> EMIT_DONE --> END

    A processor that has a thread is in ``AWAIT_CALL`` between the beginning and the end of each call, and returns from
    there to the state that called. :meth:`Tasklet.close` leads to ``END`` from everywhere.
    """

    FILL_INBOX = auto()
    """Takes the next batch, or the end of an edge, from the inbound edges with the highest priority."""
    PROCESS_INBOX = auto()
    """Calls ``process`` with the batch taken, until it returns True."""
    COMPLETE_EDGE = auto()
    """Calls ``complete_edge`` for the edge that has ended, until it returns True."""
    COMPLETE = auto()
    """All input has been processed. Calls ``complete`` until it returns True."""
    AWAIT_CALL = auto()
    """The processor's thread runs one of these calls. Its output is moved out meanwhile."""
    EMIT_DONE = auto()
    """The processor is complete. Its outbound edges end once all output has found room."""
    END = auto()
    """The tasklet is over. It takes no turns any more."""


class _Verdict(Enum):
    AGAIN = auto()
    """There is more to do now."""
    SLEEP = auto()
    """The tasklet will be woken by input, room, an offload or the thread."""
    IDLE = auto()
    """The processor asked to be called again but nothing is known that would make a difference."""
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class TaskletOwner:
    """The execution to which tasklets belong, as far as they know it.

    The threads of ``executor`` are for offloads that take long, or that follow such, those of ``quick`` for all others.
    ``on_failed`` is called once with the located error of a tasklet, ``on_ended`` once a processor is complete and all
    it offered has found room.
    """

    member: str
    scheduler: Scheduler
    loop: asyncio.AbstractEventLoop
    executor: Executor
    quick: Executor
    on_failed: Callable[[Error], None]
    on_ended: Callable[[], None]


class Tasklet:
    """One processor of one job. To be used on the event loop, except for what its thread and its offloads do.

    The outbox waits if the processor has a thread, and refuses otherwise. The thread runs its calls one after the
    other, and is shut down with it; None for a cooperative processor. ``writers`` are there for its metrics, and
    ``scope`` keeps its lines, if something does.
    """

    def __init__(
        self,
        owner: TaskletOwner,
        *,
        vertex: str,
        processor: Processor,
        inputs: Sequence[TaskletInput],
        outbox: DirectOutbox | WaitingOutbox,
        thread: Executor | None,
        writers: Sequence[EdgeWriter],
        scope: LogScope | None = None,
    ) -> None:
        self._scope = scope
        # A turn of a processor of secateur's own is not worth the look: it logs nothing.
        self._turn_scope = scope if _has_code_of_users(processor) else None
        self.vertex = vertex
        self._owner = owner
        self._processor = processor
        self._priorities = [
            [i for i in inputs if i.priority == priority] for priority in sorted({i.priority for i in inputs})
        ]
        self.inputs = tuple(inputs)
        self.writers = tuple(writers)
        self._outbox = outbox
        self._thread = thread
        self._scheduler = owner.scheduler
        self._state = TaskletState.FILL_INBOX if inputs else TaskletState.COMPLETE
        self._batch: tuple[int, pa.RecordBatch] | None = None  # what PROCESS_INBOX is about
        self._edge: TaskletInput | None = None  # what COMPLETE_EDGE is about
        self._called_in = self._state  # where AWAIT_CALL returns to
        self._running: Future[bool] | None = None  # the call that AWAIT_CALL waits for
        self._turn = 0
        self._offload: Future[Any] | None = None
        self._doing = "init()"
        self._idle_turns = 0
        self._accepted_before = 0
        self._is_reported = False
        self.is_scheduled = False
        self.turns_s = 0.0
        self.offload_s = 0.0
        self.processor_s = 0.0
        self._thread_s = 0.0

    @property
    def state(self) -> TaskletState:
        """The state of the next turn."""
        return self._state

    @property
    def busy_s(self) -> float:
        """Seconds that its turns have taken, including the routing of its output.

        For a processor with a thread, seconds that its calls have taken there.
        """
        return self.turns_s if self._thread is None else self._thread_s

    def init(self, context: ProcessorContext) -> None:
        """Initialise the processor. In the thread that starts the job; raises what the processor raises, located."""
        try:
            with self._logged():
                self._processor.init(self._outbox, context)
        except BaseException as error:
            self._note_failure("init()", error)
            raise located(error, self.vertex, self._owner.member, "init()") from error

    def start(self) -> None:
        """Begin: take turns from now on."""
        for item in self.inputs:
            item.inbox.consumer = self
        self.wake()

    def wake(self) -> None:
        """Take a turn soon."""
        if self._state is not TaskletState.END:
            self._scheduler.ready(self)

    def wake_from_thread(self) -> None:
        """:meth:`wake`, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending and nobody waits
            self._owner.loop.call_soon_threadsafe(self.wake)

    def offload(self, call: Callable[[], T], /, *, is_long: bool = False) -> Future[T]:
        """Run a call in a thread and wake the processor when it is over; the ``offload`` of its context."""
        if self._offload is not None and not self._offload.done():
            raise DagError(
                f"vertex {self.vertex!r}: a second offload was begun before the first was done; a processor may have"
                " one at a time"
            )
        threads = self._owner.executor if is_long or self.offload_s > LONG_AFTER_S else self._owner.quick
        future = threads.submit(self._timed_offload, call)
        self._offload = future
        future.add_done_callback(lambda _: self.wake_from_thread())
        return future

    def run(self) -> None:
        """Take a turn."""
        if self._state is TaskletState.END:
            return
        try:
            verdict = self._step()
        except BaseException as error:
            self._note_failure(self._doing, error)
            self._owner.on_failed(located(error, self.vertex, self._owner.member, self._doing))
            return
        match verdict:
            case _Verdict.AGAIN:
                self._scheduler.ready(self)
            case _Verdict.SLEEP:
                pass
            case _Verdict.IDLE:
                self._back_off()
            case _Verdict.ENDED:
                self._owner.on_ended()
            case _:
                assert_never(verdict)

    def report_long_turn(self, turn_s: float) -> None:
        """Say once that this processor has held the event loop."""
        if not self._is_reported and self._thread is None:
            self._is_reported = True
            _log.warning(
                "vertex %r held the event loop of member %s for %.0f ms in %s: lookups, writes and other jobs of that"
                " member waited. %s",
                self.vertex,
                self._owner.member,
                turn_s * 1000,
                self._doing,
                _LEAVE_OUT if _has_code_of_users(self._processor) else _TOO_FEW_CORES,
            )

    def close(self, on_closed: Callable[[Error | None], None]) -> None:
        """Close the processor once no call of it is running. Does not wait.

        ``on_closed`` gets the error of its ``close``, on the event loop.
        """
        self._state = TaskletState.END
        self._outbox.clear()
        for item in self.inputs:
            item.inbox.clear()
        self._batch = None

        def close_in_thread(_: object = None) -> None:
            error = self._closed()
            with contextlib.suppress(RuntimeError):
                self._owner.loop.call_soon_threadsafe(on_closed, error)

        if self._thread is not None:
            self._thread.submit(close_in_thread)
            self._thread.shutdown(wait=False)
        elif self._offload is not None and not self._offload.done():
            self._offload.add_done_callback(close_in_thread)
        else:
            on_closed(self._closed())

    def _closed(self) -> Error | None:
        """Close the processor. Returns what that raised, located."""
        try:
            with self._logged():
                self._processor.close()
        except BaseException as error:
            return located(error, self.vertex, self._owner.member, "close()")
        return None

    def _logged(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext() if self._scope is None else self._scope.entered()

    def _note_failure(self, doing: str, error: BaseException) -> None:
        if self._scope is not None:
            self._scope.note_failure(doing, error)

    def _step(self) -> _Verdict:
        if self._running is not None and not self._running.done():
            self._outbox.flush(self)  # the thread may be waiting for room
            return _Verdict.SLEEP
        if not self._outbox.flush(self):
            return _Verdict.SLEEP
        if self._state is TaskletState.FILL_INBOX:
            self._fill_inbox()
        match self._state:
            case TaskletState.FILL_INBOX:
                return _Verdict.SLEEP
            case TaskletState.PROCESS_INBOX:
                assert self._batch is not None
                ordinal, batch = self._batch
                return self._call(
                    f"process(ordinal {ordinal}, {batch.num_rows} rows)", self._processor.process, ordinal, batch
                )
            case TaskletState.COMPLETE_EDGE:
                assert self._edge is not None
                ordinal = self._edge.ordinal
                return self._call(f"complete_edge({ordinal})", self._processor.complete_edge, ordinal)
            case TaskletState.COMPLETE:
                return self._call("complete()", self._processor.complete)
            case TaskletState.AWAIT_CALL:
                return self._call_ended()
            case TaskletState.EMIT_DONE:
                self._outbox.finish()
                self._state = TaskletState.END
                return _Verdict.ENDED
            case TaskletState.END:
                return _Verdict.SLEEP
            case _:
                assert_never(self._state)

    def _fill_inbox(self) -> None:
        """Take the next batch or end of the inputs with the highest priority, which take turns, if there is one now."""
        inputs = self._priorities[0]
        wanted = self._processor.wanted
        if wanted is not None and not any(item.ordinal in wanted for item in inputs):
            wanted = None
        for step in range(len(inputs)):
            index = (self._turn + step) % len(inputs)
            item = inputs[index]
            if wanted is not None and item.ordinal not in wanted:
                continue
            batch = item.inbox.take()
            if batch is not None:
                self._turn = index + 1
                self._batch = (item.ordinal, batch)
                self._state = TaskletState.PROCESS_INBOX
                return
            if item.inbox.is_drained:
                self._edge = item
                self._state = TaskletState.COMPLETE_EDGE
                return

    def _call(self, doing: str, method: Callable[..., bool], *args: Any) -> _Verdict:
        """Make a call: now, or in the processor's thread."""
        self._doing = doing
        if self._thread is None:
            if self._turn_scope is None:
                return self._after(method(*args))
            with self._turn_scope.entered():
                answer = method(*args)
            return self._after(answer)
        self._called_in, self._state = self._state, TaskletState.AWAIT_CALL
        self._running = self._thread.submit(self._timed, method, args)
        self._running.add_done_callback(lambda _: self.wake_from_thread())
        return _Verdict.SLEEP

    def _call_ended(self) -> _Verdict:
        """The processor's thread has made the call: go on where it was begun."""
        assert self._running is not None
        call, self._running = self._running, None
        self._state = self._called_in
        error = call.exception()
        if error is not None:
            raise error  # not by result(), whose frames would stand in the user's traceback
        return self._after(call.result())

    def _after(self, answer: bool) -> _Verdict:
        """Return what follows an answer: the next state after True, else a wait for the cause of False."""
        if not isinstance(answer, bool):
            raise DagError(
                f"{self._doing} returned {answer!r}; return True when it is dealt with, False to be called again"
            )
        if answer:
            self._idle_turns = 0
            self._advance()
            return _Verdict.AGAIN
        if self._offload is not None and not self._offload.done():
            return _Verdict.SLEEP
        if not self._outbox.is_clear or self._outbox.accepted != self._accepted_before:
            self._accepted_before = self._outbox.accepted
            self._idle_turns = 0
            return _Verdict.AGAIN
        return _Verdict.IDLE

    def _advance(self) -> None:
        """The processor has finished the work of this state."""
        match self._state:
            case TaskletState.PROCESS_INBOX:
                self._batch = None
                self._state = TaskletState.FILL_INBOX
            case TaskletState.COMPLETE_EDGE:
                assert self._edge is not None
                self._priorities[0].remove(self._edge)
                self._edge = None
                if not self._priorities[0]:
                    del self._priorities[0]
                    self._turn = 0
                self._state = TaskletState.FILL_INBOX if self._priorities else TaskletState.COMPLETE
            case TaskletState.COMPLETE:
                self._state = TaskletState.EMIT_DONE
            case TaskletState.END:
                pass  # closed by the call itself
            case state:
                raise AssertionError(f"nothing is called in {state}")

    def _back_off(self) -> None:
        self._idle_turns += 1
        if self._idle_turns <= _SPIN_TURNS:
            self._scheduler.ready(self)
        else:
            doublings = min(self._idle_turns - _SPIN_TURNS, 16)
            self._scheduler.later(min(_IDLE_DELAY_S * 2**doublings, _IDLE_DELAY_MAX_S), self)

    def _timed(self, method: Callable[..., bool], args: tuple[Any, ...]) -> bool:
        start = perf_counter()
        try:
            with self._logged():
                return method(*args)
        finally:
            self._thread_s += perf_counter() - start

    def _timed_offload(self, call: Callable[[], T]) -> T:
        start = perf_counter()
        metered = METER.begin() if METER.is_on else None
        try:
            with self._logged():
                return call()
        finally:
            self.processor_s += 0.0 if metered is None else METER.end(metered)
            self.offload_s += perf_counter() - start


def _has_code_of_users(processor: Processor) -> bool:
    """Whether a cooperative processor is a user's, or a user has said that its function is cooperative."""
    return "cooperative" in getattr(processor, "__dict__", ()) or not type(processor).__module__.startswith("secateur.")
