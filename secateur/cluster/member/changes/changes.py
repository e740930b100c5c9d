"""UPDATE and DELETE on a member: finds the rows where they are, writes their new values, and sends them to backups.

Backups get rows and keys, never the statement: they hold exactly what the primary holds, even if the statement is not
deterministic (``random()``, ``now()``).

**One partition.** The primary finds the rows and writes them with nothing in between, so that no other write is lost:
changes of one partition take turns, and rows that were found while another write changed the partition are found again.

**Several partitions.** The changed rows are staged as a load that the controller publishes: all of it becomes visible
at once, or nothing. From the moment that a member looks for rows until the publication, its latch is closed, so that no
other write comes in between.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from enum import Enum
from functools import partial
from typing import Any, Final, assert_never

import pyarrow as pa

from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.changes.change_turns import ChangeTurns, full_partition
from secateur.cluster.member.changes.keyed_changes import KeyedChanges
from secateur.cluster.member.changes.row_guards import RowGuards
from secateur.cluster.member.member_replication import MemberReplication
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.local_reads import LocalExecution, local_execution
from secateur.cluster.member.statements.plans import MemberPlans, bound_partitions, check_versions
from secateur.cluster.statement_profile import work_of
from secateur.engine.sql.row_changes import RowChanges
from secateur.engine.sql.row_upsert import RowConflict, RowUpsert
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import in_thread
from secateur.errors import ProtocolError
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.topology.owner_routing import split
from secateur.protocol.access import Rights, WriteKind
from secateur.protocol.changes import ChangedRows, ChangeOnePartition, DuplicateMatchPolicy, FoundParts, StageChange
from secateur.protocol.metrics import StageWork
from secateur.protocol.tokens import Privilege
from secateur.storage.change import ChangeOperation
from secateur.storage.delta import FewRows
from secateur.wire import Payload, PeerInfo, Reply, Request

ATTEMPT: Final = 0
"""The number of the one attempt by which a change stages its rows."""

_TRIES_MAX: Final = 3
"""Tries beside other writes; then the rows are found on the event loop, where nothing comes in between."""


class _QueryNeededError(Exception):
    """Only the query for the row changes says what becomes of a row, and the plan is without it; nothing was done."""


class _DeclinedError(Exception):
    """The change and its RETURNING need a kernel; nothing was done."""


_DECLINED: Final = Reply(ChangedRows(0, 0, is_declined=True))


class _Finding(Enum):
    """The kinds of rows that the query of a change finds. The value is the name on the wire."""

    ROWS = "upsert"
    """Rows as they will be."""
    KEYS = "delete"
    """Keys of rows that go."""
    ROW_CHANGES = "effects"
    """The changes to the rows of one partition, in the form that :class:`~secateur.engine.sql.row_changes.RowChanges`
    reads; no row is removed.
    """

    @property
    def word(self) -> str:
        """The name in EXPLAIN."""
        return "change" if self is _Finding.ROW_CHANGES else "delete" if self is _Finding.KEYS else "update"

    @property
    def operation(self) -> ChangeOperation:
        """The operation that is applied to the rows."""
        return ChangeOperation.DELETE if self is _Finding.KEYS else ChangeOperation.UPSERT


class MemberChanges:
    """Answers ``change_one_partition`` and ``stage_change`` requests. Lives on the member's event loop.

    Args:
        executor: Threads for kernel calls.
        waiting_max: Changes that wait for one partition; one more is refused.

    Attributes:
        together: That of the writes.
    """

    def __init__(
        self,
        storage: MemberStorage,
        plans: MemberPlans,
        replication: MemberReplication,
        executor: Executor,
        row_guards: RowGuards,
        waiting_max: int,
    ) -> None:
        self._store = storage.store
        places = self._places = storage.places
        self._results = storage.results
        self._plans = plans
        writes = self._writes = replication.writes
        self.together = writes.together
        self._loads = replication.loads
        self._executor = executor
        self._row_guards = row_guards
        self._turns: ChangeTurns[tuple[int, int]] = ChangeTurns(
            waiting_max, lambda key: full_partition(places.table(key[0]).name, key[1], places.member_id)
        )
        self._keyed = KeyedChanges(storage, writes, self._turns)

    def change(self, request: Request[ChangeOnePartition]) -> Reply[ChangedRows] | Awaitable[Reply[ChangedRows]]:
        """Change rows of a single partition, visible at once.

        A row that the statement names by its key is changed in this turn of the loop, if nothing has to be waited for.

        Args:
            request: The change.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was changed.
            ProtocolError: The statement concerns another number of partitions.
            MemberLostError: The rows are changed here, but a backup that the cluster counts on has not confirmed them.
            LimitExceededError: Too many changes of the partition wait, and this connection has most of them; nothing
                was changed.
            Error: The statement fails on these rows, for example because of a value that its column cannot hold;
                nothing was changed.
        """
        asked = request.message
        is_keyed = asked.returning is not None or (asked.pruning and not asked.is_profiled)
        if is_keyed:
            made = self.made_now(asked, request.peer.rights)
            if made is not None:
                return made
        if asked.returning is not None:
            return self._change_and_return_later(request, asked.returning)
        return self._change_later(request, is_keyed=is_keyed and self._plans.used(asked.plan) is None)

    def made_now(
        self, asked: ChangeOnePartition, rights: Rights | None
    ) -> Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]] | None:
        """Change the row that a statement names by its key, and answer with its RETURNING, or None.

        It is None, and nothing was done, if that takes more than this turn of the loop, or a kernel.

        Raises:
            Error: As :meth:`change`; nothing was changed.
        """
        plan, returning = self._plans.used(asked.plan), None
        if asked.returning is not None:
            returning = self._plans.used(asked.returning)
        if plan is None or (returning is None and asked.returning is not None):
            return None
        return self._keyed.made(asked, plan, self._check(rights, plan, asked.operation), returning)

    def _check(
        self, rights: Rights | None, plan: SelectPlan, operation: str
    ) -> Callable[[pa.Table | FewRows], None] | None:
        """The check of the rows that a change writes; None where nothing is to be checked."""
        if rights is None or not rights.guards or operation == _Finding.KEYS.value:
            return None
        if operation == _Finding.ROWS.value:
            kind = WriteKind.UPDATE
        else:
            replaces = plan.upsert is None or plan.upsert.conflict is RowConflict.UPDATED
            kind = WriteKind.UPSERT if replaces else WriteKind.INSERT
        return self._row_guards.of(rights, self._places.table(plan.scans[0].table_id), kind)

    async def _change_and_return_later(
        self, request: Request[ChangeOnePartition], returning_id: str
    ) -> Reply[ChangedRows]:
        asked, peer = request.message, request.peer
        plan, returning = await self._plans.plan(asked.plan), await self._plans.plan(returning_id)
        check = self._check(peer.rights, plan, asked.operation)
        check_versions(self._store, plan)
        partitions = bound_partitions(plan, asked.params, pruning=True)
        if plan.scans[0].replicated or len(partitions[0]) != 1:
            return _DECLINED
        table_id, partition = plan.scans[0].table_id, partitions[0][0]
        touched = 1 + len(self._places.backups(table_id, [partition]))
        turn = table_id, partition
        payload: Payload = b""

        async def make() -> RecordedChange:
            nonlocal payload
            async with self._turns.admitted(turn, peer):
                made = self._keyed.made_in_turn(asked, plan, check, returning, turn)
            if made is None:
                raise _DeclinedError
            change, payload = made
            return change

        try:
            rows = await self._writes.write_once(table_id, partition, asked.change_id, make)
        except _DeclinedError:
            return _DECLINED
        return Reply(ChangedRows(rows, touched), payload)

    async def _change_later(self, request: Request[ChangeOnePartition], *, is_keyed: bool) -> Reply[ChangedRows]:
        """As :meth:`change`, with what has to be waited for; ``is_keyed`` where the short way was not tried yet."""
        asked = request.message
        plan = await self._plans.plan(asked.plan)
        if plan.upsert is not None and plan.upsert.conflict is not RowConflict.UPDATED:
            raise ProtocolError(
                f"plan {asked.plan} is that of an INSERT whose RETURNING is answered: ask for that as well"
            )
        check = self._check(request.peer.rights, plan, asked.operation)
        if is_keyed and (made := self._keyed.made(asked, plan, check)) is not None:
            return made if isinstance(made, Reply) else await made
        params = await self._plans.with_values(plan, asked.params)
        pruning, finding = asked.pruning, _finding(asked.operation)
        check_versions(self._store, plan)
        partitions = bound_partitions(plan, params, pruning=pruning)
        table_id = plan.scans[0].table_id
        if plan.scans[0].replicated or len(partitions[0]) != 1:
            raise ProtocolError(
                f"change is for one partition, the statement concerns {len(partitions[0])} of them: the controller"
                " publishes it"
            )
        partition = partitions[0][0]
        backups = self._places.backups(table_id, [partition])
        work: list[StageWork] | None = [] if asked.is_profiled else None
        change = partial(self._change_partition, request, partitions, finding, work, check)
        write = partial(self._writes.write_once, table_id, partition, asked.change_id)
        try:
            rows = await write(partial(change, plan, params))
        except _QueryNeededError:  # and no latch or turn is held while the plan of the query is fetched
            plan = await self._plans.whole(plan)
            rows = await write(partial(change, plan, await self._plans.with_values(plan, asked.params)))
        touched = 1 + len(backups)
        if work is None:
            return Reply(ChangedRows(rows, touched))
        copied = f"copy {self._places.table(table_id).name}"
        copies = (work_of(copied, member, partitions=1, rows_in=rows, rows_out=rows) for member in backups)
        return Reply(ChangedRows(rows, touched, (*work, *copies)))

    async def stage(self, request: Request[StageChange]) -> Reply[FoundParts]:
        """Find the rows of some partitions and stage their changes, here and on the backups.

        From then on no other write comes in between.

        Raises:
            TopologyChangedError: This member is not the primary of a partition; nothing was staged.
            Error: The statement fails on these rows.
        """
        asked, wanted = request.message.change, request.message.partitions
        plan = await self._plans.plan(asked.plan)
        params = await self._plans.with_values(plan, asked.params)
        pruning, finding = asked.pruning, _finding(asked.operation)
        if finding is _Finding.ROW_CHANGES:
            raise ProtocolError(
                "row changes on several partitions are worked out by one member for all of them, with work_out_change"
            )
        check_versions(self._store, plan)
        partitions = [wanted, *bound_partitions(plan, params, pruning=pruning)[1:]]
        load_id, table_id = asked.load_id, plan.scans[0].table_id
        self._places.backups(table_id, wanted)
        async with self._loads.closed_unless_failed(load_id, table_id, request.peer):
            call = local_execution(self._store, plan, params, partitions, pruning=pruning)
            started_s = time.perf_counter()
            found = await in_thread(self._executor, partial(call.answered, params))
            kernel_s = time.perf_counter() - started_s
            rows = self._shaped(found, table_id, finding)
            if asked.token is not None and finding is _Finding.ROWS:
                rights = self._row_guards.rights_of(asked.token)
                self._row_guards.check(rights, self._places.table(table_id), WriteKind.UPDATE, rows)
            pieces = (
                split(rows, self._places.table(table_id))
                if not plan.scans[0].replicated
                else {0: rows}
                if rows.num_rows
                else {}
            )
            copies = self._places.other_copies(table_id, wanted)
            sent_bytes = await self._loads.stage_pieces(
                load_id, table_id, ATTEMPT, pieces, copies, keys=finding is _Finding.KEYS
            )
        if not asked.is_profiled:
            return Reply(FoundParts(list(pieces)))
        return Reply(
            FoundParts(
                list(pieces), (self._work(finding, table_id, len(wanted), call.rows, rows, sent_bytes, kernel_s),)
            )
        )

    async def _change_partition(
        self,
        request: Request[ChangeOnePartition],
        partitions: Sequence[Sequence[int]],
        finding: _Finding,
        work: list[StageWork] | None,
        check: Callable[[pa.Table | FewRows], None] | None,
        plan: SelectPlan,
        params: Sequence[Any],
    ) -> RecordedChange:
        pruning, change_id = request.message.pruning, request.message.change_id
        table_id, partition = plan.scans[0].table_id, partitions[0][0]
        async with self._turns.admitted((table_id, partition), request.peer):
            started_s = time.perf_counter()
            upserted = (
                None
                if plan.upsert is None or not pruning or finding is not _Finding.ROW_CHANGES
                else self._upserted(plan.upsert, table_id, partition, params, check)
            )
            if upserted is None:
                if plan.is_upsert_only:
                    raise _QueryNeededError
                call, found = await self._find(plan, params, partitions, request.peer, pruning=pruning)
                kernel_s = time.perf_counter() - started_s
                # From here to the frames to the backups nothing is awaited.
                read, rows = call.rows, self._shaped(found, table_id, finding)
            else:
                kernel_s = time.perf_counter() - started_s
                read, rows = upserted
            if check is not None:
                check(rows)
            operation = finding.operation
            if finding is _Finding.ROW_CHANGES and Privilege.UPDATE not in (plan.privileges or (Privilege.UPDATE,)):
                operation = ChangeOperation.IGNORE  # it may add rows, whoever sends it, and replaces none
            made, sent_bytes = self._writes.apply(table_id, partition, operation, rows, change_id)
            if work is not None:
                work.append(self._work(finding, table_id, 1, read, rows, sent_bytes, kernel_s))
            return made

    def _upserted(
        self,
        upsert: RowUpsert,
        table_id: int,
        partition: int,
        params: Sequence[Any],
        check: Callable[[pa.Table | FewRows], None] | None,
    ) -> tuple[int, pa.Table] | None:
        """Rows read and the row to write for an INSERT of one row as of now; None where only DuckDB can say it."""
        table = self._places.table(table_id)
        row = upsert.inserted(table, params)
        if row is None or any(row.column(name).null_count for name in table.primary_key):
            return None
        if check is not None:  # as for the short way
            check(row)
        found = self._store.partition(table_id, partition).find_same_key(row)
        if found is None:
            return 0, conform(row, table)
        updated = upsert.updated(table, *found, params)
        return None if updated is None else (1, conform(updated, table))

    async def _find(
        self,
        plan: SelectPlan,
        params: Sequence[Any],
        partitions: Sequence[Sequence[int]],
        peer: PeerInfo,
        *,
        pruning: bool,
    ) -> tuple[LocalExecution, pa.Table]:
        """Find the rows of the request as of now. The search is given up with the connection that requested it."""
        hosted = self._store.partition(plan.scans[0].table_id, partitions[0][0])
        for _ in range(_TRIES_MAX):
            version = hosted.version
            call = local_execution(self._store, plan, params, partitions, pruning=pruning)
            if call.is_quick and len(call.relations) == 1:  # of a join, DuckDB might have to run on the event loop
                return call, call.answered(params)
            found = await self._results.while_connected(peer, in_thread(self._executor, partial(call.answered, params)))
            if hosted.version == version:
                return call, found
        call = local_execution(self._store, plan, params, partitions, pruning=pruning)
        return call, call.answered(params)

    def _work(
        self,
        finding: _Finding,
        table_id: int,
        partitions: int,
        rows_read: int,
        rows: pa.Table,
        sent_bytes: int,
        kernel_s: float,
    ) -> StageWork:
        """The work of this member to find rows and to stage or write them, for EXPLAIN ANALYZE."""
        return work_of(
            f"{finding.word} {self._places.table(table_id).name}",
            self._places.member_id,
            partitions=partitions,
            rows_in=rows_read,
            rows_out=rows.num_rows,
            bytes_out=rows.nbytes,
            sent_bytes=sent_bytes,
            kernel_s=kernel_s,
        )

    def _shaped(self, found: pa.Table, table_id: int, finding: _Finding) -> pa.Table:
        match finding:
            case _Finding.KEYS:
                return found
            case _Finding.ROWS:
                return conform(found, self._places.table(table_id))
            case _Finding.ROW_CHANGES:
                table = self._places.table(table_id)
                return RowChanges.of(found, table, DuplicateMatchPolicy.FIRST).resulting(table)
            case _:
                assert_never(finding)


def _finding(text: str) -> _Finding:
    try:
        return _Finding(text)
    except ValueError:
        raise ProtocolError(
            f"operation {text!r} is none of {', '.join(repr(finding.value) for finding in _Finding)}"
        ) from None
