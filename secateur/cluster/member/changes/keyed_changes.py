"""Changes of the row with one key, made at its primary in one turn of the event loop: no task, thread or kernel.

UPDATE and DELETE by key and ``INSERT ... ON CONFLICT DO UPDATE`` of one row read that row as plain values, compute the
new ones by compiled expressions, and write them as a put does. Whatever is not certain to be what the dialect says, or
has to wait for something, is left to :mod:`secateur.cluster.member.changes.changes`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.changes.change_turns import ChangeTurns
from secateur.cluster.member.changes.writes import MemberWrites
from secateur.cluster.member.statements.local_execution import check_count, check_versions
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.cluster.member.tables.table_directory import TableDirectory
from secateur.engine.kernels.arrow.row_values import DeclinedError
from secateur.engine.sql.keyed_change import KeyedChange
from secateur.engine.sql.row_upsert import RowUpsert
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DataError, NoRangeError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.changes import ChangedRows, ChangeOnePartition
from secateur.storage.change import ChangeOperation
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, ShortTable, short_check, travels_short

_Found: TypeAlias = tuple[int, Sequence[Any] | None, ChangeOperation]
"""A partition, the values of a row or of its key (None if nothing is to be written), and the operation."""
_Answered: TypeAlias = Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]]
_KEPT_MAX: Final = 4096
"""Plans whose compiled form is kept; some kilobytes each."""


class _Compiled(msgspec.Struct, frozen=True):
    """A plan compiled to a change of the row with one key, and the definition of its table for which it was compiled.

    ``change`` is None for a plan of another kind. With ``replaces_row`` nobody has to read the row that is there.
    """

    table: TableDef
    rows: PlainTable
    change: KeyedChange | RowUpsert | None
    replaces_row: bool


class KeyedChanges:
    """Makes changes of single rows by their keys. Lives on the member's event loop.

    Args:
        store: The member's partitions.
        statements: Its plans.
        places: The members that keep copies of them.
        writes: Changes a partition and its copies.
        turns: The turns of the changes that take longer, which are not overtaken.
    """

    def __init__(
        self,
        store: MemberStore,
        statements: StatementRunner,
        places: TableDirectory,
        writes: MemberWrites,
        turns: ChangeTurns[tuple[int, int]],
    ) -> None:
        self._store = store
        self._statements = statements
        self._places = places
        self._writes = writes
        self._turns = turns
        self._compiled: OrderedDict[tuple[str, str], _Compiled] = OrderedDict()

    def plan(self, asked: ChangeOnePartition) -> SelectPlan | None:
        """The plan of a change, if it is kept here."""
        try:
            return self._statements.kept_plan(asked.plan)
        except TopologyChangedError:
            return None

    def made(self, asked: ChangeOnePartition, plan: SelectPlan) -> _Answered | None:
        """Make a change that prunes, by its plan; returns its answer, or None, and nothing was done.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was changed.
            Error: The statement fails on this row; nothing was changed.
        """
        if len(plan.scans) != 1:
            return None
        check_versions(self._store, plan)
        check_count(plan, asked.params)  # the values of expressions behind them are for other ways to find the row
        compiled = self._change(asked, plan)
        change = compiled.change
        if change is None:
            return None
        try:
            found = (
                self._changed_row(asked, compiled.rows, change)
                if isinstance(change, KeyedChange)
                else self._upserted_row(asked, compiled.rows, change, replaces_row=compiled.replaces_row)
            )
        except (DeclinedError, NoRangeError, DataError, ValueError, OverflowError):
            return None  # what only a kernel computes, or says in the words of the dialect
        return None if found is None else self._write(asked, compiled.table.table_id, *found)

    def _change(self, asked: ChangeOnePartition, plan: SelectPlan) -> _Compiled:
        known = (asked.plan, asked.operation)
        table = self._places.table(plan.scans[0].table_id)
        found = self._compiled.get(known)
        if found is not None and found.table is table:
            return found
        rows = PlainTable(table)
        change: KeyedChange | RowUpsert | None = None
        if rows.has_plain_rows:
            match asked.operation:
                case "effects":
                    change = plan.upsert
                case "upsert" | "delete" as operation:
                    change = KeyedChange.of(plan, table, deletes=operation == "delete")
                case _:
                    pass
        replaces_row = isinstance(change, RowUpsert) and change.replaces_row(table)
        compiled = self._compiled[known] = _Compiled(table, rows, change, replaces_row)
        if len(self._compiled) > _KEPT_MAX:
            self._compiled.popitem(last=False)
        return compiled

    def _changed_row(self, asked: ChangeOnePartition, rows: PlainTable, change: KeyedChange) -> _Found | None:
        """The row or key that an UPDATE or DELETE writes; None if the change has to be made in another way."""
        key = change.key(asked.params)
        partition = self._partition(asked, rows, key)
        if partition is None:
            return None
        old = self._store.partition(rows.table_id, partition).values_of(key)
        if old is None or not change.applies(old, asked.params):
            return partition, None, ChangeOperation.UPSERT
        new = change.changed(old, asked.params)
        if new is None:
            return partition, key, ChangeOperation.DELETE
        return (partition, new, ChangeOperation.UPSERT) if rows.is_plain(new) else None

    def _upserted_row(
        self, asked: ChangeOnePartition, rows: PlainTable, upsert: RowUpsert, *, replaces_row: bool
    ) -> _Found | None:
        """The row that an INSERT writes over the one with its key; None if the change has to be made in another way."""
        new = upsert.inserted_values(rows.table, asked.params)
        if not rows.is_plain(new):
            return None
        key = [new[at] for at in rows.key_positions]
        partition = self._partition(asked, rows, key)
        if partition is None:
            return None
        if replaces_row:
            return partition, new, ChangeOperation.UPSERT
        old = self._store.partition(rows.table_id, partition).values_of(key)
        updated = new if old is None else upsert.updated_values(rows.table, old, asked.params)
        is_written = updated is None or updated is new or rows.is_plain(updated)
        return (partition, updated, ChangeOperation.UPSERT) if is_written else None

    def _partition(self, asked: ChangeOnePartition, rows: PlainTable, key: Sequence[Any]) -> int | None:
        """The partition of a key, if it can be changed now.

        Raises:
            TopologyChangedError: It is not this member's.
        """
        table_id, partition = rows.table_id, rows.partition_of(key)
        self._places.check_primary(table_id, partition)
        is_free = self._turns.is_free((table_id, partition))
        return partition if is_free and self._writes.is_made_now(table_id, partition, asked.change_id) else None

    def _write(
        self,
        asked: ChangeOnePartition,
        table_id: int,
        partition: int,
        values: Sequence[Any] | None,
        operation: ChangeOperation,
    ) -> _Answered:
        """Write a row, or delete it by its key; without values there is nothing to do."""
        made = RecordedChange(0, 0)
        if values is not None:
            rows = ShortTable([[value] for value in values], 1)
            made, _ = self._writes.apply(table_id, partition, operation, rows, asked.change_id)
        reply = Reply(ChangedRows(made.rows, 1 + self._places.backup_count(table_id, partition)))
        return self._writes.made_now(table_id, partition, asked.change_id, made, reply)


class PlainTable:
    """One definition of a table.

    Args:
        table: The table.

    Attributes:
        table: The table.
        table_id: Its id.
        key_positions: The columns of the primary key among all, in key order.
        partition_of: The partition of a row by its key; only where it has plain rows.
        has_plain_rows: Whether the key of a row says its partition, and plain values represent the row completely.
    """

    __slots__ = ("_is_short", "_needed", "has_plain_rows", "key_positions", "partition_of", "table", "table_id")

    def __init__(self, table: TableDef) -> None:
        self.table = table
        self.table_id = table.table_id
        positions = {column.name: at for at, column in enumerate(table.columns)}
        self.key_positions = tuple(positions[name] for name in table.primary_key)
        types = [column.type for column in table.columns]
        self._is_short = short_check(types)
        self._needed = tuple(at for at, column in enumerate(table.columns) if not column.nullable)
        self.has_plain_rows = table.is_placed_by_key and travels_short(types)
        if self.has_plain_rows:
            self.partition_of: Callable[[Sequence[Any]], int] = table.scheme.partition_function(table.primary_key)

    def is_plain(self, row: Sequence[Any]) -> bool:
        """Whether a row can be written as plain values; one with a NULL too many is left to what says so."""
        for at in self._needed:
            if row[at] is None:
                return False
        return self._is_short([[value] for value in row])
