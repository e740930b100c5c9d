"""Changes of rows from the client: UPDATE and DELETE through their owners, MERGE and its like through one member.

A change is made only once, even if it is requested repeatedly: every execution has an id that stays the same when it is
retried, and members remember the ids of their changes. The controller publishes a change of several partitions.

MERGE, UPDATE ... FROM and similar changes are worked out by one member. Where the keys that the statement names are all
in one partition, its primary makes the change alone, with one frame: an ``INSERT ... ON CONFLICT DO UPDATE`` of one row
costs as much as an UPDATE of one row. So does the change of one row by its key with RETURNING, whose answer has the
values.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast

import msgspec
import pyarrow as pa
from msgspec import structs

from secateur import errors
from secateur.client.dbapi.parameters import values_of
from secateur.client.dbapi.rows import Rows
from secateur.client.dbapi.stats import QueryStats
from secateur.client.execution.execute import StatementCall, StatementExecution, execute
from secateur.client.execution.no_rows import check_nothing_new
from secateur.client.execution.retry_policy import MOVED
from secateur.client.execution.routing import ExecutionMode, MemberBatch, choose_route, partitions_of
from secateur.client.execution.verify_change import check_change
from secateur.client.session import Prepared, Session
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.changes import (
    ROW_CHANGES,
    ChangedRows,
    ChangedTable,
    ChangeOnePartition,
    ChangeSeveralPartitions,
    ChangeTable,
    GetReturnedRows,
)
from secateur.protocol.hello import Pruning
from secateur.protocol.many import ChangeMany, WriteMany
from secateur.protocol.message import Message
from secateur.protocol.metrics import RunProfile
from secateur.protocol.statements import ChangeStatement, CoordinatedChange, RoutedScan, SelectStatement
from secateur.wire import Answer, ShortTable, decode_rows, decode_table

REPEATED: Final = (*MOVED, errors.LoadFailedError)
"""The errors after which a change may be asked for again, under the same id."""

AskedBefore: TypeAlias = tuple[str, errors.MemberLostError | None]
"""The id under which a primary was asked for a change already, and may have made it: with the reason why the answer was
lost, if it was made as far as is known; None if it was not made."""


class ChangeResult(msgspec.Struct, frozen=True):
    """The outcome of a statement that changes rows.

    Attributes:
        rows: The number of changed rows.
        stats: The cost of the statement.
        returned: The rows of RETURNING; None without that clause.
        profile: The members' work; None when no profile was requested.
    """

    rows: int
    stats: QueryStats
    returned: Rows | None = None
    profile: RunProfile | None = None


Change: TypeAlias = ChangeStatement[SelectStatement] | CoordinatedChange[SelectStatement]
C = TypeVar("C", bound=Change)


class ChangeExecution(StatementExecution[C, ChangeResult]):
    """A change; one that a single primary makes has the same id in every attempt, so that it is made once.

    The controller publishes a change of several partitions as a load of its own in every attempt. So once a primary may
    have made the change, that way is closed.

    Attributes:
        otherwise: What is said where the text is another kind of statement when it is planned again.
    """

    otherwise: ClassVar[str]
    repeated = REPEATED

    def __init__(self, call: StatementCall[C], *, profiled: bool) -> None:
        super().__init__(call)
        self.profiled = profiled
        self.pruning = self.session.pruning is not Pruning.OFF
        self.change_id = os.urandom(16).hex()  # a UUID object would take longer than all else that is made here

    def of_this_kind(self, prepared: Prepared, because: errors.Error) -> C:
        if not isinstance(prepared, type(self.call.statement)):
            raise errors.InterfaceError(
                f"{self.call.sql!r} was planned again and {self.otherwise}: execute it again"
            ) from because
        return cast("C", prepared)

    def result(
        self,
        changed: ChangedRows | ChangedTable,
        execution: ExecutionMode,
        partitions: int,
        topology_version: int,
        returned: Rows | None = None,
    ) -> ChangeResult:
        """What an attempt has done to so many partitions; its profile has the changed rows, and no bytes."""
        total = self.call.statement.select.partitions_total
        stats = self.call.stats(execution, changed.members_touched, partitions, total, topology_version)
        profile = RunProfile(changed.rows, 0, changed.work) if self.profiled else None
        return ChangeResult(changed.rows, stats, returned, profile)

    def check_not_made(self) -> None:
        """Raise when an earlier attempt may have made the change, before it is asked for under another id.

        Raises:
            OperationalError: It may have.
        """
        if self.lost_answer is not None:
            raise unknown_outcome(self.call.statement.table, self.lost_answer)

    def change_one_partition(
        self, select: SelectStatement, partition: int, params: Sequence[Any], operation: str, *, pruning: bool
    ) -> ChangeResult:
        """Have the primary of a partition make the change, under the id that all attempts share.

        Args:
            select: The query of the change, whose first scan is that of the changed table.
            partition: The only partition that the change concerns.
            params: The parameters of the plan.
            operation: How the change is made, in the words of :class:`ChangeOnePartition`.
            pruning: Whether the member leaves out the other partitions.
        """
        asked = ChangeOnePartition(select.plan_id, list(params), pruning, operation, self.change_id, self.profiled)
        return self.outcome_at_primary(select.scans[0], partition, asked)[0]

    def outcome_at_primary(
        self, scan: RoutedScan, partition: int, asked: ChangeOnePartition
    ) -> tuple[ChangeResult, Answer[ChangedRows]]:
        """Ask the primary of a partition for a change; returns the outcome, and the answer as it came."""
        statement, topology_version = self.call.statement, self.session.topology.version
        try:
            answer = self.session.ask_member(self.session.owner(scan.group, partition), asked)
        except errors.MemberLostError as error:
            self.lost_answer = error
            raise
        except errors.DeadlineError as error:
            raise unknown_outcome(statement.table, error) from error
        return self.result(answer.message, ExecutionMode.LOCAL, 1, topology_version), answer

    def change_several_partitions(self, asked: Message[ChangedTable]) -> ChangedTable:
        """Have the controller publish a change of several partitions."""
        try:
            return self.session.ask(asked).message
        except (errors.MemberLostError, errors.DeadlineError) as error:
            raise unknown_outcome(self.call.statement.table, error) from error


def run_change(
    call: StatementCall[Change], *, profiled: bool = False, before: AskedBefore | None = None
) -> ChangeResult:
    """Carry out a statement that changes rows where they are, or that one member works out: all of it, or nothing.

    While the cluster changes it is tried again with fresh owners, for at most 10 s. What is visible is safe on all
    copies when this returns.

    Args:
        call: The call.
        profiled: Whether to say what the members did.
        before: Under which id a primary was asked for it already, and may have made it; None if none was.

    Raises:
        ParameterError: The parameters are not those of the statement.
        DuplicateKeyError, DataError, NullKeyError: A row that the table cannot take; nothing was changed.
        ProgrammingError: MERGE would change a row twice.
        PruningMismatchError: With ``SET pruning = verify``, the unpruned run finds other rows, or DuckDB leaves other
            rows when it runs the text over copies of the tables; nothing was changed.
        OperationalError: The members could not be reached for longer than 10 s; or an answer was lost, so that it is
            unknown whether the change was made, and the message says so.
    """
    kind: type[ChangeExecution[Any]] = (
        _RowsChange if isinstance(call.statement, ChangeStatement) else _CoordinatedChange
    )
    execution = kind(call, profiled=profiled)
    if before is not None:
        execution.change_id, execution.lost_answer = before
    if call.session.pruning is Pruning.VERIFY:
        check_change(execution.call)
    return execute(execution)


class _RowsChange(ChangeExecution[ChangeStatement[SelectStatement]]):
    """An UPDATE or DELETE of rows, each of which is changed where it is."""

    otherwise = "is no longer an UPDATE or DELETE"

    def attempt(self) -> ChangeResult:
        change = self.call.statement
        params = values_of(change.select, self.call.params, self.call.started)
        session, target = self.session, change.select.scans[0]
        topology = session.topology
        ids = partitions_of(target, params) if self.pruning else target.tree.live_ids()
        if not target.replicated and not len(ids):
            check_nothing_new(session, change.select)
            return self.result(ChangedRows(0, 0), ExecutionMode.NONE, 0, topology.version)
        if target.replicated or len(ids) > 1:
            self.check_not_made()
            execution_mode = (
                ExecutionMode.DISTRIBUTED
                if target.replicated
                else choose_route(change.select, params, topology, pruning=self.pruning).execution_mode
            )
            # An id of its own for each try: members remember how a load has ended, also one that was given up.
            load_id, plan = uuid.uuid4().hex, change.select.plan_id
            changed = self.change_several_partitions(
                ChangeSeveralPartitions(load_id, plan, list(params), self.pruning, change.kind, self.profiled)
            )
            return self.result(changed, execution_mode, len(ids), changed.topology_version)
        return self.change_one_partition(change.select, ids[0], params, change.kind, pruning=self.pruning)


def unknown_outcome(table: TableDef, error: errors.Error) -> errors.OperationalError:
    """The error for a change whose answer was lost."""
    name = table.name
    kind = errors.DeadlineError if isinstance(error, errors.DeadlineError) else errors.OperationalError
    return kind(
        f"the answer was lost, so it is not known whether {name} was changed: read its rows. {error.message}",
        table=name,
    )


P = TypeVar("P")


def change_in_frames(
    session: Session,
    table: TableDef,
    batches: Sequence[MemberBatch[P]],
    ask: Callable[[MemberBatch[P]], ChangeMany | WriteMany],
    alone: Callable[[P, AskedBefore | None], int],
    made: Callable[[int], None],
) -> None:
    """Have members make batches of changes of one table, all members at the same time.

    Args:
        session: The connection.
        table: The table.
        batches: The changes.
        ask: The request for a batch.
        alone: Makes one change by itself, under the id by which members know what they have made of it; returns the
            rows changed.
        made: Called with the rows that changes have changed, as soon as they are known.

    Raises:
        Error: As ``alone``; or a DeadlineError: the time is over, and nobody knows what a member has made.
    """
    while batches:
        if len(batches) == 1 and len(batches[0].positions) == 1:
            made(alone(batches[0].positions[0], None))
            return
        asked = [(batch.member, ask(batch)) for batch in batches]
        answers = session.answers_of(asked)
        for answer in answers:
            if not isinstance(answer, errors.Error) and answer.message.rows:
                made(sum(answer.message.rows))
        left = []
        for batch, (member, message), answer in zip(batches, asked, answers, strict=True):
            count, unconfirmed, lost = 0, len(batch.positions), None
            if isinstance(answer, errors.DeadlineError):
                raise unknown_outcome(table, answer) from answer
            if isinstance(answer, errors.MemberLostError):
                lost = answer
            elif not isinstance(answer, errors.Error):
                count, unconfirmed = len(answer.message.rows), answer.message.unconfirmed
                lost = errors.MemberLostError(
                    f"member {member} has made the change, and not every copy has confirmed it"
                )
            until = count + max(unconfirmed, batch.alone)
            for number, position in enumerate(batch.positions[count:until], count):
                lost_answer = lost if number < count + unconfirmed else None
                made(alone(position, (message.id_of(number), lost_answer)))
            left.append(batch.behind(count, until))
        batches = [batch for batch in left if batch.positions]


class _CoordinatedChange(ChangeExecution[CoordinatedChange[SelectStatement]]):
    """A change that one member works out: the primary of its only partition, or one that the controller chooses."""

    otherwise = "is another kind of statement now"

    def attempt(self) -> ChangeResult:
        change = self.call.statement
        if change.row is not None and self.pruning and not self.profiled:
            outcome = self._change_row(change.row, change.row_operation)
            if outcome is not None:
                return outcome
        values = values_of(change.select, self.call.params, self.call.started)
        partition = _only_partition(change.select, values) if change.is_single_partition else None
        if partition is not None:
            # The key says where a row of an INSERT is or goes: that is no matter of pruning, as in INSERT OR REPLACE.
            try:
                return self.change_one_partition(change.select, partition, values, ROW_CHANGES, pruning=True)
            except errors.NoRangeError:  # of another row than those that are in the partition
                if not change.table.scheme.makes_ranges:
                    raise
        self.check_not_made()
        return self._change_table(values)

    def _change_row(self, row: SelectStatement, operation: str) -> ChangeResult | None:
        """Have the primary of a row change it and answer with RETURNING; None where it did nothing, and cannot.

        Raises:
            OperationalError: It had made the change before, and does not have its values any more.
        """
        returning = self.call.statement.returning
        values = values_of(row, self.call.params, self.call.started)
        partition = _only_partition(row, values)
        if partition is None or returning is None:
            return None
        asked = ChangeOnePartition(row.plan_id, values, True, operation, self.change_id, False, returning.plan_id)
        outcome, answer = self.outcome_at_primary(row.scans[0], partition, asked)
        if answer.message.is_declined:
            return None
        if outcome.rows and not answer.payload:
            raise _rows_lost(self.call.statement, "the answer was lost with them") from self.lost_answer
        returned = decode_rows(answer.payload) if answer.payload else ShortTable([[] for _ in returning.columns], 0)
        return structs.replace(outcome, returned=Rows(returned, returning.columns))

    def _change_table(self, values: Sequence[Any]) -> ChangeResult:
        change = self.call.statement
        table, returning = change.table, change.returning
        # Before the change is made: where ranges are not known yet, the attempt is repeated once they are fetched.
        partitions = sum(
            len(partitions_of(scan, values) if self.pruning else scan.tree.live_ids()) for scan in change.select.scans
        )
        # An id of its own for each try: members remember how a load has ended, also one that was given up.
        load_id = uuid.uuid4().hex
        changed = self.change_several_partitions(
            ChangeTable(
                load_id=load_id,
                table=table.name,
                table_id=table.table_id,
                table_version=table.version,
                plan=change.select.plan_id,
                params=list(values),
                pruning=self.pruning,
                duplicate_match=change.duplicate_match,
                returning=None if returning is None else returning.plan_id,
                names_action=change.names_action,
                is_profiled=self.profiled,
            )
        )
        rows = None if returning is None else _fetch(self.session, change, changed.coordinator, load_id)
        returned = None if rows is None or returning is None else Rows(rows, returning.columns)
        return self.result(changed, ExecutionMode.DISTRIBUTED, partitions, changed.topology_version, returned)


def _only_partition(select: SelectStatement, values: Sequence[Any]) -> int | None:
    """The only partition that a query reads of its first table; None where these are more, or none."""
    ids = partitions_of(select.scans[0], values)
    return int(ids[0]) if len(ids) == 1 else None


def _fetch(
    session: Session, change: CoordinatedChange[SelectStatement], coordinator: str | None, load_id: str
) -> pa.Table:
    """The rows of RETURNING, which the coordinator keeps; without one, all members are asked who has them.

    Raises:
        OperationalError: No member has them any more.
    """
    # A controller that was started anew knows that the change was published, not who worked it out.
    members = session.known_topology.member_ids if coordinator is None else [coordinator]
    failure: errors.Error | None = None
    for member in members:
        try:
            return decode_table(session.ask_member(member, GetReturnedRows(load_id)).payload, ranges=False)
        except (errors.OperationalError, errors.UnknownTableError) as error:
            failure = error
    raise _rows_lost(change, "no member is left" if failure is None else failure.message) from failure


def _rows_lost(change: CoordinatedChange[SelectStatement], why: str) -> errors.OperationalError:
    name = change.table.name
    return errors.OperationalError(
        f"{name} was changed, but the rows of RETURNING were lost: the statement was carried out, once. Do not repeat"
        f" it, but read the rows with SELECT. {why}",
        table=name,
    )
