"""The executions of one plan on a member, summed up for ``secateur.statement_summaries``."""

from __future__ import annotations

import msgspec

from secateur.protocol.latency_histogram import LatencyHistogram


class ListedExecutions(msgspec.Struct, frozen=True, array_like=True):
    """The ended executions of a plan that a member still lists; there is at least one.

    Attributes:
        executions: How many there are.
        started: When the newest began, in seconds since the epoch.
        failed: How many have failed.
        elapsed_ms: Milliseconds that they took together.
        elapsed_max_ms: Milliseconds of the longest.
        latencies: The time of each.
        queries: How many are queries that were answered; the four that follow are theirs.
        partitions_read: Partitions that were read, added up.
        partitions_total: The most partitions that the tables of one have.
        pruned: Queries that left a partition out.
        unpruned: Queries that read all of several partitions.
        answered: How many were answered.
        members_touched: The members that took part in those, added up.
        counted: How many say how many rows they have sent or changed.
        rows: The rows of those.
        whole: When the newest began that was executed without pruning, or has read all of several partitions, and
            whether it was executed with pruning; None if there is none.
    """

    executions: int
    started: float
    failed: int
    elapsed_ms: float
    elapsed_max_ms: float
    latencies: LatencyHistogram
    queries: int
    partitions_read: int
    partitions_total: int
    pruned: int
    unpruned: int
    answered: int
    members_touched: int
    counted: int
    rows: int
    whole: tuple[float, bool] | None


class PlanSummary(msgspec.Struct, frozen=True, array_like=True):
    """The executions of one plan on a member.

    Attributes:
        plan_id: The plan.
        running: How many run or wait.
        executions: How many have ended since the member is there, failed ones included.
        elapsed_ms: Milliseconds that these took together.
        listed: The executions that the member still lists; None if it lists none any more.
    """

    plan_id: str
    running: int
    executions: int
    elapsed_ms: float
    listed: ListedExecutions | None
