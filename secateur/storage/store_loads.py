"""The loads into a member's tables: rows are staged aside, prepared aside, and published at once or dropped.

:mod:`secateur.storage.load` describes the consequences for readers and other writers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from secateur.errors import InternalError, LoadFailedError
from secateur.storage.change import MIXED, ChangeOperation, MixedAttempt, change_operation
from secateur.storage.hosted_tables import HostedTable, HostedTables
from secateur.storage.load import Preparation, PreparedPart, StagedLoad, StagedPart
from secateur.storage.load_registry import LoadOutcome, LoadRegistry
from secateur.storage.log.records import Journal, LoggedLoad, LoggedOutcome, body_of
from secateur.storage.merge import merge, sort_rows
from secateur.storage.partition import Partition
from secateur.storage.sorted_rows import SortedRows
from secateur.wire import encode_table

_NO_VERSION = -1
"""Equals no version of a partition, so that rows prepared before a restart are merged again at publication."""


class StoreLoads:
    """All loads of one member; made by its :class:`~secateur.storage.member_store.MemberStore`.

    Every method runs on the member's loop thread.

    Attributes:
        registry: The loads under way, and the outcomes of others.
        journal: Records what becomes of loads; None for a member without a data directory.
        on_replicated: Called when a load of a replicated table has become visible, with the table's id and the load's
            number.
    """

    def __init__(
        self, tables: HostedTables, staged_bytes_max: int | None, clock: Callable[[], float], outcomes_max: int
    ) -> None:
        self._tables = tables
        self.registry = LoadRegistry(staged_bytes_max, clock, outcomes_max)
        self.journal: Journal | None = None
        self.on_replicated: Callable[[int, int], None] = lambda _table_id, _number: None

    def outcome(self, load_id: str) -> LoadOutcome | None:
        """The outcome of a load; None if it is not remembered."""
        return self.registry.outcome(load_id)

    def is_prepared(self, load_id: str) -> bool:
        """Whether a load has been prepared, and has not ended."""
        load = self.registry.find(load_id)
        return load is not None and load.operation is not None

    def stage(
        self, load_id: str, table_id: int, partition: int, attempt: int, rows: pa.Table, *, keys: bool = False
    ) -> int:
        """Keep rows of a load aside. Calls with the same partition and attempt add up.

        Args:
            load_id: The load.
            table_id: Its table.
            partition: The partition that all rows belong to.
            attempt: The number of the attempt that brings them.
            rows: Rows of the table's schema; for an upsert, columns that can be NULL may be missing.
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
        table = self._tables.table(table_id)
        table.partition(partition)
        layout = table.layout
        admitted = layout.admit_keys(rows) if keys else layout.admit(rows)
        layout.check_partition(admitted, partition)
        return self.registry.stage(self.registry.open(load_id, table_id), partition, attempt, admitted)

    def staged(self, table_id: int, partition: int) -> list[tuple[str, int, pa.Table, bool]]:
        """Rows that wait in a partition for the publication of loads.

        Returns:
            Of each load and attempt its id, the number of the attempt, the rows, and whether they are keys.

        Raises:
            UnknownTableError: The table is not here.
        """
        keys = self._tables.table(table_id).layout.key_schema.names
        found = []
        for load in self.registry.of_table(table_id):
            for (staged, attempt), pieces in load.staged.items():
                if staged == partition and pieces:
                    found.append((load.load_id, attempt, pa.concat_tables(pieces), pieces[0].schema.names == keys))
            part = load.sorted.get(partition)
            if part is not None:
                # Of which attempt a row is does not matter any more, only that each attempt is known.
                rows = part.rows.table
                for attempt in part.attempts:
                    found.append((load.load_id, attempt, rows, rows.schema.names == keys))
                    rows = rows.slice(0, 0)
        return found

    def forget_partition(self, table_id: int, partition: int) -> None:
        """Forget what is staged for a partition: it comes again with the rows of its primary."""
        self.registry.unstage(table_id, partition)

    def prepare(self, load_id: str, table_id: int, mode: str, parts: Mapping[int, Sequence[int]]) -> int:
        """Check everything that can fail and build the new partitions aside; readers do not see them.

        Its steps can be called one by one, so that the expensive one runs in a thread: :meth:`begin_prepare`, as long
        as there are more partitions ``Preparation.run_step`` and :meth:`keep_sorted`, :meth:`finish_prepare`.

        Args:
            load_id: The load.
            table_id: Its table.
            mode: ``append``, ``overwrite``, ``overwrite_ranges``, ``upsert``, ``ignore``, or ``delete`` for keys;
                ``mixed`` for a load of all of these. ``overwrite`` empties the partitions of this member that ``parts``
                does not name.
            parts: The attempts that count, in the order of their rows, for each partition of this member that has rows:
                several tasks may each bring a share of a partition. To ``overwrite_ranges``, none for a partition that
                becomes empty.

        Returns:
            Rows that publication brings.

        Raises:
            LoadFailedError: Rows are missing, the load has ended, or its keys are those of another load about to be
                published.
            DuplicateKeyError: A key occurs twice, or for an append is there already.
            UnknownTableError: The table is not here.
            TopologyChangedError: A partition is not here.
            ProgrammingError: An unknown mode.
        """
        preparation = self.begin_prepare(load_id, table_id, mode, parts)
        while preparation.run_step():
            self.keep_sorted(preparation)
        return self.finish_prepare(preparation)

    def begin_prepare(self, load_id: str, table_id: int, mode: str, parts: Mapping[int, Sequence[int]]) -> Preparation:
        """First step of :meth:`prepare`: collect what the second needs. Costs microseconds per partition."""
        is_mixed = mode == MIXED
        operation = ChangeOperation.UPSERT if is_mixed else change_operation(mode)
        table = self._tables.table(table_id)
        table.pick(parts)
        prepared = self.registry.find(load_id)
        if prepared is not None and prepared.operation is not None:
            return self._prepared_again(prepared, table, operation, parts)
        load = self.registry.open(load_id, table_id)
        missing = [
            (number, attempt)
            for number, attempts in parts.items()
            if number not in load.sorted
            for attempt in attempts
            if (number, attempt) not in load.staged
        ]
        if missing:
            name, (number, attempt) = table.layout.tdef.name, missing[0]
            message = (
                f"{name}: load {load_id} has no rows here for partition {number}, attempt {attempt}; stage them on this"
                " member first"
            )
            raise LoadFailedError(message, load_id=load_id, table=name)
        if is_mixed:
            return Preparation(
                load_id,
                table.layout,
                operation,
                [_mixed_part(load, table.partitions[number], parts[number]) for number in sorted(parts)],
                load.nbytes,
            )
        staged = []
        wanted = table.layout.key_schema if operation is ChangeOperation.DELETE else table.layout.schema
        for number in sorted(parts):
            partition, attempts = table.partitions[number], tuple(parts[number])
            done = load.sorted.get(number)
            if done is not None:
                if (done.attempts, done.operation) != (attempts, operation):
                    raise self._otherwise_prepared(load)
                staged.append(StagedPart(number, (), partition.snapshot(), partition.version, sorted=done.rows))
                continue
            tables = [rows for attempt in attempts for rows in load.staged[number, attempt]]
            names = tables[0].schema.names if tables and operation is ChangeOperation.UPSERT else wanted.names
            if any(rows.schema.names != names for rows in tables):
                message = (
                    f"{table.layout.tdef.name}: load {load_id} cannot {operation.value}: a deletion takes keys, an"
                    " upsert rows with the same columns, and everything else complete rows"
                )
                raise LoadFailedError(message, load_id=load_id, table=table.layout.tdef.name)
            staged.append(StagedPart(number, tables, partition.snapshot(), partition.version, attempts=attempts))
        return Preparation(load_id, table.layout, operation, staged, load.nbytes)

    def keep_sorted(self, preparation: Preparation) -> None:
        """Keep the rows that a step of :meth:`prepare` has sorted in place of the staged ones.

        From the first call on the load takes no more rows, and the attempts that do not count are gone.

        Raises:
            LoadFailedError: The load has ended meanwhile.
        """
        load = self.registry.find(preparation.load_id)
        if load is None:
            raise self.registry.ended(preparation.load_id)
        if load.operation is None:
            for key in [key for key in load.staged if key[0] in preparation.sorted]:
                del load.staged[key]
            load.sorted.update(preparation.sorted)
        preparation.sorted.clear()

    def is_current(self, preparation: Preparation) -> bool:
        """Whether the partitions have not changed since the preparation began; always True if all rows are replaced."""
        load = self.registry.find(preparation.load_id)
        if load is None or preparation.operation.replaces_all:
            return True
        partitions = self._tables.table(load.table_id).partitions
        return all(
            part.partition in partitions and part.version == partitions[part.partition].version
            for part in preparation.prepared or ()
        )

    def finish_prepare(self, preparation: Preparation) -> int:
        """Last step of :meth:`prepare`: take the prepared partitions over, and reserve the keys of an append.

        Returns:
            Rows that publication brings.
        """
        load = self.registry.find(preparation.load_id)
        if load is None:
            raise self.registry.ended(preparation.load_id)
        if preparation.prepared is None:
            raise InternalError(f"load {preparation.load_id}: the preparation was finished before it was run")
        table = self._tables.table(load.table_id)
        operation = preparation.operation
        parts = {}
        for part in preparation.prepared:
            partition = table.partitions[part.partition]
            if operation is ChangeOperation.APPEND and part.version != partition.version:
                # A write came while the preparation ran in its thread: only now can we check whether it took a key.
                merged = merge(table.layout, partition.snapshot().fold(), part.rows, operation)
                part = PreparedPart(part.partition, part.rows, merged, partition.version)
            self.registry.check_others(table.layout, load, operation, part)
            parts[part.partition] = part
        if operation is ChangeOperation.APPEND:
            for number, part in parts.items():
                table.partitions[number].reserve(load.load_id, part.rows)
        load.operation = operation
        load.parts = parts
        load.staged.clear()
        load.sorted.clear()
        if self.journal is not None:
            self.journal.append(partial(load_body, load.load_id, load.table_id, operation, tuple(parts.values())))
        return load.prepared_rows

    def restore_prepared(
        self,
        load_id: str,
        table_id: int,
        operation: ChangeOperation,
        parts: Sequence[tuple[int, pa.Table, pa.Table | None]],
    ) -> None:
        """Take over a load that was prepared before this member was started anew.

        ``parts`` are the rows of each partition, and the keys that are removed first, as they were prepared.

        Raises:
            Error: The load, the table or a partition is not as it was.
        """
        table = self._tables.table(table_id)
        load = self.registry.open(load_id, table_id)
        for number, rows, removed in parts:
            partition = table.partition(number)
            prepared = sort_rows(table.layout, [rows], operation.repeats)
            keys = None if removed is None else sort_rows(table.layout, [removed], ChangeOperation.DELETE.repeats)
            load.parts[number] = PreparedPart(number, prepared, prepared, _NO_VERSION, keys)
            if operation is ChangeOperation.APPEND:
                partition.reserve(load_id, prepared)
        load.operation = operation

    def remember(self, load_id: str, outcome: LoadOutcome) -> None:
        """A load had ended before this member was started anew."""
        if self.registry.find(load_id) is not None:
            self.abort(load_id)
        self.registry.end(load_id, outcome)

    def prepared(self) -> list[StagedLoad]:
        """The loads that are prepared and have not ended."""
        return [load for load in self.registry.all() if load.operation is not None]

    def publish(self, load_id: str, number: int | None = None, rows: int | None = None) -> int:
        """Make a prepared load visible, all of it at once. Repeating the call does nothing.

        Cannot fail once the load is prepared. Costs microseconds per partition; only partitions that were written to
        since are merged again.

        Args:
            load_id: The load.
            number: The new ``DataVersion.published``, the same on all members; None counts on from the last.
            rows: The rows that it changes on all members, -1 if nobody knows; None for those that it brings here.

        Returns:
            The rows that it has changed on all members, as they were given first.

        Raises:
            LoadFailedError: The load is not prepared here, or was aborted.
        """
        outcome = self.registry.outcome(load_id)
        if outcome is not None and outcome.published:
            return outcome.rows
        load = self.registry.find(load_id)
        if load is None or load.operation is None:
            raise self.registry.ended(load_id)
        table = self._tables.table(load.table_id)
        number = table.published + 1 if number is None else number
        for part in load.parts.values():
            partition = table.partitions[part.partition]
            partition.release(load_id)
            partition.note_load(load.operation, part, number)
            if load.operation.replaces_all or part.version == partition.version:
                partition.install(part.merged)
            else:
                partition.merge_prepared(load.operation, part.rows, part.removed)
        if load.operation is ChangeOperation.OVERWRITE:
            nothing = SortedRows(table.layout.no_rows, table.layout.order)
            for partition in table.partitions.values():
                if partition.number not in load.parts and partition.rows:
                    partition.install(nothing)
                    if partition.feed is not None:
                        partition.feed.replaced(number)
        table.published = number
        table.changes.total += 1
        outcome = LoadOutcome(published=True, rows=load.prepared_rows if rows is None else rows, number=number)
        self._end(load_id, outcome)
        if table.layout.tdef.replicated:
            self.on_replicated(load.table_id, number)
        return outcome.rows

    def abort(self, load_id: str) -> bool:
        """Drop a load; rows that arrive for it later are refused. May be repeated, and may come before the first row.

        Returns:
            False when the load has been published before, so that it cannot be dropped; else True.
        """
        outcome = self.registry.outcome(load_id)
        if outcome is not None:
            return not outcome.published
        load = self.registry.find(load_id)
        if load is not None:
            partitions = self._tables.table(load.table_id).partitions
            for number in load.parts:
                if number in partitions:  # its range may have been dropped
                    partitions[number].release(load_id)
        self._end(load_id, LoadOutcome(published=False, rows=0))
        return True

    def forget_table(self, table_id: int) -> None:
        """A table was dropped: its loads end as if they were aborted."""
        for load in self.registry.of_table(table_id):
            self._end(load.load_id, LoadOutcome(published=False, rows=0))

    def _end(self, load_id: str, outcome: LoadOutcome) -> None:
        load = self.registry.find(load_id)
        if self.journal is not None and load is not None and load.operation is not None:
            record = LoggedOutcome(load_id, outcome.published, outcome.rows, outcome.number)
            self.journal.append(partial(body_of, record))
        self.registry.end(load_id, outcome)

    def _prepared_again(
        self, load: StagedLoad, table: HostedTable, operation: ChangeOperation, parts: Mapping[int, Sequence[int]]
    ) -> Preparation:
        """Return a preparation that has run already, for a caller that repeats the call."""
        if (
            load.table_id != table.layout.tdef.table_id
            or load.operation is not operation
            or load.parts.keys() != parts.keys()
        ):
            raise self._otherwise_prepared(load)
        again = Preparation(load.load_id, table.layout, operation, [])
        again.prepared = list(load.parts.values())
        return again

    @staticmethod
    def _otherwise_prepared(load: StagedLoad) -> LoadFailedError:
        return LoadFailedError(
            f"load {load.load_id} was prepared with another table, mode or partitions; abort it and use a new load id",
            load_id=load.load_id,
        )


def _mixed_part(load: StagedLoad, partition: Partition, attempts: Sequence[int]) -> StagedPart:
    tables = {attempt: load.staged[partition.number, attempt] for attempt in attempts}
    replaced, removed, added = (
        tables.get(kind, []) for kind in (MixedAttempt.REPLACED, MixedAttempt.REMOVED, MixedAttempt.ADDED)
    )
    return StagedPart(partition.number, replaced, partition.snapshot(), partition.version, removed, added)


def load_body(
    load_id: str, table_id: int, operation: ChangeOperation, parts: Sequence[PreparedPart]
) -> Sequence[bytes | memoryview]:
    """The record of a prepared load."""
    sizes, payload = [], []
    for part in parts:
        rows = encode_table(part.rows.table)
        removed = b"" if part.removed is None else encode_table(part.removed.table)
        sizes.append((part.partition, len(rows), len(removed)))
        payload += [rows, removed]
    return body_of(LoggedLoad(load_id, table_id, operation.value, tuple(sizes)), payload)
