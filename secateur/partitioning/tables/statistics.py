"""Statistics of a table for estimates: its number of rows, the widths of its columns and their distinct values.

Statistics describe a past moment, partly from a sample, and are merged over members that did not answer at the same
moment. They choose between plans that all give the right rows; they must never be used to leave out rows.

The smallest hashes of the sampled values estimate the number of distinct values in all samples; the number of values
that were seen only once estimates how many more the unsampled rows have. Both survive merging, so values that several
members have in common are not counted twice.

Source: Bar-Yossef et al., "Counting distinct elements in a data stream" (2002), the k minimum values; Haas and Stokes,
"Estimating the number of classes in a finite population" (1998), the estimator Duj1, which PostgreSQL's ANALYZE uses as
well.
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
import numpy as np
import numpy.typing as npt

from secateur.cached_properties import cached_property
from secateur.partitioning.tables.table import TableDef

_CHANGE: Final = 2.0
_NOISE: Final = 1000
"""Added to compared counts, so that small tables, for which every plan is good, do not count as changed at every
row."""

SKETCH_HASHES_MAX: Final = 1024
"""Below as many distinct values the number in the sample is exact; above, its standard error is 1/sqrt(1024) = 3 %."""

_HASHES: Final = 2.0**64
_HASH: Final = np.dtype("<u8")
_COUNT: Final = np.dtype("<u4")
_AGREEMENT: Final = 0.1
"""Three standard errors."""


class ColumnStatistics(msgspec.Struct, frozen=True, array_like=True):
    """One column.

    Attributes:
        nbytes: Bytes of its Arrow buffers.
        nulls: How many rows have NULL.
        distinct: About how many distinct values there are, NULL not among them; exact where they are few, see
            :meth:`~secateur.partitioning.tables.statistics.DistinctSketch.estimate`. None where the type has no
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
    """One column on one member, as :class:`ColumnStatistics` has it.

    The sketch is of its values in the sample; None where the type has no hash.
    """

    nbytes: int
    nulls: int
    minimum: Any
    maximum: Any
    sketch: DistinctSketch | None


class TableSummary(msgspec.Struct, frozen=True, array_like=True):
    """The rows of a table in some partitions of one member, in a form that can be merged over members.

    There is a summary for each column of the table, in its order.
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


class DistinctSketch(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The smallest hashes of some values.

    Attributes:
        hash_bytes: The hashes as little-endian uint64; see :attr:`hashes`.
        count_bytes: The counts as little-endian uint32; see :attr:`counts`.
        values: How many values were seen; repetitions count, NULLs do not.
    """

    hash_bytes: bytes
    count_bytes: bytes
    values: int

    def __post_init__(self) -> None:
        if len(self.hashes) != len(self.counts):
            raise ValueError(f"a sketch of {len(self.hashes)} hashes came with {len(self.counts)} counts")

    @cached_property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """uint64, ascending, at most :data:`SKETCH_HASHES_MAX`: the smallest of all that were seen."""
        return np.frombuffer(self.hash_bytes, _HASH)

    @cached_property
    def counts(self) -> npt.NDArray[np.uint32]:
        """uint32, how often each hash was seen."""
        return np.frombuffer(self.count_bytes, _COUNT)

    @classmethod
    def of(cls, hashes: npt.NDArray[np.uint64]) -> DistinctSketch:
        """The sketch of values with these hashes, one a value, in any order.

        Cost: a sort, 80 ns a value.
        """
        smallest, counts = np.unique(hashes, return_counts=True)
        return cls._of_smallest(smallest, counts, len(hashes))

    @classmethod
    def merged(cls, sketches: Sequence[DistinctSketch]) -> DistinctSketch:
        """The sketch of the values of all."""
        if not sketches:
            return cls(b"", b"", 0)
        hashes, places = np.unique(np.concatenate([sketch.hashes for sketch in sketches]), return_inverse=True)
        counts = np.zeros(len(hashes), _COUNT)
        np.add.at(counts, places, np.concatenate([sketch.counts for sketch in sketches]))
        return cls._of_smallest(hashes, counts, sum(sketch.values for sketch in sketches))

    @classmethod
    def _of_smallest(
        cls, hashes: npt.NDArray[np.uint64], counts: npt.NDArray[np.integer[Any]], values: int
    ) -> DistinctSketch:
        kept = slice(SKETCH_HASHES_MAX)
        return cls(hashes[kept].astype(_HASH).tobytes(), counts[kept].astype(_COUNT).tobytes(), values)

    def estimate(self, values_total: int) -> int:
        """Estimate the number of distinct values.

        Args:
            values_total: How many values there are, of which those of this sketch are a sample; NULLs do not count.

        Returns:
            At least 1 if there is a value, at most ``values_total``. Exact when all values were seen and fewer than
            :data:`SKETCH_HASHES_MAX` are distinct; with more, the standard error is 3 %. The same holds for a sample in
            which values repeat or are all different; between the two, values of uneven frequency are underestimated, by
            a factor of up to the square root of values to sampled values.
        """
        if not len(self.hashes):
            return min(values_total, 1)
        seen = self._seen()
        once = seen * float(np.count_nonzero(self.counts == 1)) / len(self.hashes)
        share = min(self.values / max(values_total, 1), 1.0)
        estimate = seen if share >= 1.0 else self.values * seen / (self.values - once + once * share)
        return max(1, min(round(estimate), values_total))

    def _seen(self) -> float:
        """Estimate how many distinct values were seen.

        The hashes give an estimate for any values. The counts give a better one where all values are about equally
        frequent, and a useless one where a few values make up most rows. The counts are used where both agree.
        """
        if len(self.hashes) < SKETCH_HASHES_MAX:
            return float(len(self.hashes))
        by_hashes = (SKETCH_HASHES_MAX - 1) * _HASHES / max(float(self.hashes[-1]), 1.0)
        by_counts = self.values / float(self.counts.mean())
        return by_counts if abs(by_counts - by_hashes) <= _AGREEMENT * by_hashes else min(by_hashes, float(self.values))
