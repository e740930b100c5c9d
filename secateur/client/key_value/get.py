"""Reads of rows by primary key: straight to the owners of the keys, with no plan and no statement text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from secateur.client.channel_pool import ChannelPool
from secateur.client.dbapi.rows import Rows
from secateur.client.execution.execute import Retryable, execute
from secateur.client.key_value.tables import KeyTable, RowKeys, ServingGet
from secateur.client.session import Session
from secateur.errors import Error, NoRangeError, ProtocolError
from secateur.protocol.operations import Operation
from secateur.protocol.query import FoundRows, GetRows
from secateur.protocol.values import pack, pack_around
from secateur.wire import Answer, CallControl, ShortTable, decode_tables

Row: TypeAlias = tuple[Any, ...] | dict[str, Any]
"""Has the form of the key that was given: values by name for a mapping, all values in order for any other."""

_IN_ORDER: Final = frozenset({int, str, tuple, list})
"""Types of keys that are no mappings, which is quicker to tell than whether a key is one."""

_KEYS_PER_FRAME: Final = 1000
"""A member answers so many in some ten milliseconds."""


def get_row(table: KeyTable, key: Any) -> Row | None:
    """The row with a key, with the values that a cursor would return; None if there is none.

    Raises:
        Error: As :meth:`~secateur.client.loads.table_handle.TableHandle.get`.
    """
    session, failed = table.session, None
    control = CallControl() if not session.statement_timeout.milliseconds else session.timed_control()
    session.running.add(control)
    try:
        calls, (known_in, call) = session.serving_calls, table.serving
        if known_in is calls and call is not None and type(key) in _IN_ORDER:
            try:
                found = call(session, control, key)
            except Error as error:  # the general way decides whether to try again
                failed, known_in = error, None
            else:
                if found is not None:
                    return found[0]
        before = session.work_for(control)
        try:
            row: Row | None = execute(_Get(table, [key]), failed)[0]
        finally:
            session.work_for(before)
        if known_in is not calls:
            table.serving = calls, _compiled(table)
        return row
    finally:
        session.running.discard(control)


def _compiled(table: KeyTable) -> ServingGet | None:
    """The serving call of a table, from a key to its row; None if it has none.

    As those of queries (:mod:`~secateur.client.execution.serving_calls`), it is good for as long as the dictionary that
    they are in.
    """
    rows = table.keys
    definition, read, partition_of = rows.definition, rows.read, rows.partition_of
    if not rows.group or definition.scheme.partial is not None:
        return None
    start, end = pack_around(GetRows(definition.table_id, definition.version, []), "keys")
    places: dict[int, tuple[str, ChannelPool]] = {}  # the owners of partitions

    def call(session: Session, control: CallControl, key: Any) -> Sequence[Row | None] | None:
        try:
            values = read(key)
            partition = partition_of(values)
        except Error:
            return None  # the table may be another one by now
        place = places.get(partition)
        if place is None:
            before = session.work_for(control)
            try:
                member = table.owner(rows, partition)
            finally:
                session.work_for(before)
            place = places[partition] = member, session.channels(member)
        answer = session.exchange(*place, Operation.GET_ROWS, start + pack([values]) + end, control)
        found = answer.message
        if found.values is not None and not found.missing:
            return list(zip(*found.values, strict=True))
        return _rows(rows, answer, 1)

    return call


def get_rows(table: KeyTable, keys: Sequence[Any]) -> list[Row | None]:
    """The rows with some keys, in the order of the keys; None for each key without one.

    Raises:
        Error: As :meth:`~secateur.client.loads.table_handle.TableHandle.get_many`.
    """
    session = table.session
    control = session.begin_statement()
    try:
        found: list[Row | None] = []
        for start in range(0, len(keys), _KEYS_PER_FRAME):
            rows: list[Row | None] = execute(_Get(table, keys[start : start + _KEYS_PER_FRAME]))
            found += rows
        return found
    finally:
        session.end_statement(control)


class _Get(Retryable[list[Row | None]]):
    """Reads change nothing, so an attempt may be repeated whatever became of it."""

    is_read = True

    def __init__(self, table: KeyTable, keys: Sequence[Any]) -> None:
        self.session = table.session
        self._table = table
        self._keys = keys
        self._by_name = [at for at, key in enumerate(keys) if type(key) not in _IN_ORDER and isinstance(key, Mapping)]

    def attempt(self) -> list[Row | None]:
        table = self._table
        rows, keys = table.read(self._read)
        try:
            if len(keys) == 1:
                member = table.owner(rows, rows.partition_of(keys[0]))
                return self._formed(rows, _rows(rows, self.session.ask_member(member, _request(rows, keys)), 1))
            partitions = [rows.partition_of(key) for key in keys]
        except NoRangeError:
            if table.refresh(rows.definition):  # the range may have been added since
                return self.attempt()
            if len(keys) == 1:
                return [None]
            # One by one: only some of the keys are in no range.
            return [row for key in self._keys for row in _Get(table, [key]).attempt()]
        return self._formed(rows, self._grouped(rows, keys, partitions))

    def _formed(self, rows: RowKeys, found: list[Row | None]) -> list[Row | None]:
        """Rows in the form of their keys; each is a tuple before."""
        if self._by_name:
            names = rows.names
            for position in self._by_name:
                row = found[position]
                if row is not None:
                    found[position] = dict(zip(names, row, strict=True))
        return found

    def _read(self, rows: RowKeys) -> tuple[RowKeys, list[list[Any]]]:
        return rows, [rows.read(key) for key in self._keys]

    def _grouped(self, rows: RowKeys, keys: list[list[Any]], partitions: list[int]) -> list[Row | None]:
        """One frame for each member that owns some of the keys, all of them sent before the first answer is read."""
        owners = {partition: self._table.owner(rows, partition) for partition in dict.fromkeys(partitions)}
        positions: dict[str, list[int]] = {}
        for position, partition in enumerate(partitions):
            positions.setdefault(owners[partition], []).append(position)
        result: list[Row | None] = [None] * len(keys)
        asked = [(member, _request(rows, [keys[position] for position in mine])) for member, mine in positions.items()]
        for mine, answer in zip(positions.values(), self.session.ask_members(asked), strict=True):
            for position, row in zip(mine, _rows(rows, answer, len(mine)), strict=True):
                result[position] = row
        return result

    def prepare_again(self, because: Error) -> None:
        self._table.refresh_if_possible()


def _request(rows: RowKeys, keys: list[list[Any]]) -> GetRows:
    return GetRows(rows.definition.table_id, rows.definition.version, keys)


def _rows(keys: RowKeys, answer: Answer[FoundRows], count: int) -> list[Row | None]:
    """The rows of an answer for so many keys."""
    found, missing = answer.message, set(answer.message.missing)
    present = count - len(missing)
    rows = decode_tables(answer.parts) if found.values is None else ShortTable(found.values, present)
    if rows.num_rows != present:
        raise ProtocolError(f"{count} keys were answered with {rows.num_rows} rows and {len(missing)} missing ones")
    some = iter(Rows(rows, keys.result_columns).take_all())
    return [None if position in missing else next(some) for position in range(count)]
