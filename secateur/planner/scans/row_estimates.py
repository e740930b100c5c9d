"""Estimates of the number and bytes of a scan's rows that a statement needs.

They choose between plans that all give the right rows.

Source: Selinger et al., "Access Path Selection" (1979), for the selectivities where no statistics exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from sqlglot import exp

from secateur.partitioning.tables.statistics import ColumnStatistics, TableStatistics, distance
from secateur.planner.cost_model import CostModel
from secateur.planner.predicates.predicate import flat
from secateur.planner.scans.scan_reading import ScanReading
from secateur.planner.scans.scan_rows import ScanRows, is_about_scan
from secateur.planner.segmented_stack import on_segmented_stack

_COMPARISONS: Final = (exp.GT, exp.GTE, exp.LT, exp.LTE)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated rows of a scan that a statement needs.

    Attributes:
        bytes: Their bytes in the columns that it needs. More columns cost more even without statistics.
        table_bytes: The bytes of all rows of the table in these columns.
        rows: Their number.
        share: Their share of the rows of the table.
        distinct: The number of distinct values of columns of the table, by name, where that is known.
        has_statistics: Whether the table has statistics; without them the numbers are assumptions.
    """

    bytes: float
    table_bytes: float
    rows: float
    share: float
    distinct: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    has_statistics: bool = False


def estimate_of(read: ScanReading, statistics: TableStatistics | None, model: CostModel) -> Estimate:
    """The estimate of a scan, of its predicates and of the statistics of its table, if there are any."""
    share = selectivity_of(
        [conjunct for conjunct in read.scope.local if is_about_scan(conjunct, read.scope)], read, statistics, model
    )
    if statistics is None:
        unknown = model.unknown_bytes * (1 + len(read.scan.columns) / 100)
        return Estimate(unknown, unknown, model.unknown_rows, share)
    width = sum(column.nbytes for name, column in statistics.columns.items() if name in read.scan.columns)
    distinct = {name: column.distinct for name, column in statistics.columns.items() if column.distinct}
    return Estimate(max(width * share, 1.0), float(width), statistics.rows * share, share, distinct, True)


def expected_rows(read: ScanReading, rows: ScanRows, estimate: Estimate) -> int | None:
    """Return how many rows a run should find for a scan, if it can be compared with what the run finds.

    None without statistics, and where more restricts the rows that are read than the predicates that were reckoned
    with: keys that a join carries to the scan, or that steps find.

    Args:
        read: The scan.
        rows: The predicates that are applied to its rows before they are sent.
        estimate: Its estimate.
    """
    is_all = read.bounds_in_steps is None and len(rows.conjuncts) == len(read.scope.conjuncts)
    return round(estimate.rows) if estimate.has_statistics and is_all else None


def selectivity_of(
    conjuncts: Iterable[exp.Expr], read: ScanReading, statistics: TableStatistics | None, model: CostModel
) -> float:
    """Estimate the share of a scan's rows that meets some conjuncts."""
    return _Selectivity(read, statistics, model).of_all(conjunct.unnest() for conjunct in conjuncts)


class _Selectivity:
    """The shares of rows for which predicates of a scan are TRUE."""

    def __init__(self, read: ScanReading, statistics: TableStatistics | None, model: CostModel) -> None:
        self._model = model
        self._scope = read.scope
        self._columns = {} if statistics is None else statistics.columns

    def of_all(self, conjuncts: Iterable[exp.Expr]) -> float:
        """The share of rows that an AND keeps; the bounds of one column are one range."""
        share = 1.0
        ranges: dict[str, list[exp.Expr]] = {}
        for conjunct in conjuncts:
            name = self._bounded(conjunct)
            if name is None:
                share *= self._of(conjunct)
            else:
                ranges.setdefault(name, []).append(conjunct)
        for name, bounds in ranges.items():
            share *= self._between(self._columns[name], bounds)
        return share

    @on_segmented_stack
    def _of(self, conjunct: exp.Expr) -> float:
        match conjunct:
            case exp.EQ():
                return self._equal(conjunct)
            case exp.NEQ():
                return 1 - self._equal(conjunct)
            case exp.In() if conjunct.expressions:
                distinct = self._distinct(conjunct.this)
                return min(1.0, len(conjunct.expressions) / distinct) if distinct else self._model.condition_share
            case exp.GT() | exp.GTE() | exp.LT() | exp.LTE() | exp.Between():
                return self._model.range_share
            case exp.Like() | exp.ILike():
                return self._model.pattern_share
            case exp.Or():
                return min(1.0, sum(self.of_all([side.unnest()]) for side in flat(conjunct, exp.Or)))
            case exp.And():
                return self.of_all(side.unnest() for side in flat(conjunct, exp.And))
            case exp.Not():
                return 1 - self.of_all([conjunct.this.unnest()])
            case _:
                return self._model.condition_share

    def _equal(self, comparison: exp.Binary) -> float:
        known = [distinct for side in (comparison.this, comparison.expression) if (distinct := self._distinct(side))]
        return 1 / max(known) if known else self._model.pattern_share

    def _bounded(self, conjunct: exp.Expr) -> str | None:
        """Return the column that a conjunct bounds by a constant, if the range of the column's values is known."""
        if not isinstance(conjunct, (*_COMPARISONS, exp.Between)):
            return None
        sides = [conjunct.this] if isinstance(conjunct, exp.Between) else [conjunct.this, conjunct.expression]
        names = [name for side in sides if (name := self._column(side)) is not None]
        known = self._columns.get(names[0]) if len(names) == 1 else None
        if known is None or distance(known.minimum, known.maximum) is None:
            return None
        return (
            names[0] if all(distance(known.minimum, value) is not None for _, value in self._bounds(conjunct)) else None
        )

    def _bounds(self, conjunct: exp.Expr) -> Sequence[tuple[bool, Any]]:
        """Return for each bound whether it is an upper one, and its value."""
        if isinstance(conjunct, exp.Between):
            return (False, _constant(conjunct.args["low"])), (True, _constant(conjunct.args["high"]))
        is_less = isinstance(conjunct, (exp.LT, exp.LTE))
        if self._column(conjunct.this) is None:
            return ((not is_less, _constant(conjunct.this)),)
        return ((is_less, _constant(conjunct.expression)),)

    def _between(self, column: ColumnStatistics, conjuncts: Sequence[exp.Expr]) -> float:
        whole = distance(column.minimum, column.maximum) or 0.0
        start, stop = 0.0, whole
        for is_upper, value in (bound for conjunct in conjuncts for bound in self._bounds(conjunct)):
            place = distance(column.minimum, value) or 0.0
            start, stop = (start, min(stop, place)) if is_upper else (max(start, place), stop)
        # At least one of the existing values: a single one may be within the bounds.
        least = 1 / column.distinct if column.distinct else 0.0
        return min(1.0, max((stop - start) / whole, least)) if whole else self._model.range_share

    def _distinct(self, side: exp.Expr) -> int | None:
        """The number of distinct values of a side of a comparison; None if it is unknown, or the side is no column."""
        name = self._column(side)
        known = None if name is None else self._columns.get(name)
        return known.distinct if known is not None else None

    def _column(self, side: exp.Expr) -> str | None:
        side = side.unnest()
        return self._scope.column_of(side) if isinstance(side, exp.Column) else None


def _constant(node: exp.Expr) -> Any:
    """The number or the moment that a literal is; None for anything else."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        value = _constant(node.this)
        return -value if isinstance(value, int | float) else None
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        try:
            return datetime.fromisoformat(node.this.name)
        except ValueError:
            return None
    if isinstance(node, exp.Literal) and not node.is_string:
        try:
            return int(node.name) if node.name.isdecimal() else float(node.name)
        except ValueError:
            return None
    return None
