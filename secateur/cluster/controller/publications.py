"""The publications of a controller: loads, and changes that concern several partitions.

It answers the requests of those who have staged rows, each once, and keeps on record what was published. A batch of a
stream is published once, too (:mod:`secateur.cluster.controller.stream_batches`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.history import LoadHistory
from secateur.cluster.controller.joining import Joining
from secateur.cluster.controller.loads import LoadPublication, LoadPublisher
from secateur.cluster.controller.running_requests import RequestState, RunningRequests
from secateur.cluster.controller.statement_requests import StatementRequests
from secateur.cluster.controller.statistics_cache import StatisticsCache
from secateur.cluster.controller.table_commands import TableCommands
from secateur.cluster.member.changes.change_turns import ChangeTurns
from secateur.cluster.member.changes.changes import ATTEMPT
from secateur.cluster.member.statements.plans import bound_partitions
from secateur.errors import (
    Error,
    LoadFailedError,
    MemberLostError,
    OperationalError,
    ProgrammingError,
    TopologyChangedError,
)
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import by_primary, copies_of
from secateur.protocol import changes
from secateur.protocol.changes import GetLoadOutcome, LoadOutcomeAnswer, StreamBatch
from secateur.protocol.hello import GivenVersions
from secateur.protocol.message import Acknowledged
from secateur.protocol.recovery import PublishedBatch
from secateur.storage.change import MIXED, ChangeOperation
from secateur.wire import Handled, Reply, Request

_log = logging.getLogger(__name__)

T = TypeVar("T")
M = TypeVar("M", changes.PublishLoad, changes.ChangeSeveralPartitions, changes.ChangeTable)
C = TypeVar("C", changes.ChangeSeveralPartitions, changes.ChangeTable)
R = TypeVar("R")
_KEPT_MAX: Final = 1_000
_ASK_AGAIN_S: Final = 0.1


def _on_behalf(request: Request[C]) -> Request[C]:
    """A change with the token of its client for the members, which know nothing else of it; whatever it said itself."""
    token = None if request.peer.rights is None else request.peer.token
    return replace(request, message=replace(request.message, token=token))


class Publications:
    """Publishes what was staged at the members. Lives on the controller's event loop.

    Args:
        joining: Lets members in; none joins while rows are published, since it would miss them.

    Attributes:
        history: What was published.
        streams: Which batches of streams were published.
    """

    def __init__(
        self,
        state: ClusterState,
        publisher: LoadPublisher,
        joining: Joining,
        statistics: StatisticsCache,
        statements: StatementRequests,
        table_commands: TableCommands,
        requests: RunningRequests,
        turns: ChangeTurns[tuple[int, str]],
    ) -> None:
        self._state = state
        self._loads = publisher
        self._joining = joining
        self._statistics = statistics
        self._statements = statements
        self._table_commands = table_commands
        self._requests = requests
        self._turns = turns
        self._answers = LoadAnswers(state.call, lambda: state.topology.member_ids, publisher.numbers.settled)
        self.history = LoadHistory()
        self.streams = StreamPublisher(state, self._answers.rows_published)

    def publish_load(self, request: Request[changes.PublishLoad]) -> Handled:
        """Publish the rows that a load has staged."""
        return self._once(self._publish_load, request, self._loaded)

    def change_several(self, request: Request[changes.ChangeSeveralPartitions]) -> Handled:
        """Carry out an UPDATE or DELETE that concerns several partitions, or a replicated table."""
        return self._once(self._change_several, _on_behalf(request), self._changed)

    def change_table(self, request: Request[changes.ChangeTable]) -> Handled:
        """Carry out a change that one member works out for all partitions."""
        return self._once(self._change_table, _on_behalf(request), self._changed)

    async def abort_load(self, request: Request[changes.AbortLoad]) -> Reply[Acknowledged]:
        """Forget what a load has staged, whose client has given it up."""
        await self._loads.give_up(request.message.load_id, self._state.topology.member_ids)
        return Reply(Acknowledged())

    async def _once(
        self,
        publish: Callable[[Request[M]], Coroutine[Any, Any, Reply[R]]],
        request: Request[M],
        answer: Callable[[int], Reply[R]],
    ) -> Reply[R]:
        """Publish rows once."""
        asked = request.message
        return await self._answers.once(
            asked.load_id, is_repeat=asked.is_repeat, work=lambda: publish(request), answer=answer
        )

    def _versions(self) -> GivenVersions:
        return self._state.versions(self._statistics.version)

    def _loaded(self, rows: int) -> Reply[changes.LoadedRows]:
        return Reply(changes.LoadedRows(rows=rows, **self._versions()))

    def _changed(self, rows: int) -> Reply[changes.ChangedTable]:
        return Reply(changes.ChangedTable(rows=rows, members_touched=0, **self._versions()))

    async def _publish_load(self, request: Request[changes.PublishLoad]) -> Reply[changes.LoadedRows]:
        async with self._joining.loads.shared():  # a member that joins meanwhile would miss its rows
            return await self._publish_staged(request.message)

    async def _publish_staged(self, asked: changes.PublishLoad) -> Reply[changes.LoadedRows]:
        table = self._state.catalog.table(asked.table)
        if asked.stream is None:
            return await self._publish_rows(asked, table)
        answer = await self.streams.once(table, asked.stream, asked.load_id, lambda: self._publish_rows(asked, table))
        if answer is not None:
            return answer
        await self._loads.abort(asked.load_id, self._state.topology.member_ids)
        return Reply(changes.LoadedRows(rows=0, was_published=True, **self._versions()))

    async def _publish_rows(self, asked: changes.PublishLoad, table: TableDef) -> Reply[changes.LoadedRows]:
        succession = table.succession
        if succession is not None and asked.table_id == succession.before:
            raise LoadFailedError(
                f"ALTER TABLE has changed the columns of {table.name} while rows were staged for it by those of before;"
                " nothing was loaded: load them again",
                table=table.name,
                load_id=asked.load_id,
            )
        if asked.table_id is not None and asked.table_id != table.table_id:
            raise TopologyChangedError(
                f"table {table.name} was dropped and created again while rows were staged for it; nothing was loaded",
                table=table.name,
            )
        parts: Mapping[int, Sequence[int]] = asked.parts
        if asked.mode == ChangeOperation.OVERWRITE_RANGES:
            if table.scheme.range is None:
                raise ProgrammingError(
                    f"table {table.name} has no range partitions, of which some could be overwritten: overwrite the"
                    " whole table, or upsert",
                    table=table.name,
                )
            parts = {partition: parts.get(partition, ()) for partition in _whole_ranges(table.scheme, parts)}
        is_overwritten = asked.mode in (ChangeOperation.OVERWRITE, ChangeOperation.OVERWRITE_RANGES)
        if is_overwritten and not table.replicated:
            # Rows of a partition that is lost must not be there again when its last owner comes back.
            live = table.scheme.live_partitions().tolist()
            if asked.mode == ChangeOperation.OVERWRITE_RANGES:
                live = sorted(parts.keys() & set(live))
            topology = self._state.topology
            topology.check_live(topology.ownership(table.scheme.affinity_group()).owners_of(live) if live else ())
        load = self._new_load(asked.load_id, table, asked.mode, parts)
        published = await self._killable(
            asked.load_id, f"load {load.load_id} into {table.name}", self._loads.publish(load)
        )
        self.history.published(
            load.load_id,
            table.table_id,
            rows=published.rows,
            partitions=sum(map(bool, parts.values())),
            age_s=published.age_s,
            stream=asked.stream,
        )
        if is_overwritten:
            self._statistics.replaced(table.table_id)
        else:
            self._statistics.written(table.table_id, published.rows)
        return Reply(changes.LoadedRows(rows=published.rows, work=published.work, **self._versions()))

    async def _killable(self, load_id: str, statement: str, work: Awaitable[T]) -> T:
        """Publish a load, or carry out a change, that KILL ends unless its publication has begun."""
        return await self._requests.run(
            RequestState.PUBLISHING, statement, work, lambda: not self._loads.is_publishing(load_id)
        )

    async def _in_turn(
        self, request: Request[C], table: tuple[int, str], change: Callable[[C], Awaitable[Reply[changes.ChangedTable]]]
    ) -> Reply[changes.ChangedTable]:
        """Carry out a change of a table, given by id and name, when it is its turn.

        No member joins meanwhile, which would miss it.
        """

        async def carry_out() -> Reply[changes.ChangedTable]:
            async with self._turns.admitted(table, request.peer), self._joining.loads.shared():
                return await change(request.message)

        asked = request.message
        return await self._killable(asked.load_id, self._text_of(asked.plan), carry_out())

    def _text_of(self, plan_id: str) -> str:
        facts = self._statements.replies.facts(plan_id)
        return f"plan {plan_id}" if facts is None else facts.statement

    def _new_load(
        self, load_id: str, table: TableDef, mode: str, attempts: Mapping[int, Sequence[int]]
    ) -> LoadPublication:
        # Also those without a copy: readers compare the numbers of the last publication.
        copies = {
            member_id: frozenset(copies_of(self._state.topology, table, member_id))
            for member_id in self._state.topology.member_ids
        }
        return LoadPublication(load_id, self._loads.numbers.following(), table, mode, attempts, copies)

    def _planned_table(self, name: str, table_id: int, version: int) -> TableDef:
        """The table of a change, which is still the one that it was planned for."""
        table = self._state.catalog.table(name)
        if (table.table_id, table.version) != (table_id, version):
            raise TopologyChangedError(
                f"table {table.name} has changed since the statement was planned: plan it again; nothing was changed",
                table=table.name,
            )
        return table

    async def _change_several(self, request: Request[changes.ChangeSeveralPartitions]) -> Reply[changes.ChangedTable]:
        scan = self._statements.replies.plan(request.message.plan).scans[0]
        return await self._in_turn(request, (scan.table_id, scan.table), self._several_changed)

    async def _several_changed(self, asked: changes.ChangeSeveralPartitions) -> Reply[changes.ChangedTable]:
        topology, plan = self._state.topology, self._statements.replies.plan(asked.plan)
        scan = plan.scans[0]
        table = self._planned_table(scan.table, scan.table_id, scan.table_version)
        topology.check_any()
        ids = bound_partitions(plan, asked.params, pruning=asked.pruning)[0]
        partitions = {topology.member_ids[0]: [0]} if table.replicated else by_primary(topology, table, ids)
        topology.check_live(list(partitions))
        load = self._new_load(asked.load_id, table, asked.operation, {})
        changed = await self._loads.change(load, ATTEMPT, partitions, asked)
        self._statistics.written(table.table_id, changed.rows)
        held = {member_id for member_id, copies in load.copies.items() if not copies.isdisjoint(ids)}
        return Reply(
            changes.ChangedTable(rows=changed.rows, members_touched=len(held), work=changed.work, **self._versions())
        )

    async def _change_table(self, request: Request[changes.ChangeTable]) -> Reply[changes.ChangedTable]:
        asked = request.message
        return await self._in_turn(request, (asked.table_id, asked.table), self._table_changed)

    async def _table_changed(self, asked: changes.ChangeTable) -> Reply[changes.ChangedTable]:
        plan = await self._statements.whole(asked.plan)
        asked = replace(asked, plan=plan.plan_id)
        topology = self._state.topology
        table = self._planned_table(asked.table, asked.table_id, asked.table_version)
        topology.check_any()
        bound = bound_partitions(plan, asked.params, pruning=asked.pruning)
        owners = [
            topology.ownership(scan.group).primary(ids[0])
            for scan, ids in zip(plan.scans, bound, strict=True)
            if len(ids) and not scan.replicated
        ]
        coordinator = owners[0] if owners else topology.member_ids[0]
        topology.check_live([coordinator])
        load = self._new_load(asked.load_id, table, MIXED, {})
        worked_out = await self._loads.change_whole(load, coordinator, asked)
        if worked_out.missing_cells:
            await self._table_commands.make_ranges(table.name, table.table_id, worked_out.missing_cells)
            raise TopologyChangedError(
                f"ranges of {table.name} were made for rows of the statement: plan it again; nothing was changed",
                table=table.name,
            )
        self._statistics.written(table.table_id, worked_out.rows)
        touched = len(load.copies)
        return Reply(
            changes.ChangedTable(
                rows=worked_out.rows,
                members_touched=touched,
                coordinator=coordinator,
                work=worked_out.work,
                **self._versions(),
            )
        )


def _whole_ranges(scheme: PartitionScheme, partitions: Iterable[int]) -> list[int]:
    """Return the partitions of every range that has one of ``partitions``, ascending.

    Partitions of no live range are returned as well. Without a range component, all partitions are one range. Cost: a
    step for each range.
    """
    found = set(partitions)
    for ordinal in {partition.ordinal for partition in scheme.ranges()}:
        block = scheme.block(ordinal)
        if not found.isdisjoint(block):
            found.update(block)
    return sorted(found)


class LoadAnswers:
    """Remembers answers of loads and changes that a client asks for again, because the first answer was lost.

    A load is published at most once, by its id. A client says that it asks again, so that the first request costs
    nothing more. Lives on the controller's event loop.

    Args:
        ask: Asks a member for the outcome of a load.
        members: Gives the ids of the members.
        settled: Returns when what was in doubt at a change of controllers is decided, and this one knows how: a member
            that comes back later must not have another outcome than the client was told.
    """

    def __init__(
        self,
        ask: Callable[[str, GetLoadOutcome], Coroutine[Any, Any, LoadOutcomeAnswer]],
        members: Callable[[], Sequence[str]],
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        self._ask = ask
        self._members = members
        self._settled = settled
        self._answers: OrderedDict[str, asyncio.Future[Any]] = OrderedDict()

    async def once(
        self, load_id: str, *, is_repeat: bool, work: Callable[[], Coroutine[Any, Any, R]], answer: Callable[[int], R]
    ) -> R:
        """Publish a load, unless that was done before; then return its answer.

        Args:
            load_id: The load.
            is_repeat: Whether the client asks again.
            work: Publishes it.
            answer: The answer for a load of which only the number of rows is known; -1 for not even that.

        Raises:
            LoadFailedError: It was asked for before, and not published; it never will be.
            Error: As ``work``.
        """
        if is_repeat:
            before = self._answers.get(load_id)
            if before is not None:
                try:
                    return await asyncio.shield(before)
                except asyncio.CancelledError:
                    if not before.cancelled():
                        raise
            return answer(await self.rows_published(load_id))
        task = asyncio.ensure_future(work())
        self._answers[load_id] = task
        if len(self._answers) > _KEPT_MAX:
            self._answers.popitem(last=False)
        return await task

    async def rows_published(self, load_id: str) -> int:
        """The rows of a published load; -1 if nobody knows how many. Members that are asked do not prepare it any more.

        Raises:
            LoadFailedError: It was not published, and never will be.
            OperationalError: No member is left that could say; no :class:`~secateur.errors.PartitionLostError`, since a
                client makes a change again after that, under another id.
        """
        await self._settled()
        while True:
            members = self._members()
            if not members:
                raise OperationalError(
                    f"no member is left that could say whether load {load_id} was published: read the table when one"
                    " has come back",
                    load_id=load_id,
                )
            outcomes = await asyncio.gather(
                *(self._ask(member, GetLoadOutcome(load_id)) for member in members), return_exceptions=True
            )
            told = [outcome for outcome in outcomes if isinstance(outcome, LoadOutcomeAnswer)]
            if published := [outcome.rows for outcome in told if outcome.is_published]:
                return max(published)
            failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            unexpected = [error for error in failed if not isinstance(error, MemberLostError)]
            if unexpected:
                raise unexpected[0]
            if not failed and not any(outcome.is_in_doubt for outcome in told):
                raise LoadFailedError(
                    f"load {load_id} was aborted, because its controller ended before it was published; nothing was"
                    " changed",
                    load_id=load_id,
                    is_aborted=True,
                )
            await asyncio.sleep(_ASK_AGAIN_S)


class StreamPublisher:
    """Publishes batches. Lives on the controller's event loop.

    Args:
        rows_published: Returns if a load was published, and raises a LoadFailedError if it never will be.
    """

    def __init__(self, state: ClusterState, rows_published: Callable[[str], Awaitable[int]]) -> None:
        self._state = state
        self._rows_published = rows_published
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    async def once(
        self, table: TableDef, batch: StreamBatch, load_id: str, publish: Callable[[], Awaitable[R]]
    ) -> R | None:
        """Publish the load of a batch; None, and nothing is done, if the batch was published before.

        Costs one delivery of the record to all members before the publication.

        Raises:
            ProgrammingError: The stream has published this batch, or a later one, from another query.
            Error: As ``publish``.
        """
        async with self._locks.setdefault((table.origin, batch.stream), asyncio.Lock()):
            if await self._was_published(table, batch):
                return None
            entry = PublishedBatch(table.origin, batch, load_id)
            tables = {known.origin for known in self._state.catalog.tables()}
            self._state.streams = self._state.streams.begun(entry, tables)
            await self._state.all_reached()
            answer = await publish()
            self._state.streams = self._state.streams.published(load_id)
            return answer

    async def settle(self) -> None:
        """Find out which loads that an earlier controller has begun were published, while members remember them.

        Where nobody can say, members are asked again when the batch comes again.
        """
        for entry in self._state.streams.entries:
            try:
                is_published = entry.is_published or await self._is_published(entry.load_id)
            except Error as error:
                _log.warning("whether batch %s was published is not known yet: %s", entry.batch, error)
                continue
            if is_published and not entry.is_published:
                self._state.streams = self._state.streams.published(entry.load_id)

    async def _was_published(self, table: TableDef, batch: StreamBatch) -> bool:
        last = self._state.streams.find(table.origin, batch.stream)
        if last is None or last.batch.batch < batch.batch:
            return False
        if last.batch.query != batch.query:
            raise ProgrammingError(
                f"batch {batch.batch} of stream {batch.stream!r} was not published: {table.name} has batch"
                f" {last.batch.batch} of this stream from another query ({last.batch.query}), so this one, which begins"
                " anew, may bring other rows under the same numbers. Go on from the checkpoint of that query, or choose"
                " another streamId",
                table=table.name,
            )
        return last.batch.batch > batch.batch or last.is_published or await self._is_published(last.load_id)

    async def _is_published(self, load_id: str) -> bool:
        try:
            await self._rows_published(load_id)
        except LoadFailedError:
            return False
        return True
