"""The arrow kernel: answers simple statements over one relation, or a join of a few, with closures compiled once.

It is made for statements on a key slice of some hundred rows: there it takes tens of microseconds where DuckDB takes a
millisecond. It answers exactly what DuckDB answers, or not at all: ``planner/arrow/form.py`` refuses what
cannot be decided from the statement, and this module declines, by returning None, what cannot be decided from the
values (a NaN to be sorted, a sum past 64 bits, a parameter that is not of the column's type).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import force_setattr

from secateur.engine.kernels.arrow.aggregate import compile_aggregation
from secateur.engine.kernels.arrow.evaluate import EvaluationContext, Evaluator, Rows, compile_expression, kept, loaded
from secateur.engine.kernels.arrow.exact_values import InexactError, compute_type
from secateur.engine.kernels.arrow.fragment import (
    ArrowFragment,
    ColumnExpression,
    ConstantExpression,
    Expression,
    OrderTerm,
    ParameterExpression,
    columns_in,
    slot_name,
)
from secateur.engine.kernels.arrow.join import compile_join
from secateur.engine.kernels.arrow.plain_rows import compile_window, plain_columns
from secateur.engine.kernels.arrow.small_groups import SMALL_ROWS_MAX, compile_small_aggregation, values_of_arrays
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.wire import ShortTable
from secateur.wire.short_table import SHORT_ROWS_MAX, is_short, shorten, travels_short

_SORTED_ROWS_MAX: Final = 20_000
"""Above so many rows DuckDB sorts faster: it uses more than one thread, and does not sort everything for a LIMIT."""

_TAKE: Final = pc.get_function("take")
_SORT_INDICES: Final = pc.get_function("sort_indices")
_UNCHECKED: Final = pc.TakeOptions(boundscheck=False)

Relations = Mapping[str, pa.Table]
Program = Callable[[Any, Sequence[Any]], pa.Table | ShortTable]
"""A compiled fragment. Its first argument is the relation, or for a join all relations by name."""


def run(fragment: ArrowFragment, table: pa.Table | Relations, params: Sequence[Any] = ()) -> pa.Table | None:
    """Answer a fragment over its relation, or those of its join.

    Args:
        fragment: The fragment.
        table: The relation, columns in the Arrow form of their SQL types; columns that are not read do not matter. For
            a fragment with :attr:`~ArrowFragment.sources`, the relations by name.
        params: Values of ``$1`` to ``$n``.

    Returns:
        The result, exactly DuckDB's; or None when only DuckDB can give it (or has to raise the error, such as an
        overflow), and for a relation with other types than the fragment was planned for.
    """
    if not _has_planned_types(fragment, table):
        return None
    found = answer(fragment, table, params)
    return (
        found.to_table([(name, expression.type) for name, expression in fragment.outputs])
        if isinstance(found, ShortTable)
        else found
    )


def _has_planned_types(fragment: ArrowFragment, table: Any) -> bool:
    """Whether the columns that a fragment reads have the types that it was planned for.

    They always should: a plan is executed with values of the types it was made for. For others this kernel would be
    wrong without a sign, and DuckDB is not. Costs a quarter of a microsecond a column.
    """
    types = fragment.types
    if types is None:
        types = tuple((name, type_.arrow) for name, type_ in columns_in(_evaluated(fragment)).items())
        force_setattr(fragment, "types", types)
    if not fragment.sources:
        schema = table.schema
        return all(schema.field(name).type.equals(type_) for name, type_ in types)
    parts = ((*name.split(".", 1), type_) for name, type_ in types)
    return all(table[relation].schema.field(name).type.equals(type_) for relation, name, type_ in parts)


def answer(
    fragment: ArrowFragment, table: pa.Table | Relations, params: Sequence[Any] = ()
) -> pa.Table | ShortTable | None:
    """As :func:`run`, for columns of the types that were planned; a result of a few rows comes as plain values."""
    program = fragment.program
    if program is None:
        program = _compile(fragment)
        force_setattr(fragment, "program", program)
    try:
        return program(table, params)
    except (
        InexactError,
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
    ):  # by value; an overflow; an older Arrow without a function for a type
        return None


def _compile(fragment: ArrowFragment) -> Program:
    """Compile the stages of a fragment."""
    types = [expression.type for _, expression in fragment.outputs]
    finish = _compile_finish(
        types, pa.schema([pa.field(name, expression.type.arrow) for name, expression in fragment.outputs])
    )
    plain = plain_columns(fragment)
    if plain is not None:
        return lambda table, _params: finish([table.column(name) for name in plain], table.num_rows)
    outputs = [(expression, _compile_output(expression)) for _, expression in fragment.outputs]
    fixed = [
        position
        for position, (_, expression) in enumerate(fragment.outputs)
        if isinstance(expression, (ConstantExpression, ParameterExpression))
    ]
    read = columns_in(_after_where(fragment))
    rows_after_where = _compile_rows(fragment, read)
    aggregation = None if fragment.keys is None else compile_aggregation(fragment.keys, fragment.aggregates)
    small = compile_small_aggregation(fragment)
    having = _compile_having(fragment)
    order = _compile_order(fragment.order)
    window = compile_window(fragment.offset, fragment.limit)
    wraps = [kind.kind is TypeKind.UUID for kind in types]
    merge = _compile_distinct(types) if fragment.distinct else None

    def program(table: Any, params: Sequence[Any]) -> pa.Table | ShortTable:
        columns, count = rows_after_where(table, params)
        if small is not None and count <= SMALL_ROWS_MAX:
            values = small(values_of_arrays(columns), count, lambda groups: window(params, groups))
            groups = ShortTable(values, len(values[0]))
            return (
                groups
                if is_short(values, types)
                else groups.to_table([(name, expression.type) for name, expression in fragment.outputs])
            )
        if aggregation is not None:
            columns = aggregation(EvaluationContext(columns, params), count)
            count = len(next(iter(columns.values())))
        if having is not None:
            columns, count = having(columns, params)
        scope = EvaluationContext(columns, params)
        results = [evaluate(scope) for _, evaluate in outputs]
        for position in fixed:
            results[position] = pa.repeat(results[position], count)
        if merge is not None:
            results = merge(results, count)
            count = len(results[0])
            scope = EvaluationContext({slot_name(position): result for position, result in enumerate(results)}, params)
        start, stop = window(params, count)
        if order is not None:
            indices = order(scope, count).slice(start, stop - start)
            results = [_TAKE.call([result, indices], _UNCHECKED) for result in results]
        elif (start, stop) != (0, count):
            results = [result.slice(start, stop - start) for result in results]
        return finish(
            [_as_uuid(result) if wrap else result for result, wrap in zip(results, wraps, strict=True)], stop - start
        )

    return program


def _compile_output(expression: Expression) -> Evaluator:
    """As :func:`compile_expression`; a parameter that is an output, being cast to its type, may be NULL."""
    evaluate = compile_expression(expression)
    if not isinstance(expression, ParameterExpression):
        return evaluate
    number, null = expression.number, pa.scalar(None, compute_type(expression.type))
    return lambda scope: null if number <= len(scope.params) and scope.params[number - 1] is None else evaluate(scope)


def _compile_finish(
    types: Sequence[SqlType], schema: pa.Schema
) -> Callable[[Sequence[Any], int], pa.Table | ShortTable]:
    """The result of columns and their number of rows: plain values for a few, else a table."""
    may_be_short = travels_short(types)

    def finish(columns: Sequence[Any], count: int) -> pa.Table | ShortTable:
        short = shorten(columns, types, count) if may_be_short and count <= SHORT_ROWS_MAX else None
        return pa.Table.from_arrays(list(columns), schema=schema) if short is None else short

    return finish


def _compile_rows(fragment: ArrowFragment, read: Mapping[str, SqlType]) -> Callable[[Any, Sequence[Any]], Rows]:
    """Load the columns that are read, or join the relations, and keep the rows for which WHERE is true."""
    needed = {**({} if fragment.where is None else columns_in([fragment.where])), **read}
    load = compile_join(fragment.sources, needed) if fragment.sources else _compile_load(needed)
    if fragment.where is None:
        return load
    predicate = compile_expression(fragment.where)

    def rows(table: Any, params: Sequence[Any]) -> Rows:
        columns, _ = load(table, params)
        mask = predicate(EvaluationContext(columns, params))
        return kept({name: columns[name] for name in read}, mask)

    return rows


def _compile_load(read: Mapping[str, SqlType]) -> Callable[[pa.Table, Sequence[Any]], Rows]:
    return lambda table, _params: (
        {name: loaded(table, name, type_) for name, type_ in read.items()},
        table.num_rows,
    )


def _compile_having(fragment: ArrowFragment) -> Callable[[Mapping[str, Any], Sequence[Any]], Rows] | None:
    if fragment.having is None:
        return None
    predicate = compile_expression(fragment.having)
    return lambda columns, params: kept(columns, predicate(EvaluationContext(columns, params)))


def _compile_distinct(types: Sequence[SqlType]) -> Callable[[Sequence[Any], int], list[Any]]:
    """Merge equal rows: a grouping by all columns without aggregates."""
    group = compile_aggregation(
        [ColumnExpression(slot_name(position), type_) for position, type_ in enumerate(types)], ()
    )

    def merge(results: Sequence[Any], count: int) -> list[Any]:
        columns = {slot_name(position): result for position, result in enumerate(results)}
        return list(group(EvaluationContext(columns, ()), count).values())

    return merge


def _compile_order(order: Sequence[OrderTerm]) -> Callable[[EvaluationContext, int], pa.Array] | None:
    """The row numbers in the order asked for. Rows that compare equal come in any order, as in DuckDB."""
    if not order:
        return None
    keys = [(compile_expression(key.expression), key.expression.type.is_float, key.nulls_first) for key in order]
    columns: list[tuple[str, str]] = []
    for position, key in enumerate(order):
        if (
            key.nulls_first
        ):  # "is it NULL" sorts before the value: Arrow's own option for that is not the same in all versions
            columns.append((f"null {position}", "descending"))
        columns.append((f"key {position}", "descending" if key.descending else "ascending"))
    names, options = [name for name, _ in columns], pc.SortOptions(columns)

    def indices(scope: EvaluationContext, count: int) -> pa.Array:
        if count > _SORTED_ROWS_MAX:
            raise InexactError("many rows to sort")
        sorted_by = []
        for evaluate, is_float, nulls_first in keys:
            values = evaluate(scope)
            if is_float and pc.any(pc.is_nan(values)).as_py():
                raise InexactError("Arrow sorts NaN next to NULL, SQL as the greatest number")
            if nulls_first:
                sorted_by.append(values.is_null())
            sorted_by.append(values)
        return _SORT_INDICES.call([pa.Table.from_arrays(sorted_by, names=names)], options)

    return indices


def _as_uuid(values: Any) -> Any:
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([_as_uuid(chunk) for chunk in values.chunks], pa.uuid())
    return pa.ExtensionArray.from_storage(pa.uuid(), values)


def _evaluated(fragment: ArrowFragment) -> list[Expression]:
    """The expressions that are evaluated over columns of relations."""
    keys = [expression for source in fragment.sources for pair in source.keys for expression in pair]
    conditions = [fragment.where, *(part for source in fragment.sources for part in (source.where, source.condition))]
    return [*_after_where(fragment), *keys, *(part for part in conditions if part is not None)]


def _after_where(fragment: ArrowFragment) -> list[Expression]:
    """The expressions over the columns of the rows that WHERE keeps: not those over groups or distinct rows."""
    if fragment.keys is not None:
        return [*fragment.keys, *_arguments(fragment)]
    order = [] if fragment.distinct else [key.expression for key in fragment.order]
    return [*(expression for _, expression in fragment.outputs), *order]


def _arguments(fragment: ArrowFragment) -> list[Expression]:
    return [aggregate.argument for aggregate in fragment.aggregates if aggregate.argument is not None]
