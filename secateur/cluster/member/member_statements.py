"""The ways in which a member reads rows for clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.changes.change_feeds import MemberChangeFeeds
from secateur.cluster.member.member_connections import MemberConnections
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import MemberThreads
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.member.statements.key_reads import KeyReads
from secateur.cluster.member.statements.plans import MemberPlans
from secateur.cluster.member.statements.query_steps import SteppedQueries
from secateur.cluster.member.statements.snapshots import MemberSnapshots
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.engine.runtime.runtime import JobRuntime
from secateur.protocol.operations import Operation, OperationBase
from secateur.wire import Handled, Request


class MemberStatements:
    """Reads the rows that statements, keys, snapshots and change feeds ask for. Lives on the member's event loop.

    Args:
        storage: What the member keeps.
        connections: The controller and the other members.
        copies: Knows which changes are acknowledged.
        plans: The plans.
        jobs: The engine, for statements that need other members.
        admissions: The turns of the statements of clients.
        threads: For kernel calls.

    Attributes:
        runner: Runs queries.
        stepped: Runs queries in steps.
        snapshots: Runs queries over a state that stays.
        key_reads: Reads rows by key.
    """

    def __init__(
        self,
        storage: MemberStorage,
        connections: MemberConnections,
        copies: Replication,
        plans: MemberPlans,
        jobs: JobRuntime,
        admissions: Admissions,
        threads: MemberThreads,
    ) -> None:
        runner = self.runner = StatementRunner(storage, connections, copies, plans, jobs, admissions, threads)
        self.stepped = SteppedQueries(storage.member_id, runner, connections.peers, admissions.long)
        self.snapshots = MemberSnapshots(storage, runner, copies, admissions, threads)
        self.key_reads = KeyReads(storage, copies.acknowledgements.acknowledged)
        self._change_feeds = MemberChangeFeeds(storage, copies)

    def handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        """The handlers of the operations that are no statements, so that they are not in the log of these."""
        return {
            Operation.READ_SNAPSHOT: self.snapshots.read,
            Operation.CLOSE_SNAPSHOT: self.snapshots.close,
            Operation.READ_CHANGES: self._change_feeds.read,
            Operation.BOUND_CHANGES: self._change_feeds.bound,
            Operation.DESCRIBE_CONNECTOR: self.runner.external_reads.describe,
            Operation.LIST_EXTERNAL_PARTITIONS: self.runner.external_reads.list_partitions,
        }
