"""The tables of one member: its partitions, the loads on their way in, and the relations that kernels read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.errors import InternalError, LoadFailedError, TableExistsError, TopologyChangedError, UnknownTableError
from secateur.partitioning.key_range import KeyRanges, KeySlice
from secateur.partitioning.table import TableDef
from secateur.storage.change import ChangeCount, Operation, load_mode
from secateur.storage.key_windows import KeyWindows
from secateur.storage.layout import TableLayout
from secateur.storage.load import Load, Preparation, PreparedPart, StagedPart
from secateur.storage.load_book import LoadBook, LoadInfo, LoadOutcome
from secateur.storage.merge import merge
from secateur.storage.partition import Partition
from secateur.storage.sorted_rows import SortedRows

__all__ = ["DataVersion", "MemberStore", "TableStats"]


@dataclass(frozen=True, slots=True)
class DataVersion:
    """How far the data of a table on one member have come.

    Attributes:
        published: Number of the load published last, equal on all members that have published it; 0 before the first.
        changes: Changes of any kind on this member; equal values on one member mean equal rows, between members they mean nothing.
    """

    published: int
    changes: int


@dataclass(frozen=True, slots=True)
class TableStats:
    """Size of a table on one member, primary and backup partitions alike.

    Attributes:
        table_id: The table.
        name: Its name.
        partitions: Partitions hosted here.
        rows: Rows that readers see.
        nbytes: Bytes of the Arrow buffers behind them.
        partition_rows: Rows by partition, for those that are not empty.
    """

    table_id: int
    name: str
    partitions: int
    rows: int
    nbytes: int
    partition_rows: Mapping[int, int]


@dataclass(slots=True)
class _Table:
    layout: TableLayout
    partitions: dict[int, Partition]
    changes: ChangeCount
    published: int = 0


class MemberStore:
    """All partitions that one member hosts. Every method runs on the member's loop thread; what it hands out may be read in any thread.

    Args:
        staged_bytes_max: Bytes of rows that all loads together may have staged; None for no limit.
        clock: Seconds that only grow.
    """

    def __init__(self, *, staged_bytes_max: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._tables: dict[int, _Table] = {}
        self._loads = LoadBook(staged_bytes_max, clock)

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
            raise TableExistsError(f"table id {tdef.table_id} belongs to {existing.layout.tdef.name}; a new table needs a new id", table=tdef.name)
        layout, changes = TableLayout.of(tdef), ChangeCount()
        self._tables[tdef.table_id] = _Table(layout, {number: Partition(layout, number, changes) for number in partitions}, changes)

    def alter_table(self, tdef: TableDef, partitions: Iterable[int]) -> None:
        """Take over other ranges of a table: new partitions are made, empty; those that are not named any more are dropped with their rows.

        Args:
            tdef: The table as it is now: nothing but its ranges may differ.
            partitions: All that are hosted here from now on.

        Raises:
            UnknownTableError: The table is not here.
        """
        table = self._table(tdef.table_id)
        layout = TableLayout.of(tdef)
        kept = {number: table.partitions.get(number) or Partition(layout, number, table.changes) for number in partitions}
        for partition in kept.values():
            partition.adopt(layout)
        table.layout, table.partitions = layout, kept
        table.changes.total += 1

    def drop_table(self, table_id: int) -> None:
        """Forget a table, its rows and the loads into it; nothing happens when it is not there."""
        if self._tables.pop(table_id, None) is not None:
            for load in self._loads.of_table(table_id):
                self._loads.end(load.load_id, LoadOutcome(published=False, rows=0))

    def table(self, table_id: int) -> TableDef:
        """The description of a table.

        Raises:
            UnknownTableError: The table is not here.
        """
        return self._table(table_id).layout.tdef

    def partition(self, table_id: int, partition: int) -> Partition:
        """One partition.

        Raises:
            UnknownTableError: The table is not here.
            TopologyChangedError: The partition is not here.
        """
        table = self._table(table_id)
        try:
            return table.partitions[partition]
        except KeyError:
            raise _not_here(table, partition) from None

    def relation(self, table_id: int, partitions: Iterable[int], columns: Sequence[str] | None = None, keys: KeySlice | None = None) -> pa.Table:
        """The rows of some partitions as one table for a kernel, without copying.

        Args:
            table_id: The table.
            partitions: Partitions hosted here; one that is named twice is read once.
            columns: Columns wanted, in that order, found without regard to case; None for all. With none at all, only the number of rows remains.
            keys: The part of each partition that is wanted, None for all of it. A NULL in a prefix matches nothing. Of one range or prefix exactly its rows
                are returned; of several, perhaps rows between them as well.

        Returns:
            One chunk per partition and range of keys that has rows; sorted by primary key inside each partition. All partitions are read at one moment.

        Raises:
            UnknownTableError: The table is not here.
            UnknownColumnError: No such column.
            TopologyChangedError: A partition is not here.
            DataError: A key value of another type than its column.
        """
        table = self._table(table_id)
        layout = table.layout
        if columns is not None and not columns:
            # Arrow loses the number of rows when it puts tables without columns together.
            return self.relation(table_id, partitions, layout.schema.names[:1], keys).select([])
        positions = None if columns is None else layout.column_positions(columns)
        try:
            hosted = [table.partitions[number] for number in dict.fromkeys(partitions)]
        except KeyError as missing:
            raise _not_here(table, missing.args[0]) from None
        if isinstance(keys, KeyRanges):
            windows = KeyWindows.of(layout, keys)
            found = [piece for partition in hosted for piece in partition.snapshot().read_windows(positions, windows.of_partition(partition.number))]
        else:
            cells = () if keys is None else layout.order.cells(keys.values)
            found = [partition.snapshot().read(positions, cells) for partition in hosted]
        if len(found) == 1:
            return found[0]
        pieces = [piece for piece in found if piece.num_rows]
        if pieces:
            return pa.concat_tables(pieces)
        empty = layout.schema.empty_table()
        return empty if positions is None else empty.select(positions)

    def write(self, table_id: int, partition: int, rows: pa.Table, mode: str) -> int:
        """Write rows of one partition directly, visible at once.

        Args:
            table_id: The table.
            partition: The partition that all rows belong to; the caller has computed it.
            rows: Of exactly the table's schema.
            mode: ``append``, ``overwrite``, ``upsert`` or ``ignore``; overwriting concerns this partition only.

        Returns:
            Rows written.

        Raises:
            Error: As ``Partition.apply`` and :meth:`partition`.
        """
        return self.partition(table_id, partition).apply(load_mode(mode), rows)

    def apply(self, table_id: int, partition: int, operation: Operation, rows: pa.Table) -> int:
        """Make any change to one partition, as ``Partition.apply``.

        Raises:
            Error: As ``Partition.apply`` and :meth:`partition`.
        """
        return self.partition(table_id, partition).apply(operation, rows)

    def delete(self, table_id: int, partition: int, keys: pa.Table) -> int:
        """Delete rows of one partition by their complete keys.

        Returns:
            Rows that were there and are gone.

        Raises:
            Error: As ``Partition.apply`` and :meth:`partition`.
        """
        return self.partition(table_id, partition).delete(keys)

    def stage(self, load_id: str, table_id: int, partition: int, attempt: int, rows: pa.Table, *, keys: bool = False) -> int:
        """Keep rows of a load aside. Calls with the same partition and attempt add up.

        Args:
            load_id: The load.
            table_id: Its table.
            partition: The partition that all rows belong to.
            attempt: The number of the attempt that brings them.
            rows: Of exactly the table's schema.
            keys: Whether they are keys instead, with at least the key columns, for a load that deletes.

        Returns:
            Rows staged for this partition and attempt so far.

        Raises:
            LoadFailedError: The load was published, prepared or aborted, or loads another table.
            LimitExceededError: More is staged than this member allows.
            UnknownTableError: The table is not here.
            TopologyChangedError: The partition is not here, or the rows belong to another.
            DataError: The rows are not of the table's schema.
            NullKeyError: A NULL in a NOT NULL column.
        """
        self.partition(table_id, partition)
        layout = self._table(table_id).layout
        admitted = layout.admit_keys(rows) if keys else layout.admit(rows)
        layout.check_partition(admitted, partition)
        return self._loads.stage(self._loads.open(load_id, table_id), partition, attempt, admitted)

    def prepare(self, load_id: str, table_id: int, mode: str, parts: Mapping[int, Sequence[int]]) -> int:
        """Check everything that can fail and build the new partitions aside; readers see nothing of it.

        The three steps of it can be called one by one, so that the heavy one runs in a thread: :meth:`begin_prepare`, ``Preparation.run``,
        :meth:`finish_prepare`.

        Args:
            load_id: The load.
            table_id: Its table.
            mode: ``append``, ``overwrite``, ``upsert``, ``ignore`` or, for keys, ``delete``. Overwriting empties the partitions of this member that
                ``parts`` does not name.
            parts: The attempts that count, in the order of their rows, for each partition of this member that has rows: several tasks may each bring
                a share of a partition.

        Returns:
            Rows that publication brings.

        Raises:
            LoadFailedError: Rows are missing, the load has ended, or its keys are those of another load about to be published.
            DuplicateKeyError: A key occurs twice, or for an append is there already.
            UnknownTableError: The table is not here.
            TopologyChangedError: A partition is not here.
            ProgrammingError: An unknown mode.
        """
        preparation = self.begin_prepare(load_id, table_id, mode, parts)
        preparation.run()
        return self.finish_prepare(preparation)

    def begin_prepare(self, load_id: str, table_id: int, mode: str, parts: Mapping[int, Sequence[int]]) -> Preparation:
        """First step of :meth:`prepare`: collect what the second needs. Costs microseconds per partition."""
        operation = Operation.DELETE if mode == Operation.DELETE else load_mode(mode)
        table = self._table(table_id)
        for number in parts:
            self.partition(table_id, number)
        prepared = self._loads.find(load_id)
        if prepared is not None and prepared.operation is not None:
            return self._prepared_again(prepared, table, operation, parts)
        load = self._loads.open(load_id, table_id)
        missing = [(number, attempt) for number, attempts in parts.items() for attempt in attempts if (number, attempt) not in load.staged]
        if missing:
            name, (number, attempt) = table.layout.tdef.name, missing[0]
            message = f"{name}: load {load_id} has no rows here for partition {number}, attempt {attempt}; stage them on this member first"
            raise LoadFailedError(message, load_id=load_id, table=name)
        staged = []
        wanted = table.layout.key_schema if operation is Operation.DELETE else table.layout.schema
        for number in sorted(parts):
            partition = table.partitions[number]
            tables = [rows for attempt in parts[number] for rows in load.staged[number, attempt]]
            if any(rows.schema.names != wanted.names for rows in tables):
                message = f"{table.layout.tdef.name}: load {load_id} cannot {operation.value}: a deletion takes keys, and everything else complete rows"
                raise LoadFailedError(message, load_id=load_id, table=table.layout.tdef.name)
            staged.append(StagedPart(number, tables, partition.snapshot(), partition.version))
        return Preparation(load_id, table.layout, operation, parts, staged)

    def finish_prepare(self, preparation: Preparation) -> int:
        """Last step of :meth:`prepare`: take the prepared partitions over, and reserve the keys of an append.

        Returns:
            Rows that publication brings.
        """
        load = self._loads.find(preparation.load_id)
        if load is None:
            raise self._loads.ended(preparation.load_id)
        if preparation.prepared is None:
            raise InternalError(f"load {preparation.load_id}: the preparation was finished before it was run")
        table = self._table(load.table_id)
        operation = preparation.operation
        parts = {}
        for part in preparation.prepared:
            partition = table.partitions[part.partition]
            if operation is Operation.APPEND and part.version != partition.version:
                # A write came while the preparation ran in its thread: only now is it known whether it took a key.
                merged = merge(table.layout, partition.snapshot().fold(), part.rows, operation)
                part = PreparedPart(part.partition, part.rows, merged, partition.version)
            self._loads.check_others(table.layout, load, operation, part)
            parts[part.partition] = part
        if operation is Operation.APPEND:
            for number, part in parts.items():
                table.partitions[number].reserve(load.load_id, part.rows)
        load.operation = operation
        load.parts = parts
        load.staged.clear()
        return load.prepared_rows

    def publish(self, load_id: str, number: int | None = None) -> int:
        """Make a prepared load visible, all of it at once. Repeating the call does nothing.

        Cannot fail once the load is prepared. Costs microseconds per partition; only partitions that were written to since are merged again.

        Args:
            load_id: The load.
            number: What ``DataVersion.published`` becomes, the same on all members; None counts on from the last.

        Returns:
            Rows it brought to this member.

        Raises:
            LoadFailedError: The load is not prepared here, or was aborted.
        """
        outcome = self._loads.outcome(load_id)
        if outcome is not None and outcome.published:
            return outcome.rows
        load = self._loads.find(load_id)
        if load is None or load.operation is None:
            raise self._loads.ended(load_id)
        table = self._table(load.table_id)
        for part in load.parts.values():
            partition = table.partitions[part.partition]
            partition.release(load_id)
            if load.operation is Operation.OVERWRITE or part.version == partition.version:
                partition.install(part.merged)
            else:
                partition.merge_prepared(load.operation, part.rows)
        if load.operation is Operation.OVERWRITE:
            nothing = SortedRows(table.layout.schema.empty_table(), table.layout.order)
            for partition in table.partitions.values():
                if partition.number not in load.parts and partition.rows:
                    partition.install(nothing)
        table.published = table.published + 1 if number is None else number
        table.changes.total += 1
        self._loads.end(load_id, LoadOutcome(published=True, rows=load.prepared_rows))
        return load.prepared_rows

    def abort(self, load_id: str) -> bool:
        """Drop a load; rows that arrive for it later are refused. May be repeated, and may come before the first row.

        Returns:
            False when the load has been published before, so that there is nothing to drop; else True.
        """
        outcome = self._loads.outcome(load_id)
        if outcome is not None:
            return not outcome.published
        load = self._loads.find(load_id)
        if load is not None:
            partitions = self._table(load.table_id).partitions
            for number in load.parts:
                if number in partitions:  # its range may have been dropped
                    partitions[number].release(load_id)
        self._loads.end(load_id, LoadOutcome(published=False, rows=0))
        return True

    def loads(self) -> list[LoadInfo]:
        """The loads that are neither published nor aborted."""
        return self._loads.infos()

    def data_version(self, table_id: int) -> DataVersion:
        """How far the data of a table have come here; a distributed read compares ``published`` of its members.

        Raises:
            UnknownTableError: The table is not here.
        """
        table = self._table(table_id)
        return DataVersion(table.published, table.changes.total)

    def rows_written(self) -> dict[int, int]:
        """Rows written to each table here by anything but loads, since it is here, by table id; tables without any are left out."""
        return {table_id: table.changes.rows for table_id, table in self._tables.items() if table.changes.rows}

    def hosted(self, table_id: int) -> list[int]:
        """The partitions of a table on this member, ascending.

        Raises:
            UnknownTableError: The table is not here.
        """
        return sorted(self._table(table_id).partitions)

    def tables(self) -> list[TableDef]:
        """The descriptions of all tables here, by table id."""
        return [self._tables[table_id].layout.tdef for table_id in sorted(self._tables)]

    def stats(self) -> list[TableStats]:
        """Rows and bytes of every table, by table id. Costs about a microsecond per partition."""
        result = []
        for table_id, table in sorted(self._tables.items()):
            sizes = {number: partition.rows for number, partition in sorted(table.partitions.items()) if partition.rows}
            nbytes = sum(partition.nbytes for partition in table.partitions.values())
            result.append(TableStats(table_id, table.layout.tdef.name, len(table.partitions), sum(sizes.values()), nbytes, sizes))
        return result

    def _table(self, table_id: int) -> _Table:
        try:
            return self._tables[table_id]
        except KeyError:
            message = f"this member has no table with id {table_id}; it was dropped, or the catalog here is older than yours"
            raise UnknownTableError(message, table_id=table_id) from None

    def _prepared_again(self, load: Load, table: _Table, operation: Operation, parts: Mapping[int, Sequence[int]]) -> Preparation:
        """A preparation that has run already, for a caller who repeats the call."""
        if load.table_id != table.layout.tdef.table_id or load.operation is not operation or load.parts.keys() != parts.keys():
            message = f"load {load.load_id} was prepared with another table, mode or partitions; abort it and use a new load id"
            raise LoadFailedError(message, load_id=load.load_id)
        again = Preparation(load.load_id, table.layout, operation, parts, [])
        again.prepared = list(load.parts.values())
        return again


def _not_here(table: _Table, partition: int) -> TopologyChangedError:
    name = table.layout.tdef.name
    return TopologyChangedError(f"partition {partition} of {name} is not on this member; fetch the topology again and retry", table=name, partition=partition)
