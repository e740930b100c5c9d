"""Prepares a statement at a member: its plan, the values of its expressions, and the partitions that it reads.

The member binds the plan's partition trees itself: a client with an old topology may ask the wrong member, but never
gets a wrong answer.

Read versions in requests: join keys found by a step are used only if their rows have not changed since.

``mark`` in a request names a read of which the state is remembered: by every member that reads partitioned tables for
it, and for replicated ones, which change by publications alone, as the number of the last one in the answer. ``since``
in a later request asks for the same state of some of its scans.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import THIS_MEMBER, MemberThreads
from secateur.cluster.member.statements.external_reads import ExternalReads
from secateur.cluster.member.statements.plans import (
    MemberPlans,
    bound_partitions,
    check_bound,
    check_versions,
)
from secateur.cluster.member.statements.reads import Read
from secateur.cluster.peers import MemberConnections
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.sql.select_plan import FetchedRows, ScanPlan, SelectPlan
from secateur.errors import KeysChangedError, TopologyChangedError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.query import Execute
from secateur.protocol.query_parts import ReadRequirements
from secateur.storage.member_store import MemberStore
from secateur.wire import PeerInfo


def check_state(store: MemberStore, plan: SelectPlan, asked: Execute, topology: Topology) -> None:
    """Refuse a statement whose keys were found under other owners, or in other rows of replicated tables.

    Args:
        store: The tables of the member that was asked.
        plan: The statement.
        asked: The request.
        topology: The owners.

    Raises:
        KeysChangedError: So they were; nothing was done.
    """
    since = asked.since
    if since is None:
        return
    if since.topology_version != topology.version:
        raise KeysChangedError("the owners of partitions have changed since the keys were found")
    published = dict(since.published)
    for number in since.scans:
        scan = plan.scans[number]
        if scan.replicated and published.get(scan.table_id) != store.data_version(scan.table_id).published:
            raise KeysChangedError(f"{scan.table} has changed since its keys were found", table=scan.table)


def marks_of(plan: SelectPlan, asked: Execute) -> dict[int, str]:
    """The mark under which the rows of a partitioned scan were read before, by index of the scan.

    A scan that no stage reads was found to read the same rows as another one, whose rows stand for its own: that one is
    watched too, whichever of them the plan has kept.
    """
    since = asked.since
    if since is None:
        return {}
    read = {number for stage in plan.stages for number in stage.scans}
    watched = set(since.scans)
    tables = {plan.scans[number].table_id for number in watched - read}
    watched |= {number for number in read if plan.scans[number].table_id in tables}
    return {number: since.mark for number in sorted(watched) if not plan.scans[number].replicated}


def read_here(
    store: MemberStore, plan: SelectPlan, asked: Execute, partitions: Sequence[Sequence[int]]
) -> tuple[tuple[int, int], ...]:
    """Remember or check the state of what is about to be read, all of it here and in this turn of the loop.

    Returns:
        What the answer says of it.

    Raises:
        KeysChangedError: A table has changed since its keys were found.
    """
    for number, read_before in marks_of(plan, asked).items():
        scan = plan.scans[number]
        if partitions[number] and not store.marks.is_unchanged(
            read_before, scan.table_id, store.data_version(scan.table_id).changes
        ):
            raise KeysChangedError(f"{scan.table} has changed since its keys were found", table=scan.table)
    mark = asked.mark
    if mark is None:
        return ()
    for scan in plan.scans:
        if not scan.replicated:
            store.marks.note(mark, scan.table_id, store.data_version(scan.table_id).changes)
    return tuple((scan.table_id, store.data_version(scan.table_id).published) for scan in plan.scans if scan.replicated)


_NONE: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True)
class OwnView:
    """This member's view of the cluster at one topology version.

    Attributes:
        topology: Members and owners.
        mine: The partitions that this member serves, by affinity group.
    """

    topology: Topology
    mine: dict[str, frozenset[int]]

    @classmethod
    def of(cls, member_id: str, topology: Topology) -> OwnView:
        """The view of a member. Costs a pass over the partitions of each affinity group."""
        return cls(
            topology,
            {group: frozenset(ownership.partitions_of(member_id)) for group, ownership in topology.owners.items()},
        )

    def has(self, scan: ScanPlan, partitions: Sequence[int]) -> bool:
        """Whether the member serves all of some partitions of a scan."""
        return scan.replicated or self.mine.get(scan.group, _NONE).issuperset(partitions)


class PreparedStatements:
    """Finds the partitions of the executions of plans. Lives on the member's event loop.

    Args:
        connections: The controller, which has the rows of system tables.

    Attributes:
        plans: As given.
        external_reads: Gets the rows of external tables.
        view: This member's view of the cluster; None before it has joined.
    """

    def __init__(
        self,
        storage: MemberStorage,
        connections: MemberConnections,
        plans: MemberPlans,
        jobs: JobRuntime,
        threads: MemberThreads,
    ) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._connections = connections
        self.plans = plans
        self.external_reads = ExternalReads(self._member_id, jobs, threads.quick, connections.external_table)
        self.view: OwnView | None = None

    def update(self, topology: Topology) -> None:
        """Take over a newer topology."""
        self.view = OwnView.of(self._member_id, topology)

    async def completed(self, plan: SelectPlan, asked: Execute) -> Execute:
        """An execution with the values of the plan's expressions among its parameters."""
        if not plan.expressions:
            return asked
        return structs.replace(asked, params=await self.plans.with_values(plan, asked.params))

    async def ready(self, asked: Execute) -> tuple[SelectPlan, Execute]:
        """A plan with the rows of the system tables and external tables that it reads, as they are now.

        With it comes the execution with the values of its expressions.
        """
        plan = await self.plans.plan(asked.plan)
        asked = await self.completed(plan, asked)
        if not plan.reads_fetched_rows:
            return plan, asked
        view = self.joined()
        check_versions(self._store, plan)
        tables = await asyncio.gather(*map(self._connections.system_table, plan.system_tables))
        rows = dict(zip(plan.system_tables, tables, strict=True))
        fetched = {scan.relation: FetchedRows(rows[scan.system]) for scan in plan.scans if scan.system is not None}
        external = await self.external_reads.rows(
            plan,
            asked.params,
            view.topology,
            pruning=asked.pruning,
            in_parts=asked.pruning and not asked.as_written,
        )
        return plan.pinned({**fetched, **external}), asked

    async def requirements(self, plan: SelectPlan, asked: Execute) -> ReadRequirements:
        """The partitions that an execution reads, and the owners that it needs.

        Raises:
            TopologyChangedError: As :meth:`placed`.
        """
        read = self.placed(plan, await self.completed(plan, asked), THIS_MEMBER)
        owners: set[str] = set()
        for scan, ids in zip(plan.scans, read.partitions, strict=True):
            if len(ids) and not scan.replicated:
                owners |= read.topology.ownership(scan.group).owners_of(ids)
        return ReadRequirements(sum(map(len, read.partitions)), tuple(sorted(owners)))

    async def placed_rows(self, asked: Execute, partitions: Sequence[int]) -> tuple[SelectPlan | None, Execute]:
        """The plan of a statement that is answered piece by piece over rows of this member, and its execution.

        Args:
            asked: The execution.
            partitions: The partitions of the one table that it reads.

        Returns:
            The plan, or None if the statement is of another kind; the execution with the values of its expressions.

        Raises:
            TopologyChangedError: A partition is not this member's, or the table has other ranges by now.
        """
        plan = await self.plans.plan(asked.plan)
        if len(plan.scans) != 1 or plan.reads_fetched_rows or not plan.local.is_row_by_row:
            return None, asked
        asked = await self.completed(plan, asked)
        view, (scan,) = self.joined(), plan.scans
        check_versions(self._store, plan)
        check_bound(plan, asked.params)
        if not view.has(scan, partitions):
            raise TopologyChangedError(
                f"member {self._member_id} does not own all of the partitions of {scan.table} that were asked for:"
                " fetch the owners again, and retry",
                table=scan.table,
                topology_version=view.topology.version,
            )
        return plan, asked

    def joined(self) -> OwnView:
        """This member's view of the cluster.

        Raises:
            TopologyChangedError: It has none yet.
        """
        if self.view is None:
            raise TopologyChangedError(f"member {self._member_id} has not joined yet; try again")
        return self.view

    def placed(self, plan: SelectPlan, asked: Execute, peer: PeerInfo, *, is_profiled: bool = False) -> Read:
        """An execution with the partitions and owners of now.

        Raises:
            TopologyChangedError: A partition has no owner, or a table has other ranges by now.
            KeysChangedError: The keys among its parameters were found under other owners, or in other rows.
        """
        view = self.joined()
        check_versions(self._store, plan)
        if asked.since is not None:
            check_state(self._store, plan, asked, view.topology)
        partitions = bound_partitions(plan, asked.params, pruning=asked.pruning)
        is_here = all(map(view.has, plan.scans, partitions))
        if not is_here:
            for scan, ids in zip(plan.scans, partitions, strict=True):
                if not scan.replicated:
                    if scan.group not in view.topology.owners:
                        raise TopologyChangedError(
                            f"member {self._member_id} does not know the owners of {scan.group} yet; try again"
                        )
                    view.topology.check_live(view.topology.primaries(scan.group, ids))
        statistics = self.plans.statistics_of(plan)
        return Read(plan, asked, peer, partitions, view.topology, is_here, statistics, is_profiled)
