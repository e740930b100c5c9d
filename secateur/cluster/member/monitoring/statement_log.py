"""The statement log of a member: the running statements and the newest ended ones, for ``secateur.statements``.

A statement whose rows come in parts runs until the last of them was fetched, or its reader stops; its rows are those
that were sent.

It must cost next to nothing beside a statement of 100 microseconds: an entry is a tuple, and its text form is made on
demand. Entries are added up, by plan and by how they ran, when many of them have come together or somebody asks: each
once.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from secateur.cluster.member.monitoring.slow_statements import TimeSplit
from secateur.cluster.member.monitoring.statement_sums import EndedStatement, StatementSums, summarize_plans
from secateur.cluster.member.monitoring.tenant_ledger import TenantLedger
from secateur.engine.threads import WORK, StatementWork
from secateur.errors import JobCancelledError, ProgrammingError
from secateur.protocol.changes import ChangedRows, ChangeOnePartition, StageChange, WorkedOut, WorkOutChange
from secateur.protocol.query import (
    Execute,
    Executed,
    ExecuteFirstStage,
    ExecutionTotals,
    FirstStageRows,
    GetStatements,
    NextRows,
    PartOfRows,
    StatementEntry,
    Statements,
)
from secateur.protocol.summaries import GetTenantHours, TenantHours, buckets_of
from secateur.wire import PeerInfo, Reply, Request

_ENDED_MAX: Final = 1000
_SLOWEST_SHARE: Final = 10
"""Beside the newest, one in so many of their number is kept for being among the slowest of their minute."""
_SLOWEST_OF_MINUTE_MAX: Final = 5

M = TypeVar("M", Execute, ChangeOnePartition, StageChange, WorkOutChange)


class _Begun(msgspec.Struct, frozen=True, gc=False):
    """A statement that has begun, ``at_s`` on the clock of ``time.perf_counter``."""

    number: int
    plan_id: str
    pruning: bool
    started_s: float
    at_s: float
    tenant: str


class _Running(msgspec.Struct):
    """A statement that has not been answered yet, and the task that works on it.

    Of a change that was made at once and waits for its copies, it is the future that is done when they have it.
    """

    begun: _Begun
    answering: asyncio.Future[Any]
    killed: JobCancelledError | None = None

    def end(self, error: JobCancelledError) -> None:
        """Whoever waits for the answer gets this error."""
        self.killed = error
        if isinstance(self.answering, asyncio.Task):
            self.answering.cancel()
        elif not self.answering.done():
            self.answering.set_exception(error)


@dataclass(slots=True)
class _Reading:
    """A statement whose rows are being read; ``task`` makes the part that was asked for, if one was."""

    begun: _Begun
    said: Executed
    rows: int
    peer: PeerInfo
    queued_s: float
    made_s: float
    work: StatementWork | None
    task: asyncio.Task[Any] | None = None


class StatementLog:
    """The log of the statements that one member executed. Lives on its event loop.

    Args:
        is_waiting: Whether a statement waits for its turn, by the task that works on it.
        ended_max: The number of ended statements that are kept, beside the slowest of each minute before them.
        is_system: Whether the plan of an id reads system tables only.
        waited_s: Seconds for which a statement has waited for its turn, by the task that works on it.
        slow_s: Seconds from which on a statement is told to ``on_slow``; None: none is.
        on_slow: Is told each slow statement when it has ended.

    Attributes:
        ledger: Adds up what tenants have used; None where there are none.
        count: How many statements have begun, which is the number of the last one. The native executor adds to it, and
            to ``ended``.
        ended: The newest that have ended, and some more.
        held_max: If it has more, or its last one took ``slow_s`` seconds, :meth:`appended` is to be called.
        slow_s: As above.
    """

    def __init__(
        self,
        member_id: str,
        is_waiting: Callable[[asyncio.Future[Any]], bool] = lambda _: False,
        ended_max: int = _ENDED_MAX,
        *,
        is_system: Callable[[str], bool] = lambda _: False,
        waited_s: Callable[[asyncio.Task[Any]], float] = lambda _: 0.0,
        slow_s: float | None = None,
        on_slow: Callable[[StatementEntry, TimeSplit], None] = lambda _entry, _split: None,
    ) -> None:
        self._member_id = member_id
        self._is_waiting = is_waiting
        self._waited_s = waited_s
        self.slow_s = math.inf if slow_s is None else slow_s
        self._on_slow = on_slow
        self.count = 0
        self._running: dict[int, _Running] = {}
        self._reading: dict[int, _Reading] = {}
        self._killed_readers: dict[int, JobCancelledError] = {}
        self.ended: list[EndedStatement] = []
        self._slowest: list[EndedStatement] = []
        self._ended_max = ended_max
        self._slowest_max = ended_max // _SLOWEST_SHARE
        self.held_max = ended_max + max(ended_max // 4, 1)
        self._added_up = 0  # of those that have ended, the first ones that are in the sums
        self._sums = StatementSums(is_system)
        self.ledger: TenantLedger | None = None

    def execute(
        self, request: Request[M], run: Callable[[Request[M]], Reply[Any] | Awaitable[Reply[Any]]]
    ) -> Reply[Any] | Awaitable[Reply[Any]]:
        """Run a statement, and remember it."""
        begun = self._begin(request.message.plan, request.message.pruning, request.peer)
        try:
            reply = run(request)
        except Exception as error:
            self._finish(begun, None, _described_failure(error))
            raise
        if type(reply) is asyncio.Future:
            # A change that waits for its copies: to remember it takes no task that waits as well.
            self._running[begun.number] = _Running(begun, reply)
            reply.add_done_callback(partial(self._settled, begun))
            return reply
        if not isinstance(reply, Reply):
            logged = self._awaited(begun, reply, request.peer)
            if isinstance(reply, Coroutine):  # one that is cancelled before it begins would never await this
                weakref.finalize(logged, reply.close).atexit = False
            return logged
        self._finish(begun, reply.message, None)
        return reply

    def _begin(self, plan_id: str, pruning: bool, peer: PeerInfo) -> _Begun:
        self.count += 1
        return _Begun(self.count, plan_id, pruning, time.time(), time.perf_counter(), peer.tenant)

    def _finish(
        self,
        begun: _Begun,
        said: msgspec.Struct | None,
        failure: str | None,
        split: Callable[[], TimeSplit] = TimeSplit,
    ) -> None:
        elapsed_s = time.perf_counter() - begun.at_s
        number, plan_id, pruning, started_s = begun.number, begun.plan_id, begun.pruning, begun.started_s
        self._append((number, plan_id, pruning, started_s, elapsed_s, said, failure, begun.tenant), split)

    def note(
        self,
        plan_id: str,
        started_s: float,
        elapsed_s: float,
        said: msgspec.Struct | None,
        error: BaseException | None = None,
        tenant: str = "",
    ) -> None:
        """Remember a statement with pruning of a tenant that has ended already, with its answer or its error."""
        self.count = number = self.count + 1
        failure = None if error is None else _described_failure(error)
        self._append((number, plan_id, True, started_s, elapsed_s, said, failure, tenant))

    def scattered(
        self,
        request: Request[ExecuteFirstStage],
        run: Callable[[Request[ExecuteFirstStage]], Reply[FirstStageRows] | Awaitable[Reply[FirstStageRows]]],
    ) -> Reply[FirstStageRows] | Awaitable[Reply[FirstStageRows]]:
        """Answer with the rows of this member, and remember the statement if its client wants it listed here.

        One that is refused or declined is not listed: it is executed again, or by a member that lists it.
        """
        listed = request.message.run
        if listed is None:
            return run(request)
        started_s, begun = time.time(), time.perf_counter()
        reply = run(request)

        def noted(reply: Reply[FirstStageRows]) -> Reply[FirstStageRows]:
            said = reply.message
            if not said.is_declined:
                read, whole, members = listed.partitions_read, listed.partitions_total, sorted(listed.members)
                ran = Executed("scatter", read, whole, said.topology_version, said.rows, members=members)
                elapsed_s = time.perf_counter() - begun
                self.note(request.message.plan, started_s, elapsed_s, ran, tenant=request.peer.tenant)
            return reply

        async def noted_later(answering: Awaitable[Reply[FirstStageRows]]) -> Reply[FirstStageRows]:
            return noted(await answering)

        return noted(reply) if isinstance(reply, Reply) else noted_later(reply)

    def _append(self, entry: EndedStatement, split: Callable[[], TimeSplit] = TimeSplit) -> None:
        self.ended.append(entry)
        if entry[4] >= self.slow_s or len(self.ended) > self.held_max:
            self.appended(entry, split)

    def appended(self, entry: EndedStatement, split: Callable[[], TimeSplit] = TimeSplit) -> None:
        """A statement that was slow has ended, or one more than are held."""
        ended = self.ended
        if entry[4] >= self.slow_s:
            self._on_slow(self._described(entry), split())
        if len(ended) > self.held_max:
            self._add_up()
            self._slowest = self._slowest_with(ended[: -self._ended_max])
            del ended[: -self._ended_max]
            self._added_up = len(ended)

    def _slowest_with(self, dropped: Sequence[EndedStatement]) -> list[EndedStatement]:
        """The slowest of each minute, of those that are not among the newest any more and of these.

        Those of old minutes make way: a slow statement of today is found however slow those of last night were.
        """
        by_minute: dict[float, list[EndedStatement]] = {}
        for entry in (*self._slowest, *dropped):
            by_minute.setdefault(entry[3] // 60, []).append(entry)
        kept = [
            entry
            for minute in sorted(by_minute, reverse=True)
            for entry in heapq.nlargest(_SLOWEST_OF_MINUTE_MAX, by_minute[minute], key=lambda entry: entry[4])
        ]
        return kept[: self._slowest_max]

    def _add_up(self) -> None:
        """Add those up that have ended since this was done last."""
        ended = self.ended[self._added_up :]
        buckets = buckets_of([1000 * entry[4] for entry in ended])
        self._sums.add(ended, buckets)
        if self.ledger is not None:
            self.ledger.add(ended, buckets)
        self._added_up = len(self.ended)

    def _settled(self, begun: _Begun, reply: asyncio.Future[Reply[Any]]) -> None:
        """Remember a change that all copies have by now, or that was not waited for any longer."""
        del self._running[begun.number]
        error = asyncio.CancelledError() if reply.cancelled() else reply.exception()
        said, failure = (reply.result().message, None) if error is None else (None, _described_failure(error))
        self._finish(begun, said, failure)

    async def _awaited(self, begun: _Begun, reply: Awaitable[Reply[Any]], peer: PeerInfo) -> Reply[Any]:
        task = asyncio.current_task()
        assert task is not None
        running = self._running[begun.number] = _Running(begun, task)
        said: msgspec.Struct | None = None
        failure = None
        work = WORK.get()
        if work is None and self.slow_s < math.inf:
            work = StatementWork()
            WORK.set(work)  # of this task, and of those that it starts
        try:
            answer = await reply
            said = answer.message
            return answer
        except BaseException as error:
            killed = _killed(error, task, running.killed)
            failure = _described_failure(killed or error)
            if killed is not None:
                raise killed from None
            raise
        finally:
            del self._running[begun.number]
            if isinstance(said, Executed) and said.has_more:
                self.close(peer)
                made_s, queued_s = time.perf_counter() - begun.at_s, self._waited_s(task)
                self._reading[peer.connection_id] = _Reading(begun, said, said.rows, peer, queued_s, made_s, work)
            else:
                self._finish(begun, said, failure, lambda: TimeSplit(self._waited_s(task), 0.0, _kernel_s(work)))

    async def next(
        self, request: Request[NextRows], read: Callable[[Request[NextRows]], Awaitable[Reply[PartOfRows]]]
    ) -> Reply[PartOfRows]:
        """Hand out one more part of a result, and remember its rows.

        Raises:
            JobCancelledError: The statement was killed.
        """
        connection_id = request.peer.connection_id
        if (killed := self._killed_readers.pop(connection_id, None)) is not None:
            raise killed
        reading, task = self._reading.get(connection_id), asyncio.current_task()
        if reading is not None:
            reading.task = task
        begun = time.perf_counter()
        try:
            reply = await read(request)
        except BaseException as error:
            self._end(request.peer, _described_failure(error))
            killed = _killed(error, task, self._killed_readers.pop(connection_id, None))
            if killed is not None:
                raise killed from None
            raise
        if reading is not None and self._reading.get(connection_id) is reading:
            reading.task = None
            reading.made_s += time.perf_counter() - begun
            reading.rows += reply.message.rows
            if not reply.message.has_more:
                self.close(request.peer)
        return reply

    def close(self, peer: PeerInfo) -> None:
        """The client of a connection reads no more of its result; nothing happens when it has none."""
        self._killed_readers.pop(peer.connection_id, None)
        self._end(peer, None)

    def kill(self, number: int) -> PeerInfo | None:
        """End a statement: its task is cancelled where it waits, as it is when its client goes away.

        Args:
            number: Its number.

        Returns:
            The reader of its result, if only its rows were left to be read; the result has to be closed.

        Raises:
            ProgrammingError: No such statement runs.
        """
        error = JobCancelledError(
            f"the statement was cancelled: KILL '{self._member_id}:{number}' was executed", member=self._member_id
        )
        if (running := self._running.get(number)) is not None:
            running.end(error)
            return None
        reading = next((one for one in self._reading.values() if one.begun.number == number), None)
        if reading is None:
            known = "it has ended" if number <= self.count else "there was none of this number"
            raise ProgrammingError(
                f"no statement '{self._member_id}:{number}' runs on member {self._member_id}: {known}"
            )
        if reading.task is not None:
            reading.task.cancel()
        self._end(reading.peer, _described_failure(error))
        self._killed_readers[reading.peer.connection_id] = error
        return reading.peer

    def _end(self, peer: PeerInfo, failure: str | None) -> None:
        reading = self._reading.pop(peer.connection_id, None)
        if reading is not None:
            said = None if failure is not None else replace(reading.said, rows=reading.rows)
            elapsed_s = time.perf_counter() - reading.begun.at_s
            self._finish(
                reading.begun,
                said,
                failure,
                lambda: TimeSplit(reading.queued_s, elapsed_s - reading.made_s, _kernel_s(reading.work)),
            )

    def totals(self) -> list[ExecutionTotals]:
        """The totals of all ended statements, by how they ran."""
        self._add_up()
        return self._sums.totals

    def send_tenants(self, _: Request[GetTenantHours]) -> Reply[TenantHours]:
        """What tenants have used, by the hour."""
        if self.ledger is None:
            return Reply(TenantHours())
        self._add_up()
        return Reply(TenantHours(self.ledger.lines()))

    def send(self, request: Request[GetStatements]) -> Reply[Statements]:
        """The running ones, then the ended ones from new to old; and what all that have ended come to.

        The slowest of each minute before the newest stand behind them.
        """
        asked = request.message
        if asked.ended_of_plan_max is not None:
            ended = _newest_of_plans(reversed(self._listed()), asked.ended_of_plan_max)
            return Reply(Statements([*self._unended(), *map(self._described, ended)]))
        if asked.totals_only:
            return Reply(Statements(totals=self.totals()))
        self._add_up()
        if asked.summaries_only:
            running = [entry.plan_id for entry in self._unended()]
            return Reply(Statements(summaries=summarize_plans(self._sums.executions, self._listed(), running)))
        listed = [*self._unended(), *map(self._described, reversed(self._listed()))]
        return Reply(Statements(listed, self._sums.executions, self._sums.totals))

    def _listed(self) -> list[EndedStatement]:
        """The ended ones that are kept, the newest last, and the slowest of each minute before in front."""
        slowest = self._slowest_with(self.ended[: -self._ended_max])
        return [*sorted(slowest, key=lambda entry: entry[0]), *self.ended[-self._ended_max :]]

    def _unended(self) -> Iterator[StatementEntry]:
        now_s = time.time()
        for one in self._running.values():
            yield _unended(one.begun, "waiting" if self._is_waiting(one.answering) else "running", now_s)
        for reading in self._reading.values():
            yield _unended(reading.begun, "running", now_s, reading.rows)

    def _described(self, entry: EndedStatement) -> StatementEntry:
        number, plan_id, pruning, started_s, elapsed_s, said, failure, _ = entry
        found = StatementEntry(
            number=number,
            plan_id=plan_id,
            state="failed" if said is None else "done",
            started=started_s,
            elapsed_ms=1000 * elapsed_s,
            members=None if said is None else [self._member_id],
            rows=said.rows if isinstance(said, (Executed, ChangedRows, WorkedOut)) else None,
            error=failure,
            pruning=pruning,
        )
        if not isinstance(said, Executed):
            return found
        return replace(
            found,
            execution=said.execution,
            members=said.members or found.members,  # an answer that names no members is this member's alone
            partitions_read=said.partitions_read,
            partitions_total=said.partitions_total,
            topology_version=said.topology_version,
        )


def _unended(begun: _Begun, state: str, now_s: float, rows: int | None = None) -> StatementEntry:
    return StatementEntry(
        number=begun.number,
        plan_id=begun.plan_id,
        state=state,
        started=begun.started_s,
        elapsed_ms=1000 * (now_s - begun.started_s),
        rows=rows,
    )


def _kernel_s(work: StatementWork | None) -> float:
    return 0.0 if work is None else sum(work.kernel_times)


def _newest_of_plans(entries: Iterable[EndedStatement], count: int) -> Iterator[EndedStatement]:
    """The first so many of each plan."""
    seen: dict[str, int] = {}
    for entry in entries:
        before = seen.get(entry[1], 0)
        if before < count:
            seen[entry[1]] = before + 1
            yield entry


def _described_failure(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _killed(
    error: BaseException, task: asyncio.Task[Any] | None, killed: JobCancelledError | None
) -> JobCancelledError | None:
    """The error of a statement that was killed, if that is why its task was cancelled; the task may then go on."""
    if killed is None or task is None or not isinstance(error, asyncio.CancelledError):
        return None
    return None if task.uncancel() else killed  # cancelled by its connection as well: nobody waits for an answer
