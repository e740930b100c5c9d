"""The tables of one member: its partitions, the changes to them, and the relations that kernels read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import ParamSpec

import pyarrow as pa

from secateur.engine_limits import EngineLimits
from secateur.errors import TableExistsError
from secateur.partitioning.pruning.key_range import KeySlice
from secateur.partitioning.schemes.components import no_garbage_collection
from secateur.partitioning.tables.table import TableDef, TableDefinition
from secateur.protocol.codec import encode
from secateur.storage.altered_rows import AlteredRows, VersionedRows
from secateur.storage.change import ChangeCount, ChangeOperation
from secateur.storage.change_feed import ChangeFeed
from secateur.storage.fold_queue import FoldQueue
from secateur.storage.hosted_tables import HostedTable, HostedTables, ReadVersions
from secateur.storage.key_windows import FindFew, few_finder, row_finder
from secateur.storage.layout import TableLayout
from secateur.storage.log import records
from secateur.storage.partition import Partition
from secateur.storage.pinned_rows import PinnedRows, pinned
from secateur.storage.read_lease import ReadLease
from secateur.storage.snapshot import PartitionSnapshot
from secateur.storage.sorted_rows import SortedRows, scanned
from secateur.storage.store_loads import StoreLoads
from secateur.wire import ShortTable, encode_table

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class DataVersion:
    """The version of a table's data on one member.

    Attributes:
        published: Number of the last published load, equal on all members that have published it; 0 before the first.
        changes: Counts changes of any kind on this member. Equal values on one member mean equal rows; values of
            different members are not comparable.
    """

    published: int
    changes: int


@dataclass(frozen=True, slots=True)
class TableStats:
    """Size of a table on one member, primary and backup partitions alike.

    ``nbytes`` are those of the Arrow buffers behind the rows that readers see. Partitions that are empty have no entry.
    """

    table_id: int
    name: str
    partitions: int
    rows: int
    nbytes: int
    partition_rows: Mapping[int, int]
    partition_bytes: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TableHits:
    """The uses of the partitions of a table on one member since it has them, for those that were used.

    Backups change as their primaries do.
    """

    table_id: int
    reads: Mapping[int, int]
    writes: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TableScan:
    """All rows of some partitions at one moment, to be read later: the columns at ``positions`` of those ``stored``."""

    snapshots: tuple[PartitionSnapshot, ...]
    positions: tuple[int, ...]
    stored: pa.Schema
    limits: EngineLimits

    @property
    def rows(self) -> int:
        """The number of these rows."""
        return sum(snapshot.rows for snapshot in self.snapshots)

    @property
    def schema(self) -> pa.Schema:
        """The columns wanted, as they are stored."""
        return pa.schema([self.stored.field(position) for position in self.positions])

    def __call__(self, *, converts: bool = True) -> pa.Table:
        """Read them, in any thread and at any time, as :func:`~secateur.storage.sorted_rows.scanned` does."""
        return scanned(
            [snapshot.fold() for snapshot in self.snapshots],
            self.positions,
            self.stored,
            self.limits,
            converts=converts,
        )


class MemberStore:
    """All partitions that one member hosts.

    Every method runs on the member's loop thread; the values that it returns may be read in any thread.

    Args:
        staged_bytes_max: Bytes of rows that all loads together may have staged; None for no limit.
        clock: Seconds that only grow.
        limits: The limits of the member; None for the defaults.

    Attributes:
        loads: The loads in progress.
        views: The ids of the views that plans may use: queries over the tables, which the member keeps only to check
            plans.
        marks: The read versions of each table.
        folds: The partitions to be merged with their recent changes.
        lease: Until when rows may be read here: rows read later may have changed elsewhere.
    """

    def __init__(
        self,
        *,
        staged_bytes_max: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        limits: EngineLimits | None = None,
    ) -> None:
        self._limits = limits or EngineLimits()
        self.views: frozenset[int] = frozenset()
        self.marks = ReadVersions()
        self.lease = ReadLease()
        self._tables = HostedTables()
        self.loads = StoreLoads(self._tables, staged_bytes_max, clock, self._limits.load_outcomes_max)
        self.folds = FoldQueue(self._tables)
        self._journal: records.Journal | None = None

    def record_to(self, journal: records.Journal) -> None:
        """Record all changes from now on, but those of :meth:`apply`, which its callers record."""
        self._journal = self.loads.journal = journal

    @no_garbage_collection()
    def create_table(self, tdef: TableDef, partitions: Iterable[int]) -> None:
        """Host partitions of a new table, empty at first. Repeating the call does nothing.

        Raises:
            TableExistsError: Another table has that id.
            SchemeError: The table has no primary key.
            NotSupportedError: A key column has a type without an order.
        """
        existing = self._tables.get(tdef.table_id)
        if existing is not None:
            if existing.layout.tdef == tdef:
                return
            raise TableExistsError(
                f"table id {tdef.table_id} belongs to {existing.layout.tdef.name}; a new table needs a new id",
                table=tdef.name,
            )
        layout, changes = TableLayout.of(tdef, self._limits), ChangeCount()
        self._tables[tdef.table_id] = HostedTable(
            layout, {number: Partition(layout, number, changes) for number in partitions}, changes
        )
        self._record(table_body, tdef, tuple(self._tables[tdef.table_id].partitions), 0)

    def copy_table(self, tdef: TableDef, rows: Mapping[int, pa.Table], published: int) -> None:
        """Host partitions of a table that another member has, with its rows, besides those that are here.

        Args:
            tdef: The table; the same as here, if it is here.
            rows: All rows of each partition.
            published: The number in the other member's :class:`DataVersion`.

        Raises:
            Error: As :meth:`create_table`, and as for an overwriting :meth:`apply`.
        """
        if tdef.table_id not in self._tables:
            self.create_table(tdef, ())
        table = self._tables.table(tdef.table_id)
        for number, copied in rows.items():
            partition = table.partitions.get(number) or Partition(table.layout, number, table.changes)
            partition.apply(ChangeOperation.OVERWRITE, copied)
            if number not in table.partitions:  # only now: whoever finds it finds all of its rows
                table.partitions[number] = partition
                self._record(records.body_of, records.LoggedBuild(tdef.table_id, number))
            self._copy_is_complete(table, number, copied)
        self.set_published(tdef.table_id, published)
        self._record(table_body, table.layout.tdef, tuple(table.partitions), published)

    def set_published(self, table_id: int, published: int) -> None:
        """Go on from the number of a load that was published before, here or elsewhere."""
        self._tables.table(table_id).published = published

    @no_garbage_collection()
    def alter_table(
        self, tdef: TableDef, partitions: Iterable[int], prepared: Mapping[int, VersionedRows] = MappingProxyType({})
    ) -> None:
        """Take over new ranges, or new columns, of a table.

        New partitions start empty; partitions that are not named any more are dropped with their rows. With other
        columns it has another id: nothing is here under the one before any more, and its loads have ended.

        Args:
            tdef: The table as it is now.
            partitions: All partitions that are hosted here from now on.
            prepared: Rows of partitions with their new columns, as :meth:`altering` makes them. What has changed since
                is made anew.

        Raises:
            UnknownTableError: The table is not here.
        """
        succession = tdef.succession
        is_new = tdef.table_id not in self._tables and succession is not None
        before = self._tables.table(succession.before if is_new and succession is not None else tdef.table_id)
        table = (
            self._succeeded(tdef, before, partitions, prepared) if is_new else self._follow(tdef, before, partitions)
        )
        table.arriving.intersection_update(table.partitions)
        table.changes.total += 1
        self._record_partitions(table)

    def _follow(self, tdef: TableDef, table: HostedTable, partitions: Iterable[int]) -> HostedTable:
        layout = TableLayout.of(tdef, self._limits)
        kept = {
            number: table.partitions.get(number) or Partition(layout, number, table.changes) for number in partitions
        }
        for partition in kept.values():
            partition.adopt(layout)
        table.layout, table.partitions = layout, kept
        return table

    def _succeeded(
        self, tdef: TableDef, before: HostedTable, partitions: Iterable[int], prepared: Mapping[int, VersionedRows]
    ) -> HostedTable:
        layout = TableLayout.of(tdef, self._limits)
        hosted = {
            number: partition for number in partitions if (partition := before.partitions.get(number)) is not None
        }
        rows_max = max((partition.rows_max for partition in hosted.values()), default=0)
        alter = AlteredRows(layout, rows_max)
        kept: dict[int, Partition] = {}
        for number, partition in hosted.items():
            ready = prepared.get(number)
            is_ready = ready is not None and ready.version == partition.version
            rows = ready.rows if ready is not None and is_ready else alter.sorted(partition.snapshot())
            kept[number] = partition.altered(layout, rows, alter.table)
        table = HostedTable(layout, kept, before.changes, before.published, before.arriving)
        self.loads.forget_table(before.layout.tdef.table_id)
        del self._tables[before.layout.tdef.table_id]
        self._tables[tdef.table_id] = table
        return table

    def altering(self, tdef: TableDef, partitions: Iterable[int]) -> Callable[[], dict[int, VersionedRows]]:
        """What makes the rows of a table whose columns are about to change, in any thread.

        ``tdef`` is the table as it is to be.

        Raises:
            UnknownTableError: The table is not here.
            TopologyChangedError: A partition is not here.
        """
        assert tdef.succession is not None
        before = self._tables.table(tdef.succession.before)
        layout = TableLayout.of(tdef, self._limits)
        current = [(partition, partition.snapshot(), partition.version) for partition in before.pick(partitions)]

        def make() -> dict[int, VersionedRows]:
            alter = AlteredRows(layout, max((snapshot.rows for _, snapshot, _ in current), default=0))
            return {
                partition.number: VersionedRows(alter.sorted(snapshot), version)
                for partition, snapshot, version in current
            }

        return make

    def begin_copy(self, table_id: int, partition: int) -> TableLayout:
        """Host a partition whose rows are on their way from another member; it is empty until :meth:`install_copy`.

        What loads under way have staged for it is forgotten: that comes from the other member as well.

        Raises:
            UnknownTableError: The table is not here.
        """
        table = self._tables.table(table_id)
        table.changes.total += 1  # its versions begin behind those of the partition in whose place it comes
        table.partitions[partition] = Partition(table.layout, partition, table.changes)
        table.arriving.add(partition)
        self.loads.forget_partition(table_id, partition)
        self._record(records.body_of, records.LoggedBuild(table_id, partition))
        return table.layout

    def _record(self, body: Callable[P, Sequence[bytes | memoryview]], *args: P.args, **options: P.kwargs) -> None:
        """Record a change that was made in this turn of the loop, by what makes its record."""
        if self._journal is not None:
            self._journal.append(partial(body, *args, **options))

    def install_copy(self, table_id: int, partition: int, rows: SortedRows) -> None:
        """Give a partition the rows that another member has. Costs nothing.

        Raises:
            UnknownTableError: The table is not here.
            TopologyChangedError: The partition is not here any more.
        """
        self.partition(table_id, partition).install(rows)
        self._copy_is_complete(self._tables.table(table_id), partition, rows.table)

    def _copy_is_complete(self, table: HostedTable, partition: int, rows: pa.Table) -> None:
        table.arriving.discard(partition)
        self._record(_built_body, table.layout.tdef.table_id, partition, rows)

    def restore_copy(self, table_id: int, partition: int, rows: pa.Table) -> None:
        """Have a copy that was complete before this member was started anew.

        Raises:
            Error: As :meth:`apply`.
        """
        self.apply(table_id, partition, ChangeOperation.OVERWRITE, rows, is_copy=True)
        self._copy_is_complete(self._tables.table(table_id), partition, rows)

    def drop_partition(self, table_id: int, partition: int) -> None:
        """Forget a partition and its rows; nothing happens when it is not here."""
        table = self._tables.get(table_id)
        if table is not None and table.partitions.pop(partition, None) is not None:
            table.arriving.discard(partition)
            table.changes.total += 1
            self._record_partitions(table)

    def drop_table(self, table_id: int) -> None:
        """Forget a table, its rows and the loads into it; nothing happens when it is not there."""
        if self._tables.pop(table_id, None) is not None:
            self.loads.forget_table(table_id)
            self._record(records.body_of, records.LoggedDrop(table_id))

    def _record_partitions(self, table: HostedTable) -> None:
        self._record(_alter_body, table.layout.tdef, tuple(table.partitions))

    def table(self, table_id: int) -> TableDef:
        """The description of a table.

        Raises:
            UnknownTableError: The table is not here.
        """
        hosted = self._tables.get(table_id) or self._tables.table(table_id)
        return hosted.layout.tdef

    def partition(self, table_id: int, partition: int) -> Partition:
        """One partition.

        Raises:
            UnknownTableError: The table is not here.
            TopologyChangedError: The partition is not here.
        """
        try:
            return self._tables[table_id].partitions[partition]
        except KeyError:
            return self._tables.table(table_id).partition(partition)  # which says what is not here

    def place(self, table_id: int, partition: int) -> tuple[HostedTable, Partition]:
        """A table and one partition of it.

        Raises:
            UnknownTableError, TopologyChangedError: As :meth:`partition`.
        """
        table = self._tables.get(table_id) or self._tables.table(table_id)
        return table, table.partitions.get(partition) or table.partition(partition)

    def relation(
        self,
        table_id: int,
        partitions: Iterable[int],
        columns: Sequence[str] | None = None,
        keys: KeySlice | None = None,
    ) -> pa.Table:
        """The rows of some partitions as one table for a kernel, without copying.

        Args:
            table_id: The table.
            partitions: Partitions hosted here; one that is named twice is read once.
            columns: Columns wanted, in that order, found without regard to case; None for all. With none at all, only
                the number of rows remains.
            keys: The part of each partition that is wanted, None for all of it. A NULL in a prefix matches nothing. Of
                one range or prefix exactly its rows are returned; of several, perhaps rows between them as well.

        Returns:
            One chunk per partition and range of keys that has rows; sorted by primary key inside each partition. All
            partitions are read at one moment.

        Raises:
            UnknownTableError: The table is not here.
            UnknownColumnError: No such column.
            TopologyChangedError: A partition is not here, or the lease has ended.
            DataError: A key value of another type than its column.
        """
        self.lease.check()
        table = self._tables.table(table_id)
        layout = table.layout
        if columns is not None and not columns:
            # Arrow loses the number of rows when it puts tables without columns together.
            return self.relation(table_id, partitions, layout.schema.names[:1], keys).select([])
        positions = None if columns is None else layout.column_positions(columns)
        hosted = _counted(table.pick(partitions))
        find = row_finder(layout, positions, keys)
        found = [piece for partition in hosted for piece in find(partition.snapshot(), partition.number)]
        if len(found) == 1:
            return found[0]
        pieces = [piece for piece in found if piece.num_rows]
        if pieces:
            return pa.concat_tables(pieces)
        empty = layout.no_rows
        return empty if positions is None else empty.select(positions)

    def few_finder(self, table_id: int, columns: Sequence[str]) -> FindFew:
        """Make a function that finds few rows by leading values of their keys; see ``key_windows.py``.

        Its caller counts the reads by :meth:`note_reads`, or declines the rows and reads the partitions in another way.

        Raises:
            UnknownTableError: The table is not here.
        """
        return few_finder(self._tables, self.lease, table_id, columns)

    @property
    def hosted_tables(self) -> HostedTables:
        """The tables that are here, for who reads them in the turn of the event loop in which it answers."""
        return self._tables

    def note_reads(self, table_id: int, partitions: Iterable[int]) -> None:
        """Count a read of partitions by :meth:`few_finder`; all other methods that return rows count by themselves."""
        hosted = self._tables[table_id].partitions
        for number in partitions:
            partition = hosted.get(number)
            if partition is not None:
                partition.reads += 1

    def pin(
        self, table_id: int, partitions: Iterable[int], columns: Sequence[str], keys: KeySlice | None
    ) -> list[PinnedRows]:
        """The rows of some partitions as they are now, one by one, for readers that come later.

        Arguments and errors are those of :meth:`relation`; partitions without such rows are left out.
        """
        self.lease.check()
        table = self._tables.table(table_id)
        return list(pinned(table.layout, _counted(table.pick(partitions)), columns, keys))

    def scan(self, table_id: int, partitions: Iterable[int], columns: Sequence[str]) -> TableScan:
        """Return all current rows of some partitions for a kernel.

        Args:
            table_id: The table.
            partitions: Partitions hosted here; duplicates are read once.
            columns: Columns wanted, at least one, in that order, matched without regard to case.

        Returns:
            A scan that reads them.

        Raises:
            UnknownTableError: The table is not here.
            UnknownColumnError: No such column.
            TopologyChangedError: A partition is not here, or the lease has ended.
        """
        self.lease.check()
        table = self._tables.table(table_id)
        layout = table.layout
        positions = layout.column_positions(columns)
        snapshots = [partition.snapshot() for partition in _counted(table.pick(partitions))]
        return TableScan(tuple(snapshots), tuple(positions), layout.schema, self._limits)

    def feed(self, table_id: int, partition: int) -> ChangeFeed | None:
        """The change feed of a partition; None if its table has none, or it is not here."""
        table = self._tables.get(table_id)
        found = None if table is None else table.partitions.get(partition)
        return None if found is None else found.feed

    def apply(
        self,
        table_id: int,
        partition: int,
        operation: ChangeOperation,
        rows: pa.Table | ShortTable,
        *,
        is_copy: bool = False,
    ) -> int:
        """Make any change to one partition, as ``Partition.apply``, visible at once.

        The caller has computed that all rows belong to the partition; overwriting concerns it only.

        Returns:
            Rows written or removed.

        Raises:
            Error: As ``Partition.apply`` and :meth:`partition`.
        """
        return self.partition(table_id, partition).apply(operation, rows, is_copy=is_copy)

    def data_version(self, table_id: int) -> DataVersion:
        """Return the version of a table's data here; a distributed read compares the members' ``published``.

        Raises:
            UnknownTableError: The table is not here.
        """
        table = self._tables.table(table_id)
        return DataVersion(table.published, table.changes.total)

    def rows_written(self) -> dict[int, int]:
        """Rows written to each table by anything but loads since it was created here, by table id.

        Tables without such rows are left out.
        """
        return {table_id: table.changes.rows for table_id, table in self._tables.items() if table.changes.rows}

    def hosted(self, table_id: int) -> list[int]:
        """The partitions of a table on this member, ascending.

        Raises:
            UnknownTableError: The table is not here.
        """
        return sorted(self._tables.table(table_id).partitions)

    def arriving(self, table_id: int) -> list[int]:
        """The partitions among :meth:`hosted` whose rows are on their way from another member, or never came.

        Raises:
            UnknownTableError: The table is not here.
        """
        return sorted(self._tables.table(table_id).arriving)

    def find(self, table_id: int) -> TableDef | None:
        """The description of a table; None if it is not here."""
        table = self._tables.get(table_id)
        return None if table is None else table.layout.tdef

    def tables(self) -> list[TableDef]:
        """The descriptions of all tables here, by table id."""
        return [self._tables[table_id].layout.tdef for table_id in sorted(self._tables)]

    def bytes_of(self, table_id: int, partitions: Iterable[int]) -> int:
        """Bytes of some partitions of a table; those that are not here have none.

        Raises:
            UnknownTableError: The table is not here.
        """
        hosted = self._tables.table(table_id).partitions
        return sum(hosted[number].nbytes for number in partitions if number in hosted)

    @property
    def table_bytes(self) -> int:
        """Bytes of all tables. Costs about a microsecond per partition."""
        return sum(partition.nbytes for table in self._tables.values() for partition in table.partitions.values())

    def stats(self) -> list[TableStats]:
        """Rows and bytes of every table, by table id. Costs about a microsecond per partition."""
        result = []
        for table_id, table in sorted(self._tables.items()):
            rows = {number: partition.rows for number, partition in sorted(table.partitions.items()) if partition.rows}
            bytes_of = {number: partition.nbytes for number, partition in table.partitions.items()}
            sizes, nbytes = {number: bytes_of[number] for number in rows}, sum(bytes_of.values())
            result.append(
                TableStats(
                    table_id, table.layout.tdef.name, len(table.partitions), sum(rows.values()), nbytes, rows, sizes
                )
            )
        return result

    def hits(self) -> list[TableHits]:
        """The uses of all partitions, by table id. Costs a tenth of a microsecond per partition."""
        return [
            TableHits(
                table_id,
                {number: partition.reads for number, partition in table.partitions.items() if partition.reads},
                {number: partition.writes for number, partition in table.partitions.items() if partition.writes},
            )
            for table_id, table in sorted(self._tables.items())
        ]


def _counted(partitions: list[Partition]) -> list[Partition]:
    for partition in partitions:
        partition.reads += 1
    return partitions


def table_body(tdef: TableDef, partitions: tuple[int, ...], published: int) -> Sequence[bytes | memoryview]:
    """The record of a table that is hosted."""
    return records.body_of(
        records.LoggedTable(tdef.table_id, partitions, published), (encode(TableDefinition.of(tdef)),)
    )


def _alter_body(tdef: TableDef, partitions: tuple[int, ...]) -> Sequence[bytes | memoryview]:
    return records.body_of(records.LoggedAlter(tdef.table_id, partitions), (encode(TableDefinition.of(tdef)),))


def _built_body(table_id: int, partition: int, rows: pa.Table) -> Sequence[bytes | memoryview]:
    return records.body_of(records.LoggedBuilt(table_id, partition), (encode_table(rows),))
