"""Results as Python values: the row side of a cursor, also for rows that arrive as they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, timedelta
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from secateur.client.channel_pool import ChannelPool
from secateur.errors import DataError, Error, JobCancelledError, MemberLostError, UnreachableError
from secateur.partitioning.types.arrow_layout import leaves, map_leaf_types
from secateur.partitioning.types.column_type import TypeKind, parse_type
from secateur.partitioning.types.result_type import Constructor, ResultType, column_type_of, parse_result_type
from secateur.protocol.query import CloseResult, NextRows
from secateur.protocol.statements import ResultColumn
from secateur.wire import CallControl, Channel, ShortTable, decode_tables

GRANT_BYTES: Final = 4 << 20
"""The bytes that a client accepts at a time. A result up to this size is one answer; a larger one is sent in parts of
about this size.
"""


class ResultStream:
    """Fetches one part after another from a member, each on demand, over the channel of the first.

    In between the member makes no more than a bounded number of bytes.

    It has a channel to itself, since the result belongs to that. Dropped without :meth:`close` it hangs up, with the
    same effect. For one thread at a time.
    """

    def __init__(self, pool: ChannelPool, channel: Channel, control: CallControl | None = None) -> None:
        self._pool = pool
        self._control = control
        self._channel: Channel | None = channel
        self._failure: Error | None = None

    @property
    def is_done(self) -> bool:
        """Whether nothing comes any more."""
        return self._channel is None and self._failure is None

    def next(self) -> pa.Table | None:
        """The next part, or None after the last one. One round trip.

        Raises:
            Error: Why the rest cannot come, such as a member that was lost; the statement is not repeated, since rows
                of it have been seen. Every further call raises the same.
        """
        if self._failure is not None:
            raise self._failure
        if self._channel is None:
            return None
        try:
            answer = self._channel.request(NextRows(GRANT_BYTES), control=self._control)
        except BaseException as error:
            if isinstance(error, (MemberLostError, UnreachableError)):
                error.safe_to_retry()  # the statement is a read, and may be repeated from its beginning
            self._failure = error if isinstance(error, Error) else _interrupted(error)
            channel, self._channel = self._channel, None
            channel.close()  # the member then stops its work for it
            raise
        if not answer.message.has_more:
            channel, self._channel = self._channel, None
            self._pool.give_back(channel)
        return decode_tables(answer.parts)

    def close(self) -> None:
        """Leave the rest: the members stop to make it. May be called twice."""
        channel, self._channel = self._channel, None
        if channel is None:
            return
        try:
            channel.request(CloseResult())
        except Error:  # hanging up says the same
            channel.close()
        else:
            self._pool.give_back(channel)


def _interrupted(error: BaseException) -> JobCancelledError:
    """What a result says once a wait for its rows was ended from outside, as of a task that was cancelled."""
    return JobCancelledError(
        f"the statement was cancelled: {type(error).__name__} ended a wait for its rows, and those that were not read"
        " yet are lost; execute it again"
    )


Description: TypeAlias = tuple[str, str, None, None, int | None, int | None, bool | None]
"""PEP 249: name, type code, display size, internal size, precision, scale, null ok."""

_BATCH_ROWS: Final = 2048  # converted at a time: fetchone over a large result must not hold it twice
_DAYS_PER_MONTH: Final = 30
_INFINITE: Final = 2**63 - 1
_zipped: Final = partial(zip, strict=True)  # a fifth quicker than with a keyword at each call


def describe(column: ResultColumn) -> Description:
    """The seven items of PEP 249 for a column of a result."""
    sql_type = column_type_of(column.type)
    if sql_type is None or sql_type.kind is not TypeKind.DECIMAL:
        return column.name, column.type, None, None, None, None, None
    return column.name, column.type, None, None, sql_type.precision, sql_type.scale, None


def as_table(result: pa.Table | ShortTable, columns: Sequence[ResultColumn]) -> pa.Table:
    """A result as an Arrow table."""
    return (
        result.to_table([(column.name, parse_type(column.type)) for column in columns])
        if isinstance(result, ShortTable)
        else result
    )


class Rows(msgspec.Struct, eq=False):
    """A result that is handed out row by row, as tuples of plain Python values; perhaps one that comes part by part.

    HUGEINT gives int, DECIMAL Decimal, TIMESTAMP naive and TIMESTAMP WITH TIME ZONE aware (UTC) datetimes, INTERVAL a
    timedelta with months of 30 days as DuckDB has it, UUID uuid.UUID, LIST list, STRUCT and MAP dict, a row without
    names tuple, NULL None.

    Attributes:
        result: The part that is held: a table, or plain values where it has a few rows. Mostly it is the whole result.
        columns: Its columns.
        rest: Fetches the parts behind it, each in place of the one before; None where all rows are here.
        taken: Rows of the part that were handed out so far.
        before: Rows of the parts before it.
    """

    result: pa.Table | ShortTable
    columns: Sequence[ResultColumn]
    rest: ResultStream | None = None
    taken: int = 0
    before: int = 0

    @property
    def num_rows(self) -> int:
        """The number of rows; -1 while it is not known."""
        rows: int = self.before + self.result.num_rows
        return rows if self.rest is None or self.rest.is_done else -1

    @property
    def position(self) -> int:
        """Rows handed out so far."""
        return self.before + self.taken

    @property
    def schema(self) -> pa.Schema:
        """The columns in Arrow."""
        return as_table(self.result, self.columns).schema

    def take(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows, at most ``count``; fewer only at the end."""
        start, self.taken = self.taken, min(self.taken + count, self.result.num_rows)
        rows = self._tuples(start, self.taken)
        while len(rows) < count and self._turn():
            self.taken = min(count - len(rows), self.result.num_rows)
            rows += self._tuples(0, self.taken)
        return rows

    def ahead(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows of the part that is held, at most ``count``, which are not handed out by that."""
        return self._tuples(self.taken, min(self.taken + count, self.result.num_rows))

    def take_all(self) -> list[tuple[Any, ...]]:
        """The rest."""
        if self.rest is not None:
            return list(self.iterate())
        result, start = self.result, self.taken
        if not start and type(result) is ShortTable:  # nearly always
            self.taken = result.num_rows
            return list(_zipped(*result.columns))
        return self.take(result.num_rows)

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        """The rest, converted a batch at a time. Rows may be taken in between: it goes on behind them."""
        while self.taken < self.result.num_rows or self._turn():
            part, start = self.result, self.taken
            for position, row in enumerate(self._tuples(start, min(start + _BATCH_ROWS, part.num_rows)), start + 1):
                self.taken = position
                yield row
                if self.taken != position or self.result is not part:
                    break

    def take_table(self) -> pa.Table:
        """The rest as one Arrow table, which is held as a whole; nothing of a table is converted or copied."""
        parts = list(self.tables())
        return parts[0] if len(parts) == 1 else pa.concat_tables(parts)

    def tables(self) -> Iterator[pa.Table]:
        """The rest as Arrow tables, a part at a time; at least one, were it without rows."""
        while True:
            table, start, self.taken = as_table(self.result, self.columns), self.taken, self.result.num_rows
            yield table.slice(start) if start else table
            if not self._turn():
                return

    def close(self) -> None:
        """Leave the rest: the members stop to make it."""
        if self.rest is not None:
            self.rest.close()

    def _turn(self) -> bool:
        """Go on to the next part; False when there is none."""
        part = None if self.rest is None else self.rest.next()
        if part is None:
            return False
        self.before += self.result.num_rows
        self.result, self.taken = part, 0
        return True

    def _tuples(self, start: int, stop: int) -> list[tuple[Any, ...]]:
        result = self.result
        if isinstance(result, ShortTable):
            rows = list(_zipped(*result.columns))
            return rows if stop - start == result.num_rows else rows[start:stop]
        piece = result if stop - start == result.num_rows else result.slice(start, stop - start)
        if not piece.num_rows:
            return []
        return list(
            zip(*(_values(piece.column(index), column) for index, column in enumerate(self.columns)), strict=True)
        )


def _values(values: pa.ChunkedArray, column: ResultColumn) -> list[Any]:
    kind = values.type  # another object each time
    coarser = map_leaf_types(kind, _of_microseconds) if kind.num_fields else _of_microseconds(kind)
    convert = _converter(column.type)
    try:
        if coarser is not kind:
            _check_finite(values)
            values = values.cast(coarser, safe=False)
        plain: list[Any] = (values.chunk(0) if values.num_chunks == 1 else values).to_pylist()
        return plain if convert is None else [None if value is None else convert(value) for value in plain]
    except (OverflowError, ValueError) as error:
        raise _no_python_value(column, error) from error


def _no_python_value(column: ResultColumn, error: Exception) -> DataError:
    """The error for an instant, a day or an interval beyond those that Python's classes reach."""
    return DataError(
        f"column {column.name!r} has a value that Python has no {column.type} for ({error}): read it with"
        " fetch_arrow_table(), or CAST it to VARCHAR"
    )


def _check_finite(values: pa.ChunkedArray) -> None:
    """Refuse infinite nanoseconds: as microseconds they would be an instant of the year 2262 or 1677."""
    for leaf in (leaf for chunk in values.chunks for leaf in leaves(chunk)):
        if pa.types.is_timestamp(leaf.type):
            nanoseconds = leaf.drop_null().view(pa.int64()).to_numpy()
            if (np.abs(nanoseconds) == _INFINITE).any():
                raise OverflowError("an infinite instant")


def _of_microseconds(kind: pa.DataType) -> pa.DataType:
    """Microseconds in place of nanoseconds, which Python's classes lack; else the same object."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return pa.time64("us")
    return kind


_Convert: TypeAlias = Callable[[Any], Any]


@lru_cache(maxsize=256)
def _converter(type_text: str) -> _Convert | None:
    return _convert_of(parse_result_type(type_text))


def _convert_of(kind: ResultType) -> _Convert | None:
    """Return the conversion of pyarrow's value to the plain value; None where they are the same."""
    parts = [_convert_of(part) for part in kind.parts]
    match kind.constructor:
        case Constructor.SCALAR:
            return _SCALARS.get(kind.text)
        case Constructor.LIST:
            element = parts[0]
            return None if element is None else lambda items: [_or_none(element, item) for item in items]
        case Constructor.STRUCT:
            fields = dict(zip(kind.unquoted_names, parts, strict=True))
            if not any(parts):
                return None
            return lambda value: {name: _or_none(fields[name], item) for name, item in value.items()}
        case Constructor.TUPLE:
            return lambda value: tuple(map(_or_none, parts, value.values()))
        case Constructor.MAP:
            of_key, of_item = parts
            return partial(_map_of, of_key, of_item, kind.parts[0].constructor is not Constructor.SCALAR)


def _or_none(convert: _Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _map_of(of_key: _Convert | None, of_item: _Convert | None, is_nested: bool, pairs: Sequence[Any]) -> dict[Any, Any]:
    """A MAP as a dict; keys that cannot be keys of a dict are listed beside the values, as in DuckDB."""
    keys = [_or_none(of_key, key) for key, _ in pairs]
    items = [_or_none(of_item, item) for _, item in pairs]
    return {"key": keys, "value": items} if is_nested else dict(zip(keys, items, strict=True))


def _timedelta(value: pa.MonthDayNano) -> timedelta:
    return timedelta(days=value.months * _DAYS_PER_MONTH + value.days, microseconds=value.nanoseconds // 1000)


_SCALARS: Final[dict[str, _Convert]] = {
    "HUGEINT": int,
    "UHUGEINT": int,
    "TIMESTAMP WITH TIME ZONE": lambda value: value.replace(tzinfo=UTC),
    "INTERVAL": _timedelta,
}
"""Scalar types whose values pyarrow gives as another class than the one that users get."""
