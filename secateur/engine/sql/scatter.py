"""The execution mode *scatter*: the owners of a few partitions are asked once each, and who asks combines the rows.

A light job over three members takes 3 to 8 ms, most of it for plans, tasklets, queues and frames, also where it carries
a handful of values. So there is a mode between *local*, which asks one member, and *distributed*, which runs a job.

A statement qualifies if it has two stages: one that reads tables where they are, and one that combines the rows of the
first. Each owner runs the first stage over its partitions as one kernel call and answers with the rows. The member that
coordinates runs the second, or the client that has asked merges the rows (:func:`row_merge_of`). No vertex, no edge and
no queue is made, so a statement over five keys costs little more than five look-ups.

It is for few rows, since both calls hold all of them: an owner that finds more declines, and the statement runs as a
job.

Source: the scatter-gather of Elasticsearch and MongoDB's router; the map and reduce queries of Apache Ignite.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from secateur.engine.kernels.arrow.fragment import (
    AggregateFunction,
    ArrowAggregate,
    ArrowFragment,
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    OrderTerm,
    ScalarFunction,
    slot_name,
)
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.engine.sql.stage import ExchangeKind, QueryStage
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.arrow_layout import empty_table
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind, parse_type
from secateur.protocol.query_parts import MergedColumn, MergedOrder, MergeFunction, RowMerge
from secateur.wire import ShortTable


def can_scatter(scans: Sequence[ScanPlan], stages: Sequence[QueryStage]) -> bool:
    """Whether a statement in these stages may be scattered when its partitions are few."""
    if len(stages) != 2 or any(scan.is_fetched for scan in scans):
        return False
    first, last = stages
    return (
        not first.at_coordinator
        and first.exchange is ExchangeKind.GATHER
        and not first.order  # such rows are many, and are merged as they come
        and len(first.scans) == len(scans)
        and not all(scan.replicated for scan in scans)
        and not last.scans
        and last.inputs == (0,)
        and len(last.relations) == 1
        # Otherwise the first rows of the limit might be found before there are all.
        and (last.limit is None or last.fragment.is_row_by_row)
    )


def is_scattered(plan: SelectPlan, partitions: Sequence[Sequence[int]]) -> bool:
    """Whether a statement over these partitions, which are on several members, is scattered.

    They have to be at most ``SelectPlan.scatter_partitions_max``, and a part of each partitioned table: a statement
    that reads all of a table runs as a job, however few its partitions are.
    """
    if not plan.scatter_partitions_max:
        return False
    count = 0
    for scan, ids in zip(plan.scans, partitions, strict=True):
        if not scan.replicated:
            if len(ids) >= scan.tree.total:
                return False
            count += len(ids)
    return count <= plan.scatter_partitions_max


def partitions_by_member(
    plan: SelectPlan, partitions: Sequence[Sequence[int]], topology: Topology
) -> dict[str, list[list[int]]]:
    """The partitions that each owner has to read: for each scan its own, none of a replicated table."""
    found: dict[str, list[list[int]]] = {}
    for number, (scan, ids) in enumerate(zip(plan.scans, partitions, strict=True)):
        if not scan.replicated:
            ownership = topology.ownership(scan.group)
            for partition in ids:
                member = ownership.primary(partition)
                if member not in found:
                    found[member] = [[] for _ in plan.scans]
                found[member][number].append(partition)
    return found


def combined_rows(fragment: Fragment, parts: Sequence[pa.Table | ShortTable]) -> pa.Table:
    """The rows of a stage from all members, in any order, as one table. Without any there are no rows."""
    short = [part for part in parts if isinstance(part, ShortTable)]
    if short and len(short) == len(parts):
        columns = [[value for part in short for value in part.columns[index]] for index in range(len(fragment.columns))]
        return ShortTable(columns, sum(part.num_rows for part in short)).to_table(_fields(fragment.columns))
    tables = [part.to_table(_fields(fragment.columns)) if isinstance(part, ShortTable) else part for part in parts]
    filled = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(filled, promote_options="permissive") if filled else empty_table(fragment.schema)


@lru_cache(maxsize=1024)
def _fields(columns: tuple[tuple[str, str], ...]) -> list[tuple[str, SqlType]]:
    return [(name, parse_type(text)) for name, text in columns]


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

    A client has no kernel. So only a last stage has this form that Python computes exactly: rows as they come,
    DISTINCT, GROUP BY with counts, sums, minima and maxima, ORDER BY and LIMIT, over types whose values Python compares
    and adds as SQL does. All other statements are combined by a member.

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
