"""MERGE, UPDATE ... FROM and similar changes from the client: one member computes them, the controller publishes.

Where the keys that the statement names are all in one partition, its primary makes the change alone, with one frame: an
``INSERT ... ON CONFLICT DO UPDATE`` of one row costs as much as an UPDATE of one row. So does the change of one row by
its key with RETURNING, whose answer has the values.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from msgspec import structs

from secateur.client.dbapi.parameters import values_of
from secateur.client.execution import change as changes
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.routing import ExecutionMode, partitions_of
from secateur.client.session import Prepared, Session
from secateur.errors import Error, InterfaceError, OperationalError
from secateur.protocol.changes import ROW_CHANGES, ChangeOnePartition, ChangeTable, GetReturnedRows
from secateur.protocol.statements import CoordinatedChange, SelectStatement
from secateur.wire import ShortTable, decode_rows, decode_table


def run_coordinated_change(
    call: StatementCall[CoordinatedChange[SelectStatement]],
    *,
    profiled: bool = False,
    before: changes.AskedBefore | None = None,
) -> changes.ChangeResult:
    """Carry out a change that one member works out; see :func:`~secateur.client.execution.change.carry_out`.

    Args:
        call: The call.
        profiled: Whether to say what the members did.
        before: As of :func:`~secateur.client.execution.change.carry_out`.
    """
    return changes.carry_out(_CoordinatedChange(call, profiled=profiled), before)


class _CoordinatedChange(changes.ChangeExecution[CoordinatedChange[SelectStatement]]):
    """A change that one member works out: the primary of its only partition, or one that the controller chooses."""

    def attempt(self) -> changes.ChangeOutcome:
        change = self.call.statement
        if change.row is not None and self.pruning and not self.profiled:
            outcome = self._change_row(change.row, change.row_operation)
            if outcome is not None:
                return outcome
        values = values_of(change.select, self.call.params, self.call.started)
        partition = _only_partition(change.select, values) if change.is_single_partition else None
        if partition is None:
            self.check_not_made()
            return self._change_table(values)
        # The key says where the row of an INSERT is or goes, which is no matter of pruning, as for INSERT OR REPLACE.
        return self.change_one_partition(change.select, partition, values, ROW_CHANGES, pruning=True)

    def _change_row(self, row: SelectStatement, operation: str) -> changes.ChangeOutcome | None:
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
        return structs.replace(outcome, returned=returned)

    def _change_table(self, values: Sequence[Any]) -> changes.ChangeOutcome:
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
        return changes.ChangeOutcome(
            changed.rows,
            ExecutionMode.DISTRIBUTED,
            changed.members_touched,
            partitions,
            changed.topology_version,
            None if returning is None else _fetch(self.session, change, changed.coordinator, load_id),
            changes.profile_of_change(changed),
        )

    def of_this_kind(self, prepared: Prepared, because: Error) -> CoordinatedChange[SelectStatement]:
        if not isinstance(prepared, CoordinatedChange):
            raise InterfaceError(
                f"{self.call.sql!r} was planned again and is another kind of statement now: execute it again"
            ) from because
        return prepared


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
    failure: Error | None = None
    for member in members:
        try:
            return decode_table(session.ask_member(member, GetReturnedRows(load_id)).payload, ranges=False)
        except (OperationalError, *changes.NOTHING_DONE) as error:
            failure = error
    raise _rows_lost(change, "no member is left" if failure is None else failure.message) from failure


def _rows_lost(change: CoordinatedChange[SelectStatement], why: str) -> OperationalError:
    name = change.table.name
    return OperationalError(
        f"{name} was changed, but the rows of RETURNING were lost: the statement was carried out, once. Do not repeat"
        f" it, but read the rows with SELECT. {why}",
        table=name,
    )
