"""Changes of the row with one key, made at its primary in one turn of the event loop: no task, thread or kernel.

UPDATE and DELETE by key and ``INSERT ... ON CONFLICT DO UPDATE`` of one row read that row as plain values, compute the
new ones by compiled expressions, and write them as a put does. Whatever is not certain to be what the dialect says, or
has to wait for something, is left to :mod:`secateur.cluster.member.changes.changes`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.changes.change_turns import ChangeTurns
from secateur.cluster.member.changes.writes import MemberWrites
from secateur.cluster.member.statements.local_execution import check_count, check_versions
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.cluster.member.tables.table_directory import TableDirectory
from secateur.engine.kernels.arrow.row_values import DeclinedError
from secateur.engine.sql.keyed_change import KeyedChange
from secateur.engine.sql.row_upsert import RowUpsert
from secateur.errors import DataError, NoRangeError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.changes import ChangedRows, ChangeOnePartition
from secateur.storage.change import ChangeOperation
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, ShortTable, is_short, travels_short

__all__ = ["KeyedChanges"]

_Found: TypeAlias = tuple[int, Sequence[Any] | None, ChangeOperation]
"""A partition, the values of a row or its key, if there is anything to write, and how it is written."""
_Answered: TypeAlias = Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]]
_KEPT_MAX: Final = 4096
"""Plans whose compiled form is kept; some kilobytes each."""


class KeyedChanges:
    """Lives on the member's event loop.

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
        self._compiled: OrderedDict[tuple[str, str], tuple[TableDef, KeyedChange | RowUpsert | None]] = OrderedDict()

    def has_plan(self, asked: ChangeOnePartition) -> bool:
        """Whether the plan of a change is kept here."""
        try:
            self._statements.kept_plan(asked.plan)
        except TopologyChangedError:
            return False
        return True

    def made(self, asked: ChangeOnePartition) -> _Answered | None:
        """Make a change that prunes and whose plan is kept; returns its answer, or None, and nothing was done.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was changed.
            Error: The statement fails on this row; nothing was changed.
        """
        plan = self._statements.kept_plan(asked.plan)
        if len(plan.scans) != 1:
            return None
        check_versions(self._store, plan)
        check_count(plan, asked.params)  # the values of expressions behind them are for other ways to find the row
        table, change = self._change(asked)
        if change is None:
            return None
        try:
            found = (
                self._changed_row(asked, table, change)
                if isinstance(change, KeyedChange)
                else self._upserted_row(asked, table, change)
            )
        except (DeclinedError, NoRangeError, DataError, ValueError, OverflowError):
            return None  # what only a kernel computes, or says in the words of the dialect
        return None if found is None else self._write(asked, table, *found)

    def _change(self, asked: ChangeOnePartition) -> tuple[TableDef, KeyedChange | RowUpsert | None]:
        """The table, and what a plan does to the row with a key, if it is such a change."""
        known = (asked.plan, asked.operation)
        plan = self._statements.kept_plan(asked.plan)
        table = self._places.table(plan.scans[0].table_id)
        found = self._compiled.get(known)
        if found is not None and found[0] is table:
            return found
        change: KeyedChange | RowUpsert | None = None
        if not table.replicated and _has_plain_rows(table):
            match asked.operation:
                case "effects":
                    change = plan.upsert
                case "upsert" | "delete" as operation:
                    change = KeyedChange.of(plan, table, deletes=operation == "delete")
                case _:
                    pass
        self._compiled[known] = table, change
        if len(self._compiled) > _KEPT_MAX:
            self._compiled.popitem(last=False)
        return table, change

    def _changed_row(self, asked: ChangeOnePartition, table: TableDef, change: KeyedChange) -> _Found | None:
        """What an UPDATE or DELETE writes; None for any other way."""
        key = change.key(asked.params)
        partition = self._partition(asked, table, key)
        if partition is None:
            return None
        old = self._store.partition(table.table_id, partition).values_of(key)
        if old is None or not change.applies(old, asked.params):
            return partition, None, ChangeOperation.UPSERT
        new = change.changed(old, asked.params)
        if new is None:
            return partition, key, ChangeOperation.DELETE
        return (partition, new, ChangeOperation.UPSERT) if _is_plain(table, new) else None

    def _upserted_row(self, asked: ChangeOnePartition, table: TableDef, upsert: RowUpsert) -> _Found | None:
        """What an INSERT that changes the row with its key writes; None for any other way."""
        new = upsert.inserted_values(table, asked.params)
        if new is None or not _is_plain(table, new):
            return None
        named = dict(zip([column.name for column in table.columns], new, strict=True))
        key = [named[name] for name in table.primary_key]
        partition = self._partition(asked, table, key)
        if partition is None:
            return None
        old = self._store.partition(table.table_id, partition).values_of(key)
        updated = new if old is None else upsert.updated_values(table, old, asked.params)
        is_written = updated is None or _is_plain(table, updated)
        return (partition, updated, ChangeOperation.UPSERT) if is_written else None

    def _partition(self, asked: ChangeOnePartition, table: TableDef, key: Sequence[Any]) -> int | None:
        """The partition of a key, if it can be changed now.

        Raises:
            TopologyChangedError: It is not this member's.
        """
        partition = table.scheme.partition_of(dict(zip(table.primary_key, key, strict=True)))
        self._places.check_primary(table.table_id, partition)
        is_free = self._turns.is_free((table.table_id, partition))
        return partition if is_free and self._writes.is_made_now(table.table_id, partition, asked.change_id) else None

    def _write(
        self,
        asked: ChangeOnePartition,
        table: TableDef,
        partition: int,
        values: Sequence[Any] | None,
        operation: ChangeOperation,
    ) -> _Answered:
        """Write a row, or delete it by its key; without values there is nothing to do."""
        table_id, made = table.table_id, RecordedChange(0, 0)
        copies = self._places.backups(table_id, (partition,))
        if values is not None:
            rows = ShortTable([[value] for value in values], 1)
            made, _ = self._writes.apply(table_id, partition, operation, rows, asked.change_id)
        reply = Reply(ChangedRows(made.rows, 1 + len(copies)))
        return self._writes.made_now(table_id, partition, asked.change_id, made, reply)


def _has_plain_rows(table: TableDef) -> bool:
    """Whether the key of a row says its partition, and plain values represent the row completely."""
    is_placed_by_key = set(table.scheme.columns) <= set(table.primary_key)
    return is_placed_by_key and travels_short([column.type for column in table.columns])


def _is_plain(table: TableDef, row: Sequence[Any]) -> bool:
    """Whether a row can be written as plain values; one with a NULL too many is left to what says so."""
    for value, column in zip(row, table.columns, strict=True):
        if value is None and not column.nullable:
            return False
    return is_short([[value] for value in row], [column.type for column in table.columns])
