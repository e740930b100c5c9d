"""The built-in aggregates as values: a function and a column."""

from __future__ import annotations

from enum import Enum

import msgspec


class AggregateKind(Enum):
    """The aggregate function."""

    COUNT_ROWS = "count_rows"
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    COUNT_DISTINCT = "count_distinct"
    LIST = "list"


class AggregateExpression(msgspec.Struct, frozen=True, array_like=True):
    """One aggregate. Made by the functions of this module.

    Attributes:
        function: The function.
        column: Its argument; None for ``COUNT_ROWS``.
    """

    function: AggregateKind
    column: str | None = None


def count_rows() -> AggregateExpression:
    """The number of rows; int64."""
    return AggregateExpression(AggregateKind.COUNT_ROWS)


def count_of(column: str) -> AggregateExpression:
    """The number of values that are not NULL; int64."""
    return AggregateExpression(AggregateKind.COUNT, column)


def sum_of(column: str) -> AggregateExpression:
    """The sum; NULL without a value.

    Integers and booleans: int64 (uint64 for uint64), and a DataError past it; decimals: 38 digits; floats: float64.
    """
    return AggregateExpression(AggregateKind.SUM, column)


def min_of(column: str) -> AggregateExpression:
    """The smallest value; NULL without one. NaN is greater than every number."""
    return AggregateExpression(AggregateKind.MIN, column)


def max_of(column: str) -> AggregateExpression:
    """The largest value; NULL without one. NaN is greater than every number."""
    return AggregateExpression(AggregateKind.MAX, column)


def avg_of(column: str) -> AggregateExpression:
    """The mean, float64; NULL without a value. Of integers and decimals the sum is exact, and rounded once."""
    return AggregateExpression(AggregateKind.AVG, column)


def count_distinct_of(column: str) -> AggregateExpression:
    """The number of different values that are not NULL; int64. Exact: a processor keeps them all."""
    return AggregateExpression(AggregateKind.COUNT_DISTINCT, column)


def list_of(column: str) -> AggregateExpression:
    """The values, NULLs too, as a list; NULL without a row.

    In the order of arrival, so in one order only behind edges that keep it.
    """
    return AggregateExpression(AggregateKind.LIST, column)
