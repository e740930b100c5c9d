"""Complete aggregations of few rows in plain Python, from the columns to the sorted result.

Arrow's hash aggregation takes about 100 us to start and each of its functions a few more, however small the input; a
customer's twenty rows are grouped, finished and sorted here in a fraction of that, and aggregated without keys in half
of what Arrow's scalar functions take. Only plain columns of types whose Python values compare and add as SQL's do are
accepted, so the answer is bit for bit Arrow's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any, Final, NamedTuple, assert_never

from secateur.engine.kernels.arrow.exact_values import InexactError
from secateur.engine.kernels.arrow.fragment import (
    AggregateFunction,
    ArrowAggregate,
    ArrowFragment,
    ColumnExpression,
    Expression,
    OrderTerm,
    slot_name,
)
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind
from secateur.partitioning.types.decimals import DOUBLE_INTEGER_MAX, added

SMALL_ROWS_MAX: Final = 128
"""Up to so many rows, Python is faster than the start of Arrow's aggregation."""
_PLAIN_ROWS_MAX: Final = 1024
_PLAIN_ROWS_GROUPED_MAX: Final = 512
"""The same for rows that are plain values already: Python adds these in 0.05 us each, and groups them in 0.5."""
_SMALL_ROWS_DIGITS: Final = len(str(SMALL_ROWS_MAX))
"""The digits that the sum of so many numbers may have more than each of them."""

Values = Callable[[str, bool], list[Any]]
"""A function from the name of a column to its plain values.

Where its second argument is true, only whether they are NULL matters, and what else stands there does not.
"""

SmallAggregation = Callable[[Values, int, Callable[[int], tuple[int, int]]], list[list[Any]]]
"""A function that computes the plain values of each result column.

Its arguments are the columns, their length, and a function from the number of groups to the first one that is wanted
and the end of those.
"""

_Fold = Callable[[Sequence[Any]], Any]

_BLOCK_ROWS: Final = 16
"""The doubles that Arrow's sum without keys adds one after the other."""
_ORDERED: Final = WORD_INTEGERS | {TypeKind.VARCHAR}  # UTF-8 bytes and code points have one order
_SORTED: Final = _ORDERED | {TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.DECIMAL, TypeKind.FLOAT, TypeKind.DOUBLE}


def compile_small_aggregation(fragment: ArrowFragment) -> SmallAggregation | None:
    """A closure for few rows that have passed WHERE, or None when the fragment asks for Arrow.

    Raises (the closure):
        InexactError: DuckDB has to answer.
    """
    if fragment.keys is None or fragment.having is not None or fragment.distinct or len(fragment.order) > 1:
        return None
    keys = [_plain(key) for key in fragment.keys]
    folds = [_fold(aggregate, is_one_group=not fragment.keys) for aggregate in fragment.aggregates]
    slots = {slot_name(position): position for position in range(len(keys) + len(folds))}
    outputs = [_slot(expression, slots) for _, expression in fragment.outputs]
    order = fragment.order[0] if fragment.order else None
    sorted_by = None if order is None else _slot(order.expression, slots)
    if (
        None in outputs
        or any(key is None or key.type.kind not in _ORDERED | {TypeKind.BOOLEAN} for key in keys)
        or any(fold is None for fold in folds)
        or (
            order is not None and (sorted_by is None or order.expression.type.kind not in _ORDERED | {TypeKind.HUGEINT})
        )
    ):
        return None
    key_names = [key.name for key in keys if key is not None]
    finished = [fold for fold in folds if fold is not None]
    wanted = [position for position in outputs if position is not None]

    def grouped(column: Values, row_count: int) -> tuple[list[Sequence[int]], list[list[Any]]]:
        """The rows of each group, and the keys; without keys there is one group, were it without rows."""
        if not key_names:
            return [range(row_count)], []
        key_lists = [column(name, False) for name in key_names]
        rows_of: defaultdict[Any, list[int]] = defaultdict(list)
        if len(key_lists) == 1:  # without a tuple for each row
            for row, key in enumerate(key_lists[0]):
                rows_of[key].append(row)
            return list(rows_of.values()), [list(rows_of)]
        for row, key in enumerate(zip(*key_lists, strict=True)):
            rows_of[key].append(row)
        return list(rows_of.values()), [list(keys) for keys in zip(*rows_of, strict=True)] or [[] for _ in key_names]

    def aggregate(column: Values, row_count: int, window: Callable[[int], tuple[int, int]]) -> list[list[Any]]:
        groups, lists = grouped(column, row_count)
        arguments: dict[tuple[str, bool], list[Any]] = {}
        for name, counts, fold, takes_nulls in finished:
            if name is None:
                lists.append([fold(rows) for rows in groups])
                continue
            values = arguments.get((name, counts))
            if values is None:
                values = arguments[name, counts] = column(name, counts)
            if takes_nulls or (not key_names and None not in values):
                lists.append([fold(values)])
                continue
            lists.append([fold([value for row in rows if (value := values[row]) is not None]) for rows in groups])
        numbers: Sequence[int] = range(len(groups))
        if order is not None and sorted_by is not None:
            numbers = sorted_rows(lists[sorted_by], order, numbers)
        start, stop = window(len(numbers))
        numbers = numbers[start:stop]
        return [[lists[position][number] for number in numbers] for position in wanted]

    return aggregate


def plain_rows_max(fragment: ArrowFragment) -> int:
    """Up to how many rows, which are plain values, :func:`compile_small_aggregation` is faster than Arrow."""
    arguments = [aggregate.argument for aggregate in fragment.aggregates if aggregate.argument is not None]
    if fragment.sources or any(argument.type.kind is TypeKind.DECIMAL for argument in arguments):
        return SMALL_ROWS_MAX  # to join a row, or to add a Decimal, takes Python a microsecond
    return _PLAIN_ROWS_GROUPED_MAX if fragment.keys else _PLAIN_ROWS_MAX


def values_of_arrays(columns: Mapping[str, Any]) -> Values:
    """The values of Arrow's columns."""

    def values(name: str, counts: bool) -> list[Any]:
        column = columns[name]
        # Python has no object for some values that are only counted, such as a date after the year 9999.
        return [valid or None for valid in column.is_valid().to_pylist()] if counts else column.to_pylist()

    return values


def _plain(expression: Expression) -> ColumnExpression | None:
    return expression if isinstance(expression, ColumnExpression) else None


def _slot(expression: Expression, slots: Mapping[str, int]) -> int | None:
    column = _plain(expression)
    return None if column is None else slots.get(column.name)


class _Folded(NamedTuple):
    """The computation of an aggregate over the values of a group.

    Attributes:
        column: Its column; None for an operation on rows.
        counts: Whether values only count, whatever they are.
        fold: The operation on the values that are not NULL, or on the rows.
        takes_nulls: Whether it wants the NULLs between the values as well.
    """

    column: str | None
    counts: bool
    fold: _Fold
    takes_nulls: bool = False


def _fold(aggregate: ArrowAggregate, *, is_one_group: bool) -> _Folded | None:
    """The computation of an aggregate; None to leave it to Arrow."""
    argument = aggregate.argument
    if argument is None:
        return _Folded(None, True, len) if aggregate.function is AggregateFunction.COUNT_ROWS else None
    if not isinstance(argument, ColumnExpression):
        return None
    kind = argument.type.kind
    is_pairwise = is_one_group and kind is TypeKind.DOUBLE
    match aggregate.function:
        case AggregateFunction.COUNT_ROWS:
            return None
        case AggregateFunction.COUNT:
            return _Folded(argument.name, True, len)
        case AggregateFunction.COUNT_DISTINCT:
            return _Folded(argument.name, False, lambda values: len(set(values)))
        case AggregateFunction.MIN | AggregateFunction.MAX:
            pick: _Fold = min if aggregate.function is AggregateFunction.MIN else max
            return (
                _Folded(argument.name, False, lambda values: pick(values) if values else None)
                if kind in _ORDERED
                else None
            )
        case AggregateFunction.SUM:
            if kind is TypeKind.DECIMAL:
                is_held = argument.type.precision + _SMALL_ROWS_DIGITS <= aggregate.type.precision
                return (
                    _Folded(argument.name, False, lambda values: reduce(added, values) if values else None)
                    if is_held and aggregate.type.kind is TypeKind.DECIMAL
                    else None
                )
            if not _adds_up(kind, aggregate.type):
                return None
            return _Folded(argument.name, False, _pairwise_sum if is_pairwise else _sum, is_pairwise)
        case AggregateFunction.AVG:
            if kind not in WORD_INTEGERS | {TypeKind.DOUBLE}:
                return None
            return _Folded(argument.name, False, _pairwise_average if is_pairwise else _average, is_pairwise)
        case _:
            assert_never(aggregate.function)


def _adds_up(kind: TypeKind, result: SqlType) -> bool:
    return (kind in WORD_INTEGERS and result.kind is TypeKind.HUGEINT) or (
        kind is TypeKind.DOUBLE and result.kind is TypeKind.DOUBLE
    )


def _sum(values: Sequence[Any]) -> Any:
    # Python's sum() of floats compensates for what rounding loses from 3.12 on; Arrow and DuckDB do not.
    return reduce(add, values) if values else None


def _pairwise_sum(values: Sequence[float | None]) -> float | None:
    """The sum of doubles as Arrow's scalar function adds them.

    Runs between NULLs are cut into blocks; each second block is added to the one before it, each second pair of blocks
    to the pair before it, and so on.

    Source: pairwise summation, as ``SumArray`` in Arrow's ``aggregate_internal.h`` does it.
    """
    runs = [values] if None not in values else [list(run) for null, run in groupby(values, _is_null) if not null]
    sums: list[float] = []
    count = 0
    for run in runs:
        for start in range(0, len(run), _BLOCK_ROWS):
            total = reduce(add, run[start : start + _BLOCK_ROWS], 0.0)
            level = 0
            while count >> level & 1:
                total += sums[level]
                sums[level] = 0.0
                level += 1
            sums[level : level + 1] = [total]
            count += 1
    return reduce(add, sums) if sums else None


def _is_null(value: object) -> bool:
    return value is None


def _pairwise_average(values: Sequence[float | None]) -> float | None:
    total = _pairwise_sum(values)
    return None if total is None else total / sum(value is not None for value in values)


def _average(values: Sequence[Any]) -> float | None:
    """CAST(sum AS DOUBLE) / count, as DuckDB defines it."""
    total = _sum(values)
    if total is None:
        return None
    if type(total) is int and abs(total) > DOUBLE_INTEGER_MAX:
        raise InexactError("the sum of an average that no DOUBLE holds")
    return float(total) / len(values)


def sortable(expression: Expression) -> ColumnExpression | None:
    """The column that an expression is, if :func:`sorted_rows` sorts by its values as SQL does; else None."""
    column = _plain(expression)
    return column if column is not None and column.type.kind in _SORTED else None


def sorted_rows(values: Sequence[Any], term: OrderTerm, rows: Sequence[int]) -> list[int]:
    """The numbers of rows in the order of a term; those with equal values stay in theirs.

    Raises:
        InexactError: A value is NaN, which Python puts nowhere, and SQL behind all numbers.
    """
    if term.expression.type.is_float and any(value != value for value in values):
        raise InexactError("NaN among the values to sort by")
    present = [number for number in rows if values[number] is not None]
    missing = [number for number in rows if values[number] is None]
    present.sort(key=values.__getitem__, reverse=term.descending)
    return missing + present if term.nulls_first else present + missing
