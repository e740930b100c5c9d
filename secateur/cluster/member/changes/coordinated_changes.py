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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.cluster.member.changes.loads import MemberLoads
from secateur.cluster.member.changes.row_guards import RowGuards
from secateur.cluster.member.changes.writes import pieces_to_keep, received_rows
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
from secateur.errors import LimitExceededError, NoRangeError, PolicyError, ProgrammingError
from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import OwnerRouting, RoutedBatch
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.arrow_layout import row_numbers
from secateur.protocol import changes as protocol
from secateur.protocol.access import Rights, WriteKind
from secateur.protocol.metrics import StageWork
from secateur.protocol.tokens import Privilege
from secateur.storage.change import MixedAttempt
from secateur.wire import Reply, Request, decode_table, encode_table

_RETURNED = "returned"


class MemberCoordinatedChanges:
    """Answers ``work_out_change``, ``find_new_rows`` and ``get_returned_rows``. Lives on the member's event loop.

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
        try:
            if asked.token is not None:
                changes = await self._permitted(self._row_guards.rights_of(asked.token), plan, asked, changes)
            if asked.returning is not None:
                returning = await self._plans.plan(asked.returning)
                check_versions(self._store, returning)
                returned = await self._in_thread(_returned, returning, changes, params, asked.names_action)
                self._returned.keep(asked.load_id, {_RETURNED: returned})
            parts, staged = await self._stage(asked.load_id, topology, table, changes)
        except NoRangeError:
            if not table.scheme.makes_ranges:
                raise
            cells = set(table.scheme.missing_cells(changes.added)) | set(table.scheme.missing_cells(changes.replaced))
            return Reply(protocol.WorkedOut(missing_cells=sorted(cells)))
        return Reply(protocol.WorkedOut(len(changes.actions), parts, work=(*work, *staged) if is_profiled else ()))

    async def find_new(self, request: Request[protocol.FindNewRows]) -> Reply[protocol.RowCount]:
        """The numbers of the rows whose keys are not there.

        Raises:
            TopologyChangedError: This member is not the primary of a partition.
        """
        asked = request.message
        self._places.backups(asked.table_id, [partition for partition, _ in asked.parts])  # this is their primary
        pieces = await pieces_to_keep(await received_rows(request.payload), asked.parts)
        here = {partition: self._store.partition(asked.table_id, partition).snapshot() for partition in pieces}
        found = await self._in_thread(lambda: [here[number].new_among(piece) for number, piece in pieces.items()])
        numbers = pa.concat_tables([new.select([new.num_columns - 1]) for new in found])
        return Reply(protocol.RowCount(numbers.num_rows), encode_table(numbers))

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

    async def _permitted(
        self, rights: Rights | None, plan: SelectPlan, asked: protocol.ChangeTable, changes: RowChanges
    ) -> RowChanges:
        """The changes to make for a principal; the query for them does not know the keys of rows that policies hide.

        All rows that are given have to pass the policies first: otherwise an error, or none, would tell whether there
        is a row with a key that the principal may not write. Then the owners say which keys are there. DO NOTHING
        leaves those out, and DO UPDATE, which has changed what it sees, has met a hidden row.

        Raises:
            PolicyError: A row may not be written, or DO UPDATE meets one that is hidden.
        """
        topology, table = self._places.place(asked.table_id)
        if rights is None or table.origin not in rights.guards:
            return changes
        inserted, updated = (
            changes.rows.filter(pc.equal(changes.actions, action.value))
            for action in (RowAction.INSERT, RowAction.UPDATE)
        )
        self._row_guards.check(rights, table, WriteKind.INSERT, inserted)
        self._row_guards.check(rights, table, WriteKind.UPDATE, updated)
        is_on_conflict = (
            asked.duplicate_match is protocol.DuplicateMatchPolicy.FIRST
            and Privilege.INSERT in plan.privileges
            and Privilege.DELETE not in plan.privileges
        )
        if not is_on_conflict:
            return changes
        new = await self._new(topology, table, conform(inserted, table))
        if Privilege.UPDATE not in plan.privileges:
            return changes.only(new)
        if len(new) < inserted.num_rows:
            raise PolicyError(
                f"table {table.name}: a key is that of a row which the row policies of the table do not let this"
                " principal update; nothing was changed",
                table=table.name,
            )
        return changes

    async def _new(self, topology: Topology, table: TableDef, rows: pa.Table) -> pa.Array:
        """The numbers of the rows whose keys are not there, ascending, as their owners know."""
        name = "".join((*rows.column_names, "#"))  # that of no column
        numbered = rows.append_column(name, row_numbers(np.arange(rows.num_rows)))
        shares = list(OwnerRouting.of(table, topology).shares(numbered))[: 1 if table.replicated else None]
        calls = [
            self._peers.ask(share.member, protocol.FindNewRows(table.table_id, share.parts), encode_table(share.rows))
            for share in shares
        ]
        numbers = [decode_table(found.payload).column(0).to_numpy() for found in await asyncio.gather(*calls)]
        return row_numbers(np.sort(np.concatenate([np.empty(0, np.int64), *numbers])))

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
