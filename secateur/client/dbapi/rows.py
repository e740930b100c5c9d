"""Results as Python values: the row side of a cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa

from secateur.errors import DataError, NotSupportedError
from secateur.partitioning.types.column_type import SqlType, TypeKind, parse_type
from secateur.protocol.statements import ResultColumn
from secateur.wire import ShortTable

__all__ = ["Description", "Rows", "as_table", "describe"]

Description: TypeAlias = tuple[str, str, None, None, int | None, int | None, bool | None]
"""PEP 249: name, type code, display size, internal size, precision, scale, null ok."""

_BATCH_ROWS: Final = 2048  # converted at a time: fetchone over a large result must not hold it twice
_DAYS_PER_MONTH: Final = 30
_FINER: Final = {"TIMESTAMP_NS": pa.timestamp("us"), "TIME_NS": pa.time64("us")}
"""Types finer than Python's, and the types as which their values are returned."""


def describe(column: ResultColumn) -> Description:
    """The seven items of PEP 249 for a column of a result."""
    sql_type = _sql_type(column.type)
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


class Rows:
    """A result that is handed out row by row, as tuples of plain Python values.

    HUGEINT gives int, DECIMAL Decimal, TIMESTAMP naive and TIMESTAMP WITH TIME ZONE aware (UTC) datetimes, INTERVAL a
    timedelta with months of 30 days as DuckDB has it, UUID uuid.UUID, LIST list, STRUCT and MAP dict, a row without
    names tuple, NULL None.

    Args:
        result: The result: a table, or plain values where it has a few rows.
        columns: Its columns.
    """

    def __init__(self, result: pa.Table | ShortTable, columns: Sequence[ResultColumn]) -> None:
        self.columns = tuple(columns)
        self.num_rows: int = result.num_rows
        self.position = 0
        """Rows handed out so far."""
        self._result = result

    def take(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows, at most ``count``."""
        start = self.position
        self.position = min(start + count, self.num_rows)
        return self._tuples(start, self.position)

    def ahead(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows, at most ``count``, which are not handed out by that."""
        return self._tuples(self.position, min(self.position + count, self.num_rows))

    def take_all(self) -> list[tuple[Any, ...]]:
        """The rest."""
        return self.take(self.num_rows)

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        """The rest, converted a batch at a time."""
        while self.position < self.num_rows:
            start = self.position
            for offset, row in enumerate(self._tuples(start, start + _BATCH_ROWS), 1):
                self.position = start + offset
                yield row

    def take_table(self) -> pa.Table:
        """The rest as an Arrow table; nothing of a table is converted or copied."""
        table = as_table(self._result, self.columns)
        rest = table.slice(self.position) if self.position else table
        self.position = self.num_rows
        return rest

    def tables(self) -> Iterator[pa.Table]:
        """:meth:`take_table` as one part of one."""
        yield self.take_table()

    def close(self) -> None:
        """Do nothing: all rows are here."""

    def _tuples(self, start: int, stop: int) -> list[tuple[Any, ...]]:
        result = self._result
        if isinstance(result, ShortTable):
            rows = list(zip(*result.columns, strict=True))
            return rows if stop - start == self.num_rows else rows[start:stop]
        piece = result if stop - start == self.num_rows else result.slice(start, stop - start)
        if not piece.num_rows:
            return []
        return list(
            zip(*(_values(piece.column(index), column) for index, column in enumerate(self.columns)), strict=True)
        )


def _values(values: pa.ChunkedArray, column: ResultColumn) -> list[Any]:
    if column.type in _FINER:
        values = values.cast(_FINER[column.type], safe=False)
    try:
        plain: list[Any] = (values.chunk(0) if values.num_chunks == 1 else values).to_pylist()
    except (OverflowError, ValueError) as error:
        raise _no_python_value(column, error) from error
    if "TUPLE(" in column.type or "MAP(" in column.type:
        return [_nested(value, values.type) for value in plain]
    convert = _converter(column.type)
    try:
        return plain if convert is None else [None if value is None else convert(value) for value in plain]
    except OverflowError as error:
        raise _no_python_value(column, error) from error


def _no_python_value(column: ResultColumn, error: Exception) -> DataError:
    """The error for an instant, a day or an interval beyond those that Python's classes reach."""
    return DataError(
        f"column {column.name!r} has a value that Python has no {column.type} for ({error}): read it with"
        " fetch_arrow_table(), or CAST it to VARCHAR"
    )


def _nested(value: Any, kind: pa.DataType) -> Any:
    """Replace structs with numbered fields by tuples, and lists of pairs by dicts, at any depth of a value."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        parts = [_nested(value[field.name], field.type) for field in kind]
        names = [field.name for field in kind]
        return (
            tuple(parts)
            if names == [f"element{number}" for number in range(1, len(names) + 1)]
            else dict(zip(names, parts, strict=True))
        )
    if pa.types.is_map(kind):
        pairs = [(_nested(key, kind.key_type), _nested(item, kind.item_type)) for key, item in value]
        # Keys that cannot be keys of a dict are listed, as in DuckDB.
        return (
            {"key": [key for key, _ in pairs], "value": [item for _, item in pairs]}
            if pa.types.is_nested(kind.key_type)
            else dict(pairs)
        )
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_nested(item, kind.value_type) for item in value]
    return value


_Convert: TypeAlias = Callable[[Any], Any]


@lru_cache(maxsize=256)
def _converter(type_text: str) -> _Convert | None:
    if type_text == "UHUGEINT":
        return int
    sql_type = _sql_type(type_text)
    return None if sql_type is None else _convert_of(sql_type)


def _convert_of(sql_type: SqlType) -> _Convert | None:
    """Return the conversion of pyarrow's value to the plain value; None where they are the same."""
    match sql_type.kind:
        case TypeKind.HUGEINT:
            return int
        case TypeKind.TIMESTAMPTZ:
            return lambda value: value.replace(tzinfo=UTC)
        case TypeKind.INTERVAL:
            return lambda value: timedelta(
                days=value.months * _DAYS_PER_MONTH + value.days, microseconds=value.nanoseconds // 1000
            )
        case TypeKind.LIST if sql_type.element is not None:
            element = _convert_of(sql_type.element)
            return (
                None if element is None else lambda items: [None if item is None else element(item) for item in items]
            )
        case _:
            return None


def _sql_type(type_text: str) -> SqlType | None:
    """None for a type that only results have, such as STRUCT: it is handed out as pyarrow gives it."""
    try:
        return parse_type(type_text)
    except NotSupportedError:
        return None
