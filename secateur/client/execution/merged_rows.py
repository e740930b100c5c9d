"""The answer of a statement from the rows of each owner, merged by the client: see :mod:`secateur.protocol.row_merge`.

What the kernels would refuse or decide otherwise, such as a sum that its type cannot hold, is not decided here: there
is no answer then, and a member is asked for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeAlias

import pyarrow as pa

from secateur.client.dbapi.rows import Rows
from secateur.errors import DataError
from secateur.partitioning.types.column_type import TypeKind, parse_type
from secateur.partitioning.types.decimals import added, below_power_of_ten
from secateur.protocol.row_merge import MergedOrder, MergeFunction, RowMerge
from secateur.protocol.statements import ResultColumn
from secateur.wire import ShortTable

_ROWS_MAX: Final = 1_000
"""More rows are grouped and ordered faster by a kernel, though it costs another round trip."""
_HUGEINT_MAX: Final = 2**127 - 1
_Rows: TypeAlias = list[tuple[Any, ...]]
_Fold: TypeAlias = Callable[[Any, Any], Any]


def merge_rows(merge: RowMerge, parts: Sequence[pa.Table | ShortTable]) -> pa.Table | ShortTable | None:
    """The answer.

    Args:
        merge: How rows become the answer.
        parts: The rows of each owner.

    Returns:
        The answer; None if a kernel has to give it: of many rows that are grouped or ordered, of values for which
        Python has no object, or of a sum that is too large.

    Cost: some microseconds for a few rows.
    """
    if merge.is_grouped or merge.order or all(isinstance(part, ShortTable) for part in parts):
        return _merged(merge, parts)
    return _concatenated(merge, parts)


def _concatenated(merge: RowMerge, parts: Sequence[pa.Table | ShortTable]) -> pa.Table | None:
    """Rows in any order, of which some came as Arrow."""
    fields = [(f"c{index}", parse_type(column.type)) for index, column in enumerate(merge.columns)]
    names = [name for name, _ in fields]
    try:
        tables = [
            part.to_table(fields) if isinstance(part, ShortTable) else part.rename_columns(names) for part in parts
        ]
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, OverflowError, ValueError):
        return None  # values that their columns do not hold: a kernel says so
    rows = whole.slice(merge.offset) if merge.limit is None else whole.slice(merge.offset, merge.limit)
    return rows.select([names[index] for index in merge.outputs])


def _merged(merge: RowMerge, parts: Sequence[pa.Table | ShortTable]) -> ShortTable | None:
    if sum(part.num_rows for part in parts) > _ROWS_MAX:
        return None
    rows: _Rows = []
    try:
        for part in parts:
            rows.extend(_tuples(merge, part))
    except DataError:
        return None  # a value for which Python has no object
    if merge.is_grouped:
        grouped = _grouped(merge, rows)
        if grouped is None:
            return None
        rows = grouped
    for term in reversed(merge.order):
        rows = _ordered(rows, term)
    if merge.offset or merge.limit is not None:
        rows = rows[merge.offset : None if merge.limit is None else merge.offset + merge.limit]
    outputs = [[row[index] for row in rows] for index in merge.outputs]
    for index in merge.counts:
        outputs[index] = [value or 0 for value in outputs[index]]
    return ShortTable(outputs, len(rows))


def _tuples(merge: RowMerge, part: pa.Table | ShortTable) -> Iterable[tuple[Any, ...]]:
    """The rows of an owner, each with the values of the merged columns."""
    if not part.num_rows:
        return ()
    sources = [column.source for column in merge.columns]
    if isinstance(part, ShortTable):
        return zip(*[part.columns[source] for source in sources], strict=True)
    columns = [ResultColumn(f"c{column.source}", column.type) for column in merge.columns]
    return Rows(part.select(sources), columns).take_all()


def _grouped(merge: RowMerge, rows: _Rows) -> _Rows | None:
    """One row for each group; None if a sum is too large."""
    folds = _folds(merge)
    keys = sum(fold is None for fold in folds)  # they stand in front
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        group = groups.get(row[:keys])
        if group is None:
            groups[row[:keys]] = list(row)
            continue
        for index in range(keys, len(row)):
            value, so_far, fold = row[index], group[index], folds[index]
            if value is not None:
                group[index] = value if so_far is None or fold is None else fold(so_far, value)
    return list(map(tuple, groups.values())) if all(map(_checks(merge), groups.values())) else None


@lru_cache(maxsize=512)
def _folds(merge: RowMerge) -> tuple[_Fold | None, ...]:
    return tuple(None if column.function is None else _fold(column.function, column.type) for column in merge.columns)


def _fold(function: MergeFunction, type_: str) -> _Fold:
    match function:
        case MergeFunction.MIN:
            return min
        case MergeFunction.MAX:
            return max
        case MergeFunction.SUM:
            return added if parse_type(type_).kind is TypeKind.DECIMAL else _sum


def _sum(one: Any, other: Any) -> Any:
    return one + other


@lru_cache(maxsize=512)
def _checks(merge: RowMerge) -> Callable[[list[Any]], bool]:
    """Whether the types of the sums can hold those of a group."""
    checks = []
    for index, column in enumerate(merge.columns):
        if column.function is MergeFunction.SUM:
            kind = parse_type(column.type)
            checks.append((index, kind.precision - kind.scale if kind.kind is TypeKind.DECIMAL else None))

    def check(group: list[Any]) -> bool:
        return all(_holds(group[index], digits) for index, digits in checks)

    return check


def _holds(value: Any, digits: int | None) -> bool:
    match value:
        case None:
            return True
        case float():
            return math.isfinite(value)
        case Decimal():
            return digits is None or below_power_of_ten(value, digits)
        case _:
            return bool(-_HUGEINT_MAX <= value <= _HUGEINT_MAX)


def _ordered(rows: _Rows, term: MergedOrder) -> _Rows:
    column = itemgetter(term.column)
    nulls = [row for row in rows if column(row) is None]
    values = sorted((row for row in rows if column(row) is not None), key=column, reverse=term.descending)
    return [*nulls, *values] if term.nulls_first else [*values, *nulls]
