"""Results as Python values: the row side of a cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from secateur.errors import NotSupportedError
from secateur.partitioning.types import SqlType, TypeKind, parse_type

__all__ = ["Description", "ResultColumn", "Rows"]

Description: TypeAlias = tuple[str, str, None, None, int | None, int | None, bool | None]
"""PEP 249: name, type code, display size, internal size, precision, scale, null ok."""

_BATCH_ROWS: Final = 2048  # converted at a time: fetchone over a large result must not hold it twice
_DAYS_PER_MONTH: Final = 30


class ResultColumn(NamedTuple):
    """A column of a result: its name and the SQL text of its type, which is also its PEP 249 type code."""

    name: str
    type: str

    def describe(self) -> Description:
        """The seven items of PEP 249."""
        sql_type = _sql_type(self.type)
        if sql_type is None or sql_type.kind is not TypeKind.DECIMAL:
            return self.name, self.type, None, None, None, None, None
        return self.name, self.type, None, None, sql_type.precision, sql_type.scale, None


class Rows:
    """A result that is handed out row by row, as tuples of plain Python values.

    HUGEINT gives int, DECIMAL Decimal, TIMESTAMP naive and TIMESTAMP WITH TIME ZONE aware (UTC) datetimes, INTERVAL a timedelta with months of 30 days as
    DuckDB has it, UUID uuid.UUID, LIST list, NULL None.

    Args:
        table: The result.
        columns: Its columns.
    """

    def __init__(self, table: pa.Table, columns: Sequence[ResultColumn]) -> None:
        self.table = table
        self.columns = tuple(columns)
        self.position = 0
        """Rows handed out so far."""

    def take(self, count: int) -> list[tuple[Any, ...]]:
        """The next rows, at most ``count``."""
        piece = self.table if not self.position and count >= self.table.num_rows else self.table.slice(self.position, count)
        self.position += piece.num_rows
        return self._tuples(piece)

    def iterate(self) -> Iterator[tuple[Any, ...]]:
        """The rest, converted a batch at a time."""
        while self.position < self.table.num_rows:
            start = self.position
            for offset, row in enumerate(self._tuples(self.table.slice(start, _BATCH_ROWS)), 1):
                self.position = start + offset
                yield row

    def take_table(self) -> pa.Table:
        """The rest as an Arrow table; nothing is converted or copied."""
        rest = self.table.slice(self.position) if self.position else self.table
        self.position = self.table.num_rows
        return rest

    def _tuples(self, piece: pa.Table) -> list[tuple[Any, ...]]:
        if not piece.num_rows:
            return []
        return list(zip(*(_values(piece.column(index), column.type) for index, column in enumerate(self.columns)), strict=True))


def _values(column: pa.ChunkedArray, type_text: str) -> list[Any]:
    values: list[Any] = (column.chunk(0) if column.num_chunks == 1 else column).to_pylist()
    convert = _converter(type_text)
    return values if convert is None else [None if value is None else convert(value) for value in values]


_Convert: TypeAlias = Callable[[Any], Any]


@lru_cache(maxsize=256)
def _converter(type_text: str) -> _Convert | None:
    sql_type = _sql_type(type_text)
    return None if sql_type is None else _convert_of(sql_type)


def _convert_of(sql_type: SqlType) -> _Convert | None:
    """How to make the plain value of what pyarrow gives; None where that is the plain value."""
    match sql_type.kind:
        case TypeKind.HUGEINT:
            return int
        case TypeKind.TIMESTAMPTZ:
            return lambda value: value.replace(tzinfo=UTC)
        case TypeKind.INTERVAL:
            return lambda value: timedelta(days=value.months * _DAYS_PER_MONTH + value.days, microseconds=value.nanoseconds // 1000)
        case TypeKind.LIST if sql_type.element is not None:
            element = _convert_of(sql_type.element)
            return None if element is None else lambda items: [None if item is None else element(item) for item in items]
        case _:
            return None


def _sql_type(type_text: str) -> SqlType | None:
    """None for a type that only results have, such as STRUCT: it is handed out as pyarrow gives it."""
    try:
        return parse_type(type_text)
    except NotSupportedError:
        return None
