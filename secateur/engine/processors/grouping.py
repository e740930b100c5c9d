"""The three steps of an aggregation: from rows to partial results, to fewer partial results, to the answer.

A partial result is a row: the columns of the key, then the state of each aggregate. It is Arrow data, so it is sent
over an edge like any other row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple, Protocol, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from secateur.engine.kernels.arrow.exact_values import InexactError, to_double
from secateur.engine.kernels.arrow.fragment import AggregateFunction
from secateur.engine.processors.aggregates import AggregateExpression, AggregateKind
from secateur.engine.processors.array_grouping import PartialColumn, grouped_by_arrow, grouped_densely
from secateur.engine.processors.kernel import Kernel, column_of, numbered
from secateur.errors import DagError, DataError, NotSupportedError
from secateur.partitioning.types.arrow_layout import empty_table
from secateur.partitioning.types.cast import cast_column
from secateur.partitioning.types.column_type import SqlType, TypeKind, type_of_arrow


class _StateKind(Enum):
    """The content of a state, which decides how the states of one key are combined."""

    COUNT = "count"
    SUM = "sum"
    EXACT_SUM = "exact_sum"
    MIN = "min"
    MAX = "max"
    DISTINCT_VALUES = "distinct_values"
    LIST = "list"


_LISTS = frozenset({_StateKind.DISTINCT_VALUES, _StateKind.LIST})


class _State(NamedTuple):
    """A column of partial results that holds the state of an aggregate, or a part of it."""

    name: str
    kind: _StateKind


class Grouping(Protocol):
    """Computes aggregates by key, in steps. A value without state: all of it is in the tables."""

    def accumulate(self, kernel: Kernel, rows: pa.Table) -> pa.Table:
        """The partial results of some rows: one for each key, in the order in which keys come first."""

    def combine(self, kernel: Kernel, partials: pa.Table) -> pa.Table:
        """Partial results with one row for each key, of partial results with several."""

    def finish(self, partials: pa.Table) -> pa.Table:
        """The answer, of partial results with one row for each key."""

    def of_nothing(self, kernel: Kernel, schema: pa.Schema | None) -> pa.Table | None:
        """Return the partial results of an input without batches; None if not even the columns are known.

        Args:
            kernel: As elsewhere.
            schema: The schema that the input would have had. None if it is not known; states whose type depends on
                it then have the type ``null``.
        """


@dataclass(frozen=True, slots=True)
class KernelGrouping:
    """The aggregates that the kernel computes.

    Attributes:
        by: The columns of the key; none: everything is one group, which exists without a row too.
        aggregates: By the name of the result column.
    """

    by: tuple[str, ...]
    aggregates: Mapping[str, AggregateExpression]

    def accumulate(self, kernel: Kernel, rows: pa.Table) -> pa.Table:
        arguments: dict[str, tuple[Any, SqlType]] = {}
        states: list[PartialColumn] = []
        for index, (own, aggregate) in enumerate(zip(self._states(), self.aggregates.values(), strict=True)):
            kind = SqlType(TypeKind.BIGINT)
            if aggregate.column is not None:
                arguments[f"a{index}"] = _, kind = _argument(rows, aggregate.column)
            states += _accumulated([state.name for state in own], aggregate, f"a{index}", kind)
        return self._grouped(kernel, rows, arguments, states)

    def combine(self, kernel: Kernel, partials: pa.Table) -> pa.Table:
        arguments: dict[str, tuple[Any, SqlType]] = {}
        states = []
        for state in chain.from_iterable(self._states()):
            argument = f"a{len(arguments)}"
            arguments[argument] = _, kind = _argument(
                partials, state.name, pa.list_(pa.int32()) if state.kind in _LISTS else pa.int32()
            )
            states.append(_combined(state, argument, kind))
        return self._grouped(kernel, partials, arguments, states)

    def finish(self, partials: pa.Table) -> pa.Table:
        finished = {name: partials.column(name) for name in self.by}
        for own, (name, aggregate) in zip(self._states(), self.aggregates.items(), strict=True):
            states = [partials.column(state.name) for state in own]
            match aggregate.function:
                case AggregateKind.AVG:
                    finished[name] = _mean(*states)
                case AggregateKind.COUNT_DISTINCT:
                    finished[name] = pc.fill_null(pc.list_value_length(states[0]).cast(pa.int64()), 0)
                case (
                    AggregateKind.COUNT_ROWS
                    | AggregateKind.COUNT
                    | AggregateKind.SUM
                    | AggregateKind.MIN
                    | AggregateKind.MAX
                    | AggregateKind.LIST
                ):
                    (finished[name],) = states  # the state is the answer
                case _:
                    assert_never(aggregate.function)
        return pa.table(finished)

    def of_nothing(self, kernel: Kernel, schema: pa.Schema | None) -> pa.Table | None:
        if schema is not None:
            return self.accumulate(kernel, empty_table(schema))
        if self.by:
            return None
        return pa.table(
            {
                state.name: pa.array([0], pa.int64()) if state.kind is _StateKind.COUNT else pa.nulls(1)
                for state in chain.from_iterable(self._states())
            }
        )

    def _states(self) -> list[tuple[_State, ...]]:
        """The states of each aggregate; their names are different, whatever the user calls keys and aggregates."""
        taken = {*self.by, *self.aggregates}
        return [_states(name, aggregate.function, taken) for name, aggregate in self.aggregates.items()]

    def _grouped(
        self,
        kernel: Kernel,
        rows: pa.Table,
        arguments: Mapping[str, tuple[Any, SqlType]],
        states: Sequence[PartialColumn],
    ) -> pa.Table:
        keys = [rows.column(column_of(rows.schema, name)) for name in self.by]
        found = None
        if rows.num_rows:
            found = grouped_densely(keys, arguments, states, rows.num_rows) or grouped_by_arrow(
                keys, arguments, states, rows.num_rows
            )
        if found is None:
            found = _grouped_by_duckdb(kernel, rows, self.by, arguments, states)
        return pa.Table.from_arrays(found, names=[*self.by, *(state.name for state in states)])


def _grouped_by_duckdb(
    kernel: Kernel,
    rows: pa.Table,
    by: Sequence[str],
    arguments: Mapping[str, tuple[Any, SqlType]],
    states: Sequence[PartialColumn],
) -> list[Any]:
    """As :func:`grouped_by_arrow`, for any key and aggregate."""
    relation = numbered(rows, by)
    names = ", ".join(relation.column_names[1:])
    for name, (values, _) in arguments.items():
        relation = relation.append_column(name, values)
    selected = ", ".join(["min(row) AS first_row", *(state.sql for state in states)])
    grouped = f"SELECT {selected} FROM rows" + (f" GROUP BY {names} ORDER BY first_row" if names else "")
    answer = kernel.select(
        grouped, {"rows": relation}, [("first_row", "BIGINT"), *((state.name, state.type_text) for state in states)]
    )
    keys = rows.select([column_of(rows.schema, name) for name in by]).take(answer.column(0)).columns if by else []
    return [*keys, *answer.columns[1:]]


def checked_names(by: tuple[str, ...], names: tuple[str, ...], what: str) -> None:
    """Raise unless the columns of keys and aggregates can stand in one table.

    Raises:
        DagError: A name comes twice, or there is no aggregate.
    """
    if not names:
        raise DagError(f"{what} was given nothing to compute; for the different keys alone use distinct()")
    if len({*by, *names}) < len(by) + len(names):
        raise DagError(
            f"{what} would have several columns of one name: the keys are {', '.join(by) or 'none'}, the aggregates"
            f" {', '.join(names)}"
        )


def _states(name: str, function: AggregateKind, taken: set[str]) -> tuple[_State, ...]:
    """The states of an aggregate. A single one has its name; others get names that are not taken, and take them."""
    match function:
        case AggregateKind.COUNT_ROWS | AggregateKind.COUNT:
            return (_State(name, _StateKind.COUNT),)
        case AggregateKind.SUM:
            return (_State(name, _StateKind.SUM),)
        case AggregateKind.MIN:
            return (_State(name, _StateKind.MIN),)
        case AggregateKind.MAX:
            return (_State(name, _StateKind.MAX),)
        case AggregateKind.AVG:
            return (
                _State(_untaken(f"{name}.sum", taken), _StateKind.EXACT_SUM),
                _State(_untaken(f"{name}.count", taken), _StateKind.COUNT),
            )
        case AggregateKind.COUNT_DISTINCT:
            return (_State(name, _StateKind.DISTINCT_VALUES),)
        case AggregateKind.LIST:
            return (_State(name, _StateKind.LIST),)
        case _:
            assert_never(function)


def _untaken(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _argument(
    rows: pa.Table,
    column: str,
    null_as: pa.DataType = pa.int32(),  # noqa: B008 - types are values
) -> tuple[Any, SqlType]:
    """Return a column in the Arrow form of a SQL type, and that type.

    An untyped column of NULLs becomes ``null_as``.
    """
    values = rows.column(column_of(rows.schema, column))
    if pa.types.is_null(values.type):
        values = values.cast(null_as)
    try:
        kind = type_of_arrow(values.type)
        return cast_column(values, kind, name=column), kind
    except NotSupportedError as error:
        raise NotSupportedError(f"column {column!r} cannot be aggregated: {error}") from error
    except DataError as error:
        raise DataError(f"column {column!r} of type {values.type} cannot be aggregated: {error}") from error


def _accumulated(
    names: Sequence[str], aggregate: AggregateExpression, argument: str, kind: SqlType
) -> list[PartialColumn]:
    """The states of an aggregate, over rows."""
    name = names[0]
    match aggregate.function:
        case AggregateKind.COUNT_ROWS:
            return [PartialColumn(name, "count(*)", "BIGINT", AggregateFunction.COUNT_ROWS)]
        case AggregateKind.COUNT:
            return [_counted(name, argument)]
        case AggregateKind.SUM:
            return [_sum(name, aggregate, argument, kind)]
        case AggregateKind.MIN | AggregateKind.MAX:
            return [_extreme(name, aggregate.function, argument, kind)]
        case AggregateKind.AVG:
            _sum(name, aggregate, argument, kind)
            return [_exact_sum(name, argument, kind), _counted(names[1], argument)]
        case AggregateKind.COUNT_DISTINCT:
            return [PartialColumn(name, f"list(DISTINCT {argument}) FILTER ({argument} IS NOT NULL)", f"{kind}[]")]
        case AggregateKind.LIST:
            return [PartialColumn(name, f"list({argument} ORDER BY row)", f"{kind}[]")]
        case _:
            assert_never(aggregate.function)


def _combined(state: _State, argument: str, kind: SqlType) -> PartialColumn:
    """A state over states of the same kind."""
    name = state.name
    match state.kind:
        case _StateKind.COUNT:
            return _counts(name, argument)
        case _StateKind.SUM:
            return _sum(name, AggregateExpression(AggregateKind.SUM), argument, kind)
        case _StateKind.EXACT_SUM:
            return _exact_sum(name, argument, kind)
        case _StateKind.MIN:
            return _extreme(name, AggregateKind.MIN, argument, kind)
        case _StateKind.MAX:
            return _extreme(name, AggregateKind.MAX, argument, kind)
        case _StateKind.DISTINCT_VALUES:
            return PartialColumn(
                name, f"list_distinct(flatten(list({argument}) FILTER ({argument} IS NOT NULL)))", str(kind)
            )
        case _StateKind.LIST:
            return PartialColumn(
                name, f"flatten(list({argument} ORDER BY row) FILTER ({argument} IS NOT NULL))", str(kind)
            )
        case _:
            assert_never(state.kind)


def _counted(name: str, argument: str) -> PartialColumn:
    return PartialColumn(name, f"count({argument})", "BIGINT", AggregateFunction.COUNT, argument)


def _counts(name: str, argument: str) -> PartialColumn:
    """Counts together; 0 where there is none.

    Arrow is asked for groups of at least one row, and counts are never NULL.
    """
    return PartialColumn(
        name, f"CAST(coalesce(sum({argument}), 0) AS BIGINT)", "BIGINT", AggregateFunction.SUM, argument
    )


def _extreme(name: str, function: AggregateKind, argument: str, kind: SqlType) -> PartialColumn:
    by_arrow = None if kind.kind is TypeKind.UUID else AggregateFunction(function.value)  # its answer would be bytes
    return PartialColumn(name, f"{function.value}({argument})", str(kind), by_arrow, argument)


def _sum(name: str, aggregate: AggregateExpression, argument: str, kind: SqlType) -> PartialColumn:
    """A sum in a type that Python users expect: the kernel's own for integers is HUGEINT."""
    if kind.is_float or kind.kind is TypeKind.DECIMAL:
        return _exact_sum(name, argument, kind)
    if not kind.is_integer and kind.kind is not TypeKind.BOOLEAN:
        raise DagError(
            f"{aggregate.function.value} of column {aggregate.column!r}, which is {kind}; only numbers and booleans"
            " have one"
        )
    text = "UBIGINT" if kind.kind is TypeKind.UBIGINT else "BIGINT"
    return PartialColumn(name, f"CAST(sum({argument}) AS {text})", text, _summed(kind), argument)


def _exact_sum(name: str, argument: str, kind: SqlType) -> PartialColumn:
    text = "DOUBLE" if kind.is_float else f"DECIMAL(38,{kind.scale})" if kind.kind is TypeKind.DECIMAL else "HUGEINT"
    return PartialColumn(name, f"sum({argument})", text, _summed(kind), argument)


def _summed(kind: SqlType) -> AggregateFunction | None:
    return None if kind.kind is TypeKind.BOOLEAN else AggregateFunction.SUM


def _mean(sums: Any, counts: Any) -> Any:
    if pa.types.is_decimal(sums.type):
        try:
            sums = to_double(sums)
        except InexactError:
            sums = sums.cast(pa.float64())
    return pc.divide(sums.cast(pa.float64()), pc.if_else(pc.equal(counts, 0), None, counts).cast(pa.float64()))
