"""One partition of one table on one member: sorted rows, recent changes, and the operations on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from secateur.errors import DataError, LoadFailedError
from secateur.storage.block import gather
from secateur.storage.change import ChangeCount, ChangeOperation, DuplicateKeys
from secateur.storage.change_feed import ChangeFeed, ChangeType, changed_rows, typed_rows
from secateur.storage.delta import Delta, FewRows
from secateur.storage.key_order import Cells
from secateur.storage.layout import TableLayout
from secateur.storage.load import PreparedPart
from secateur.storage.merge import common_row, completed, filled, merge, new_rows, sort_rows
from secateur.storage.snapshot import PartitionSnapshot
from secateur.storage.sorted_rows import SortedRows
from secateur.wire import ShortTable

_FOLDED_ROWS_MAX: Final = 1 << 16
"""Copying so many rows takes about a millisecond."""
_FOLDED_ROWS_PER_CHANGE: Final = 256
"""The rows that may be copied for one change in a larger partition."""
_FEW_CHANGES: Final = 64
"""A few changes, as :attr:`Delta.size` counts them: 32 rows."""


class Partition:
    """The rows of a partition and every change to them, on the member's loop thread only.

    A change is checked completely, then made; a change that raises has changed nothing. All changes go through
    :meth:`apply` and :meth:`install`.

    ``changes`` counts the changes of all partitions of the table; None for a partition on its own.
    """

    def __init__(self, layout: TableLayout, number: int, changes: ChangeCount | None = None) -> None:
        self.number = number
        self._layout = layout
        self._changes = changes or ChangeCount()
        self.native: Any | None = None
        """The rows for the native executor, while no change lies beside them; None where :meth:`native_rows` says."""
        self._delta = Delta(layout, SortedRows(layout.no_rows, layout.order))
        self._snapshot: PartitionSnapshot | None = None
        self._reserved: dict[str, SortedRows] = {}
        self.feed = ChangeFeed(layout.limits.change_feed_bytes_max) if layout.tdef.change_feed else None
        """Its last changes, for tables with a change feed."""
        self.version = self._changes.total
        """The number of its last change among those of the table: equal versions mean equal rows, also of a partition
        that has been dropped and built again."""
        self.reads = 0
        """The number of its reads by statements, jobs and look-ups of keys on this member."""
        self.writes = 0
        """The number of its changes on this member, each published load counted once."""

    @property
    def rows(self) -> int:
        """Number of rows that a reader sees."""
        return self._delta.rows

    @property
    def rows_max(self) -> int:
        """At least the number of rows of each change that is kept, and of all rows."""
        return self.rows if self.feed is None else max(self.rows, self.feed.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the Arrow buffers that the rows take, recent changes included."""
        self._settle()
        return self._delta.base.nbytes + self._delta.nbytes

    @property
    def base(self) -> SortedRows:
        """The sorted rows beneath the recent changes."""
        self._settle()
        return self._delta.base

    def adopt(self, layout: TableLayout) -> None:
        """The table has other ranges; which rows are this partition's is for the new layout to say."""
        self._layout = layout

    def altered(self, layout: TableLayout, rows: SortedRows, alter: Callable[[pa.Table], pa.Table]) -> Partition:
        """The same partition of a table with other columns.

        Args:
            layout: The table's.
            rows: All rows of this moment, with those columns.
            alter: Makes such rows of those that the table had before, for the change feed.
        """
        after = Partition(layout, self.number, self._changes)
        after._delta = Delta(layout, rows)
        after.reads, after.writes = self.reads, self.writes
        if self.feed is not None and after.feed is not None:
            after.feed.follow(self.feed, alter)
        return after

    def apply(self, operation: ChangeOperation, rows: pa.Table | ShortTable | FewRows, *, is_copy: bool = False) -> int:
        """Make one change.

        Costs microseconds per row for a few rows; beyond the bound of the delta, a vectorised merge of the whole
        partition.

        Args:
            operation: The operation.
            rows: Rows of the table's schema; for a deletion, a table with at least the key columns; for an upsert,
                columns may be missing, which keep their values in rows that are there and have their default in new
                ones. Or plain values of all columns; for a deletion, of the key columns in key order. Or what
                :meth:`admit` has returned for the operation.
            is_copy: Whether the primary of the partition has made the change already. It is then made here as well,
                even if a load that is prepared here has one of the keys: the load meets the change at the primary, and
                is not published.

        Returns:
            Rows written, without those that are ignored, or for a deletion rows removed.

        Raises:
            DataError: The rows are not of the table's schema.
            TopologyChangedError: The rows belong to another partition.
            NullKeyError: A NULL in a NOT NULL column.
            DuplicateKeyError: An append or overwrite has a key that is taken.
            CheckFailedError: A CHECK of the table is FALSE for a row.
            LoadFailedError: A load that is about to be published holds one of the keys; the same call may succeed
                later.
            LimitExceededError: The rows do not fit into one partition.
        """
        admitted = rows if isinstance(rows, FewRows) else self.admit(operation, rows, is_copy=is_copy)
        replaces_all = operation.replaces_all
        if admitted.num_rows == 0 and not replaces_all:
            return 0
        if self._snapshot is not None:
            self._settle()
        is_small = not replaces_all and self._delta.has_room(admitted.num_rows)
        if is_small and isinstance(admitted, pa.Table) and operation is ChangeOperation.UPSERT:
            admitted = self._few_completed(admitted)
        if not is_small or self.feed is not None:
            admitted = _in_arrow(admitted)
        changed = None if self.feed is None else self._changed_rows(operation, _in_arrow(admitted), is_small=is_small)
        if is_small:
            affected = self._apply_small(operation, admitted, is_copy=is_copy)
        else:
            affected = self._apply_whole(operation, _in_arrow(admitted), is_copy=is_copy)
        if self.feed is not None:
            self.feed.note(changed)
        if affected or operation not in (ChangeOperation.DELETE, ChangeOperation.IGNORE):
            self.writes += 1
            self._note_change()
            self._changes.rows += affected
            self._changes.unfolded.add(self.number)
        return affected

    def admit(
        self, operation: ChangeOperation, rows: pa.Table | ShortTable, *, is_copy: bool = False
    ) -> pa.Table | FewRows:
        """The rows of a change, checked; plain values of a copy belong here, as the primary has found of each row.

        Raises:
            DataError, NullKeyError, TopologyChangedError: As :meth:`apply`.
        """
        are_keys = operation is ChangeOperation.DELETE
        if isinstance(rows, ShortTable):
            few = FewRows.admit(self._layout, rows.columns, are_keys=are_keys)
            if not is_copy:
                few.check_partition(self._layout, self.number)
            return few
        admitted = self._layout.admit_keys(rows) if are_keys else self._layout.admit(rows)
        if not (are_keys or operation is ChangeOperation.UPSERT or self._layout.is_complete(admitted)):
            raise DataError(
                f"{self._layout.tdef.name}: rows to {operation.value} need all columns, and they have"
                f" {', '.join(admitted.schema.names)}"
            )
        self._layout.check_partition(admitted, self.number)
        return admitted

    def note_load(self, operation: ChangeOperation, part: PreparedPart, number: int) -> None:
        """Count a load that is about to be installed, and record it in the change feed, if there is one."""
        self.writes += 1
        if self.feed is None:
            return
        removed = part.removed
        if (
            operation.replaces_all
            or not self.feed.keeps(part.rows)
            or not (removed is None or self.feed.keeps(removed))
        ):
            self.feed.replaced(number)
            return
        before = self.snapshot().fold()
        self.feed.note(changed_rows(self._layout, operation, before, part.rows, removed))
        self.feed.loaded(number)

    def install(self, rows: SortedRows) -> None:
        """Replace all rows by some that were prepared aside. Cannot fail and costs nothing."""
        self._delta = Delta(self._layout, rows)
        self._note_change()

    def merge_prepared(self, operation: ChangeOperation, rows: SortedRows, removed: SortedRows | None = None) -> None:
        """Merge rows whose keys were reserved before, after the keys in ``removed`` are removed.

        The reserved keys are known not to clash with later writes.
        """
        before = self.snapshot().fold()
        if removed is not None:
            before = merge(self._layout, before, removed, ChangeOperation.DELETE)
        self.install(merge(self._layout, before, rows, operation))

    def reserve(self, load_id: str, rows: SortedRows) -> None:
        """Keep the keys of an append load free until it is published or aborted.

        Without it a write between the check and the publication of the load could take one of its keys, and publication
        could fail on some members only.
        """
        self._reserved[load_id] = rows

    def release(self, load_id: str) -> None:
        """End a reservation; nothing happens when there is none."""
        self._reserved.pop(load_id, None)

    def snapshot(self) -> PartitionSnapshot:
        """The rows as they are now.

        Costs nothing when nothing changed since the last call, else a few microseconds per recent change.
        """
        self._settle()
        if self._snapshot is None:
            self._snapshot = PartitionSnapshot(self._layout, self._delta.base, self._delta.freeze(), self._delta.rows)
        return self._snapshot

    def find(self, key: Sequence[Any]) -> tuple[Sequence[pa.ChunkedArray], int] | None:
        """The row with a key: columns that have it, all of the table, and its position in them; None without one.

        They are the columns of this moment, whatever is written later.

        Args:
            key: Canonical Python values of all key columns.

        Raises:
            DataError: A value of another type than its column.

        Cost: a look-up among the recent changes, and a binary search in the sorted rows. Nothing is copied, and unlike
        :meth:`snapshot` it costs the same after a write.
        """
        cells = self._layout.order.cells(key)
        if cells is None:
            return None
        self._settle()
        return self._delta.find(cells)

    def values(self, columns: Sequence[int], prefix: Cells, rows_max: int) -> tuple[list[list[Any]], int] | None:
        """As :meth:`Delta.values`."""
        if self._snapshot is not None:
            self._settle()
        return self._delta.values(columns, prefix, rows_max)

    def native_rows(self, prefix: Cells) -> Any | None:
        """The sorted rows for the native executor, if no recent change is of a key that begins with a prefix."""
        if self._snapshot is not None:
            self._settle()
        delta = self._delta
        if not delta.keys:
            self.native = delta.base.native
            return self.native
        return None if delta.changes(prefix) else delta.base.native

    def values_of(self, key: Cells) -> list[Any] | None:
        """The row with a key as plain values of all columns, canonical as they were written; None without one.

        Raises:
            ValueError, OverflowError: Python has no object for a value of the row.

        Cost: as :meth:`find`, and a microsecond for each column of a row that is not among the recent ones.
        """
        if self._snapshot is not None:
            self._settle()
        recent = self._delta.recent_values(key)
        if recent is not None:
            return recent
        found = self._delta.find(key)
        if found is None:
            return None
        columns, position = found
        return self._layout.plain([column[position].as_py() for column in columns])

    def find_same_key(self, row: pa.Table) -> tuple[Sequence[pa.ChunkedArray], int] | None:
        """As :meth:`find`, by the key of the one row of a table of the table's schema, of which no value is NULL."""
        self._settle()
        return self._delta.find(self._layout.order.keys(row)[0])

    @property
    def has_few_changes(self) -> bool:
        """Whether so little has changed since the last merge that another one would cost much for each change."""
        return self._delta.size < _FEW_CHANGES

    @property
    def pays_to_fold(self) -> bool:
        """Whether merging the recent changes costs little, or little for each of them."""
        changed, rows = self._delta.size, self._delta.base.rows
        return bool(changed) and (rows <= _FOLDED_ROWS_MAX or rows <= _FOLDED_ROWS_PER_CHANGE * changed)

    def _few_completed(self, rows: pa.Table) -> pa.Table:
        """As :func:`~secateur.storage.merge.completed`, by looking keys up one by one."""
        if self._layout.is_complete(rows):
            return rows
        order = self._layout.order
        keys = order.keys(rows)
        before = self._delta.take(dict.fromkeys(key for key in keys if self._delta.holds(key)))
        places = {key: row for row, key in enumerate(order.keys(before))}
        return filled(self._layout, rows, before, np.array([places.get(key, -1) for key in keys]))

    def _changed_rows(self, operation: ChangeOperation, rows: pa.Table, *, is_small: bool) -> pa.Table | None:
        """The rows for the feed of a change that is about to be made; an APPEND of existing keys is refused later."""
        if operation.replaces_all:
            return None
        if is_small:
            return self._few_changed_rows(operation, rows)
        repeats = operation.repeats
        given = sort_rows(
            self._layout, [rows], DuplicateKeys.LAST_WINS if repeats is DuplicateKeys.REFUSED else repeats
        )
        return changed_rows(self._layout, operation, self.snapshot().fold(), given)

    def _few_changed_rows(self, operation: ChangeOperation, rows: pa.Table) -> pa.Table:
        """As :func:`changed_rows`, by looking keys up one by one."""
        keys = self._layout.order.keys(rows)
        if operation is ChangeOperation.DELETE:
            return typed_rows(((self._delta.take(dict.fromkeys(keys)), ChangeType.DELETE),))
        is_first_kept = operation is ChangeOperation.IGNORE
        ordered = reversed(list(enumerate(keys))) if is_first_kept else enumerate(keys)
        source = {key: row for row, key in ordered}
        known = {key: row for key, row in source.items() if self._delta.holds(key)}
        new = [row for key, row in source.items() if key not in known]
        kinds = []
        if known and not is_first_kept:
            kinds.append((self._delta.take(known), ChangeType.UPDATE_PREIMAGE))
            kinds.append((_copied(rows, list(known.values())), ChangeType.UPDATE_POSTIMAGE))
        if new or not kinds:
            kinds.append((_copied(rows, new), ChangeType.INSERT))
        return typed_rows(kinds)

    def _apply_small(self, operation: ChangeOperation, rows: pa.Table | FewRows, *, is_copy: bool) -> int:
        keys = rows.keys if isinstance(rows, FewRows) else self._layout.order.keys(rows)
        if operation is ChangeOperation.DELETE:
            return self._delta.remove(keys)
        if operation is ChangeOperation.APPEND:
            self._check_new(keys, rows)
        if operation is ChangeOperation.IGNORE:
            keys, rows = self._only_new(keys, rows)
            if not keys:
                return 0
        if not is_copy:
            if self._layout.checks is not None:
                self._layout.check_stored(_in_arrow(rows))
            if self._reserved:
                self._check_keys_unreserved(keys, rows)
        self._delta.put(keys, rows)
        return rows.num_rows

    def _apply_whole(self, operation: ChangeOperation, rows: pa.Table, *, is_copy: bool) -> int:
        incoming = sort_rows(self._layout, [rows], operation.repeats)
        before = self.snapshot().fold()
        if operation is ChangeOperation.UPSERT:
            incoming = completed(self._layout, before, incoming)
        if not is_copy and operation is not ChangeOperation.DELETE:
            self._check_unreserved(incoming)
            if self._layout.checks is not None:
                stored = new_rows(self._layout, before, incoming) if operation is ChangeOperation.IGNORE else incoming
                self._layout.check_stored(stored.table)
        after = merge(self._layout, before, incoming, operation)
        self._delta = Delta(self._layout, after)
        match operation:
            case ChangeOperation.DELETE:
                return before.rows - after.rows
            case ChangeOperation.IGNORE:
                return after.rows - before.rows
            case _:
                return rows.num_rows

    def _check_new(self, keys: list[Cells], rows: pa.Table | FewRows) -> None:
        seen: set[Cells] = set()
        for row, key in enumerate(keys):
            if self._delta.holds(key):
                raise self._layout.duplicate(_in_arrow(rows), row, "is already there")
            if key in seen:
                raise self._layout.duplicate(_in_arrow(rows), row, "occurs more than once among the rows given")
            seen.add(key)

    def _only_new(self, keys: list[Cells], rows: pa.Table | FewRows) -> tuple[list[Cells], pa.Table | FewRows]:
        """The rows whose keys are not there, of equal keys the first."""
        first: dict[Cells, int] = {}
        for row, key in enumerate(keys):
            if key not in first and not self._delta.holds(key):
                first[key] = row
        if len(first) == len(keys):
            return keys, rows
        if isinstance(rows, FewRows):
            return list(first), rows.only(list(first.values()))
        return list(first), rows.take(pa.array(list(first.values()), pa.int64()))

    def _check_keys_unreserved(self, keys: list[Cells], rows: pa.Table | FewRows) -> None:
        for load_id, reserved in self._reserved.items():
            for row, key in enumerate(keys):
                start, stop = reserved.equal_range(key)
                if start < stop:
                    raise self._reserved_by(load_id, _in_arrow(rows), row)

    def _check_unreserved(self, rows: SortedRows) -> None:
        for load_id, reserved in self._reserved.items():
            row = common_row(self._layout, reserved, rows)
            if row is not None:
                raise self._reserved_by(load_id, rows.table, row)

    def _reserved_by(self, load_id: str, rows: pa.Table, row: int) -> LoadFailedError:
        name, key = self._layout.tdef.name, self._layout.order.describe(rows, row)
        message = (
            f"{name}: key {key} belongs to load {load_id}, which is about to be published; nothing was written, try"
            " again"
        )
        return LoadFailedError(message, table=name, load_id=load_id)

    def _settle(self) -> None:
        """Take over the merge that a reader of the current snapshot has already paid for."""
        folded = self._snapshot.folded if self._snapshot is not None else None
        if folded is not None and folded is not self._delta.base:
            self._delta = Delta(self._layout, folded)

    def _note_change(self) -> None:
        self.native = self._snapshot = None
        self._changes.total += 1
        self.version = self._changes.total


def _in_arrow(rows: pa.Table | FewRows) -> pa.Table:
    return rows.to_table() if isinstance(rows, FewRows) else rows


def _copied(rows: pa.Table, numbers: list[int]) -> pa.Table:
    return gather([rows], pa.array(numbers, pa.int64()))
