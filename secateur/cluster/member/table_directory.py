"""The table directory of a member: definitions, topology, write latches, and the members with copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from secateur.cluster.write_latch import WriteLatch
from secateur.engine_limits import EngineLimits
from secateur.errors import ProtocolError, TopologyChangedError, UnknownTableError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import GetOwnerPages, GetRanges, OwnerPages, RangePages
from secateur.storage.read_lease import ReadLease


class TableDirectory:
    """The state that direct writes and loads on a member share. Lives on the member's event loop.

    Args:
        lease: Until when it may count on being the primary of its partitions; none ends where nothing is given.
        limits: How long writes wait; None for the defaults.
    """

    def __init__(self, member_id: str, lease: ReadLease | None = None, limits: EngineLimits | None = None) -> None:
        self._write_wait_s = (limits or EngineLimits()).write_wait_s
        self.member_id = member_id
        self._lease = lease or ReadLease()
        self._tables: dict[int, TableDef] = {}
        self._names: dict[str, int] = {}
        self._latches: dict[int, WriteLatch] = {}
        self._topology: Topology | None = None
        # Partitions found to be this member's, by this topology and tables, and how many others have a backup of each.
        self._own: dict[tuple[int, int], int] = {}

    def update(self, topology: Topology) -> None:
        """Take over a newer topology."""
        self._topology = topology
        self._own.clear()

    def add_table(self, table: TableDef) -> None:
        """A table was created, or altered."""
        self._own.clear()
        self._tables[table.table_id] = table
        self._names[table.name.casefold()] = table.table_id
        self._latches.setdefault(table.table_id, WriteLatch(table.name, self._write_wait_s))

    def remove_table(self, table_id: int) -> None:
        """A table was dropped."""
        self._own.clear()
        self._tables.pop(table_id, None)
        self._names = {name: known for name, known in self._names.items() if known != table_id}
        self._latches.pop(table_id, None)

    def knows(self, table_id: int) -> bool:
        """Whether a table is here."""
        return table_id in self._tables

    def tables(self) -> list[TableDef]:
        """All tables here."""
        return list(self._tables.values())

    def named(self, name: str) -> TableDef:
        """A table by its name, which is not case-sensitive.

        Raises:
            UnknownTableError: There is none here.
        """
        table_id = self._names.get(name.casefold())
        if table_id is None:
            raise UnknownTableError(f"table {name!r} does not exist on member {self.member_id}", table=name)
        return self._tables[table_id]

    def latch(self, table_id: int) -> WriteLatch:
        """The latch of a table's direct writes."""
        return self._latches[table_id]

    def member_ids(self) -> tuple[str, ...]:
        """The members of the cluster, as far as this one knows."""
        return () if self._topology is None else self._topology.member_ids

    def has_member(self, member_id: str) -> bool:
        """Whether a member is in the cluster, as far as this one knows."""
        return self._topology is not None and self._topology.has_member(member_id)

    def table(self, table_id: int) -> TableDef:
        """A table of this member.

        Raises:
            TopologyChangedError: It is not here.
        """
        return self.place(table_id)[1]

    @property
    def topology_version(self) -> int:
        """The version of the topology that this member knows; 0 for none."""
        return 0 if self._topology is None else self._topology.version

    def is_read(self, table_id: int, partition: int) -> bool:
        """Whether readers come here for a partition: this member is its primary, or every member has the table."""
        table = self._tables.get(table_id)
        if table is None or self._topology is None:
            return False
        if table.replicated:
            return True
        owners = self._topology.owners.get(table.scheme.affinity_group())
        if owners is None or partition >= owners.partitions:
            return False
        return owners.holders(partition)[:1] == (self.member_id,)

    def place(self, table_id: int) -> tuple[Topology, TableDef]:
        """The topology and a table.

        Raises:
            TopologyChangedError: The table is not here.
        """
        if self._topology is None or table_id not in self._tables:
            raise TopologyChangedError(
                f"member {self.member_id} does not know table {table_id}: dropped, or this member has just joined",
                table_id=table_id,
            )
        return self._topology, self._tables[table_id]

    def other_copies(self, table_id: int, partitions: Iterable[int]) -> dict[str, list[int]]:
        """Return the partitions by the other members that have a copy of them.

        For a replicated table these are all members, otherwise the backups.

        Raises:
            TopologyChangedError: As :meth:`backups`.
        """
        topology, table = self.place(table_id)
        if table.replicated:
            return {member: list(partitions) for member in topology.member_ids if member != self.member_id}
        return self.backups(table_id, partitions)

    def check_primary(self, table_id: int, partition: int) -> None:
        """Refuse a partition whose primary is elsewhere. Costs a third of a microsecond once it was found to be here.

        Raises:
            TopologyChangedError: As :meth:`backups`.
        """
        self._lease.check()
        if (table_id, partition) in self._own:
            return
        topology, table = self.place(table_id)
        if table.replicated:
            return
        ownership = topology.ownership(table.scheme.affinity_group())
        if not 0 <= partition < ownership.partitions:
            raise _no_partition(table, partition, ownership.partitions)
        primary, *others = ownership.holders(partition)
        if primary != self.member_id:
            raise self._elsewhere(topology, table, partition, primary)
        self._own[table_id, partition] = sum(map(topology.has_member, others))

    def backup_count(self, table_id: int, partition: int) -> int:
        """The number of backups of a partition that was found to be this member's in this turn of the loop."""
        return self._own[table_id, partition]

    def backups(self, table_id: int, partitions: Iterable[int]) -> dict[str, list[int]]:
        """The partitions by the members that keep a backup of them.

        Raises:
            TopologyChangedError: One of them has its primary elsewhere, or may have by now, since the lease has ended.
        """
        self._lease.check()
        topology, table = self.place(table_id)
        if table.replicated:
            return {}
        ownership = topology.ownership(table.scheme.affinity_group())
        count = ownership.partitions
        backups: defaultdict[str, list[int]] = defaultdict(list)
        for partition in partitions:
            if not 0 <= partition < count:
                raise _no_partition(table, partition, count)
            primary, *others = ownership.holders(partition)
            if primary != self.member_id:
                raise self._elsewhere(topology, table, partition, primary)
            for member in others:
                if topology.has_member(member):
                    backups[member].append(partition)
        return backups

    def _elsewhere(self, topology: Topology, table: TableDef, partition: int, primary: str) -> TopologyChangedError:
        return TopologyChangedError(
            f"partition {partition} of {table.name} belongs to {primary} at topology version {topology.version}, not to"
            f" {self.member_id}; nothing was written",
            topology_version=topology.version,
        )


def _no_partition(table: TableDef, partition: int, count: int) -> ProtocolError:
    return ProtocolError(f"{table.name} has the partitions 0 to {count - 1}, not {partition}", table=table.name)


def range_pages(tables: Iterable[TableDef], asked: GetRanges) -> RangePages:
    """The pages with the ranges of the keys that a client asks for.

    Args:
        tables: The tables of this process.
        asked: What the client asks for.

    Raises:
        TopologyChangedError: No table here has the scheme of that name: the table was dropped, or has other ranges.

    Cost: linear in the ranges sent, of which there is a bound; those of the table do not matter.
    """
    for table in tables:
        if table.scheme.reference == asked.reference:
            return RangePages(table.scheme.pages(asked.wanted))
    raise TopologyChangedError("the table has other ranges by now, or is gone: plan the statement again")


def owner_pages(topology: Topology, asked: GetOwnerPages) -> OwnerPages:
    """The pages of owners that a client asks for.

    Raises:
        TopologyChangedError: No group of this topology has the primaries that the client asks about.

    Cost: linear in the pages sent, and in the number of groups.
    """
    for ownership in topology.owners.values():
        if ownership.outline.digest == asked.digest:
            return OwnerPages(ownership.pages(asked.pages))
    raise TopologyChangedError(
        f"no partitions have these owners in topology {topology.version}: fetch the topology",
        topology_version=topology.version,
    )
