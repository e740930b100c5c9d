"""Writes and deletions of rows by primary key: what INSERT OR REPLACE and DELETE do, without their texts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import pyarrow as pa

from secateur import errors
from secateur.client.execution.change import REPEATED, AskedBefore, change_in_frames, run_change, unknown_outcome
from secateur.client.execution.execute import Retryable, execute, planned
from secateur.client.execution.routing import MemberBatch
from secateur.client.key_value.tables import KeyTable, RowKeys
from secateur.client.loads.load import LoadMode, load_rows
from secateur.errors import ParameterError, TopologyChangedError
from secateur.partitioning.tables.conform import MissingColumns
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.python_column import canonical_column
from secateur.partitioning.types.sql_text import quoted
from secateur.protocol.changes import WriteRows
from secateur.protocol.many import WriteMany
from secateur.protocol.statements import ChangeStatement
from secateur.wire import SHORT_ROWS_MAX, ShortTable, encode_rows, is_short

_ABSENT: Final = object()
"""In place of the value of a column that a row does not name."""


def put_rows(table: KeyTable, rows: Sequence[Any], missing: str | None = None) -> None:
    """Write rows, one at least: each is added, or replaces the one with its key; all become visible at once.

    ``missing`` is as :meth:`~.table_handle.TableHandle.put` takes it.

    Raises:
        Error: As :meth:`~secateur.client.loads.table_handle.TableHandle.put_many`.
    """

    def read(keys: RowKeys) -> tuple[TableDef, pa.Table | ShortTable]:
        return keys.definition, _given(keys, rows, lacking)

    lacking = MissingColumns.of_load(missing, is_upsert=True)
    session = table.session
    control = session.begin_statement()
    try:
        definition, given = table.read(read)
        try:
            load_rows(session, definition, given, LoadMode.UPSERT, missing=lacking, same_table=True)
        except TopologyChangedError:
            # Rows that were made for a dropped table are not valid for the table that has its name now.
            if not table.refresh(definition):
                raise
            load_rows(session, *table.read(read), LoadMode.UPSERT, missing=lacking, same_table=True)
    finally:
        session.end_statement(control)


def _given(keys: RowKeys, rows: Sequence[Any], missing: MissingColumns) -> pa.Table | ShortTable:
    """The rows as they are sent: a few as plain values, if those represent them completely."""
    table = keys.definition
    absent = None if missing is MissingColumns.NULL and not table.defaults else _ABSENT
    ordered = [_in_order(table, row, absent) for row in rows]
    columns, named, types = [list(values) for values in zip(*ordered, strict=True)], table.columns, keys.types
    is_partial = absent is _ABSENT and any(
        value is _ABSENT
        for row in ordered
        if type(row) is list
        for value in row  # which a mapping has made
    )
    if is_partial and missing is MissingColumns.NULL:
        now = datetime.now(UTC)
        columns = [_with_defaults(table, column, values, now) for column, values in zip(named, columns, strict=True)]
    elif is_partial:
        named = tuple(
            column for column, values in zip(named, columns, strict=True) if not _is_lacking(table, column, values)
        )
        columns = [values for values in columns if values[0] is not _ABSENT]
        types = [column.type for column in named]
    is_short = len(named) == len(table.columns) and len(rows) <= SHORT_ROWS_MAX and keys.takes_values
    if is_short:
        at = keys.uncertain(columns, 0)
        while at < len(columns):
            column = named[at]
            columns[at] = [coerce(value, column.type, column=column.name) for value in columns[at]]
            is_short = is_short and (column.nullable or None not in columns[at])
            at = keys.uncertain(columns, at + 1)
    else:
        columns = [
            [coerce(value, column.type, column=column.name) for value in values]
            for column, values in zip(named, columns, strict=True)
        ]
    if is_short and keys.is_short(columns):
        return ShortTable(columns, len(rows))
    arrays = [canonical_column(values, kind) for kind, values in zip(types, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in named])


def _with_defaults(table: TableDef, column: Column, values: list[Any], now: datetime) -> list[Any]:
    """The values of a column, with its default, or NULL, in rows that do not name it."""
    places = [at for at, value in enumerate(values) if value is _ABSENT]
    if places:
        default = table.defaults.get(column.name)
        made = [None] * len(places) if default is None else default.values(len(places), now)
        for at, value in zip(places, made, strict=True):
            values[at] = value
    return values


def _is_lacking(table: TableDef, column: Column, values: Sequence[Any]) -> bool:
    """Whether no row names a column.

    Raises:
        ParameterError: Some do, and some do not.
    """
    lacking = sum(value is _ABSENT for value in values)
    if 0 < lacking < len(values):
        raise ParameterError(
            f"table {table.name}: of {len(values)} rows, {lacking} do not name column {column.name}: put rows that"
            " name other columns apart, or pass missing='null' to have NULL there",
            table=table.name,
        )
    return lacking > 0


def _in_order(table: TableDef, row: Any, absent: Any) -> Sequence[Any]:
    """The values of a row in the order of the columns; ``absent`` for columns that it does not name."""
    if type(row) is not tuple and isinstance(row, Mapping):
        given = {table.column(name).name: value for name, value in row.items()}
        if len(given) < len(row):
            raise ParameterError(f"a row for {table.name} names a column twice: {', '.join(row)}", table=table.name)
        return [given.get(column.name, absent) for column in table.columns]
    if not isinstance(row, (tuple, list)) or len(row) != len(table.columns):
        raise ParameterError(
            f"a row of {table.name} is a mapping of column names to values, or a tuple of its {len(table.columns)}"
            f" values in the order of its columns ({', '.join(column.name for column in table.columns)}), not {row!r}",
            table=table.name,
        )
    return row


def delete_rows(table: KeyTable, keys: Sequence[Any]) -> int:
    """Delete the rows with some keys, those of one partition at once; returns how many were there.

    Raises:
        Error: As :meth:`~secateur.client.loads.table_handle.TableHandle.delete_many`.
    """
    session = table.session
    control = session.begin_statement()
    try:
        is_replicated, read = table.read(lambda rows: (not rows.group, [rows.read(key) for key in keys]))
        if is_replicated:
            return sum(_delete_everywhere(table, key) for key in read)
        parts: dict[int, list[list[Any]]] = {}
        for key in read:
            partition = session.when_known(partial(_partition, table, key))
            if partition is not None:
                parts.setdefault(partition, []).append(key)
        if len(parts) > 1:
            return _delete_parts(table, parts)
        return sum(execute(_Delete(table, part)) for part in parts.values())
    finally:
        session.end_statement(control)


def _partition(table: KeyTable, key: list[Any]) -> int | None:
    """The partition of a key; None for one that no range holds."""
    keys = table.keys
    try:
        return keys.partition_of(key)
    except errors.NoRangeError:
        if not table.refresh(keys.definition):  # the range may have been added since
            return None
        return _partition(table, key)


def _delete_parts(table: KeyTable, parts: Mapping[int, list[list[Any]]]) -> int:
    """Delete the rows of some partitions: few of each go to their member in one frame for many partitions.

    All members work at the same time. What a member does not do at once follows in frames of its own.
    """
    rows = table.keys
    batches: dict[str, MemberBatch[list[list[Any]]]] = {}
    full: list[MemberBatch[list[list[Any]]]] = []
    alone: list[list[list[Any]]] = []
    for partition, keys in parts.items():
        given = _key_rows(rows, keys)
        member = _owner(table, rows, partition) if isinstance(given, ShortTable) else None
        if member is None:
            alone.append(keys)
            continue
        batch = batches.setdefault(member, MemberBatch(member, [], []))
        batch.add(keys, (partition, encode_rows(given)))
        if batch.is_full:
            full.append(batches.pop(member))
    deleted: list[int] = []

    def asked(batch: MemberBatch[list[list[Any]]]) -> WriteMany:
        writes = [(at, rows) for at, rows in batch.params]
        return WriteMany(rows.definition.table_id, "delete", uuid.uuid4().hex, writes)

    def delete(keys: list[list[Any]], before: AskedBefore | None) -> int:
        return execute(_Delete(table, keys, before))

    change_in_frames(table.session, rows.definition, [*full, *batches.values()], asked, delete, deleted.append)
    return sum(deleted) + sum(delete(keys, None) for keys in alone)


def _owner(table: KeyTable, rows: RowKeys, partition: int) -> str | None:
    """The member to ask for a partition together with others; None where asking for it alone says what is wrong."""
    try:
        return table.session.when_known(lambda: table.owner(rows, partition))
    except errors.Error:
        return None


class _Delete(Retryable[int]):
    """A deletion of rows of one partition, with the same id in every attempt, so that it is made once.

    ``before`` is the id under which a member was asked for it already, and may have deleted the rows, if one was.
    """

    repeated = REPEATED

    def __init__(self, table: KeyTable, keys: list[list[Any]], before: AskedBefore | None = None) -> None:
        self.session = table.session
        self._table = table
        self._keys = keys
        self._change_id, self.lost_answer = before or (uuid.uuid4().hex, None)

    def attempt(self) -> int:
        rows = self._table.keys
        definition = rows.definition
        partition = rows.partition_of(self._keys[0])
        member = self._table.owner(rows, partition)
        asked = WriteRows(definition.table_id, partition, "delete", self._change_id)
        try:
            return self.session.ask_member(member, asked, encode_rows(_key_rows(rows, self._keys))).message.rows
        except errors.MemberLostError as error:
            self.lost_answer = error
            raise
        except errors.DeadlineError as error:
            raise unknown_outcome(definition, error) from error

    def prepare_again(self, because: errors.Error) -> None:
        self._table.refresh_if_possible()


def _key_rows(rows: RowKeys, keys: Sequence[list[Any]]) -> pa.Table | ShortTable:
    definition = rows.definition
    given = ShortTable([list(column) for column in zip(*keys, strict=True)], len(keys))
    types = [definition.column(name).type for name in definition.primary_key]
    if len(keys) <= SHORT_ROWS_MAX and rows.takes_values and is_short(given.columns, types):
        return given
    return given.to_table(list(zip(definition.primary_key, types, strict=True)))


def _delete_everywhere(table: KeyTable, key: list[Any]) -> int:
    """Delete a row of a replicated table, which all members have: the controller publishes that."""
    session, definition = table.session, table.keys.definition
    conditions = " AND ".join(f"{quoted(name)} = ?" for name in definition.primary_key)
    sql = f"DELETE FROM {quoted(definition.name)} WHERE {conditions}"
    call = planned(session, sql, key)
    if not isinstance(call.statement, ChangeStatement):
        raise errors.InterfaceError(
            f"{sql!r} was planned as another kind of statement than DELETE: execute it with a cursor"
        )
    return run_change(call.of(call.statement)).rows
