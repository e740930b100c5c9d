"""A bulk load on one member: rows are staged aside, prepared aside, then published at once or dropped.

Readers never see half a load. This module also decides what happens when the table changes between preparation and
publication:

- A direct write in between is never lost. A load is published *on top of* the rows that are there then: partitions
  that changed since the preparation are merged again.
- Publication cannot fail, so everything that could make it fail is refused before. An append load reserves its keys
  while it is prepared; a write or another load that brings one of them gets a
  :class:`~secateur.errors.LoadFailedError`, which is safe to retry. Loads that only overwrite or upsert reserve
  nothing: the last one published wins.

A member holds the rows of a load once, and not twice: a large load is prepared some partitions at a time, and the
sorted rows of a partition take the place of those that were staged (``StoreLoads.keep_sorted``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from secateur.storage.block import message_bytes
from secateur.storage.change import ChangeOperation, DuplicateKeys
from secateur.storage.layout import TableLayout
from secateur.storage.merge import completed, merge, new_rows, sort_rows
from secateur.storage.snapshot import PartitionSnapshot
from secateur.storage.sorted_rows import SortedRows

STEP_BYTES: Final = 16 << 20
"""Staged bytes that one step of a preparation sorts, unless a single partition has more: few beside a load that fills
a member, and enough that a step costs much more than the switch of threads before it.
"""


@dataclass(frozen=True, slots=True)
class SortedPart:
    """The rows of a partition that a load has staged, sorted.

    Attributes:
        attempts: Those that count, in the order of their rows.
        operation: The operation for which they were sorted, on which the treatment of repeated keys depends.
        rows: The rows, every key once.
    """

    attempts: tuple[int, ...]
    operation: ChangeOperation
    rows: SortedRows


@dataclass(slots=True)
class StagedLoad:
    """The state on one member of a load that is neither published nor aborted.

    Attributes:
        load_id: Given by the loader; never reused.
        table_id: The one table that is loaded.
        staged: Rows as they arrived, by partition and attempt. A task that failed half-way leaves an attempt that no
            publication names.
        sorted: The rows of partitions that are prepared already, while others are not; none of them is in ``staged``.
        rows: Rows staged so far, all attempts.
        nbytes: Bytes of them.
        touched_s: When a row arrived last, on the clock of the store.
        began_s: When the first arrived.
        operation: The mode, once prepared; else None. A prepared load must not be aborted on suspicion: other members
            may have published it.
        parts: The rows that publication installs, by partition, once prepared.
    """

    load_id: str
    table_id: int
    touched_s: float
    began_s: float
    staged: dict[tuple[int, int], list[pa.Table]] = field(default_factory=dict)
    rows: int = 0
    nbytes: int = 0
    operation: ChangeOperation | None = None
    parts: dict[int, PreparedPart] = field(default_factory=dict)
    sorted: dict[int, SortedPart] = field(default_factory=dict)

    @property
    def partition_rows(self) -> dict[int, int]:
        """The rows of each partition: staged ones of all attempts, or those that publication brings."""
        if self.operation is not None:
            return {partition: part.rows.rows for partition, part in self.parts.items()}
        found = {partition: part.rows.rows for partition, part in self.sorted.items()}
        for (partition, _), tables in self.staged.items():
            found[partition] = found.get(partition, 0) + sum(table.num_rows for table in tables)
        return found

    @property
    def prepared_rows(self) -> int:
        """Rows that publication brings."""
        return sum(part.rows.rows for part in self.parts.values())


@dataclass(frozen=True, slots=True)
class StagedPart:
    """Input of the preparation of one partition: everything in it is immutable.

    Attributes:
        partition: Its id.
        tables: The staged rows of the attempts that count.
        snapshot: The rows of the partition before the load.
        version: The version of the partition at that moment.
        removed: Keys of rows that are removed first.
        added: Further rows, whose keys must be new once those are removed.
        attempts: The attempts of ``tables``.
        sorted: In place of ``tables``, the same rows, if they were sorted before.
    """

    partition: int
    tables: Sequence[pa.Table]
    snapshot: PartitionSnapshot
    version: int
    removed: Sequence[pa.Table] = ()
    added: Sequence[pa.Table] = ()
    attempts: tuple[int, ...] = ()
    sorted: SortedRows | None = None

    def all_tables(self) -> Iterator[pa.Table]:
        """Everything that was staged."""
        yield from self.tables
        yield from self.removed
        yield from self.added
        if self.sorted is not None:
            yield self.sorted.table

    @property
    def staged_bytes(self) -> int:
        """Bytes of everything that was staged and is not sorted."""
        return 0 if self.sorted is not None else sum(message_bytes(table) for table in self.all_tables())


@dataclass(frozen=True, slots=True)
class PreparedPart:
    """Output of the preparation of one partition.

    Attributes:
        partition: Its id.
        rows: The loaded rows, sorted, every key once.
        merged: The rows that the partition will hold if it is still at ``version``.
        version: The version of the partition that ``merged`` builds on.
        removed: Keys of rows that are removed first; None for none.
        changed: Rows that the load brings, or for a delete those that it removes: some of its keys may not be there.
    """

    partition: int
    rows: SortedRows
    merged: SortedRows
    version: int
    removed: SortedRows | None = None
    changed: int = 0


class Preparation:
    """The expensive part of preparing a load: sorting, checking and merging, separated from all mutable state.

    Made on the loop thread by ``StoreLoads.begin_prepare``; :meth:`run_step` may then run in any thread, since it
    touches nothing but immutable values and releases the GIL in Arrow's kernels. After each step,
    ``StoreLoads.keep_sorted`` lets the staged rows go on the loop thread, and after the last ``finish_prepare`` takes
    the result over.

    Attributes:
        prepared: The new partitions, once all are prepared; else None.
        sorted: What the steps since the last ``keep_sorted`` have sorted, by partition.
    """

    def __init__(
        self,
        load_id: str,
        layout: TableLayout,
        operation: ChangeOperation,
        parts: Sequence[StagedPart],
        nbytes: int = 0,
    ) -> None:
        self.load_id = load_id
        self.layout = layout
        self.operation = operation
        self.prepared: list[PreparedPart] | None = None
        self.sorted: dict[int, SortedPart] = {}
        self._is_large = nbytes > STEP_BYTES
        self._parts = deque(parts)
        self._done: list[PreparedPart] = []

    def run_step(self) -> bool:
        """Prepare some partitions: all, unless they have more than :data:`STEP_BYTES`.

        Returns:
            Whether there are more.

        Raises:
            DuplicateKeyError: A key occurs twice, or for an append is there already.
            CheckFailedError: A CHECK of the table is FALSE for a row.
            LimitExceededError: The rows do not fit into a partition.
            TopologyChangedError: Rows staged for the catch-all belong to a range that was added meanwhile.
        """
        if self.prepared is not None:
            return False
        sorted_bytes = 0
        while self._parts and sorted_bytes < STEP_BYTES:
            if self._is_large:
                sorted_bytes += self._parts[0].staged_bytes
            self._done.append(self._prepare(self._parts[0]))
            self._parts.popleft()  # only now: a part that fails must fail again
        if self._parts:
            return True
        self.prepared = self._done
        return False

    def _prepare(self, part: StagedPart) -> PreparedPart:
        if self.layout.tdef.scheme.is_catch_all(part.partition):
            # Rows that were staged before a range was added may belong to that range now.
            for staged in part.all_tables():
                self.layout.check_partition(staged, part.partition)
        if part.removed or part.added:
            return self._prepare_mixed(part)
        rows = part.sorted
        if rows is None:
            rows = sort_rows(self.layout, part.tables, self.operation.repeats)
            self.sorted[part.partition] = SortedPart(part.attempts, self.operation, rows)
        if self.operation is ChangeOperation.IGNORE:
            rows = new_rows(self.layout, part.snapshot.fold(), rows)
        if self.operation.replaces_all:
            self.layout.check_stored(rows.table)
            return PreparedPart(part.partition, rows, rows, part.version, changed=rows.rows)
        base = part.snapshot.fold()
        stored = completed(self.layout, base, rows) if self.operation is ChangeOperation.UPSERT else rows
        if self.operation is not ChangeOperation.DELETE:
            self.layout.check_stored(stored.table)
        merged = merge(self.layout, base, stored, self.operation)
        changed = base.rows - merged.rows if self.operation is ChangeOperation.DELETE else rows.rows
        return PreparedPart(part.partition, rows, merged, part.version, changed=changed)

    def _prepare_mixed(self, part: StagedPart) -> PreparedPart:
        base, layout = part.snapshot.fold(), self.layout
        removed = sort_rows(layout, part.removed, DuplicateKeys.LAST_WINS) if part.removed else None
        if removed is not None:
            base = merge(layout, base, removed, ChangeOperation.DELETE)
        added = sort_rows(layout, part.added, DuplicateKeys.REFUSED)
        replaced = sort_rows(layout, part.tables, DuplicateKeys.LAST_WINS)
        merged = merge(layout, merge(layout, base, added, ChangeOperation.APPEND), replaced, ChangeOperation.UPSERT)
        brought = merge(layout, added, replaced, ChangeOperation.UPSERT)
        layout.check_stored(brought.table)
        return PreparedPart(part.partition, brought, merged, part.version, removed, brought.rows)
