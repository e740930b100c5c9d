"""Requests and replies of statements, planned at the controller and run at a member, and of reads by primary key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.protocol.hello import Versions
from secateur.protocol.message import Acknowledged, Message
from secateur.protocol.metrics import RunProfile
from secateur.protocol.query_parts import NarrowedScans, SteppedQuery, StepResult
from secateur.protocol.statements import PreparedStatement
from secateur.protocol.summaries import LatencyHistogram, PlanSummary


class PreparedAnswer(Versions, frozen=True, kw_only=True):
    """A prepared statement; the payload has its rows, if it has some already.

    Attributes:
        outlines: Large partition schemes without their ranges, to which the statement refers; they stand in front, so
            that the references are known when the statement is read.
        statement: The statement.
    """

    outlines: tuple[PartitionScheme, ...] = ()
    statement: PreparedStatement


class Prepare(Message[PreparedAnswer], frozen=True):
    """Plan a statement; DDL is carried out.

    Attributes:
        sql: The text.
        params: Its parameters, in order or by name.
        settings: The settings of the session by name.
        request_id: Under an id that was used before DDL is not carried out again.
    """

    sql: str
    params: list[Any] | dict[str, Any]
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    request_id: str | None = None


class Explained(msgspec.Struct, frozen=True):
    """The plan of a statement, as text and as the JSON document."""

    text: str
    json: dict[str, Any]


class ExplainRequest(Message[Explained], frozen=True):
    """Ask for the plan of a statement, as EXPLAIN shows it; see :class:`Prepare`."""

    sql: str
    params: list[Any] | dict[str, Any]
    settings: dict[str, str] = msgspec.field(default_factory=dict)


class PlanAnswer(msgspec.Struct, frozen=True):
    """A plan for members, encoded; its id is the digest of these bytes."""

    plan: bytes


class GetPlan(Message[PlanAnswer], frozen=True):
    """A plan by its id, for a member that was asked to run it.

    Attributes:
        plan_id: Its id.
        is_whole: Whether the plan of the query for the row changes is wanted, where the one of this id only finds the
            key of their row. The controller knows it.
    """

    plan_id: str
    is_whole: bool = False


class ReadSystemTable(Message[Acknowledged], frozen=True):
    """The rows of a system table, which are the payload of the answer."""

    table: str


class Since(msgspec.Struct, frozen=True):
    """The state in which join keys were found: a statement that uses them is refused in any other.

    Attributes:
        mark: Names the reads that found them.
        scans: The scans that have to read what was read then.
        topology_version: The owners from whom it was read.
        published: The number of the last publication of each replicated table that was read, by table id.
    """

    mark: str
    scans: list[int]
    topology_version: int | None
    published: list[tuple[int, int]]


class StatementCost(msgspec.Struct, frozen=True, array_like=True):
    """What a statement has cost in kernel calls, at all members together.

    Attributes:
        processor_ms: Milliseconds of processor time.
        rows_read: Rows of tables that were read.
    """

    processor_ms: float
    rows_read: int


class Executed(msgspec.Struct, frozen=True, array_like=True):
    """The result of a plan; its rows are ``values``, or the payload.

    Attributes:
        execution: ``"local"``, ``"scatter"`` or ``"distributed"``.
        partitions_read: How many partitions were read, over all scans.
        partitions_total: How many the tables of the scans have.
        topology_version: The owners for which it ran.
        rows: Rows of the result, or of its first part.
        values: The columns of a result of few rows as plain values; None where the payload has the rows.
        members: The members that took part; None for the one that answers.
        has_more: Whether more rows can be asked for with :class:`NextRows`.
        published: The number of the last publication of each replicated table that was read, by table id, where
            ``mark`` was given.
        steps: The result of each step of a query in steps, in their order. The figures above are then those of all
            parts together.
        statistics_version: The newest version of the statistics that the member has heard of, for a plan that
            depends on estimates; else 0. A client then has the statement planned again at its next execution.
        cost: What it has cost; None where that is not measured: on members without tenants, and of a statement that the
            event loop has answered at once.
    """

    execution: str
    partitions_read: int
    partitions_total: int
    topology_version: int
    rows: int
    values: Sequence[list[Any]] | None = None
    members: list[str] | None = None
    has_more: bool = False
    published: tuple[tuple[int, int], ...] = ()
    steps: tuple[StepResult, ...] = ()
    statistics_version: int = 0
    cost: StatementCost | None = None


class Execute(Message[Executed], frozen=True, array_like=True):
    """Run a plan.

    Attributes:
        plan: Its id.
        params: The values of its parameters, in order.
        pruning: Whether only the required partitions are read.
        grant: Bytes that the client has room for, when it takes the rows in parts; None when it wants them all at once.
        as_written: Whether to run the user's own text, undivided.
        mark: Names this read, whose keys are about to be used; None for other reads.
        since: The state in which keys were found that are among the parameters.
        steps: The way to run it in steps, which the member does when they are likely to pay; None where it has none.
    """

    plan: str
    params: list[Any]
    pruning: bool
    grant: int | None = None
    as_written: bool = False
    mark: str | None = None
    since: Since | None = None
    steps: SteppedQuery | None = None


class ExecutePart(Execute, frozen=True, array_like=True):
    """Run a part of a query in steps for the member that coordinates it; the part is run undivided."""


class FirstStageRows(msgspec.Struct, frozen=True, array_like=True):
    """The rows of the first stage of a plan on one member; they are ``values``, or the payload.

    Attributes:
        rows: How many there are.
        values: The columns of few rows as plain values; None where the payload has the rows.
        is_declined: Whether the member has too many rows for such an answer, and sends none.
        rows_read: Rows of the tables that the stage has read.
        kernel_ms: Milliseconds spent in a kernel call in a thread.
        busy_ms: Milliseconds spent in a kernel call on the event loop.
        published: For each scan the number of the load that is the last one in the rows, if a client has asked.
        topology_version: The owners for which it ran, if a client has asked.
        statistics_version: As in :class:`Executed`, if a client has asked.
    """

    rows: int
    values: Sequence[list[Any]] | None = None
    is_declined: bool = False
    rows_read: int = 0
    kernel_ms: float = 0.0
    busy_ms: float = 0.0
    published: list[int] = []
    topology_version: int = 0
    statistics_version: int = 0


class ScatteredRun(msgspec.Struct, frozen=True, array_like=True):
    """A statement whose owners a client asks itself, for the list of statements of one of them.

    Attributes:
        members: All of the owners.
        partitions_read: How many partitions they read.
        partitions_total: How many the table has.
    """

    members: list[str]
    partitions_read: int
    partitions_total: int


class ExecuteFirstStage(Message[FirstStageRows], frozen=True, array_like=True):
    """Run the first stage of a plan over partitions of the member that is asked, for who combines the rows.

    Attributes:
        plan: Its id.
        params: The values of its parameters, in order, with those of its expressions behind them.
        partitions: For each scan the partitions to read there; without meaning for a replicated table.
        published: For each scan the number of the load that has to be the last one published there. None from a client,
            which compares what the owners say that they have read.
        run: The statement, for the one owner that lists it; None for the others, and from a member, which lists it
            itself.
    """

    plan: str
    params: list[Any]
    partitions: list[list[int]]
    published: list[int] | None
    run: ScatteredRun | None = None


class Profiled(msgspec.Struct, frozen=True):
    """The result of a plan, with the profile of the run.

    Attributes:
        result: As for :class:`Execute`.
        profile: The work.
        narrowed: The effect of the found values on a query in steps; None where the rest did not run with them.
    """

    result: Executed
    profile: RunProfile
    narrowed: NarrowedScans | None = None


class Profile(Message[Profiled], frozen=True):
    """Run a plan and profile the run; ``has_rows`` requests the rows as well."""

    run: Execute
    has_rows: bool


class PartOfRows(msgspec.Struct, frozen=True):
    """More rows of a result, which are the payload."""

    rows: int
    has_more: bool


class NextRows(Message[PartOfRows], frozen=True):
    """The next part of the open result of this connection; ``grant`` as in :class:`Execute`."""

    grant: int


class CloseResult(Message[Acknowledged], frozen=True):
    """Give the open result of this connection up."""


class StatementEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that a member was asked to run.

    Attributes:
        number: Counts the statements of the member.
        plan_id: The id of its plan.
        state: ``"waiting"`` for its turn, ``"running"``, ``"done"`` or ``"failed"``.
        started: Seconds since the epoch.
        elapsed_ms: Milliseconds that it took, or has taken so far.
        execution: As in :class:`Executed`; None while it runs and after a failure, like all below.
        members: The members that took part.
        partitions_read: How many partitions were read.
        rows: Rows that were sent.
        error: The error.
        partitions_total: How many partitions the tables of its scans have.
        topology_version: The owners for which it ran.
        pruning: Whether it was asked to read only the required partitions; None while it runs.
    """

    number: int
    plan_id: str
    state: str
    started: float
    elapsed_ms: float
    execution: str | None = None
    members: list[str] | None = None
    partitions_read: int | None = None
    rows: int | None = None
    error: str | None = None
    partitions_total: int | None = None
    topology_version: int | None = None
    pruning: bool | None = None


class StatementDescription(msgspec.Struct, frozen=True, array_like=True):
    """The facts about a statement that the controller adds for the member that has run it.

    Attributes:
        statement: Its text; None if its plan is not known any more, like the next two.
        fingerprint: Equal for texts that differ only in literals.
        reason: Why this execution left no partition out; None if it did.
        members_total: How many members the cluster has.
    """

    statement: str | None
    fingerprint: str | None
    reason: str | None
    members_total: int | None


class DescribeStatement(Message[StatementDescription], frozen=True):
    """Describe a statement that has ended at the member that asks."""

    entry: StatementEntry


class PlanExecutions(msgspec.Struct, frozen=True, array_like=True):
    """The executions of one plan on a member that have ended since the member is there.

    Attributes:
        plan_id: The plan.
        executions: How many there were, failed ones included.
        elapsed_ms: Milliseconds that they took together.
        elapsed_max_ms: Milliseconds of the longest.
        latencies: The time of each.
    """

    plan_id: str
    executions: int
    elapsed_ms: float
    elapsed_max_ms: float
    latencies: LatencyHistogram


class ExecutionTotals(msgspec.Struct, frozen=True, array_like=True):
    """The statements that have ended on a member since it is there, of those that ran in one way.

    Attributes:
        execution: As in :class:`Executed`; ``"change"`` for a part of a change, ``"failed"`` after an error,
            ``"system"`` for queries of system tables.
        statements: How many there were.
        elapsed_ms: Milliseconds that they took together.
        latencies: The time of each.
        members_touched: The members that took part, added up over all of them.
        pruned: Queries that left a partition out.
        unpruned: Queries that read all of several partitions.
    """

    execution: str
    statements: int
    elapsed_ms: float
    latencies: LatencyHistogram
    members_touched: int = 0
    pruned: int = 0
    unpruned: int = 0


class Statements(msgspec.Struct, frozen=True):
    """The statements of a member.

    Attributes:
        statements: The running statements, then the newest that have ended, newest first.
        executions: The executions of each plan.
        totals: All that have ended, by how they ran.
        summaries: The executions of each plan, summed up.
    """

    statements: list[StatementEntry] = []
    executions: list[PlanExecutions] = []
    totals: list[ExecutionTotals] = []
    summaries: list[PlanSummary] = []


class GetStatements(Message[Statements], frozen=True):
    """The statements of a member, and what they come to, but for the summaries.

    Attributes:
        totals_only: Whether only their totals are wanted, which are a thousandth of the bytes.
        summaries_only: Whether only their summaries are wanted.
        ended_of_plan_max: How many of the ended ones of each plan are wanted, and nothing else but those that run;
            None: all.
    """

    totals_only: bool = False
    summaries_only: bool = False
    ended_of_plan_max: int | None = None


class KillRunningStatement(Message[Acknowledged], frozen=True):
    """End a statement of the member by its number, as the controller was asked by KILL."""

    number: int


FOUND_ROWS_MAX: Final = 256
"""Up to so many rows that were found by their keys are sent as plain values: who asks for them wants Python values."""


class FoundRows(msgspec.Struct, frozen=True, array_like=True):
    """The rows of some keys, in the order of the keys, without those that are not there.

    Attributes:
        missing: The positions of the keys that have no row, ascending.
        values: The values of each column of the table, if there are few rows; else the rows are the payload.
    """

    missing: list[int]
    values: list[list[Any]] | None = None


class GetRows(Message[FoundRows], frozen=True, array_like=True):
    """Ask the owner of some keys for their rows.

    Attributes:
        table_id: The table.
        table_version: The version of its definition that the client knows: its columns and ranges.
        keys: Complete primary keys: canonical values in key order.
    """

    table_id: int
    table_version: int
    keys: list[list[Any]]
