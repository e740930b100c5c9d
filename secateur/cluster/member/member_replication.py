"""How changes of a member's rows and tables get to the other copies of them, and to disk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from secateur.cluster.member.alterations import Alterations, MemberAlterations
from secateur.cluster.member.changes.loads import MemberLoads
from secateur.cluster.member.changes.writes import MemberWrites
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.persistence import Persistence
from secateur.cluster.member.replication.built_copies import BuiltCopies
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.member.stored_tables import MemberCopies, StoredTables
from secateur.cluster.peers import MemberConnections
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.termination_protocol import TerminationProtocol
from secateur.cluster.write_latch import LoadLeases
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.changes import TwoPhaseKind
from secateur.protocol.operations import Operation, OperationBase
from secateur.wire import Handled, PeerInfo, Request


class MemberReplication:
    """Keeps what a member stores equal to the other copies of it. Lives on the member's event loop.

    Args:
        executor: Threads for what writes wait for.

    Attributes:
        copies: The state of the copies of each partition.
        built_copies: The copies that are built while others write.
        persistence: Keeps everything on disk as well; None for a member without a data directory.
        writes: Changes a partition and its copies.
        loads: Stages and publishes loads.
        load_leases: The loads that are prepared here.
        alterations: The alterations of tables that are under way.
        alter_leases: Those that are prepared here.
        tables: Creates and drops tables.
    """

    def __init__(
        self, settings: ClusterSettings, storage: MemberStorage, connections: MemberConnections, executor: Executor
    ) -> None:
        store, peers, member_ids = storage.store, connections.peers, storage.places.member_ids
        self._storage = storage
        copies = self.copies = Replication(storage, peers, connections.report_out_of_sync)
        self.built_copies = BuiltCopies(storage, peers, copies, executor)
        log = storage.log
        self.persistence = None if log is None else Persistence(settings.cluster_id, storage, log, copies)
        self.writes = MemberWrites(storage, copies)
        self.load_leases = LoadLeases(TerminationProtocol(storage.member_id, store.loads, member_ids), peers)
        self.loads = MemberLoads(
            storage, peers, copies, self.load_leases, executor, abandoned_after_s=settings.staged_load_idle_s
        )
        alterations = Alterations(store, self._adopt_altered)
        self.alter_leases = LoadLeases(
            TerminationProtocol(storage.member_id, alterations, member_ids, TwoPhaseKind.ALTER), peers
        )
        self.alterations = MemberAlterations(
            store, storage.places.latch, executor, alterations, self.alter_leases, copies.level
        )
        self._table_copies = MemberCopies(store, peers)
        self.tables = StoredTables(storage, copies, self._table_copies, self.built_copies, self.alterations, executor)

    @property
    def leases(self) -> tuple[LoadLeases, LoadLeases]:
        """What is prepared here, of all kinds."""
        return self.load_leases, self.alter_leases

    def leases_of(self, kind: TwoPhaseKind) -> LoadLeases:
        """What is prepared here, of one kind."""
        return self.load_leases if kind is TwoPhaseKind.LOAD else self.alter_leases

    def handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        """The handler of each operation."""
        received, loads, built, tables = self.copies.received, self.loads, self.built_copies, self.tables
        leases_of = self.leases_of
        return {
            Operation.WRITE_ROWS: self.writes.write,
            Operation.WRITE_MANY: self.writes.write_many,
            Operation.WRITE_COPY: received.write_copy,
            Operation.WRITE_COPIES: received.write_copies,
            Operation.GET_COPY_TAILS: received.tails,
            Operation.TELL_SETTLED: received.copies_settled,
            Operation.STAGE_ROWS: loads.stage,
            Operation.STAGE_COPY: loads.stage_copy,
            Operation.PREPARE_LOAD: loads.prepare,
            Operation.PUBLISH_PREPARED_LOAD: loads.publish,
            Operation.PUBLISHED_EVERYWHERE: self.copies.publications.told,
            Operation.GET_PUBLICATION: loads.last_publication,
            Operation.ABORT_STAGED_LOAD: loads.abort,
            Operation.GET_LOAD_OUTCOME: loads.outcome,
            Operation.GET_STAGED_LOADS: loads.under_way,
            Operation.CLOSE_FOR_CHANGE: loads.close,
            Operation.HOLD_LOAD: lambda request: leases_of(request.message.kind).renew(request),
            Operation.STANDING_OF_LOAD: lambda request: leases_of(request.message.kind).standing(request),
            Operation.SETTLE_LOAD: lambda request: leases_of(request.message.kind).settle(request),
            Operation.CREATE_STORED_TABLE: tables.create,
            Operation.DROP_STORED_TABLE: tables.drop,
            Operation.CATCH_UP: tables.catch_up,
            Operation.COPY_TABLE: self._table_copies.copy_table,
            Operation.PREPARE_ALTER: self.alterations.prepare,
            Operation.COMMIT_ALTER: tables.commit_alter,
            Operation.ABORT_ALTER: self.alterations.abort,
            Operation.BUILD_COPIES: built.build,
            Operation.OPEN_COPIES: built.open,
            Operation.FETCH_COPY: built.fetch,
            Operation.COUNT_COPIES: built.count,
            Operation.FORGET_COPIES: built.forget,
            Operation.DROP_COPIES: built.drop,
        }

    def update(self, topology: Topology) -> None:
        """Take over a newer topology."""
        self.copies.update(topology)
        self.built_copies.update(topology)

    def gone(self, peer: PeerInfo) -> None:
        """A connection has ended."""
        for leases in self.leases:
            leases.connection_gone(peer.connection_id)

    async def close(self) -> None:
        """End everything that is under way."""
        for leases in self.leases:
            await leases.stop()
        await self.copies.close()

    def _adopt_altered(self, table: TableDef) -> None:
        """The ranges of a table have changed, or its columns, and then its id."""
        places = self._storage.places
        before = None if table.succession is None else table.succession.before
        if before is not None and places.knows(before):
            places.remove_table(before)
            places.add_table(table)
            self.built_copies.forget_table(before)
            self._storage.change_registry.succeed(before, table.table_id)
            self.copies.succeed(before, table)
            return
        places.add_table(table)
        self.copies.forget_dropped_ranges(table)
        self.built_copies.forget_dropped_ranges(table)
