"""The cost of one execution of a statement."""

from __future__ import annotations

from typing import Final

import msgspec

from secateur.client.dbapi.shown_rows import html_records
from secateur.client.execution.routing import ExecutionMode
from secateur.protocol.hello import Pruning
from secateur.protocol.query import Executed, StatementCost
from secateur.protocol.query_parts import StepResult

_EXECUTIONS: Final = {execution.value: execution for execution in ExecutionMode}


class QueryStats(msgspec.Struct, frozen=True):
    """The cost of one execution of a SELECT, UPDATE or DELETE.

    Attributes:
        members_touched: Members that received any frame for it, once its plan is cached. The backups of the rows that
            an UPDATE or DELETE changes count.
        members_total: Members of the cluster.
        partitions_read: Partitions read, over all scans.
        partitions_total: Partitions of all scanned tables; a table that is scanned twice counts twice.
        execution: ``"none"`` (answered by the client: no partition can match, or no table is read),
            ``"local"`` (whole on one member), ``"scatter"`` (a few owners were asked once each, and the client or one
            of them combined the rows) or ``"distributed"`` (a job).
        pruning: The setting it ran with: ``"on"``, ``"off"`` or ``"verify"``; with verify the other numbers are those
            of the pruned run.
        topology_version: The topology that its members answered from.
        plan_cached: Whether the client knew the plan already.
        elapsed_ms: From the call to the complete answer, as seen by the client.
        steps: The result of each step of a query in steps; empty for a query without steps.
        cost: The processor time of a query at all members, and the rows that they read; None where that is not
            measured: on a cluster that only its owner uses, of a query that is answered in microseconds, of a result
            that comes in parts, and of a change. ``secateur.tenants`` adds everything up.
    """

    members_touched: int
    members_total: int
    partitions_read: int
    partitions_total: int
    execution: ExecutionMode
    pruning: Pruning
    topology_version: int
    plan_cached: bool
    elapsed_ms: float
    steps: tuple[StepResult, ...] = ()
    cost: StatementCost | None = None

    def _repr_html_(self) -> str:
        """One row, as a notebook shows it."""
        return html_records(
            ("execution", "members", "partitions", "pruning", "plan", "milliseconds"),
            [
                (
                    self.execution,
                    f"{self.members_touched} of {self.members_total}",
                    f"{self.partitions_read:,} of {self.partitions_total:,}",
                    self.pruning,
                    "cached" if self.plan_cached else "new",
                    f"{self.elapsed_ms:.3f}",
                )
            ],
        )


class UnreadStats(msgspec.Struct, frozen=True):
    """What a member has said of an execution: the statistics that most users do not read.

    The user called at ``started_s`` of ``time.perf_counter()``, and had the answer at ``answered_s``.
    """

    said: Executed
    members_total: int
    pruning: Pruning
    plan_cached: bool
    started_s: float
    answered_s: float

    def read(self) -> QueryStats:
        """The statistics."""
        said = self.said
        return QueryStats(
            1 if said.members is None else len(said.members),
            self.members_total,
            said.partitions_read,
            said.partitions_total,
            _EXECUTIONS[said.execution],
            self.pruning,
            said.topology_version,
            self.plan_cached,
            (self.answered_s - self.started_s) * 1000,
            said.steps,
            said.cost,
        )
