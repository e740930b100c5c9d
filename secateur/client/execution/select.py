"""SELECT from the client: chooses the execution mode, asks a member, and follows partitions that have moved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Final, assert_never

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from secateur import errors
from secateur.client.dbapi.parameters import values_of
from secateur.client.dbapi.rows import GRANT_BYTES, ResultStream, as_table
from secateur.client.dbapi.stats import QueryStats, UnreadStats
from secateur.client.execution.execute import StatementCall, StatementExecution, execute
from secateur.client.execution.retry_policy import is_final
from secateur.client.execution.routing import (
    ExecutionMode,
    StatementRoute,
    check_nothing_new,
    choose_coordinator,
    choose_route,
)
from secateur.client.execution.scatter import are_few, ask_owners
from secateur.client.execution.verify import same_rows
from secateur.client.session import Prepared, Session
from secateur.partitioning.topology.topology import Topology
from secateur.protocol import statements
from secateur.protocol.hello import Pruning
from secateur.protocol.metrics import RunProfile
from secateur.protocol.query import Execute, Executed, Profile
from secateur.protocol.query_parts import NarrowedScans
from secateur.wire import ShortTable, decode_table, decode_tables

_VERIFY_ROUNDS: Final = 3
_MOVED: Final = (errors.TopologyChangedError, errors.MemberLostError, errors.UnreachableError, errors.UnknownTableError)
"""The errors that a member raises when the client's view of the cluster is out of date."""


class SelectResult(msgspec.Struct, frozen=True):
    """A result, its columns, and what it cost.

    Attributes:
        result: The rows, or the first of them; none of them for a run that is profiled.
        columns: Their columns.
        stats: Members, partitions and rows that the run touched.
        rest: The rows behind ``result``, when they come as they are read.
        profile: The profile of the run, if it was requested.
        narrowed: The effect of values found in steps, for a run that is profiled.
    """

    result: pa.Table | ShortTable
    columns: tuple[statements.ResultColumn, ...]
    stats: QueryStats
    rest: ResultStream | None = None
    profile: RunProfile | None = None
    narrowed: NarrowedScans | None = None


class RunOptions(Enum):
    """The options of one run of a query."""

    ROWS = auto()
    """All rows at once."""
    ROWS_IN_PARTS = auto()
    """The rows; those beyond the first few megabytes may come later, as they are read.

    Until the first of them are here the run may be repeated, and never
    afterwards."""
    PROFILE = auto()
    """The profile of the run, without its rows."""
    ROWS_AND_PROFILE = auto()
    """Both, as for the query of an ``INSERT ... SELECT`` that is profiled."""


_ROWS_ONLY: Final = frozenset({RunOptions.ROWS, RunOptions.ROWS_IN_PARTS})


def run_select(
    call: StatementCall[statements.SelectStatement],
    wanted: RunOptions = RunOptions.ROWS,
    failed: errors.Error | None = None,
) -> SelectResult:
    """Run a planned SELECT under the session's pruning setting.

    Reads do nothing twice that matters, so while the cluster changes they are tried again with fresh owners and, if
    need be, a fresh plan, for at most 10 s.

    Args:
        call: The call.
        wanted: The options of the run; two runs that are compared return their rows at once in any case.
        failed: The error of a first attempt, if that was made already.

    Raises:
        ParameterError: The parameters are not those of the statement.
        PruningMismatchError: With ``SET pruning = verify``, the unpruned run gave other rows.
        OperationalError: The members could not be reached for longer than that.
    """
    pruning = call.session.pruning
    if pruning is Pruning.VERIFY:
        return _verified(call)
    return execute(_SelectExecution(call, pruning=pruning is not Pruning.OFF, wanted=wanted), failed)


class _SelectExecution(StatementExecution[statements.SelectStatement, SelectResult]):
    """A SELECT: it changes nothing, so it may be repeated until rows of it have been seen."""

    def __init__(self, call: StatementCall[statements.SelectStatement], *, pruning: bool, wanted: RunOptions) -> None:
        self.session = call.session  # not through the base class: a look-up of one key pays for every call
        self.call = call
        self._pruning = pruning
        self._wanted = wanted

    def attempt(self) -> SelectResult:
        return _run(self.call, pruning=self._pruning, wanted=self._wanted)

    def may_repeat(self, error: errors.Error) -> bool:
        return isinstance(error, (errors.PartitionLostError, *_MOVED))

    def of_this_kind(self, prepared: Prepared, because: errors.Error) -> statements.SelectStatement:
        queries: tuple[statements.SelectStatement, ...] = prepared.queries
        if not queries:
            raise errors.InterfaceError(
                f"{self.call.sql!r} was planned again and is no longer a query: execute it again"
            ) from because
        return queries[0]

    def given_up(self, error: errors.Error) -> errors.Error:
        if isinstance(error, (errors.MemberLostError, errors.UnreachableError)) and not is_final(error):
            error.safe_to_retry()  # a read changes nothing, and others take over
        return error


def _verified(call: StatementCall[statements.SelectStatement]) -> SelectResult:
    """Run pruned, and the user's own text over all rows, and compare.

    A difference that comes from rows written in between does not last, so it has to show three times.
    """
    for _ in range(_VERIFY_ROUNDS):
        with_pruning = _SelectExecution(call, pruning=True, wanted=RunOptions.ROWS)
        pruned = execute(with_pruning)
        without = _SelectExecution(with_pruning.call, pruning=False, wanted=RunOptions.ROWS)
        unpruned = execute(without)
        call = without.call
        if not call.statement.deterministic or same_rows(
            as_table(pruned.result, pruned.columns), as_table(unpruned.result, unpruned.columns)
        ):
            return replace(pruned, stats=replace(pruned.stats, elapsed_ms=call.elapsed_ms))
    raise errors.PruningMismatchError(
        f"pruned and unpruned runs differ: {pruned.result.num_rows} rows from {pruned.stats.partitions_read}"
        f" partitions against {unpruned.result.num_rows} rows from {unpruned.stats.partitions_read}, for {call.sql!r}"
        f" with parameters {call.params!r}; please report it, and use SET pruning = off until it is fixed",
        sql=call.sql,
        rows_pruned=pruned.result.num_rows,
        rows_unpruned=unpruned.result.num_rows,
    )


@lru_cache(maxsize=256)
def _decoded(empty: bytes) -> pa.Table:
    """The answer of a statement whose partitions cannot match; it is the same object for every call."""
    return decode_table(empty, ranges=False)


def _run(call: StatementCall[statements.SelectStatement], *, pruning: bool, wanted: RunOptions) -> SelectResult:
    session, statement = call.session, call.statement
    params = values_of(statement, call.params, call.started)
    topology = session.topology
    steps = statement.steps if pruning else None
    route = (
        choose_route(statement, params, topology, pruning=pruning)
        if steps is None
        else choose_coordinator(statement, statement.first_scans, params, topology)
    )
    answered = _answered_here(call, params, topology, route, is_scattered=pruning and wanted in _ROWS_ONLY)
    if answered is not None:
        return answered
    member = route.members[session.turn() % len(route.members)] if len(route.members) > 1 else route.members[0]
    as_written = session.pruning is Pruning.VERIFY and not pruning
    grant = GRANT_BYTES if wanted is RunOptions.ROWS_IN_PARTS else None
    asked = Execute(statement.plan_id, list(params), pruning, grant, as_written, steps=steps)
    rest, profile, narrowed = None, None, None
    match wanted:
        case RunOptions.ROWS:
            answer = session.ask_member(member, asked)
            parts, result = answer.parts, answer.message
        case RunOptions.ROWS_IN_PARTS:
            answer, rest = session.ask_member_for_rows(member, asked)
            parts, result = answer.parts, answer.message
        case RunOptions.PROFILE | RunOptions.ROWS_AND_PROFILE:
            profiled = session.ask_member(member, Profile(asked, wanted is RunOptions.ROWS_AND_PROFILE))
            parts, result, profile = profiled.parts, profiled.message.result, profiled.message.profile
            narrowed = profiled.message.narrowed
        case _:
            assert_never(wanted)
    rows = ShortTable([], 0) if wanted is RunOptions.PROFILE else rows_of(result, parts)
    stats = stats_of(session, topology, result, call.started_s, is_cached=call.cached)
    return SelectResult(rows, statement.columns, stats, rest, profile, narrowed)


def rows_of(said: Executed, parts: Sequence[bytes | memoryview]) -> pa.Table | ShortTable:
    """The rows of a member's answer."""
    return decode_tables(parts) if said.values is None else ShortTable(said.values, said.rows)


def stats_of(session: Session, topology: Topology, said: Executed, started_s: float, *, is_cached: bool) -> QueryStats:
    """Hear of the versions that a member's answer is from, and return the cost of the call until now.

    Args:
        session: Where it came to.
        topology: The one by which the member was chosen.
        said: The answer.
        started_s: ``time.perf_counter()`` when the user called.
        is_cached: Whether the plan was known.
    """
    if said.topology_version > topology.version:
        session.note_topology(said.topology_version)
    if said.statistics_version:
        session.note_statistics(said.statistics_version)
    members_total = len(topology.members)
    return UnreadStats(said, members_total, session.pruning, is_cached, started_s, time.perf_counter()).read()


def _answered_here(
    call: StatementCall[statements.SelectStatement],
    params: Sequence[Any],
    topology: Topology,
    route: StatementRoute,
    *,
    is_scattered: bool,
) -> SelectResult | None:
    """The answer over no rows, or of owners that the client has asked itself; None where a member has to be asked."""
    session, statement = call.session, call.statement
    if route.execution_mode is ExecutionMode.NONE:
        check_nothing_new(session, statement)
        assert statement.empty is not None
        empty = _decoded(statement.empty)
        stats = call.stats(
            execution=route.execution_mode,
            members_touched=0,
            partitions_read=0,
            partitions_total=statement.partitions_total,
            topology_version=topology.version,
            members_total=len(topology.members),
        )
        return SelectResult(empty, statement.columns, stats, profile=RunProfile(empty.num_rows, empty.nbytes, ()))
    if not route.members:
        topology.check_any()
    topology.check_live(route.members)
    if route.partitions is None or not is_scattered or not are_few(statement, len(route.partitions)):
        return None  # before the owner of each is looked for, which a client may have to ask for
    primary = topology.ownership(statement.scans[0].group).primary
    by_owner: dict[str, list[int]] = {}
    for partition in route.partitions:
        by_owner.setdefault(primary(partition), []).append(partition)
    merged = ask_owners(session, topology, statement, params, by_owner, call.started_s, is_cached=call.cached)
    return None if merged is None else SelectResult(merged[0], statement.columns, merged[1])
