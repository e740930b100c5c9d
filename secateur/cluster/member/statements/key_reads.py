"""Reads of rows by primary key on a member: found where they are, with no plan and no kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.reads import Acknowledgements, Waiting, after
from secateur.errors import NoRangeError, ProtocolError, TopologyChangedError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.protocol.query import FOUND_ROWS_MAX, FoundRows, GetRows
from secateur.storage.key_windows import FindFew
from secateur.wire import Reply, Request, ShortTable, encode_table, short_check, travels_short

_NONE_MISSING: Final[list[int]] = []
_KEYS_PER_TURN: Final = 64
"""Keys that are looked up in one turn of the event loop: about half a millisecond."""

_Row: TypeAlias = ShortTable | tuple[Sequence[pa.ChunkedArray], int]
"""A row as plain values, or columns that have it and its position in them."""


class _KnownTable(NamedTuple):
    """A definition of a table, and what was worked out from it.

    Attributes:
        definition: The table.
        types: Those of its columns.
        find: Finds rows as plain values; None where these do not represent the types completely.
        is_short: Whether all texts in such columns are short.
        hugeints: The positions of the columns of type HUGEINT, whose values it gives as Decimals.
        partition_of: The partition of a key.
    """

    definition: TableDef
    types: list[SqlType]
    find: FindFew | None
    is_short: Callable[[Sequence[list[Any]]], bool]
    hugeints: tuple[int, ...]
    partition_of: Callable[[Sequence[Any]], int]


class KeyReads:
    """Answers ``get_rows`` requests. Lives on the member's event loop.

    Args:
        acknowledged: Waits until the changes that readers of some partitions see now are acknowledged; None if they
            are.
    """

    def __init__(self, storage: MemberStorage, acknowledged: Acknowledgements) -> None:
        self._store = storage.store
        self._places = storage.places
        self._hot_keys = storage.hot_keys
        self._acknowledged = acknowledged
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
        reply = _reply(table, found)
        return reply if waiting is None else after(waiting, reply)

    async def _in_turns(self, asked: GetRows) -> Reply[FoundRows]:
        found: list[_Row | None] = []
        for start in range(0, len(asked.keys), _KEYS_PER_TURN):
            some, waiting = self._found(self._table(asked), asked.keys[start : start + _KEYS_PER_TURN])
            found += some
            await (asyncio.sleep(0) if waiting is None else waiting())
        return _reply(self._table(asked), found)

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
                self._store.few_finder(table.table_id, [column.name for column in table.columns])
                if travels_short(types)
                else None,
                short_check(types),
                tuple([position for position, kind in enumerate(types) if kind.kind is TypeKind.HUGEINT]),
                table.scheme.partition_function(table.primary_key),
            )
        return known

    def _found(self, known: _KnownTable, keys: Sequence[list[Any]]) -> tuple[list[_Row | None], Waiting | None]:
        """The row of each key, and what to wait for before they are sent."""
        table, find = known.definition, known.find
        table_id, names = table.table_id, table.primary_key
        found: list[_Row | None] = []
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
            hosted = self._store.partition(table_id, partition)
            hosted.reads += 1
            row = None if find is None else find((partition,), (tuple(key),), 1)
            found.append(hosted.find(key) if row is None else row if row.num_rows else None)
            hot_keys = self._hot_keys
            hot_keys.left -= 1
            if not hot_keys.left:
                hot_keys.note_key(table, key)
            read.append((table_id, partition))
        return found, self._acknowledged(read)


def _reply(known: _KnownTable, found: Sequence[_Row | None]) -> Reply[FoundRows]:
    missing = [position for position, row in enumerate(found) if row is None] if None in found else _NONE_MISSING
    rows = [row for row in found if row is not None]
    if not rows:
        return Reply(FoundRows(missing, []))
    plain = [row for row in rows if isinstance(row, ShortTable)]
    if len(plain) < len(rows):
        pieces = (_in_arrow(row, known) for row in rows)
        return Reply(FoundRows(missing), encode_table(pa.concat_tables(pieces).combine_chunks()))
    columns = list(plain[0].columns) if len(plain) == 1 else _together(plain)
    if len(plain) > FOUND_ROWS_MAX or not known.is_short(columns):
        return Reply(FoundRows(missing), encode_table(_in_arrow(ShortTable(columns, len(plain)), known)))
    for position in known.hugeints:
        columns[position] = [None if value is None else int(value) for value in columns[position]]
    return Reply(FoundRows(missing, columns))


def _together(rows: Sequence[ShortTable]) -> list[list[Any]]:
    return [[value for (value,) in column] for column in zip(*[row.columns for row in rows], strict=True)]


def _in_arrow(row: _Row, known: _KnownTable) -> pa.Table:
    schema = known.definition.arrow_schema
    if isinstance(row, ShortTable):
        return row.in_schema(known.types, schema)
    columns, position = row
    return pa.Table.from_arrays([column.slice(position, 1) for column in columns], schema=schema)
