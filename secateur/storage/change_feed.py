"""The change feed of one partition: the rows that its last changes have added, replaced and removed.

Only tables with ``WITH (change_feed = true)`` have one. Every copy of a partition keeps it, since all of them make the
same changes in the same order. The *version* of a change is the number of the last load that was published, plus the
sequence number of the last change that was replicated: the first grows with every load and the second with every other
change, and both are the same on all copies. So a reader goes on at another copy where it was, and misses and doubles
nothing.

The types of changes, and the columns of a feed, are those of Delta Lake's change data feed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Final, assert_never

import numpy as np
import pyarrow as pa

from secateur.errors import ChangesDroppedError
from secateur.storage.change import ChangeOperation
from secateur.storage.layout import TableLayout
from secateur.storage.merge import completed, matching_rows, new_rows
from secateur.storage.sorted_rows import SortedRows

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
_TYPE_FIELD: Final = pa.field(CHANGE_TYPE, pa.string(), nullable=False)
_ENTRY_BYTES: Final = 512
"""A guess at what an entry takes beside its rows."""


class ChangeType(StrEnum):
    """The kind of change of a row."""

    INSERT = "insert"
    UPDATE_PREIMAGE = "update_preimage"
    """The row before an update."""
    UPDATE_POSTIMAGE = "update_postimage"
    """The row after an update, with the same key."""
    DELETE = "delete"
    """The row before it was deleted."""


def feed_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a feed: those of the table, the type of the change, and its version."""
    return schema.append(_TYPE_FIELD).append(pa.field(COMMIT_VERSION, pa.int64(), nullable=False))


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One change: its version, and its rows with the types of their changes."""

    version: int
    rows: pa.Table
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nbytes", self.rows.nbytes + _ENTRY_BYTES)


class ChangeFeed:
    """The last changes of a partition. Lives on the member's event loop.

    A change is noted when it is made, and gets its version when that is known: in the same turn of the loop.

    Args:
        bytes_max: Bytes of rows that are kept; of one change with more, nothing is.

    Attributes:
        start: Every change behind this version is kept.
    """

    __slots__ = ("_bytes_max", "_entries", "_nbytes", "_noted", "_sequence", "start")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._entries: deque[FeedEntry] = deque()
        self._nbytes = 0
        self._noted: pa.Table | None = None
        self._sequence = 0
        self.start = 0

    def begin(self, published: int, sequence: int) -> None:
        """Begin anew with the rows of this moment; the changes that led to them are not known."""
        self.go_on(sequence)
        self._drop_up_to(published + sequence)

    def keeps(self, rows: SortedRows) -> bool:
        """Whether a change of so many rows is kept."""
        return rows.nbytes <= self._bytes_max

    def note(self, rows: pa.Table | None) -> None:
        """Note the rows of a change that was made, as :func:`changed_rows` has them; None if none of them are kept."""
        self._noted = rows

    def changed(self, published: int, sequence: int) -> None:
        """Append the rows that were noted last, as a change with this number."""
        self._sequence = sequence
        self._append(published + sequence)

    def loaded(self, published: int) -> None:
        """Append the rows that were noted last, as a load with this number."""
        self._append(published + self._sequence)

    def replaced(self, published: int) -> None:
        """Begin anew after a load with this number has replaced all rows: nobody can follow from before."""
        self.begin(published, self._sequence)

    def since(
        self, version: int, size_max: int, until: int | None = None, *, in_rows: bool = False
    ) -> tuple[list[FeedEntry], int | None]:
        """The changes behind a version, the oldest first; :func:`feed_table` makes rows of them.

        Args:
            version: The version.
            size_max: About as many bytes of rows are returned; at least one change.
            until: The last version that is wanted; None for all.
            in_rows: Whether ``size_max`` is a number of rows instead.

        Returns:
            The changes, and the version of the last of them if there are more; else None.

        Raises:
            ChangesDroppedError: Some of them are not kept any more.
        """
        if version < self.start:
            raise ChangesDroppedError(
                f"the changes behind version {version} are not kept any more: the oldest version to follow from is"
                f" {self.start}",
                oldest=self.start,
            )
        found: list[FeedEntry] = []
        size = 0
        for entry in self._entries:
            if entry.version <= version:
                continue
            if until is not None and entry.version > until:
                break
            size += entry.rows.num_rows if in_rows else entry.nbytes
            if found and size > size_max:
                return found, found[-1].version
            found.append(entry)
        return found, None

    def entries(self) -> list[FeedEntry]:
        """All changes that are kept, for another copy."""
        return list(self._entries)

    def receive(self, start: int, rows: Sequence[pa.Table]) -> None:
        """Take over the changes that another copy keeps: what :func:`feed_table` makes of :meth:`entries`."""
        self._entries.clear()
        self._nbytes, self.start = 0, start
        if not rows:
            return
        table = pa.concat_tables(rows).combine_chunks()
        versions = table.column(COMMIT_VERSION).to_numpy()
        table = table.drop_columns([COMMIT_VERSION])
        cuts = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
        for first, last in pairwise(cuts):
            self._keep(FeedEntry(int(versions[first]), table.slice(first, last - first)))

    @property
    def rows(self) -> int:
        """The number of rows of all changes that are kept."""
        return sum(entry.rows.num_rows for entry in self._entries)

    def follow(self, before: ChangeFeed, alter: Callable[[pa.Table], pa.Table]) -> None:
        """Go on where the feed of the same partition was, when the columns of the table have changed.

        Args:
            before: The feed.
            alter: Makes rows with the columns of now of rows with those of before.
        """
        entries = before.entries()
        if entries:  # all at once, since there may be many of them
            rows = pa.concat_tables([entry.rows for entry in entries])
            changed = alter(rows).append_column(_TYPE_FIELD, rows.column(CHANGE_TYPE))
            ends = [*accumulate(entry.rows.num_rows for entry in entries)]
            for entry, end in zip(entries, ends, strict=True):
                self._keep(FeedEntry(entry.version, changed.slice(end - entry.rows.num_rows, entry.rows.num_rows)))
        self.start = max(self.start, before.start)
        self._sequence = before._sequence

    def go_on(self, sequence: int) -> None:
        """The last change was the one with this number."""
        self._sequence = sequence
        self._noted = None

    def _append(self, version: int) -> None:
        rows, self._noted = self._noted, None
        if rows is not None and rows.num_rows:
            self._keep(FeedEntry(version, rows))

    def _keep(self, entry: FeedEntry) -> None:
        self._entries.append(entry)
        self._nbytes += entry.nbytes
        while self._nbytes > self._bytes_max and len(self._entries) > 1:
            self._drop_up_to(self._entries[0].version)

    def _drop_up_to(self, version: int) -> None:
        while self._entries and self._entries[0].version <= version:
            self._nbytes -= self._entries.popleft().nbytes
        self.start = version


def feed_table(schema: pa.Schema, entries: Sequence[FeedEntry]) -> pa.Table:
    """The rows of some changes of a table, of which there is one at least, with their versions."""
    rows = pa.concat_tables([entry.rows for entry in entries])
    versions = np.repeat([entry.version for entry in entries], [entry.rows.num_rows for entry in entries])
    return rows.append_column(feed_schema(schema).field(COMMIT_VERSION), pa.array(versions, pa.int64()))


def changed_rows(
    layout: TableLayout,
    operation: ChangeOperation,
    before: SortedRows,
    given: SortedRows,
    removed: SortedRows | None = None,
) -> pa.Table:
    """The rows of a feed for one change.

    Costs a sort of the keys of both.

    Args:
        layout: The table's.
        operation: The operation; none that replaces all rows.
        before: Rows of the partition before the change: at least those that have a key of the others.
        given: The rows of the change, each key once; for a deletion, keys suffice. Those of an upsert may lack columns.
        removed: Keys that are removed first.
    """
    if operation is ChangeOperation.UPSERT:
        given = completed(layout, before, given)
    gone = layout.no_rows if removed is None else matching_rows(layout, before, removed)
    deleted = new_rows(layout, given, SortedRows(gone, layout.order)).table
    old = layout.no_rows
    updated = layout.no_rows
    match operation:
        case ChangeOperation.DELETE:
            deleted = matching_rows(layout, before, given)
            inserted = layout.no_rows
        case ChangeOperation.IGNORE:
            inserted = new_rows(layout, before, given).table
        case ChangeOperation.APPEND | ChangeOperation.UPSERT:
            old = matching_rows(layout, before, given)
            known = SortedRows(old, layout.order)
            inserted = new_rows(layout, known, given).table
            updated = matching_rows(layout, given, known)
        case ChangeOperation.OVERWRITE | ChangeOperation.OVERWRITE_RANGES:
            raise ValueError(f"{operation} has no changed rows")
        case _:
            assert_never(operation)
    return typed_rows(
        (
            (deleted, ChangeType.DELETE),
            (old, ChangeType.UPDATE_PREIMAGE),
            (updated, ChangeType.UPDATE_POSTIMAGE),
            (inserted, ChangeType.INSERT),
        )
    )


def typed_rows(kinds: Sequence[tuple[pa.Table, ChangeType]]) -> pa.Table:
    """Rows with the types of their changes in one more column."""
    typed = [
        rows.append_column(_TYPE_FIELD, pa.array([kind.value] * rows.num_rows, pa.string()))
        for rows, kind in kinds
        if rows.num_rows
    ]
    if len(typed) == 1:
        return typed[0]
    return pa.concat_tables(typed) if typed else kinds[0][0].append_column(_TYPE_FIELD, pa.array([], pa.string()))
