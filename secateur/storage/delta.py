"""The delta of one partition: recent small changes, indexed by key, so that a write costs only the rows written."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.coerce import coerce
from secateur.storage.block import gather
from secateur.storage.key_order import Cells, prefix_range
from secateur.storage.layout import PlainForm, TableLayout
from secateur.storage.snapshot import Overlay
from secateur.storage.sorted_rows import SortedRows
from secateur.wire import ShortTable
from secateur.wire.short_table import VALUE_BYTES

_BATCHES_MAX: Final = 16
"""Batches that a reader takes as they are; beyond, putting them into one copy pays."""
_UNCOPIED_BYTES_MAX: Final = 1 << 10
"""Copying a row of so few bytes takes longer than all else that is done to keep it."""


class _Entry(msgspec.Struct):
    """One changed key. ``source`` is its new row among those written, None when it is deleted."""

    position: int
    replaces: bool
    source: int | None


class Delta:
    """Changes on top of sorted rows, mutable, used on the member's loop thread only.

    ``base``, the rows beneath, is fixed as long as this delta lives.
    """

    __slots__ = (
        "_batches",
        "_entries",
        "_few",
        "_few_starts",
        "_layout",
        "_size_max",
        "_starts",
        "_written",
        "base",
        "keys",
        "nbytes",
        "rows",
    )

    def __init__(self, layout: TableLayout, base: SortedRows) -> None:
        self._layout = layout
        self._entries: dict[Cells, _Entry] = {}
        self.keys: list[Cells] = []
        """Those of all changes, sorted."""
        self._batches: list[pa.Table] = []
        self._starts: list[int] = []  # the number of the first row of each batch
        self._few: list[FewRows] = []  # the rows behind those of the batches
        self._few_starts: list[int] = []
        self._written = 0
        self.base = base
        limits = layout.limits
        self._size_max = min(max(limits.delta_rows_min, base.rows // limits.delta_share), limits.delta_rows_max)
        self.rows = base.rows
        """Rows that a reader sees: those beneath, with the changes."""
        self.nbytes = 0
        """Bytes of the rows written.

        The index beside them is a few hundred bytes per changed key, and bounded by the partition.
        """

    @property
    def size(self) -> int:
        """Work that a reader has with this delta: rows written plus keys changed."""
        return self._written + len(self.keys)

    def has_room(self, rows: int) -> bool:
        """Whether so many more rows may be changed here; beyond, merging them into those beneath costs less."""
        return self._written + len(self.keys) + 2 * rows <= self._size_max

    def holds(self, key: Cells) -> bool:
        """Whether a reader would find a row with this key.

        Costs one dictionary look-up, and a binary search for a key not changed yet.
        """
        return self._locate(key)[1]

    def find(self, key: Cells) -> tuple[Sequence[pa.ChunkedArray], int] | None:
        """The row with a key: columns that have it, and its position in them; None without one.

        Costs as :meth:`holds`.
        """
        entry = self._entries.get(key)
        if entry is None:
            base = self.base
            position = base.position(key)
            return None if position is None else (base.columns, position)
        if entry.source is None:
            return None
        self._make_batch()
        batch = bisect_right(self._starts, entry.source) - 1
        return self._batches[batch].columns, entry.source - self._starts[batch]

    def recent_values(self, key: Cells) -> list[Any] | None:
        """The values of the row with a key, if it is still kept as the plain values in which it was written."""
        entry = self._entries.get(key)
        return None if entry is None or entry.source is None else self._plain_values(entry.source)

    def values(self, columns: Sequence[int], prefix: Cells, rows_max: int) -> tuple[list[list[Any]], int] | None:
        """The rows whose key begins with a prefix of cells, as Python values by column, and their number.

        Args:
            columns: Positions of the columns wanted.
            prefix: From ``KeyOrder.cells``.
            rows_max: More rows than these are left to :meth:`PartitionSnapshot.read`.

        Returns:
            None if there are more rows, or twice as many have changed.

        Raises:
            ValueError, OverflowError: Python has no object for a value.

        Costs what reading the rows beneath costs, and a microsecond for each changed value.
        """
        base = self.base
        start, stop = base.equal_range(prefix)
        if not self.keys:
            return None if stop - start > rows_max else (base.columns.run(columns, start, stop), stop - start)
        first, last = prefix_range(self.keys, prefix)
        if max(stop - start, last - first) > 2 * rows_max or stop - start - (last - first) > rows_max:
            return None
        found = base.columns.run(columns, start, stop) if start < stop else [[] for _ in columns]
        if first == last:
            return found, stop - start
        # From the last one on, since the position of a change is that among the rows beneath.
        for key in reversed(self.keys[first:last]):
            entry = self._entries[key]
            at = entry.position - start
            if entry.source is None:
                for column in found:
                    del column[at : at + entry.replaces]
                continue
            for column, value in zip(found, self._written_values(entry.source, columns), strict=True):
                column[at : at + entry.replaces] = [value]
        count = stop - start + sum(self._growth(key) for key in self.keys[first:last])
        return None if count > rows_max else (found, count)

    def changes(self, prefix: Cells) -> bool:
        """Whether the key of a change begins with a prefix of cells. Costs nothing where nothing has changed."""
        if not self.keys:
            return False
        first, last = prefix_range(self.keys, prefix)
        return first < last

    def take(self, keys: Iterable[Cells]) -> pa.Table:
        """The rows that a reader would find with some keys, each of which is given once; in any order.

        Copies them. Costs microseconds per key.
        """
        beneath: list[int] = []
        written: list[int] = []
        for key in keys:
            entry, live = self._locate(key)
            if not live:
                continue
            if entry.source is None:
                beneath.append(entry.position)
            else:
                written.append(entry.source)
        found = [self.base.table.take(pa.array(beneath))] if beneath else []
        if written:
            self._gather_batches()
            found.append(pa.concat_tables(self._batches).take(pa.array(written)))
        return pa.concat_tables(found) if found else self._layout.no_rows

    def put(self, keys: list[Cells], rows: pa.Table | FewRows) -> None:
        """Add rows, or replace those with the same key; ``keys`` are theirs, in the same order."""
        if isinstance(rows, FewRows):
            self._few.append(rows)
            self._few_starts.append(self._written)
            self.nbytes += rows.nbytes
        else:
            self._make_batch()
            # A copy, since the rows may be a slice that keeps much more alive, all of which Arrow counts.
            own = rows if rows.get_total_buffer_size() <= _UNCOPIED_BYTES_MAX else gather([rows])
            self._add_batch(own, self._written)
        for source, key in enumerate(keys, self._written):
            entry = self._entries.get(key)
            if entry is None:
                start, stop = self.base.equal_range(key)
                self._entries[key], live = _Entry(start, start < stop, source), start < stop
                insort(self.keys, key)
            else:
                live, entry.source = entry.source is not None, source
            self.rows += not live
        self._written += rows.num_rows

    def remove(self, keys: list[Cells]) -> int:
        """Delete keys that are there, ignore those that are not.

        Returns:
            How many rows are gone.
        """
        removed = 0
        for key in keys:
            entry, live = self._locate(key)
            if live:
                entry.source = None
                removed += 1
                if key not in self._entries:
                    self._entries[key] = entry
                    insort(self.keys, key)
        self.rows -= removed
        return removed

    def freeze(self) -> Overlay | None:
        """The changes so far as a value that stays as it is; None when there are none."""
        if not self.keys:
            return None
        self._gather_batches()
        entries = [self._entries[key] for key in self.keys]
        return Overlay(
            keys=tuple(self.keys),
            positions=np.array([entry.position for entry in entries], dtype=np.int64),
            replaces=np.array([entry.replaces for entry in entries], dtype=np.bool_),
            sources=np.array([-1 if entry.source is None else entry.source for entry in entries], dtype=np.int64),
            live=np.array([entry.source is not None for entry in entries], dtype=np.bool_),
            rows=pa.concat_tables(self._batches) if self._batches else self._layout.no_rows,
        )

    def _plain_values(self, source: int) -> list[Any] | None:
        """The values of a written row, if it is still kept as those."""
        few = self._few_starts
        if not few or source < few[0]:
            return None
        number = bisect_right(few, source) - 1
        row = source - few[number]
        return [column[row] for column in self._few[number].columns]

    def _written_values(self, source: int, columns: Sequence[int]) -> list[Any]:
        """Some values of a written row as Arrow gives them."""
        plain = self._plain_values(source)
        if plain is not None:
            plain = self._layout.as_in_arrow(plain)
            return [plain[position] for position in columns]
        batch = bisect_right(self._starts, source) - 1
        rows, at = self._batches[batch], source - self._starts[batch]
        return [rows.column(position)[at].as_py() for position in columns]

    def _growth(self, key: Cells) -> int:
        """The number of rows that a changed key adds for a reader: 1, 0 or -1."""
        entry = self._entries[key]
        return (entry.source is not None) - entry.replaces

    def _add_batch(self, batch: pa.Table, start: int) -> None:
        self._batches.append(batch)
        self._starts.append(start)
        self.nbytes += batch.get_total_buffer_size()

    def _make_batch(self) -> None:
        """Make Arrow of the rows that are still plain values: all at once, which costs hardly more than one row."""
        if not self._few:
            return
        few, self._few, self._few_starts = self._few, [], []
        columns = [[value for rows in few for value in rows.columns[at]] for at in range(len(few[0].columns))]
        self.nbytes -= sum(rows.nbytes for rows in few)
        self._add_batch(in_arrow(self._layout.plain_rows, columns), self._written - len(columns[0]))

    def _gather_batches(self) -> None:
        self._make_batch()
        if len(self._batches) > _BATCHES_MAX:
            self._batches, self._starts = [gather(self._batches)], [0]
            self.nbytes = self._batches[0].get_total_buffer_size()

    def _locate(self, key: Cells) -> tuple[_Entry, bool]:
        """The entry of a key, a new one if it has not changed yet, and whether a reader sees a row with it."""
        entry = self._entries.get(key)
        if entry is not None:
            return entry, entry.source is not None
        start, stop = self.base.equal_range(key)
        return _Entry(start, start < stop, None), start < stop


class FewRows(msgspec.Struct, frozen=True):
    """Rows of one table, or keys of rows to delete, as canonical values: checked, so that they can become Arrow.

    Making an Arrow table of one row takes longer than all else that a write does, and nobody may read it before the
    next row replaces it. With Arrow at the client, at each copy and in the log, 60 % of the processor time of a write
    went into making, writing, reading and checking such tables. Whoever stores the rows first brings each value into
    the canonical form of its column, so that they can always become Arrow, and makes their keys: both once at each
    copy.
    """

    form: PlainForm
    columns: Sequence[list[Any]]
    num_rows: int
    keys: list[Cells]
    nbytes: int

    @classmethod
    def admit(
        cls,
        layout: TableLayout,
        given: Sequence[list[Any]],
        *,
        are_keys: bool = False,
        convert: Callable[..., Any] = coerce,
    ) -> FewRows:
        """Check rows that come from outside.

        Args:
            layout: The table's.
            given: The values of all columns, or of the key's columns in key order; as many of each.
            are_keys: Which of the two.
            convert: Brings a value into the canonical form of a type, as :func:`~.coerce.coerce` does, or refuses it.

        Raises:
            DataError: Another number of columns, a column whose values do not travel so, or a value that its column
                cannot hold.
            NullKeyError: A NULL in a NOT NULL column.

        Cost: a microsecond for each value that is not canonical yet, and a tenth of that for every other.
        """
        form = layout.plain_keys if are_keys else layout.plain_rows
        columns, count = form.columns, len(form.columns)
        if len(given) != count or not layout.takes_values:
            table = layout.tdef.name
            raise DataError(
                f"{table}: rows of {len(given)} plain values were sent for the columns"
                f" {', '.join(f'{column.name} {column.type}' for column in columns)}: send them in Arrow",
                table=table,
            )
        num_rows, at = len(given[0]), form.uncertain(given, 0)
        while at < count:
            column, values = columns[at], given[at]
            if not column.nullable and None in values:
                raise layout.null_in(column.name, values.count(None), num_rows)
            canonical = [convert(value, column.type, column=column.name) for value in values]
            given = [*given[:at], canonical, *given[at + 1 :]]
            at = form.uncertain(given, at + 1)
        nbytes = VALUE_BYTES * num_rows * count
        for at in form.texts:
            for value in given[at]:
                if value is not None:
                    nbytes += len(value)
        keys = layout.order.cells_of_keys(given, form.key_positions)
        return cls(form, given, num_rows, keys, nbytes)

    def only(self, rows: Sequence[int]) -> FewRows:
        """Some of the rows, by their numbers."""
        chosen = [[column[row] for row in rows] for column in self.columns]
        nbytes = ShortTable(chosen, len(rows)).nbytes
        return FewRows(self.form, chosen, len(rows), [self.keys[row] for row in rows], nbytes)

    def to_table(self) -> pa.Table:
        """The same in Arrow, in the schema of the table, or of its keys. Costs some ten microseconds a column."""
        return in_arrow(self.form, self.columns)

    def check_partition(self, layout: TableLayout, partition: int) -> None:
        """Check every row, as :meth:`~secateur.storage.layout.TableLayout.check_partition` does some.

        Raises:
            TopologyChangedError: One belongs elsewhere.
            NoRangeError: No range holds one of them.
        """
        partition_of = self.form.partition_of
        if partition_of is None:
            return
        for row, values in enumerate(zip(*self.columns, strict=True)):
            if partition_of(values) != partition:
                layout.check_partition(self.only([row]).to_table(), partition)  # says what is wrong


def in_arrow(form: PlainForm, columns: Sequence[list[Any]]) -> pa.Table:
    """Canonical values of this form, by column, in Arrow."""
    types = [column.type for column in form.columns]
    return ShortTable(columns, len(columns[0])).in_schema(types, form.schema)
