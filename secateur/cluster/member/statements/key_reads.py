"""Reads of rows by primary key on a member: found where they are, with no plan and no kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from secateur.cluster.member.monitoring.hot_keys import HotKeySampler
from secateur.cluster.member.tables.table_directory import TableDirectory
from secateur.errors import NoRangeError, ProtocolError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.protocol.key_value import FoundRows, GetRows
from secateur.storage.member_store import MemberStore
from secateur.storage.stored_columns import StoredColumns
from secateur.wire import SHORT_ROWS_MAX, Reply, Request, ShortTable, encode_table, is_short, travels_short

_NONE_MISSING: Final[list[int]] = []
_KEYS_PER_TURN: Final = 64
"""Keys that are looked up in one turn of the event loop: about half a millisecond."""

_Waiting: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
_Row: TypeAlias = list[Any] | tuple[Sequence[pa.ChunkedArray], int]
_Found: TypeAlias = _Row | None


class _KnownTable(NamedTuple):
    """A definition of a table, and what was worked out from it.

    Attributes:
        definition: The table.
        types: Those of its columns.
        travels_short: Whether plain values represent these completely.
        hugeints: The positions of the columns of type HUGEINT, whose values Arrow has as Decimals.
        partition_of: The partition of a key.
    """

    definition: TableDef
    types: list[SqlType]
    travels_short: bool
    hugeints: tuple[int, ...]
    partition_of: Callable[[Sequence[Any]], int]


class KeyReads:
    """Answers ``get_rows`` requests. Lives on the member's event loop.

    Args:
        store: Its partitions.
        places: Whose partitions they are.
        acknowledged: Waits until the changes that readers of some partitions see now are acknowledged; None if they
            are.
        hot_keys: Samples the keys.
    """

    def __init__(
        self,
        store: MemberStore,
        places: TableDirectory,
        acknowledged: Callable[[Iterable[tuple[int, int]]], _Waiting | None],
        hot_keys: HotKeySampler,
    ) -> None:
        self._store = store
        self._places = places
        self._acknowledged = acknowledged
        self._hot_keys = hot_keys
        self._known: dict[int, _KnownTable] = {}

    def get(self, request: Request[GetRows]) -> Reply[FoundRows] | Coroutine[Any, Any, Reply[FoundRows]]:
        """Look up some keys, each at one moment, and not all at the same one.

        The member computes the partitions of the keys itself: a client with an old topology may ask the wrong member,
        but never gets a wrong answer.

        Raises:
            TopologyChangedError: This member does not own a partition of them, or the table has another definition by
                now.
            ProtocolError: A key has another number of values than the primary key.
            DataError: A value of another type than its column.
        """
        asked = request.message
        if len(asked.keys) > _KEYS_PER_TURN:
            return self._in_turns(asked)
        table = self._table(asked)
        found, waiting = self._found(table, asked.keys)
        values = _one_row(table, found)
        reply = self._reply(table, found) if values is None else Reply(FoundRows(_NONE_MISSING, values))
        return reply if waiting is None else _after(waiting, reply)

    async def _in_turns(self, asked: GetRows) -> Reply[FoundRows]:
        found: list[_Found] = []
        for start in range(0, len(asked.keys), _KEYS_PER_TURN):
            some, waiting = self._found(self._table(asked), asked.keys[start : start + _KEYS_PER_TURN])
            found += some
            await (asyncio.sleep(0) if waiting is None else waiting())
        return self._reply(self._table(asked), found)

    def _table(self, asked: GetRows) -> _KnownTable:
        table = self._places.table(asked.table_id)
        if table.version != asked.table_version:
            raise TopologyChangedError(
                f"{table.name} has been altered since its definition was fetched: fetch it again, and retry",
                table=table.name,
            )
        known = self._known.get(asked.table_id)
        if known is None or known.definition is not table:
            types = [column.type for column in table.columns]
            self._known = {each: kept for each, kept in self._known.items() if self._store.find(each) is not None}
            known = self._known[asked.table_id] = _KnownTable(
                table,
                types,
                travels_short(types),
                tuple([position for position, kind in enumerate(types) if kind.kind is TypeKind.HUGEINT]),
                table.scheme.partition_function(table.primary_key),
            )
        return known

    def _found(self, known: _KnownTable, keys: Sequence[list[Any]]) -> tuple[list[_Found], _Waiting | None]:
        """The row of each key, and what to wait for before they are sent."""
        table = known.definition
        store, table_id, names = self._store, table.table_id, table.primary_key
        found: list[_Found] = []
        read: list[tuple[int, int]] = []
        for key in keys:
            if len(key) != len(names):
                raise ProtocolError(f"a key of {table.name} has {len(names)} values, not {len(key)}", table=table.name)
            try:
                partition = 0 if table.replicated else known.partition_of(key)
            except NoRangeError:
                found.append(None)
                continue
            self._places.check_primary(table_id, partition)
            hosted = store.partition(table_id, partition)
            hosted.reads += 1
            found.append(hosted.find_values(key))
            hot_keys = self._hot_keys
            hot_keys.left -= 1
            if not hot_keys.left:
                hot_keys.note_key(table, key)
            read.append((table_id, partition))
        return found, self._acknowledged(read)

    def _reply(self, known: _KnownTable, found: Sequence[_Found]) -> Reply[FoundRows]:
        missing = [position for position, row in enumerate(found) if row is None]
        rows = [row for row in found if row is not None]
        if not rows:
            return Reply(FoundRows(missing, []))
        if known.travels_short and len(rows) <= SHORT_ROWS_MAX:
            values = _short(rows, known)
            if values is not None:
                return Reply(FoundRows(missing, values))
        pieces = (_in_arrow(row, known) for row in rows)
        return Reply(FoundRows(missing), encode_table(pa.concat_tables(pieces).combine_chunks()))


def _in_arrow(row: _Row, known: _KnownTable) -> pa.Table:
    schema = known.definition.arrow_schema
    if isinstance(row, list):
        return ShortTable([[value] for value in row], 1).in_schema(known.types, schema)
    columns, position = row
    return pa.Table.from_arrays([column.slice(position, 1) for column in columns], schema=schema)


def _values(columns: Sequence[pa.ChunkedArray], position: int) -> list[Any]:
    if isinstance(columns, StoredColumns):
        return columns.row(position)
    return [column[position].as_py() for column in columns]


def _one_row(known: _KnownTable, found: Sequence[_Found]) -> list[list[Any]] | None:
    """The values of a single row that lies among the sorted ones, or was just written; None for every other answer."""
    if len(found) != 1 or not known.travels_short or (row := found[0]) is None:
        return None
    if isinstance(row, list):
        return _sendable([[value] for value in row], known)
    if type(row[0]) is not StoredColumns:
        return None
    try:
        values = [[value] for value in row[0].row(row[1])]
    except (ValueError, OverflowError):
        return None
    return _sendable(values, known)


def _short(rows: Sequence[_Row], known: _KnownTable) -> list[list[Any]] | None:
    """Rows as plain values by column; None if texts are long, or Python has no object for a value."""
    try:
        found = [row if isinstance(row, list) else _values(*row) for row in rows]
    except (ValueError, OverflowError):
        return None
    return _sendable([list(column) for column in zip(*found, strict=True)], known)


def _sendable(values: list[list[Any]], known: _KnownTable) -> list[list[Any]] | None:
    """Values of Arrow as they travel; None if texts are long."""
    for position in known.hugeints:
        values[position] = [None if value is None else int(value) for value in values[position]]
    return values if is_short(values, known.types) else None


async def _after(waiting: _Waiting, reply: Reply[FoundRows]) -> Reply[FoundRows]:
    await waiting()
    return reply
