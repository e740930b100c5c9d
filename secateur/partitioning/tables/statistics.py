"""Statistics of a table for estimates: its number of rows, the widths of its columns and their distinct values.

Statistics describe a past moment, partly from a sample, and are merged over members that did not answer at the same
moment. They choose between plans that all give the right rows; they must never be used to leave out rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import msgspec

from secateur.partitioning.tables.distinct_sketch import DistinctSketch
from secateur.partitioning.tables.table import TableDef

_CHANGE: Final = 2.0
_NOISE: Final = 1000
"""Added to compared counts, so that small tables, for which every plan is good, do not count as changed at every
row."""


class ColumnStatistics(msgspec.Struct, frozen=True, array_like=True):
    """One column.

    Attributes:
        nbytes: Bytes of its Arrow buffers.
        nulls: How many rows have NULL.
        distinct: About how many distinct values there are, NULL not among them; exact where they are few, see
            :meth:`~secateur.partitioning.tables.distinct_sketch.DistinctSketch.estimate`. None where the type has no
            hash (INTERVAL, lists).
        minimum: The smallest value as Python has it, rounded down to a prefix where it is a long string; None without
            any value, or for a type without an order.
        maximum: The largest value; None also where it is a long string.
    """

    nbytes: int
    nulls: int
    distinct: int | None
    minimum: Any = None
    maximum: Any = None


class TableStatistics(msgspec.Struct, frozen=True, array_like=True):
    """One table: its primary partitions, each row once.

    Attributes:
        table_id: The table.
        rows: How many it has.
        columns: By column name, as written in CREATE TABLE.
    """

    table_id: int
    rows: int
    columns: Mapping[str, ColumnStatistics] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(column.nbytes for column in self.columns.values())

    def has_changed_since(self, before: TableStatistics) -> bool:
        """Whether estimates may be so different that plans change.

        They are where the rows or the distinct values of a column have more than doubled or halved, and where the range
        of a column's values and its earlier range do not share half of the longer one.
        """
        if _differs(self.rows, before.rows) or self.columns.keys() != before.columns.keys():
            return True
        return any(
            _differs(column.distinct or 0, before.columns[name].distinct or 0)
            or (self.rows > _NOISE and _has_moved(column, before.columns[name]))
            for name, column in self.columns.items()
        )


@dataclass(frozen=True, slots=True)
class StatisticsSnapshot:
    """The statistics of all tables at one moment.

    Attributes:
        version: Grows only when a table has changed so much that plans may change; a plan that used estimates
            records the version.
        tables: By table id; tables whose statistics have not been collected yet are missing.
        landmarks: The statistics of each table when the version grew because of it: small changes add up.
    """

    version: int = 0
    tables: Mapping[int, TableStatistics] = field(default_factory=lambda: MappingProxyType({}))
    landmarks: Mapping[int, TableStatistics] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    def of(self, table_id: int) -> TableStatistics | None:
        """The statistics of a table, if it has any."""
        return self.tables.get(table_id)

    def with_table(self, statistics: TableStatistics) -> StatisticsSnapshot:
        """The snapshot with newer statistics of a table."""
        table_id, landmark = statistics.table_id, self.landmarks.get(statistics.table_id)
        tables = MappingProxyType({**self.tables, table_id: statistics})
        if landmark is not None and not statistics.has_changed_since(landmark):
            return replace(self, tables=tables)
        return StatisticsSnapshot(self.version + 1, tables, MappingProxyType({**self.landmarks, table_id: statistics}))

    def without_table(self, table_id: int) -> StatisticsSnapshot:
        """The snapshot without a table that was dropped."""
        return replace(
            self,
            tables=MappingProxyType({key: kept for key, kept in self.tables.items() if key != table_id}),
            landmarks=MappingProxyType({key: kept for key, kept in self.landmarks.items() if key != table_id}),
        )


NO_STATISTICS: Final = StatisticsSnapshot()
"""The snapshot before statistics of any table were collected."""


def _differs(one: int, other: int) -> bool:
    low, high = sorted((one, other))
    return high + _NOISE > _CHANGE * (low + _NOISE)


def _has_moved(column: ColumnStatistics, before: ColumnStatistics) -> bool:
    """Whether the ranges of two numeric or temporal columns share less than half of the longer one."""
    length = distance(before.minimum, before.maximum)
    start, stop = distance(before.minimum, column.minimum), distance(before.minimum, column.maximum)
    if length is None or start is None or stop is None:
        return False
    shared = min(length, stop) - max(0.0, start)
    return shared * _CHANGE < max(length, stop - start)


_INTEGER_MAX: Final = 10**300


def distance(start: Any, stop: Any) -> float | None:
    """Return the distance from one value to another; None unless both are numbers or both are moments."""
    start, stop = _comparable(start), _comparable(stop)
    if start is None or stop is None or isinstance(start, datetime) is not isinstance(stop, datetime):
        return None
    between = stop - start
    return between.total_seconds() if isinstance(between, timedelta) else float(between)


def _comparable(value: Any) -> Any:
    """Return a number, in which decimals are rounded, or a naive moment; None for anything else.

    The rounding does not matter to an estimate.
    """
    match value:
        case bool():
            return None
        case int():
            return value if abs(value) < _INTEGER_MAX else None
        case float() | Decimal():
            number = float(value)
            return number if math.isfinite(number) else None
        case datetime():
            return value.replace(tzinfo=None)
        case date():
            return datetime.combine(value, time())
        case _:
            return None


class ColumnSummary(msgspec.Struct, frozen=True, array_like=True):
    """One column on one member.

    Attributes:
        nbytes: Bytes of its Arrow buffers.
        nulls: Rows with NULL.
        minimum: Smallest value as Python has it, perhaps a prefix of it; None where there is none.
        maximum: Largest value; None where there is none, or it is too long.
        sketch: A sketch of its values in the sample; None where the type has no hash.
    """

    nbytes: int
    nulls: int
    minimum: Any
    maximum: Any
    sketch: DistinctSketch | None


class TableSummary(msgspec.Struct, frozen=True, array_like=True):
    """The rows of a table in some partitions of one member, in a form that can be merged over members.

    Attributes:
        rows: How many there are.
        columns: One for each column of the table, in its order.
    """

    rows: int
    columns: tuple[ColumnSummary, ...]


def total(table: TableDef, summaries: Sequence[TableSummary]) -> TableStatistics:
    """Merge the summaries of members, which together have every row once, into the statistics of a table."""
    rows = sum(summary.rows for summary in summaries)
    columns = {
        column.name: _total(rows, [summary.columns[position] for summary in summaries])
        for position, column in enumerate(table.columns)
        if not column.hidden
    }
    return TableStatistics(table.table_id, rows, columns)


def _total(rows: int, parts: Sequence[ColumnSummary]) -> ColumnStatistics:
    nulls = sum(part.nulls for part in parts)
    minima = [part.minimum for part in parts if part.minimum is not None]
    filled = [part for part in parts if part.minimum is not None]
    has_maximum = bool(filled) and all(part.maximum is not None for part in filled)
    sketches = [part.sketch for part in parts if part.sketch is not None]
    return ColumnStatistics(
        nbytes=sum(part.nbytes for part in parts),
        nulls=nulls,
        distinct=DistinctSketch.merged(sketches).estimate(rows - nulls) if len(sketches) == len(parts) else None,
        minimum=min(minima, default=None),
        maximum=max(part.maximum for part in filled) if has_maximum else None,
    )
