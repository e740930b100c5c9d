"""MERGE, UPDATE ...

FROM and their kin from the client: the controller has one member work the change out and publishes it.

Where the keys that the statement names are all in one partition, its primary does it alone, with one frame: so an
``INSERT ... ON CONFLICT DO UPDATE`` of one row costs what an UPDATE of one row costs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from secateur.client.dbapi.stats import QueryStats
from secateur.client.execution.change import NOTHING_DONE, ChangeResult, unknown_outcome
from secateur.client.execution.pruning import Pruning
from secateur.client.execution.retry_policy import RetryPolicy, planned_again
from secateur.client.execution.routing import ExecutionMode
from secateur.client.execution.run_profile import RunProfile, profile_of_change
from secateur.client.execution.select import run_select
from secateur.client.execution.statement import WholeChange
from secateur.client.session import Session
from secateur.errors import DeadlineError, Error, InterfaceError, MemberLostError, OperationalError, PartitionLostError
from secateur.wire import decode_table

__all__ = ["run_whole_change"]


@dataclass(frozen=True, slots=True)
class _Outcome:
    rows: int
    execution: ExecutionMode
    members_touched: int
    partitions: int
    topology_version: int
    returned: pa.Table | None = None
    profile: RunProfile | None = None


def run_whole_change(
    session: Session,
    sql: str,
    params: list[Any] | dict[str, Any],
    change: WholeChange,
    *,
    cached: bool,
    started_s: float,
    profiled: bool = False,
) -> ChangeResult:
    """Carry out a change: all of it, or nothing.

    While the cluster changes it is tried again with fresh owners, for at most 10 s. What is visible is safe on all
    copies when this returns.

    Args:
        session: Where.
        sql: The text, to plan again if the plan has become stale.
        params: Plain parameters as the user gave them.
        change: The plan.
        cached: Whether the plan was known before.
        started_s: ``time.perf_counter()`` when the user called.
        profiled: Whether to say what the members did.

    Raises:
        ProgrammingError: MERGE would change a row twice.
        DuplicateKeyError, DataError, NullKeyError: A row that the table cannot take; nothing was changed.
        PruningMismatchError: With ``SET pruning = verify``, the unpruned run finds other rows; nothing was changed.
        OperationalError: The members could not be reached for longer than 10 s; or an answer was lost, so that it is
            unknown whether the change was made, and the message says so.
    """
    pruning = session.pruning
    if pruning is Pruning.VERIFY:
        run_select(session, sql, params, change.source, cached=cached, started_s=started_s)
    outcome = _following(session, sql, params, change, pruning=bool(pruning), profiled=profiled)
    stats = QueryStats(
        members_touched=outcome.members_touched,
        members_total=len(session.topology.members),
        partitions_read=outcome.partitions,
        partitions_total=change.source.partitions_total,
        execution=outcome.execution,
        pruning=pruning,
        topology_version=outcome.topology_version,
        plan_cached=cached,
        elapsed_ms=(time.perf_counter() - started_s) * 1000,
    )
    return ChangeResult(outcome.rows, stats, outcome.returned, outcome.profile)


def _following(
    session: Session,
    sql: str,
    params: list[Any] | dict[str, Any],
    change: WholeChange,
    *,
    pruning: bool,
    profiled: bool,
) -> _Outcome:
    """Run, and when the cluster has changed, learn and run again: at the primary of a partition under the same id, so
    that it is made once.
    """
    change_id = uuid.uuid4().hex
    retry_policy = RetryPolicy(session)
    uncertain: MemberLostError | None = None
    while True:
        try:
            values = change.source.values(params)
            partition = _only_partition(change, values, pruning=pruning)
            if partition is not None:
                return _run_narrow(session, change, values, partition, change_id, pruning=pruning, profiled=profiled)
            if uncertain is not None:
                raise unknown_outcome(change.table, uncertain)
            return _run_whole(session, change, values, pruning=pruning, profiled=profiled)
        except (PartitionLostError, *NOTHING_DONE, MemberLostError) as error:
            uncertain = error if isinstance(error, MemberLostError) else uncertain
            if retry_policy.learn(error):
                change = _planned_again(session, sql, params, change, error)
                retry_policy.pause()


def _planned_again(
    session: Session, sql: str, params: list[Any] | dict[str, Any], before: WholeChange, because: Error
) -> WholeChange:
    prepared = planned_again(session, sql, params)
    if prepared is None:
        return before
    if not isinstance(prepared, WholeChange):
        raise InterfaceError(f"{sql!r} was another kind of statement before") from because
    return prepared


def _only_partition(change: WholeChange, values: Sequence[Any], *, pruning: bool) -> int | None:
    """The partition whose primary can carry the change out by itself; None when there is none such."""
    if not change.is_single_partition or not pruning:
        return None
    ids = change.source.scans[0].tree.bind(values).ids
    return int(ids[0]) if len(ids) == 1 else None


def _run_narrow(
    session: Session,
    change: WholeChange,
    values: Sequence[Any],
    partition: int,
    change_id: str,
    *,
    pruning: bool,
    profiled: bool,
) -> _Outcome:
    topology, scan = session.topology, change.source.scans[0]
    member = topology.ownership(scan.group).primary(partition)
    topology.check_live([member])
    args = {
        "plan": change.source.plan_id,
        "params": values,
        "pruning": pruning,
        "operation": "effects",
        "change_id": change_id,
        "profile": profiled,
    }
    try:
        header = session.ask_member(member, "change", args).header
    except DeadlineError as error:
        raise unknown_outcome(change.table, error) from error
    return _Outcome(
        header["rows"],
        ExecutionMode.LOCAL,
        header["members_touched"],
        1,
        topology.version,
        profile=profile_of_change(header) if profiled else None,
    )


def _run_whole(
    session: Session, change: WholeChange, values: Sequence[Any], *, pruning: bool, profiled: bool
) -> _Outcome:
    table, returning = change.table, change.returning
    # An id of its own for each try: members remember how a load has ended, also one that was given up.
    load_id = uuid.uuid4().hex
    args = {
        "load_id": load_id,
        "plan": change.source.plan_id,
        "params": values,
        "pruning": pruning,
        "meeting": change.duplicate_match,
        "returning": None if returning is None else returning.plan_id,
        "names_action": change.names_action,
        "table": table.name,
        "table_id": table.table_id,
        "table_version": table.version,
        "profile": profiled,
    }
    try:
        header = session.ask("change_whole", args).header
    except (MemberLostError, DeadlineError) as error:
        raise unknown_outcome(table, error) from error
    partitions = sum(
        len(scan.tree.bind(values).ids if pruning else scan.tree.live_ids()) for scan in change.source.scans
    )
    returned = None if returning is None else _fetch(session, change, header["coordinator"], load_id)
    return _Outcome(
        header["rows"],
        ExecutionMode.DISTRIBUTED,
        header["members_touched"],
        partitions,
        header["topology_version"],
        returned,
        profile_of_change(header),
    )


def _fetch(session: Session, change: WholeChange, coordinator: str, load_id: str) -> pa.Table:
    try:
        return decode_table(
            session.ask_member(coordinator, "change_returned", {"load_id": load_id}).payload, ranges=False
        )
    except (OperationalError, *NOTHING_DONE) as error:
        name = change.table.name
        raise OperationalError(
            f"{name} was changed, but the rows to return are lost: read them with SELECT. {error.message}", table=name
        ) from error
