"""Changes of the row with one key, made at its primary in one turn of the event loop: no task, thread or kernel.

UPDATE and DELETE by key and ``INSERT ... ON CONFLICT DO UPDATE`` of one row read that row as plain values, compute the
new ones by compiled expressions, and write them as a put does; so are the values of RETURNING. Whatever is not certain
to be what the dialect says, or has to wait for something, is left to :mod:`secateur.cluster.member.changes.changes`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.changes.change_turns import ChangeTurns
from secateur.cluster.member.changes.writes import MemberWrites
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.plans import check_count, check_versions
from secateur.engine.kernels.arrow.row_values import DeclinedError
from secateur.engine.sql.keyed_change import KeyedChange, ReturnedRow
from secateur.engine.sql.row_upsert import UpsertProgram
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DataError, NoRangeError, NullKeyError
from secateur.partitioning.types.python_column import canonical_as_it_stands
from secateur.protocol.changes import ChangedRows, ChangeOnePartition
from secateur.storage.change import ChangeOperation
from secateur.storage.delta import FewRows
from secateur.storage.layout import TableLayout
from secateur.wire import Payload, Reply, encode_rows
from secateur.wire.short_table import SHORT_CHARACTERS_MAX, VALUE_BYTES

_Found: TypeAlias = tuple[int, FewRows | None, ChangeOperation, Sequence[Any] | None]
"""A partition, a row or its key (None if nothing is to be written), the operation, and the values of the row that
RETURNING sees: of a deleted row, those that it had."""
_Answered: TypeAlias = Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]]
_NOTHING: Final = RecordedChange(0, 0)
_KEPT_MAX: Final = 4096
"""Plans whose compiled form is kept; some kilobytes each."""


class _Compiled:
    """A plan compiled to a change of the row with one key, for one definition of its table.

    Attributes:
        layout: The table's.
        change: The change; None for a plan of another kind, and where the key of a row does not say its partition, or
            plain values do not represent it completely.
        partition_of: The partition of the values by which the row is found: of its key for a KeyedChange, else of all
            columns.
        returned: What RETURNING makes of the row; None without it, or where only a kernel can do it.
        nbytes_max: The size of a row beyond which it is better sent in Arrow.
    """

    __slots__ = ("change", "layout", "nbytes_max", "partition_of", "returned")

    def __init__(
        self, plan: SelectPlan, operation: str, layout: TableLayout, returning: SelectPlan | None = None
    ) -> None:
        table, self.layout = layout.tdef, layout
        self.change: KeyedChange | UpsertProgram | None = None
        if table.is_placed_by_key and layout.takes_values and not plan.views:  # a view may be dropped at any time
            match operation:
                case "effects":
                    self.change = None if plan.upsert is None else UpsertProgram(plan.upsert, table)
                case "upsert" | "delete":
                    self.change = KeyedChange.of(plan, table, deletes=operation == "delete")
                case _:
                    pass
        self.partition_of: Callable[[Sequence[Any]], int] = (
            table.scheme.partition_function(table.primary_key)
            if isinstance(self.change, KeyedChange)
            else table.partition_of_row
        )
        self.returned = None if returning is None else ReturnedRow.of(returning, table)
        if returning is not None and (self.returned is None or returning.parameter_count != plan.parameter_count):
            self.change = None
        self.nbytes_max = SHORT_CHARACTERS_MAX + VALUE_BYTES * len(table.columns)


class KeyedChanges:
    """Makes changes of single rows by their keys. Lives on the member's event loop.

    Args:
        turns: The turns of the changes that take longer, which are not overtaken.
    """

    def __init__(self, storage: MemberStorage, writes: MemberWrites, turns: ChangeTurns[tuple[int, int]]) -> None:
        self._store = storage.store
        self._tables = storage.store.hosted_tables
        self._places = storage.places
        self._writes = writes
        self._turns = turns
        self._compiled: OrderedDict[tuple[str, str, str | None], _Compiled] = OrderedDict()

    def made(
        self,
        asked: ChangeOnePartition,
        plan: SelectPlan,
        check: Callable[[FewRows], None] | None = None,
        returning: SelectPlan | None = None,
    ) -> _Answered | None:
        """Make a change that prunes, by its plan; returns its answer, or None, and nothing was done.

        Args:
            asked: The change.
            plan: Its plan.
            check: Checks the row that is to be written; None for a row that everybody may write.
            returning: The plan of its RETURNING.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was changed.
            Error: The statement fails on this row; nothing was changed.
        """
        found = self._found(asked, plan, check, returning)
        if found is None:
            return None
        table_id, partition, row, operation, payload = found
        made = _NOTHING
        if row is not None:
            made, _ = self._writes.make(table_id, partition, operation, row, asked.change_id)
        reply = Reply(ChangedRows(made.rows, 1 + self._places.backup_count(table_id, partition)), payload)
        return self._writes.made_now(table_id, partition, asked.change_id, made, reply)

    def made_in_turn(
        self,
        asked: ChangeOnePartition,
        plan: SelectPlan,
        check: Callable[[FewRows], None] | None,
        returning: SelectPlan,
        turn: tuple[int, int],
    ) -> tuple[RecordedChange, Payload] | None:
        """As :meth:`made`, for who has the turn of a partition and waits for its copies.

        Args:
            asked: The change.
            plan: Its plan.
            check: As for :meth:`made`.
            returning: The plan of its RETURNING.
            turn: The table and its partition.

        Returns:
            The change, and the rows of RETURNING; None if it has to be made in another way.
        """
        found = self._found(asked, plan, check, returning, turn)
        if found is None:
            return None
        table_id, partition, row, operation, payload = found
        if row is None:
            return _NOTHING, payload
        return self._writes.apply(table_id, partition, operation, row, asked.change_id)[0], payload

    def _found(
        self,
        asked: ChangeOnePartition,
        plan: SelectPlan,
        check: Callable[[FewRows], None] | None,
        returning: SelectPlan | None,
        turn: tuple[int, int] | None = None,
    ) -> tuple[int, int, FewRows | None, ChangeOperation, Payload] | None:
        """Table, partition, what is to be written and how, and the rows of RETURNING; None if it is made otherwise."""
        if len(plan.scans) != 1:
            return None
        compiled = self._change(asked, plan, returning)
        if len(asked.params) != plan.parameter_count:  # the values of expressions are for other ways to find the row
            check_count(plan, asked.params)
        change = compiled.change
        if change is None:
            return None
        try:
            found = (
                self._changed_row(asked, compiled, change, turn=turn)
                if isinstance(change, KeyedChange)
                else self._upserted_row(asked, compiled, change, check, turn=turn)
            )
            if found is None:
                return None
            partition, row, operation, seen = found
            returned = compiled.returned
            payload = b"" if returned is None else encode_rows(returned.rows(seen, asked.params))
        except (DeclinedError, NoRangeError, NullKeyError, DataError, ValueError, OverflowError):
            return None  # what only a kernel computes, or says in the words of the dialect
        if check is not None and row is not None and operation is ChangeOperation.UPSERT:
            check(row)
        return compiled.layout.tdef.table_id, partition, row, operation, payload

    def _change(self, asked: ChangeOnePartition, plan: SelectPlan, returning: SelectPlan | None) -> _Compiled:
        known = (asked.plan, asked.operation, asked.returning)
        layout = self._tables.table(plan.scans[0].table_id).layout
        found = self._compiled.get(known)
        if found is not None and found.layout is layout:  # of another version of the table it would be another one
            return found
        check_versions(self._store, plan)
        if returning is not None:
            check_versions(self._store, returning)
        compiled = self._compiled[known] = _Compiled(plan, asked.operation, layout, returning)
        if len(self._compiled) > _KEPT_MAX:
            self._compiled.popitem(last=False)
        return compiled

    def _changed_row(
        self, asked: ChangeOnePartition, compiled: _Compiled, change: KeyedChange, *, turn: tuple[int, int] | None
    ) -> _Found | None:
        """The row or key that an UPDATE or DELETE writes; None if the change has to be made in another way."""
        key = FewRows.admit(compiled.layout, change.key(asked.params), are_keys=True)
        partition = self._partition(asked, compiled, key, turn=turn)
        if partition is None:
            return None
        old = self._store.partition(compiled.layout.tdef.table_id, partition).values_of(key.keys[0])
        if old is None or not change.applies(old, asked.params):
            return partition, None, ChangeOperation.UPSERT, None
        changed = change.changed(old, asked.params)
        if changed is None:
            return partition, key, ChangeOperation.DELETE, old
        return _written(partition, FewRows.admit(compiled.layout, changed), compiled)

    def _upserted_row(
        self,
        asked: ChangeOnePartition,
        compiled: _Compiled,
        upsert: UpsertProgram,
        check: Callable[[FewRows], None] | None,
        *,
        turn: tuple[int, int] | None,
    ) -> _Found | None:
        """The row that an INSERT writes over the one with its key; None if the change has to be made in another way."""
        layout = compiled.layout
        new = FewRows.admit(layout, upsert.inserted(asked.params), convert=canonical_as_it_stands)
        if new.nbytes > compiled.nbytes_max:
            return None
        partition = self._partition(asked, compiled, new, turn=turn)
        if partition is None:
            return None
        if upsert.replaces_row:
            return _written(partition, new, compiled)
        if check is not None:  # who may not write it does not learn whether there is a row with its key
            check(new)
        old = self._store.partition(layout.tdef.table_id, partition).values_of(new.keys[0])
        if old is not None:
            updated = upsert.updated(new.columns, old, asked.params)
            if updated is None:
                return partition, None, ChangeOperation.UPSERT, None
            new = FewRows.admit(layout, updated)
        return _written(partition, new, compiled)

    def _partition(
        self, asked: ChangeOnePartition, compiled: _Compiled, row: FewRows, *, turn: tuple[int, int] | None
    ) -> int | None:
        """The partition of a row, or of its key, if it can be changed now.

        Raises:
            TopologyChangedError: It is not this member's.
        """
        (values,) = zip(*row.columns, strict=True)
        table_id, partition = compiled.layout.tdef.table_id, compiled.partition_of(values)
        self._places.check_primary(table_id, partition)
        if turn is not None:
            return partition if turn == (table_id, partition) else None
        is_free = self._turns.is_free((table_id, partition))
        return partition if is_free and self._writes.is_made_now(table_id, partition, asked.change_id) else None


def _written(partition: int, row: FewRows, compiled: _Compiled) -> _Found | None:
    """A row that is written; None for one that is better sent in Arrow."""
    if row.nbytes > compiled.nbytes_max:
        return None
    return partition, row, ChangeOperation.UPSERT, None if compiled.returned is None else [v for (v,) in row.columns]
