"""Estimates: how many bytes the rows of a scan are that a statement needs.

They choose between plans that all give the right rows.

Source: Selinger et al., "Access Path Selection" (1979), for the selectivities where nothing is known of the values.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final

from sqlglot import exp

from secateur.partitioning.statistics import TableStatistics
from secateur.planner.scans.scan_reading import ScanReading

__all__ = ["bytes_of", "share_of"]

_UNKNOWN_BYTES: Final = 1e6
_RANGE: Final = 1 / 3
_PATTERN: Final = 0.1
_OTHER: Final = 0.5


def bytes_of(read: ScanReading, statistics: TableStatistics | None) -> float:
    """About how many bytes the rows and columns of a scan have that the statement needs. More columns cost more also where nothing is known."""
    scan = read.scan
    if statistics is None:
        return _UNKNOWN_BYTES * (1 + len(scan.columns) / 100)
    width = sum(column.nbytes for name, column in statistics.columns.items() if name in scan.columns)
    return max(width * share_of(read.scope.local, read, statistics), 1.0)


def share_of(conjuncts: Iterable[exp.Expr], read: ScanReading, statistics: TableStatistics) -> float:
    """About what share of the rows of a scan meets some conjuncts about it."""
    return prod(_selectivity(conjunct.unnest(), read, statistics) for conjunct in conjuncts)


def _selectivity(conjunct: exp.Expr, read: ScanReading, statistics: TableStatistics) -> float:
    """The share of rows for which a conjunct is TRUE."""
    match conjunct:
        case exp.EQ():
            return min((1 / distinct for side in (conjunct.this, conjunct.expression) if (distinct := _distinct(side, read, statistics))), default=_PATTERN)
        case exp.In() if conjunct.expressions:
            distinct = _distinct(conjunct.this, read, statistics)
            return min(1.0, len(conjunct.expressions) / distinct) if distinct else _OTHER
        case exp.GT() | exp.GTE() | exp.LT() | exp.LTE() | exp.Between():
            return _RANGE
        case exp.Like() | exp.ILike():
            return _PATTERN
        case exp.Or():
            return min(1.0, sum(_selectivity(side.unnest(), read, statistics) for side in (conjunct.this, conjunct.expression)))
        case exp.And():
            return _selectivity(conjunct.this.unnest(), read, statistics) * _selectivity(conjunct.expression.unnest(), read, statistics)
        case exp.Not():
            return 1 - _selectivity(conjunct.this.unnest(), read, statistics)
        case _:
            return _OTHER


def _distinct(side: exp.Expr, read: ScanReading, statistics: TableStatistics) -> int | None:
    """How many values the column has that a side of a comparison is."""
    side = side.unnest()
    name = read.scope.column_of(side) if isinstance(side, exp.Column) else None
    known = None if name is None else statistics.columns.get(name)
    return known.distinct if known is not None else None
