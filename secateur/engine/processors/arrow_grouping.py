"""Grouping by Arrow's hash aggregation, for the usual keys and aggregates at half the work of the kernel.

It is used only where it answers exactly what the kernel does.

DuckDB reads Arrow tables without the statistics of its own tables, and needs each row's number to keep groups in order.
Arrow runs in the calling thread alone: parallelism comes from the processors of a member, and the members of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from secateur.engine.kernels.arrow.aggregate import compile_aggregation
from secateur.engine.kernels.arrow.evaluate import EvaluationContext
from secateur.engine.kernels.arrow.exact_values import InexactError
from secateur.engine.kernels.arrow.fragment import AggregateFunction, ArrowAggregate, ColumnExpression, slot_name
from secateur.errors import NotSupportedError
from secateur.partitioning.types.column_type import OPAQUE, SqlType, TypeKind, parse_type, type_of_arrow

_FIRST_ROW: Final = ArrowAggregate(
    AggregateFunction.MIN, ColumnExpression("row", SqlType(TypeKind.INTEGER)), SqlType(TypeKind.INTEGER)
)
_ROWS_MAX: Final = 2**31 - 1

_KEY_KINDS: Final = frozenset(TypeKind) - OPAQUE - {TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.UUID}
"""The kinds whose values SQL calls equal only if their bytes are.

0.0 and -0.0 are equal with different bytes, and Arrow takes no UUID and no nested type.
"""


@dataclass(frozen=True, slots=True)
class PartialColumn:
    """A column of partial results, and how it is computed of the rows of a group.

    Attributes:
        name: Its name.
        sql: An aggregate over arguments and ``row``, for DuckDB.
        type_text: The SQL type of its values.
        function: The same aggregate of ``argument``, for Arrow; None where Arrow has none that gives the same.
        argument: Name of the argument; None if there is none.
    """

    name: str
    sql: str
    type_text: str
    function: AggregateFunction | None = None
    argument: str | None = None


def grouped_by_arrow(
    keys: Sequence[Any], arguments: Mapping[str, tuple[Any, SqlType]], states: Sequence[PartialColumn], row_count: int
) -> list[Any] | None:
    """Group rows and compute the states of each group.

    Args:
        keys: The columns of the key; none: all rows are one group.
        arguments: Values, in the Arrow form of their SQL type, and that type.
        states: The states to compute.
        row_count: How many rows there are.

    Returns:
        The columns of the key, then of the states; groups in the order of their first rows. Or None when the other
        kernel has to answer, or to raise the error, such as an overflow. Cost for one key and two states: 7 ns a row
        with a thousand integer keys, 25 ns with 100,000 strings.
    """
    kinds = [_key_kind(key.type) for key in keys]
    if None in kinds or any(state.function is None for state in states) or row_count > _ROWS_MAX:
        return None
    expressions = [ColumnExpression(f"k{index}", kind) for index, kind in enumerate(kinds) if kind is not None]
    columns = {name: values for name, (values, _) in arguments.items()} | {
        f"k{index}": key for index, key in enumerate(keys)
    }
    aggregates = [_aggregate(state, arguments) for state in states]
    if keys:
        columns["row"] = pa.array(np.arange(row_count, dtype=np.int32))
        aggregates.append(_FIRST_ROW)
    compute = compile_aggregation(expressions, aggregates, threads=False)
    try:
        found = compute(EvaluationContext(columns, ()), row_count)
    except (InexactError, OverflowError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    results = [found[slot_name(position)] for position in range(len(found))]
    return _in_order(results) if keys else results


def _key_kind(arrow: pa.DataType) -> SqlType | None:
    try:
        kind = type_of_arrow(arrow)
    except NotSupportedError:
        return None
    return kind if kind.kind in _KEY_KINDS and kind.arrow.equals(arrow) else None


def _aggregate(state: PartialColumn, arguments: Mapping[str, tuple[Any, SqlType]]) -> ArrowAggregate:
    assert state.function is not None
    argument = None if state.argument is None else ColumnExpression(state.argument, arguments[state.argument][1])
    return ArrowAggregate(state.function, argument, parse_type(state.type_text))


def _in_order(results: list[Any]) -> list[Any]:
    """The columns but the last, sorted by the last: the first row of each group.

    Arrow finds nearly all groups in that order.
    """
    *columns, first_rows = results
    firsts = first_rows.to_numpy()
    if np.all(firsts[1:] > firsts[:-1]):
        return columns
    order = pa.array(np.argsort(firsts, kind="stable"))
    return [column.take(order) for column in columns]
