"""Finds the scattered statements whose rows a client merges by itself, and describes the last stage as a ``RowMerge``.

A client has no kernel. So only a last stage has this form that Python computes exactly: rows as they come, DISTINCT,
GROUP BY with counts, sums, minima and maxima, ORDER BY and LIMIT, over types whose values Python compares and adds as
SQL does. All other statements are combined by a member.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from secateur.engine.kernels.arrow.expression import (
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    ScalarFunction,
)
from secateur.engine.kernels.arrow.fragment import (
    AggregateFunction,
    ArrowAggregate,
    ArrowFragment,
    OrderTerm,
    slot_name,
)
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.types.column_type import WORD_INTEGERS, TypeKind, parse_type
from secateur.protocol.row_merge import MergedColumn, MergedOrder, MergeFunction, RowMerge

_SUMMED: Final = frozenset({TypeKind.HUGEINT, TypeKind.DECIMAL, TypeKind.DOUBLE})
# Not floats, for which SQL has an order and an equality of their own.
_COMPARED: Final = WORD_INTEGERS | {
    *(TypeKind.HUGEINT, TypeKind.DECIMAL, TypeKind.BOOLEAN, TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP)
}
_FUNCTIONS: Final = {
    AggregateFunction.SUM: MergeFunction.SUM,
    AggregateFunction.MIN: MergeFunction.MIN,
    AggregateFunction.MAX: MergeFunction.MAX,
}


def row_merge_of(plan: SelectPlan) -> RowMerge | None:
    """Describe how a client merges the rows of the owners of a scattered statement; None if a member has to.

    Its first stage is one call of the arrow kernel over one table, so that an owner answers while it reads the request.
    """
    if not plan.scatter_partitions_max or plan.expressions or len(plan.scans) != 1:
        return None
    first, last = plan.stages
    arrow = last.fragment.arrow
    if first.fragment.arrow is None or arrow is None or arrow.where is not None or arrow.having is not None:
        return None
    columns = _merged_columns(arrow, first.fragment.columns)
    if columns is None or not all(
        isinstance(bound, ConstantExpression | None) for bound in (arrow.limit, arrow.offset)
    ):
        return None
    limit, offset = _value(arrow.limit), _value(arrow.offset)
    names = _names(arrow, first.fragment.column_names)
    outputs = _outputs(arrow, names)
    order = _order(arrow.order, names, columns)
    if outputs is None or order is None:
        return None
    if last.limit is not None:
        if limit is not None or offset is not None:
            return None
        limit, offset = last.limit.taken, last.limit.skipped
    return RowMerge(
        columns,
        arrow.keys is not None or arrow.distinct,
        tuple(position for position, _ in outputs),
        tuple(index for index, (_, is_count) in enumerate(outputs) if is_count),
        order,
        limit,
        offset or 0,
        plan.scatter_partitions_max,
    )


def _value(bound: Expression | None) -> int | None:
    """The value of a limit that is a constant."""
    return bound.value if isinstance(bound, ConstantExpression) else None


def _merged_columns(arrow: ArrowFragment, given: Sequence[tuple[str, str]]) -> tuple[MergedColumn, ...] | None:
    position = {name: index for index, (name, _) in enumerate(given)}
    if arrow.keys is None:
        sources = [position.get(name) for name in _read_by(arrow)] if arrow.distinct else list(range(len(given)))
        columns = [MergedColumn(source, None, given[source][1]) for source in sources if source is not None]
        if len(columns) < len(sources) or (arrow.distinct and not _all_compared(columns)):
            return None
        return tuple(columns)
    if arrow.distinct:
        return None
    keys = [
        MergedColumn(position[key.name], None, given[position[key.name]][1])
        for key in arrow.keys
        if isinstance(key, ColumnExpression)
    ]
    if len(keys) < len(arrow.keys) or not _all_compared(keys):
        return None
    merged = [_aggregate(aggregate, position) for aggregate in arrow.aggregates]
    known = [column for column in merged if column is not None]
    return (*keys, *known) if len(known) == len(merged) else None


def _aggregate(aggregate: ArrowAggregate, position: dict[str, int]) -> MergedColumn | None:
    function, argument = _FUNCTIONS.get(aggregate.function), aggregate.argument
    if function is None or not isinstance(argument, ColumnExpression):
        return None
    exact = _SUMMED if function is MergeFunction.SUM else _COMPARED
    return (
        MergedColumn(position[argument.name], function, str(aggregate.type)) if aggregate.type.kind in exact else None
    )


def _all_compared(columns: Sequence[MergedColumn]) -> bool:
    return all(parse_type(column.type).kind in _COMPARED for column in columns)


def _read_by(arrow: ArrowFragment) -> list[str]:
    """The columns that the outputs of a fragment are; an empty name for one that is computed."""
    return [output.name if isinstance(output, ColumnExpression) else "" for _, output in arrow.outputs]


def _names(arrow: ArrowFragment, given: Sequence[str]) -> dict[str, int]:
    """The merged columns by the names that ORDER BY and, but for DISTINCT, the outputs have for them."""
    if arrow.keys is not None:
        return {slot_name(index): index for index in range(len(arrow.keys) + len(arrow.aggregates))}
    if arrow.distinct:
        return {slot_name(index): index for index in range(len(arrow.outputs))}
    return {name: index for index, name in enumerate(given)}


def _outputs(arrow: ArrowFragment, names: dict[str, int]) -> list[tuple[int, bool]] | None:
    """The merged column of each output, and whether it is a count; None if one is computed otherwise."""
    if arrow.keys is None and arrow.distinct:
        return [(index, False) for index in range(len(arrow.outputs))]
    found = []
    for _, output in arrow.outputs:
        match output:
            case ColumnExpression(name=name):
                found.append((names[name], False))
            case CallExpression(
                function=ScalarFunction.CAST,
                arguments=(
                    CallExpression(
                        function=ScalarFunction.COALESCE,
                        arguments=(ColumnExpression(name=name), ConstantExpression(value=0)),
                    ),
                ),
                type=type_,
            ) if type_.kind is TypeKind.BIGINT:
                found.append((names[name], True))
            case _:
                return None
    return found


def _order(
    terms: Sequence[OrderTerm], names: dict[str, int], columns: Sequence[MergedColumn]
) -> tuple[MergedOrder, ...] | None:
    """The terms of ORDER BY over merged columns; None if one is computed, or of a type that Python orders otherwise."""
    found = []
    for term in terms:
        position = names.get(term.expression.name) if isinstance(term.expression, ColumnExpression) else None
        if position is None or parse_type(columns[position].type).kind not in _COMPARED:
            return None
        found.append(MergedOrder(position, term.descending, term.nulls_first))
    return tuple(found)
