"""A scan as one member executes it: its partitions and key slices, and a check that the data have not changed."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from secateur.errors import DataChangedError, KeysChangedError
from secateur.partitioning.pruning.key_range import KeySlice
from secateur.storage.member_store import MemberStore, TableScan


class MemberScan(msgspec.Struct, frozen=True, array_like=True):
    """One member's part of a scan of a statement.

    Attributes:
        relation: The name of the rows in the fragment.
        table_id: The table.
        partitions: The required partitions that the member owns; with none the scan has columns but no rows.
        columns: The columns to read, in order.
        key_slice: The part of each partition that is wanted, None for all of it.
        published: The number of the load that has to be the last one published here; None accepts any.
        rows: The rows to read, if the member does not store them.
        mark: The token under which the read version of the table is recorded, or None.
        since: The token of an earlier read, since which the table must not have changed; None accepts any state.
    """

    relation: str
    table_id: int
    partitions: tuple[int, ...]
    columns: tuple[str, ...]
    key_slice: KeySlice | None
    published: int | None
    rows: pa.Table | None = None
    mark: str | None = None
    since: str | None = None

    def read(self, store: MemberStore) -> pa.Table:
        """The rows as they are now, without a copy. On the event loop of the member.

        Raises:
            TopologyChangedError: A partition is not on this member any more.
            DataChangedError: Another load than ``published`` is the last one published here.
            KeysChangedError: The table was not read under ``since``, or has changed.
        """
        if self.rows is not None:
            return self.rows.select(list(self.columns))
        self._check(store)
        return store.relation(self.table_id, self.partitions, self.columns, self.key_slice)

    def opened(self, store: MemberStore) -> TableScan | pa.Table:
        """Return the current rows, or a scan that reads them in a thread if that is not cheap.

        Raises:
            Error: As :meth:`read`.
        """
        if self.rows is not None or self.key_slice is not None or not self.columns:
            return self.read(store)
        self._check(store)
        return store.scan(self.table_id, self.partitions, self.columns)

    def _check(self, store: MemberStore) -> None:
        here = store.data_version(self.table_id)
        if self.published is not None and here.published != self.published:
            raise DataChangedError(
                f"load {self.published} was the last one where the statement began, here it is {here.published}",
                table_id=self.table_id,
            )
        if self.mark is not None:
            store.marks.note(self.mark, self.table_id, here.changes)
        if (
            self.since is not None
            and self.partitions
            and not store.marks.is_unchanged(self.since, self.table_id, here.changes)
        ):
            raise KeysChangedError(
                "the table has changed since the keys of its rows were found", table_id=self.table_id
            )
