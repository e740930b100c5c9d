"""Changes that one member computes for all partitions: MERGE, UPDATE ... FROM and similar ones.

The controller has every owner close its latch, so that no other write comes in between. Then one member, the
coordinator of the change, runs the query for its row changes over the cluster like any other query, and stages the
changed rows at their owners, as a load that the controller publishes: all of it becomes visible at once, or nothing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from secateur.cluster.member.changes.loads import MemberLoads
from secateur.cluster.member.changes.row_guards import RowGuards
from secateur.cluster.member.jobs import KeptResults
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.plans import check_versions
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.cluster.peers import Peers
from secateur.cluster.statement_profile import work_of
from secateur.engine.kernels.fragment import run
from secateur.engine.sql.row_changes import RowAction, RowChanges
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import in_thread
from secateur.errors import LimitExceededError, NoRangeError, ProgrammingError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import OwnerRouting, RoutedBatch
from secateur.partitioning.topology.topology import Topology
from secateur.protocol import changes as protocol
from secateur.protocol.access import WriteKind
from secateur.protocol.metrics import StageWork
from secateur.storage.change import MixedAttempt
from secateur.wire import Reply, Request, encode_table

_RETURNED = "returned"


class MemberCoordinatedChanges:
    """Answers ``work_out_change`` and ``get_returned_rows``. Lives on the member's event loop.

    Args:
        executor: Threads for kernel calls.
    """

    def __init__(
        self,
        storage: MemberStorage,
        statements: StatementRunner,
        loads: MemberLoads,
        peers: Peers,
        executor: Executor,
        row_guards: RowGuards,
    ) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._places = storage.places
        self._row_guards = row_guards
        self._statements = statements
        self._plans = statements.prepared.plans
        self._loads = loads
        self._peers = peers
        self._executor = executor
        self._returned = KeptResults()

    async def work_out(self, request: Request[protocol.WorkOutChange]) -> Reply[protocol.WorkedOut]:
        """Run the query for the row changes and stage what is to be written, here and at the other owners.

        Returns:
            ``rows`` concerned and the staged ``parts``; or ``missing_cells``, ranges that have to be made before the
            rows can be written: then nothing was staged.

        Raises:
            TopologyChangedError: A partition has its primary elsewhere than this member knows; the load has to be
                aborted, as after every other error.
            Error: The statement fails on these rows.
        """
        asked = request.message.change
        plan = await self._plans.plan(asked.plan)
        topology, table = self._places.place(asked.table_id)
        params: Sequence[Any] = asked.params
        is_profiled = asked.is_profiled
        found, work = await self._statements.rows(plan, params, pruning=asked.pruning, profiled=is_profiled)
        changes = await self._in_thread(RowChanges.of, found, table, asked.duplicate_match)
        if asked.token is not None:
            rights = self._row_guards.rights_of(asked.token)
            for action, kind in ((RowAction.INSERT, WriteKind.INSERT), (RowAction.UPDATE, WriteKind.UPDATE)):
                of_kind = changes.rows.filter(pc.equal(changes.actions, action.value))
                self._row_guards.check(rights, table, kind, of_kind)
        if asked.returning is not None:
            returning = await self._plans.plan(asked.returning)
            check_versions(self._store, returning)
            returned = await self._in_thread(_returned, returning, changes, params, asked.names_action)
            self._returned.keep(asked.load_id, {_RETURNED: returned})
        try:
            parts, staged = await self._stage(asked.load_id, topology, table, changes)
        except NoRangeError:
            if not table.scheme.makes_ranges:
                raise
            cells = set(table.scheme.missing_cells(changes.added)) | set(table.scheme.missing_cells(changes.replaced))
            return Reply(protocol.WorkedOut(missing_cells=sorted(cells)))
        return Reply(protocol.WorkedOut(len(changes.actions), parts, work=(*work, *staged) if is_profiled else ()))

    def returned(self, request: Request[protocol.GetReturnedRows]) -> Reply[protocol.RowCount]:
        """The rows that a change returns, at its coordinator.

        Raises:
            LimitExceededError: They were dropped, since there are too many newer ones, or its process was started anew.
        """
        found = self._returned.find(request.message.load_id)
        if found is None:
            raise LimitExceededError(
                f"{self._member_id} does not have them: a member keeps the rows of RETURNING of its newest changes, in"
                " memory, for as long as its process lives"
            )
        rows = found[_RETURNED]
        return Reply(protocol.RowCount(rows.num_rows), encode_table(rows))

    async def _stage(
        self, load_id: str, topology: Topology, table: TableDef, changes: RowChanges
    ) -> tuple[dict[int, list[int]], list[StageWork]]:
        """Take rows and keys to their owners; returns the attempts by partition, and what each owner got.

        Raises:
            NoRangeError: No range holds one of the rows; nothing was staged.
        """
        sharing = OwnerRouting.of(table, topology)
        kinds = (
            (MixedAttempt.REMOVED, changes.removed),
            (MixedAttempt.ADDED, changes.added),
            (MixedAttempt.REPLACED, changes.replaced),
        )
        shares = [(attempt, share) for attempt, rows in kinds if rows.num_rows for share in sharing.shares(rows)]
        await asyncio.gather(*(self._send(load_id, table, attempt, share) for attempt, share in shares))
        parts: defaultdict[int, set[int]] = defaultdict(set)
        for attempt, share in shares:
            for partition, _ in share.parts:
                parts[partition].add(int(attempt))
        by_member: defaultdict[str, list[RoutedBatch]] = defaultdict(list)
        for _, share in shares:
            by_member[share.member].append(share)
        staged = [
            work_of(
                f"change {table.name}",
                member,
                partitions=len({partition for share in taken for partition, _ in share.parts}),
                rows_out=sum(share.rows.num_rows for share in taken),
                bytes_out=sum(share.rows.nbytes for share in taken),
            )
            for member, taken in sorted(by_member.items())
        ]
        return {partition: sorted(attempts) for partition, attempts in parts.items()}, staged

    async def _send(self, load_id: str, table: TableDef, attempt: MixedAttempt, share: RoutedBatch) -> None:
        staging = protocol.StageRows(
            load_id, table.table_id, int(attempt), share.parts, are_keys=attempt is MixedAttempt.REMOVED
        )
        if share.member == self._member_id:
            await self._loads.stage_rows(staging, share.rows)
        else:
            await self._peers.call(share.member, staging, encode_table(share.rows))

    async def _in_thread(self, work: Any, *args: Any) -> Any:
        return await in_thread(self._executor, lambda _: work(*args))


def _returned(plan: SelectPlan, changes: RowChanges, params: Sequence[Any], names_action: bool) -> pa.Table:
    """Return the rows of RETURNING, one for each changed row; with ``names_action`` grouped by the action."""
    (scan,) = plan.scans
    rows = changes.rows.select(list(scan.columns))
    if not names_action:
        found = [run(plan.local, {scan.relation: rows}, params)]
    else:
        groups = [(action, rows.filter(pc.equal(changes.actions, action.value))) for action in RowAction]
        found = [run(plan.local, {scan.relation: group}, [*params, action.value]) for action, group in groups]
    together = pa.concat_tables(found)
    if together.num_rows != rows.num_rows:
        raise ProgrammingError(
            f"RETURNING gives {together.num_rows} rows for the {rows.num_rows} that are changed: it takes values of the"
            " changed row alone"
        )
    return together
