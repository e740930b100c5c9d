"""UPDATE and DELETE from the client: to the owner of the one partition that is concerned, or through the controller,
which publishes the changes of several.

A change is made once, however often it is asked for: every execution has an id that stays the same when it is tried
again, and members remember the ids of what they have done.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from secateur.client.dbapi.stats import QueryStats
from secateur.client.execution.pruning import Pruning
from secateur.client.execution.ranges_known import check_ranges
from secateur.client.execution.retry_policy import RetryPolicy, planned_again
from secateur.client.execution.routing import ExecutionMode, choose_route
from secateur.client.execution.run_profile import RunProfile, profile_of_change
from secateur.client.execution.select import run_select
from secateur.client.execution.statement import ChangeStatement
from secateur.client.session import Session
from secateur.errors import (
    DeadlineError,
    Error,
    InterfaceError,
    LoadFailedError,
    MemberLostError,
    OperationalError,
    PartitionLostError,
    TopologyChangedError,
    UnknownTableError,
    UnreachableError,
)
from secateur.partitioning.tables.table import TableDef

__all__ = ["NOTHING_DONE", "ChangeResult", "run_change", "unknown_outcome"]

NOTHING_DONE: Final = (TopologyChangedError, UnknownTableError, UnreachableError, LoadFailedError)
"""Errors that say that nothing was changed, and may be gone soon."""


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """What a statement has done.

    Attributes:
        rows: How many rows it has changed.
        stats: What that cost.
        returned: What it returns of them, for RETURNING; else None.
        profile: What the members did, when that was wanted.
    """

    rows: int
    stats: QueryStats
    returned: pa.Table | None = None
    profile: RunProfile | None = None


@dataclass(frozen=True, slots=True)
class _Outcome:
    rows: int
    execution: ExecutionMode
    members_touched: int
    partitions: int
    topology_version: int
    profile: RunProfile | None = None


def run_change(
    session: Session,
    sql: str,
    params: list[Any] | dict[str, Any],
    change: ChangeStatement,
    *,
    cached: bool,
    started_s: float,
    profiled: bool = False,
) -> ChangeResult:
    """Carry out an UPDATE or DELETE: all of it, or nothing.

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
        ParameterError: The parameters are not those of the statement.
        DataError, NullKeyError: A value that its column cannot hold; nothing was changed.
        PruningMismatchError: With ``SET pruning = verify``, the unpruned run finds other rows; nothing was changed.
        OperationalError: The members could not be reached for longer than 10 s; or an answer was lost, so that it is
            unknown whether the change was made, and the message says so.
    """
    pruning = session.pruning
    if pruning is Pruning.VERIFY:
        run_select(session, sql, params, change.source, cached=cached, started_s=started_s)
    change, outcome = _following(session, sql, params, change, pruning=bool(pruning), profiled=profiled)
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
    return ChangeResult(outcome.rows, stats, profile=outcome.profile)


def _following(
    session: Session,
    sql: str,
    params: list[Any] | dict[str, Any],
    change: ChangeStatement,
    *,
    pruning: bool,
    profiled: bool,
) -> tuple[ChangeStatement, _Outcome]:
    """Run, and when the cluster has changed, learn and run again, under the same id."""
    change_id = uuid.uuid4().hex
    retry_policy = RetryPolicy(session)
    while True:
        try:
            return change, _run(
                session, change, change.source.values(params), change_id, pruning=pruning, profiled=profiled
            )
        except (PartitionLostError, *NOTHING_DONE, MemberLostError) as error:
            if retry_policy.learn(error):
                change = _planned_again(session, sql, params, change, error)
                retry_policy.pause()


def _planned_again(
    session: Session, sql: str, params: list[Any] | dict[str, Any], before: ChangeStatement, because: Error
) -> ChangeStatement:
    prepared = planned_again(session, sql, params)
    if prepared is None:
        return before
    if not isinstance(prepared, ChangeStatement):
        raise InterfaceError(f"{sql!r} was an UPDATE or DELETE and is none any more") from because
    return prepared


def _run(
    session: Session, change: ChangeStatement, params: Sequence[Any], change_id: str, *, pruning: bool, profiled: bool
) -> _Outcome:
    topology = session.topology
    target = change.source.scans[0]
    ids = target.tree.bind(params).ids if pruning else target.tree.live_ids()
    args = {
        "plan": change.source.plan_id,
        "params": params,
        "pruning": pruning,
        "operation": change.operation,
        "profile": profiled,
    }
    if not target.replicated and not len(ids):
        check_ranges(session, change.source.scans)
        return _Outcome(0, ExecutionMode.NONE, 0, 0, topology.version, RunProfile(0, 0, ()))
    if target.replicated or len(ids) > 1:
        execution_mode = (
            ExecutionMode.DISTRIBUTED
            if target.replicated
            else choose_route(change.source, params, topology, pruning=pruning).execution_mode
        )
        return _publish(session, change, args, execution_mode, len(ids))
    member = topology.ownership(target.group).primary(ids[0])
    topology.check_live([member])
    try:
        header = session.ask_member(member, "change", {**args, "change_id": change_id}).header
    except DeadlineError as error:
        raise unknown_outcome(change.table, error) from error
    return _Outcome(
        header["rows"],
        ExecutionMode.LOCAL,
        header["members_touched"],
        1,
        topology.version,
        profile_of_change(header) if profiled else None,
    )


def _publish(
    session: Session, change: ChangeStatement, args: dict[str, Any], execution_mode: ExecutionMode, partitions: int
) -> _Outcome:
    """Have the controller publish a change of several partitions."""
    # An id of its own for each try: members remember how a load has ended, also one that was given up.
    try:
        header = session.ask("change", {**args, "load_id": uuid.uuid4().hex}).header
    except (MemberLostError, DeadlineError) as error:
        raise unknown_outcome(change.table, error) from error
    return _Outcome(
        header["rows"],
        execution_mode,
        header["members_touched"],
        partitions,
        header["topology_version"],
        profile_of_change(header),
    )


def unknown_outcome(table: TableDef, error: Error) -> OperationalError:
    """The error for a change whose answer was lost."""
    name = table.name
    kind = DeadlineError if isinstance(error, DeadlineError) else OperationalError
    return kind(
        f"whether {name} was changed is unknown, since the answer was lost: look at the rows. {error.message}",
        table=name,
    )
