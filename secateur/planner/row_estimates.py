"""Estimates of the number and bytes of a scan's rows that a statement needs, and of what some known keys leave of them.

They choose between plans that all give the right rows.

Source: Selinger et al., "Access Path Selection" (1979), for the selectivities where no statistics exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from types import MappingProxyType
from typing import Any, Final, NamedTuple, assert_never

from secateur.partitioning.pruning.condition import Box
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.key_range import RANGES_MAX
from secateur.partitioning.pruning.nodes import (
    All,
    AllOf,
    AnyOf,
    Everywhere,
    Keys,
    Node,
    Nothing,
    Partitions,
    Satisfiable,
    tests_of,
)
from secateur.partitioning.pruning.operand import Constant, ParameterList, parameters_of
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.tables.statistics import ColumnStatistics, TableStatistics, distance
from secateur.planner.cost_model import CostModel
from secateur.planner.prune.bounds import ScanBounds
from secateur.planner.prune.operands import operand_of
from secateur.planner.prune.predicate import flat
from secateur.planner.prune.scan_reading import ScanReading, ScanRows
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import PATTERNS
from secateur.planner.tree.rewriting import uncast

_UPPER: Final = frozenset({"COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO"})
_LOWER: Final = frozenset({"COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"})


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
    share = selectivity_of(read, statistics, model)
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
    is_all = read.bounds_in_steps is None and rows.is_complete
    return round(estimate.rows) if estimate.has_statistics and is_all else None


def selectivity_of(read: ScanReading, statistics: TableStatistics | None, model: CostModel) -> float:
    """Estimate the share of a scan's rows that meets the conditions that the user wrote about it alone."""
    conditions = read.conditions
    local = [conjunct for index, conjunct in enumerate(conditions.conjuncts) if index in conditions.local]
    return _Selectivity(conditions.names, statistics, model).of_all(local)


class _Bound(NamedTuple):
    """A comparison of a column with something else that sets a bound.

    Attributes:
        column: The name of the column.
        is_upper: Whether it is the upper one.
        value: Its value, where that is a constant that can be compared with those of the column; else None.
    """

    column: str
    is_upper: bool
    value: Any


class _Selectivity:
    """The shares of rows for which conditions on a scan are TRUE."""

    def __init__(self, names: Sequence[str], statistics: TableStatistics | None, model: CostModel) -> None:
        self._names = names
        self._model = model
        self._columns = {} if statistics is None else statistics.columns
        self._rows = 0 if statistics is None else statistics.rows

    def of_all(self, conjuncts: Iterable[ex.AnyExpression]) -> float:
        """The share of rows that an AND keeps; the bounds of one column are one range."""
        share = 1.0
        ranges: dict[str, list[_Bound]] = {}
        for conjunct in conjuncts:
            bound = self._bound(conjunct)
            if bound is None:
                share *= self._of(conjunct)
            else:
                ranges.setdefault(bound.column, []).append(bound)
        for name, bounds in ranges.items():
            share *= self._between(self._columns.get(name), bounds)
        return share

    def _of(self, conjunct: ex.AnyExpression) -> float:
        match conjunct:
            case ex.Conjunction(type="CONJUNCTION_OR"):
                return min(1.0, sum(self.of_all([side]) for side in flat(conjunct)))
            case ex.Conjunction():
                return self.of_all(flat(conjunct))
            case ex.BoundOperation(type="OPERATOR_NOT", children=(inner,)):
                return 1 - self.of_all([inner])
            case ex.BoundOperation(type="COMPARE_IN", children=(searched, *listed)):
                distinct = self._distinct(searched)
                return min(1.0, len(listed) / distinct) if distinct else self._model.condition_share
            case ex.BoundOperation(type="OPERATOR_IS_NULL", children=(tested,)):
                return self._nulls(tested)
            case ex.BoundOperation(type="OPERATOR_IS_NOT_NULL", children=(tested,)):
                return 1 - self._nulls(tested)
            case ex.Call(type="COMPARE_EQUAL", children=sides):
                return self._equal(sides)
            case ex.Call(type="COMPARE_NOTEQUAL", children=sides):
                return 1 - self._equal(sides)
            case ex.Call(type=type_) if type_ in _UPPER | _LOWER or type_ == "COMPARE_BETWEEN":
                return self._model.range_share
            case ex.Call() if conjunct.name in PATTERNS:
                return self._model.pattern_share
            case _:
                return self._model.condition_share

    def _equal(self, sides: Sequence[ex.AnyExpression]) -> float:
        known = [distinct for side in sides if (distinct := self._distinct(side))]
        return 1 / max(known) if known else self._model.pattern_share

    def _bound(self, conjunct: ex.AnyExpression) -> _Bound | None:
        """The bound that a comparison of a column with a constant sets."""
        match conjunct:
            case ex.Call(type=type_, children=(left, right)) if type_ in _UPPER | _LOWER:
                pass
            case _:
                return None
        name, value, is_upper = self._column(left), right, type_ in _UPPER
        if name is None:
            name, value, is_upper = self._column(right), left, not is_upper
        if name is None:
            return None
        known, constant = self._columns.get(name), operand_of(value)
        if known is None or not isinstance(constant, Constant) or distance(known.minimum, constant.value) is None:
            return _Bound(name, is_upper, None)
        return _Bound(name, is_upper, constant.value)

    def _between(self, column: ColumnStatistics | None, bounds: Iterable[_Bound]) -> float:
        """The share of rows within the bounds of one column."""
        whole = None if column is None else distance(column.minimum, column.maximum)
        if column is None or not whole or any(bound.value is None for bound in bounds):
            return self._model.range_share
        start, stop = 0.0, whole
        for bound in bounds:
            place = distance(column.minimum, bound.value) or 0.0
            start, stop = (start, min(stop, place)) if bound.is_upper else (max(start, place), stop)
        # At least one of the existing values: a single one may be within the bounds.
        least = 1 / column.distinct if column.distinct else 0.0
        return min(1.0, max((stop - start) / whole, least))

    def _nulls(self, side: ex.AnyExpression) -> float:
        """The share of rows in which an expression is NULL."""
        name = self._column(side)
        known = None if name is None else self._columns.get(name)
        return self._model.condition_share if known is None else min(1.0, known.nulls / max(self._rows, 1))

    def _distinct(self, side: ex.AnyExpression) -> int | None:
        """The number of distinct values of a side of a comparison; None if it is unknown, or the side is no column."""
        name = self._column(side)
        known = None if name is None else self._columns.get(name)
        return known.distinct if known is not None else None

    def _column(self, side: ex.AnyExpression) -> str | None:
        """The column that a side is, in whatever type it is compared."""
        inner = uncast(side)
        return self._names[inner.index] if isinstance(inner, ex.InputColumn) else None


def partition_selectivity(partitions: float, keys: float) -> float:
    """The share of partitions that some keys fall into, when each falls into any of them alike.

    >>> partition_selectivity(4, 1), round(partition_selectivity(4, 8), 3)
    (0.25, 0.9)
    """
    return 1.0 if partitions <= 1 else 1 - (1 - 1 / partitions) ** keys


def key_selectivity(
    bounds: ScanBounds,
    before: ScanBounds,
    sample_values: Mapping[int, object],
    parameter_count: int,
    keys: float,
    distinct: int,
) -> float:
    """Estimate the share of a scan's rows that is read for some keys.

    Args:
        bounds: The bounds of the scan with lists of keys.
        before: Its bounds without.
        sample_values: Some key of each list, by the index of its parameter.
        parameter_count: How many parameters there are with these; the others are not known.
        keys: The estimated number of keys.
        distinct: How many values the leading column of the primary key has.
    """
    if bounds.tree.root == before.tree.root and bounds.keys == before.keys:
        return 1.0
    unknown = (UNKNOWN,) * parameter_count
    params = [[sample_values[index]] if index in sample_values else value for index, value in enumerate(unknown)]
    one, all_ = len(bounds.tree.bind(params)), len(before.tree.bind(unknown))
    share = partition_selectivity(all_ / max(one, 1), keys) if one < all_ else 1.0
    searched = bounds.keys != before.keys and keys <= RANGES_MAX
    return min(share, keys / distinct) if searched else share


def is_few(tree: PartitionTree, first: int, model: CostModel) -> bool:
    """Whether a tree yields few partitions without the values of steps, which are the parameters from ``first`` on.

    To read these costs less than another round trip.
    """
    most, columns = model.few_keys_max, tree.scheme.columns

    def few(node: Node) -> bool:
        match node:
            case All():
                return False
            case Nothing() | Everywhere():
                return True
            case Partitions(ids):
                return len(ids) <= most
            case Keys(box):
                return prod(_keys(box, column, first) for column in columns) <= most
            case AnyOf(parts):
                return len(parts) <= most and all(map(few, parts))
            case AllOf(parts):
                return any(map(few, parts))
            case Satisfiable(_, part):
                return few(part)
            case _:
                assert_never(node)

    return few(tree.root)


def has_list(tree: PartitionTree) -> bool:
    """Whether a tree depends on a list parameter, which usually has few keys."""
    return any(isinstance(operand, ParameterList) for _, test in tests_of(tree.root) for operand in test.operands)


def _keys(box: Box, column: str, first: int) -> float:
    """Count the values of a column that a box names without those of steps; infinite for a range, or for none."""
    counts = [inf]
    for choice in box[column].choices:
        operands = [operand for test in choice.tests for operand in test.operands]
        named = all(
            not isinstance(operand, ParameterList) and all(index < first for index in parameters_of(operand))
            for operand in operands
        )
        if named and choice.domain.is_finite and all(test.names_values for test in choice.tests):
            counts.append(len(choice.domain.points) + len(operands))
    return min(counts)
