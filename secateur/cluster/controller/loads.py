"""Publishes loads: on all members at once, or not at all.

Rows arrive at the members beforehand, staged under a load id where no reader sees them. Publishing is a two-phase
commit that the controller runs: every member that keeps a copy of the table first *prepares* (checks duplicate keys and
builds the new partitions aside; all that can fail, fails here), then every member *publishes* (swaps pointers; cannot
fail). A member that dies between the two phases takes only its own copies with it. When the controller dies there, the
members decide by themselves (:mod:`secateur.cluster.termination_protocol`).

**Invariant**: at most one load of a table is between prepare and publish.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar, assert_never

import msgspec

from secateur import errors
from secateur.cluster.controller.publication_numbers import PublicationNumbers
from secateur.cluster.controller.two_phase_commit import CommitPhase, Order, TwoPhaseCommit, carry_out
from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.peers import MemberCaller
from secateur.cluster.statement_profile import work_of
from secateur.cluster.write_latch import renewed
from secateur.partitioning.tables.table import TableDef
from secateur.protocol import changes
from secateur.protocol.message import Message
from secateur.protocol.metrics import StageWork
from secateur.storage.change import MIXED

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class LoadPublication:
    """A staged load, ready to be published.

    Attributes:
        load_id: Chosen by the process that staged the load.
        number: Grows with every load of the cluster; readers tell by it whether members answered from the same
            publications.
        table: The table.
        mode: ``"append"``, ``"overwrite"``, ``"upsert"`` or ``"ignore"``; for what a DELETE statement removes,
            ``"delete"``.
        attempts: The attempts that count, by partition, in the order of their rows: several tasks may bring a share of
            a partition each, and a task that is retried stages its share again under another number.
        copies: The partitions of which a member keeps a copy, by member id, for every member of the table.
        rows: How many rows it changes, where one member has worked them out: of these, members prepare a row that moves
            twice, and of one that goes the key alone. None where they count what they prepare.
    """

    load_id: str
    number: int
    table: TableDef
    mode: str
    attempts: Mapping[int, Sequence[int]]
    copies: Mapping[str, frozenset[int]]
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The outcome of a load.

    Attributes:
        rows: The number of rows that it has changed.
        work: The members' work, as :func:`~secateur.cluster.statement_profile.work_of` describes it: the search for
            rows, if that was requested, and the time it took to publish them, the copies included.
    """

    rows: int
    work: tuple[StageWork, ...] = ()
    age_s: float = 0.0
    """Seconds since the first of its rows arrived at a member."""


class LoadPublisher:
    """Runs the two phases.

    Args:
        is_member: Whether a member is in the cluster, by the newest topology.

    Attributes:
        numbers: The last publication of each table.
    """

    def __init__(self, members: MemberCaller, is_member: Callable[[str], bool]) -> None:
        self._members = members
        self._is_member = is_member
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._commits: dict[asyncio.Task[None], TwoPhaseCommit] = {}
        self._publishing: set[str] = set()
        self._given_up: set[str] = set()  # while members are told
        self._telling = BackgroundTasks()
        self.numbers = PublicationNumbers(members.call, is_member)

    def is_publishing(self, load_id: str) -> bool:
        """Whether the publication of a load has begun; it is then carried out to the end."""
        return load_id in self._publishing

    async def publish(self, load: LoadPublication) -> PublishResult:
        """Publish a load everywhere.

        Raises:
            DuplicateKeyError: An appended key is already there. The table is as it was.
            TopologyChangedError: A partition has no copies: its range was dropped. The table is as it was.
            LoadFailedError: A member could not prepare. The table is as it was.
        """
        async with self._locks[load.table.table_id], renewed(self._members, load.copies, _lease(load)):
            return await self._published(load)

    async def change(
        self,
        load: LoadPublication,
        attempt: int,
        partitions: Mapping[str, Sequence[int]],
        asked: changes.ChangeSeveralPartitions,
    ) -> PublishResult:
        """Carry out an UPDATE or DELETE of several partitions: a load whose rows the members find in their own.

        Members let no other write in from the moment they look until the publication.

        Args:
            load: The load to publish; its attempts are not known yet.
            attempt: The number under which members stage.
            partitions: Those to look into, by the member that is their primary.
            asked: The client's request: plan, parameters, operation.

        Raises:
            Error: The statement fails on some row. The table is as it was.
            LoadFailedError: A member could not be reached. The table is as it was.
        """

        async def find() -> changes.WorkedOut:
            calls = (
                self._members.call(member, changes.StageChange(asked, list(looked_into)))
                for member, looked_into in partitions.items()
            )
            found = await _all(calls)
            parts = sorted(partition for told in found for partition in told.parts)
            work = tuple(entry for told in found for entry in told.work)
            return changes.WorkedOut(parts={partition: [attempt] for partition in parts}, work=work)

        return (await self._change(load, find))[1]

    async def change_whole(
        self, load: LoadPublication, coordinator: str, asked: changes.ChangeTable
    ) -> changes.WorkedOut:
        """Have a member work out a change while no owner lets another write in, and publish that everywhere.

        Args:
            load: The load to publish, with mode ``"mixed"``; its attempts are not known yet.
            coordinator: The member that works the change out.
            asked: The client's request: plans, parameters.

        Returns:
            What the member has found, with the work of publishing. If it names ``missing_cells``, nothing was changed.

        Raises:
            Error: The statement fails on some row. The table is as it was.
            LoadFailedError: A member could not be reached. The table is as it was.
        """

        async def find() -> changes.WorkedOut:
            closing = changes.CloseForChange(load.load_id, load.table.table_id)
            await _all(self._members.call(member, closing) for member in load.copies)
            return await self._members.call(coordinator, changes.WorkOutChange(asked))

        found, published = await self._change(load, find)
        return msgspec.structs.replace(found, work=published.work)

    async def _change(
        self, load: LoadPublication, find: Callable[[], Awaitable[changes.WorkedOut]]
    ) -> tuple[changes.WorkedOut, PublishResult]:
        """Have members find and stage the rows of a change, and publish them everywhere, if there are any."""
        async with self._locks[load.table.table_id], renewed(self._members, load.copies, _lease(load)):
            try:
                found = await find()
            except BaseException as error:  # nothing of the change is visible yet
                await self.abort(load.load_id, load.copies)
                if isinstance(error, (errors.LimitExceededError, errors.JobCancelledError)) or not isinstance(
                    error, Exception
                ):
                    raise
                raise _as_load_failure(load, error) from error
            if not found.parts:
                await self.abort(load.load_id, load.copies)
                return found, PublishResult(0, tuple(found.work))
            rows = found.rows if load.mode == MIXED else None
            published = await self._published(replace(load, attempts=dict(sorted(found.parts.items())), rows=rows))
            return found, PublishResult(published.rows, (*found.work, *published.work))

    async def _published(self, load: LoadPublication) -> PublishResult:
        if load.load_id in self._given_up:  # some members have dropped it, and others may not have yet
            raise errors.LoadFailedError(
                f"load {load.load_id} into {load.table.name} was given up by its client before it was published:"
                " nothing was loaded",
                table=load.table.name,
                load_id=load.load_id,
            )
        self._publishing.add(load.load_id)
        try:
            return await to_the_end(self._publish(load))
        finally:
            self._publishing.discard(load.load_id)

    async def _publish(self, load: LoadPublication) -> PublishResult:
        unassigned = load.attempts.keys() - frozenset().union(*load.copies.values())
        if unassigned:
            await self.abort(load.load_id, load.copies)
            raise errors.TopologyChangedError(
                f"partition {min(unassigned)} of {load.table.name}, for which load {load.load_id} has rows, is not"
                " there any more: nothing was loaded",
                table=load.table.name,
            )
        counted = _counted(load)
        prepared: dict[str, tuple[changes.PreparedRows, float]] = {}
        published_s: dict[str, float] = {}

        def rows_total() -> int:
            return sum(rows.rows_counted for rows, _ in prepared.values()) if load.rows is None else load.rows

        async def give(member: str, order: Order) -> None:
            match order:
                case Order.PREPARE:
                    prepared[member] = await self._prepare(member, load, counted[member])
                case Order.COMMIT:
                    _, published_s[member] = await self._timed(
                        member, changes.PublishPreparedLoad(load.load_id, load.number, rows_total())
                    )
                case Order.ABORT:
                    await self._members.call(member, changes.AbortStagedLoad(load.load_id))
                case _:
                    assert_never(order)

        commit = TwoPhaseCommit(load.copies)
        carrying_out = asyncio.get_running_loop().create_task(carry_out(commit, give, self._is_member))
        self._commits[carrying_out] = commit
        try:
            await asyncio.wait([carrying_out])
        finally:
            del self._commits[carrying_out]
            self._note(load, commit)
        if not carrying_out.cancelled():
            carrying_out.result()
        self._check_published(load, commit, is_stopped=carrying_out.cancelled())
        if load.table.replicated:
            for member in load.copies:
                self._telling.start(self._tell_everywhere(member, load))
        work = [
            work_of(
                "publish",
                member,
                partitions=partitions,
                rows_out=rows.rows + rows.rows_removed,
                busy_s=prepared_s + published_s.get(member, 0.0),
            )
            for member, (rows, prepared_s) in ((member, prepared[member]) for member in load.copies)
            if (partitions := len(load.attempts.keys() & load.copies[member]))
        ]
        return PublishResult(rows_total(), tuple(work), max((rows.age_s for rows, _ in prepared.values()), default=0.0))

    async def _tell_everywhere(self, member: str, load: LoadPublication) -> None:
        with suppress(errors.Error):  # a member that is not told asks the others
            await self._members.call(member, changes.PublishedEverywhere(load.table.table_id, load.number))

    def _note(self, load: LoadPublication, commit: TwoPhaseCommit) -> None:
        """Keep the number of a load that was published, or perhaps was."""
        if commit.is_committed and not any(
            isinstance(error, errors.LoadFailedError) for error in commit.failures.values()
        ):
            if commit.committed:
                self.numbers.made(load.table.origin, load.number, load.load_id, load.copies)
            else:
                self.numbers.maybe_made(load.table.origin)

    @staticmethod
    def _check_published(load: LoadPublication, commit: TwoPhaseCommit, *, is_stopped: bool) -> None:
        """Raise the reason why a load was not published, or why its outcome is unknown."""
        failures = [commit.failures[member] for member in load.copies if member in commit.failures]
        if is_stopped or (commit.is_committed and any(isinstance(f, asyncio.CancelledError) for f in failures)):
            raise errors.OperationalError(
                f"the controller was stopped while it published load {load.load_id} into {load.table.name}:"
                " read the table to see whether they are visible",
                table=load.table.name,
            )
        # A member that refuses to publish has aborted the load, as all that live have: who has published it is dead.
        refused = [failure for failure in failures if isinstance(failure, errors.LoadFailedError)]
        if not refused and not commit.committed and commit.is_committed and load.copies:
            raise errors.OperationalError(
                f"every member that had a copy of {load.table.name} has left the cluster while load {load.load_id} was"
                " published: when they have come back, read the table to see whether its rows are visible",
                table=load.table.name,
            )
        if refused or not commit.committed:
            gone = errors.MemberLostError("there is no member that could have a copy of the table")
            failure = [*refused, *failures, gone][0]
            raise _as_load_failure(load, failure) from failure
        unexpected = [failure for failure in failures if not isinstance(failure, errors.OperationalError)]
        if unexpected:
            raise unexpected[0]

    def close(self) -> None:
        """Stop waiting for members: the controller is stopped, and members decide their prepared loads themselves."""
        for task, commit in self._commits.items():
            if commit.phase is CommitPhase.COMMITTING:
                task.cancel()

    def exclusive(self, table_id: int) -> asyncio.Lock:
        """The lock of a table, held to publish a load and to change anything that preparing a load depends on."""
        return self._locks[table_id]

    def altered(self, table_id: int) -> None:
        """A table has another id."""
        self._locks.pop(table_id, None)

    def forget(self, table: TableDef) -> None:
        """A table was dropped; its id never comes again."""
        self._locks.pop(table.table_id, None)
        self.numbers.forget(table.origin)

    async def give_up(self, load_id: str, members: Iterable[str]) -> None:
        """Drop a staged load whose client does not want it any more, unless it is being published.

        Some members may have published it then, so that is carried out to the end; and what an earlier controller was
        publishing is decided by the members themselves.
        """
        if self.is_publishing(load_id) or self.numbers.are_in_doubt:
            return
        self._given_up.add(load_id)
        try:
            await self.abort(load_id, members)
        finally:
            self._given_up.discard(load_id)

    async def abort(self, load_id: str, members: Iterable[str]) -> None:
        """Drop a staged load everywhere. Members that cannot be reached have lost it anyway."""
        outcomes = await asyncio.gather(
            *(self._members.call(member, changes.AbortStagedLoad(load_id)) for member in members),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, errors.OperationalError):
                raise outcome

    async def _prepare(
        self, member: str, load: LoadPublication, counted: list[int]
    ) -> tuple[changes.PreparedRows, float]:
        copies = load.copies[member]
        parts = [(partition, list(attempts)) for partition, attempts in load.attempts.items() if partition in copies]
        return await self._timed(
            member, changes.PrepareLoad(load.load_id, load.table.table_id, load.mode, parts, counted)
        )

    async def _timed(self, member: str, message: Message[R]) -> tuple[R, float]:
        """A call, and the seconds until it was answered."""
        started_s = time.perf_counter()
        return await self._members.call(member, message), time.perf_counter() - started_s


def _counted(load: LoadPublication) -> dict[str, list[int]]:
    """The partitions by the member that counts their rows: its owners may change while a load is published."""
    left, counted = set(load.attempts), {}
    for member, copies in load.copies.items():
        counted[member] = sorted(left & copies)
        left -= copies
    return counted


def _lease(load: LoadPublication) -> changes.HoldLoad:
    return changes.HoldLoad(load.load_id, changes.TwoPhaseKind.LOAD)


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Carry out what must not stop half-way; if the waiting is cancelled meanwhile, that shows when it has ended."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()


async def _all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Wait until all have ended; the first that fails cancels the others, and its error is raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    if not tasks:
        return []
    try:
        done, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    failed = next((task for task in done if task.cancelled() or task.exception() is not None), None)
    for task in running:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    if failed is not None:
        failed.result()
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


def _as_load_failure(load: LoadPublication, cause: BaseException) -> errors.Error:
    if isinstance(cause, (errors.PartitionLostError, errors.LimitExceededError, errors.PolicyError)) or (
        isinstance(cause, errors.Error) and not isinstance(cause, errors.OperationalError)
    ):
        return cause
    return errors.LoadFailedError(
        f"load {load.load_id} into {load.table.name} was not published, and the table is unchanged: {cause}",
        table=load.table.name,
    )
