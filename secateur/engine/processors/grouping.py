"""The three steps of an aggregation: from rows to partial results, to fewer partial results, to the answer.

A partial result is a row: the columns of the key, then the state of each aggregate. It is Arrow data, so it is sent
over an edge like any other row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol, assert_never

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

_INTEGER: Final = pa.int32()
_LIST: Final = pa.list_(_INTEGER)


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

        ``schema`` is that which the input would have had. Without it, states whose type depends on it have the type
        ``null``.
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
            if aggregate.function in _SUMMED and not _can_be_summed(kind):
                raise DagError(
                    f"{aggregate.function.value} of column {aggregate.column!r}, which is {kind}; only numbers and"
                    " booleans have one"
                )
            states += [state.of_rows(name, f"a{index}", kind) for name, state in own]
        return self._grouped(kernel, rows, arguments, states)

    def combine(self, kernel: Kernel, partials: pa.Table) -> pa.Table:
        arguments: dict[str, tuple[Any, SqlType]] = {}
        states = []
        for name, state in chain.from_iterable(self._states()):
            argument = f"a{len(arguments)}"
            arguments[argument] = _, kind = _argument(partials, name, state.null_as)
            states.append(state.of_states(name, argument, kind))
        return self._grouped(kernel, partials, arguments, states)

    def finish(self, partials: pa.Table) -> pa.Table:
        finished = {name: partials.column(name) for name in self.by}
        for own, (name, aggregate) in zip(self._states(), self.aggregates.items(), strict=True):
            states = [partials.column(state) for state, _ in own]
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
                name: pa.array([0], pa.int64()) if state.of_states is _counts else pa.nulls(1)
                for name, state in chain.from_iterable(self._states())
            }
        )

    def _states(self) -> list[list[tuple[str, _State]]]:
        """The states of each aggregate by name: names that differ, whatever the user calls keys and aggregates."""
        taken = {*self.by, *self.aggregates}
        return [
            [
                (_untaken(name + state.suffix, taken) if state.suffix else name, state)
                for state in _STATES[aggregate.function]
            ]
            for name, aggregate in self.aggregates.items()
        ]

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


def _untaken(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _argument(
    rows: pa.Table,
    column: str,
    null_as: pa.DataType = _INTEGER,
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


def _can_be_summed(kind: SqlType) -> bool:
    return kind.is_float or kind.is_integer or kind.kind in (TypeKind.DECIMAL, TypeKind.BOOLEAN)


def _counted_rows(name: str, argument: str, kind: SqlType) -> PartialColumn:
    return PartialColumn(name, "count(*)", "BIGINT", AggregateFunction.COUNT_ROWS)


def _counted(name: str, argument: str, kind: SqlType) -> PartialColumn:
    return PartialColumn(name, f"count({argument})", "BIGINT", AggregateFunction.COUNT, argument)


def _counts(name: str, argument: str, kind: SqlType) -> PartialColumn:
    """Counts together; 0 where there is none.

    Arrow is asked for groups of at least one row, and counts are never NULL.
    """
    return PartialColumn(
        name, f"CAST(coalesce(sum({argument}), 0) AS BIGINT)", "BIGINT", AggregateFunction.SUM, argument
    )


def _extreme(function: AggregateFunction, name: str, argument: str, kind: SqlType) -> PartialColumn:
    by_arrow = None if kind.kind is TypeKind.UUID else function  # its answer would be bytes
    return PartialColumn(name, f"{function.value}({argument})", str(kind), by_arrow, argument)


def _sum(name: str, argument: str, kind: SqlType) -> PartialColumn:
    """A sum in a type that Python users expect: the kernel's own for integers is HUGEINT."""
    if kind.is_float or kind.kind is TypeKind.DECIMAL:
        return _exact_sum(name, argument, kind)
    text = "UBIGINT" if kind.kind is TypeKind.UBIGINT else "BIGINT"
    return PartialColumn(name, f"CAST(sum({argument}) AS {text})", text, _summed(kind), argument)


def _exact_sum(name: str, argument: str, kind: SqlType) -> PartialColumn:
    text = "DOUBLE" if kind.is_float else f"DECIMAL(38,{kind.scale})" if kind.kind is TypeKind.DECIMAL else "HUGEINT"
    return PartialColumn(name, f"sum({argument})", text, _summed(kind), argument)


def _summed(kind: SqlType) -> AggregateFunction | None:
    return None if kind.kind is TypeKind.BOOLEAN else AggregateFunction.SUM


def _distinct(name: str, argument: str, kind: SqlType) -> PartialColumn:
    return PartialColumn(name, f"list(DISTINCT {argument}) FILTER ({argument} IS NOT NULL)", f"{kind}[]")


def _distinct_of_all(name: str, argument: str, kind: SqlType) -> PartialColumn:
    return PartialColumn(name, f"list_distinct(flatten(list({argument}) FILTER ({argument} IS NOT NULL)))", str(kind))


def _listed(name: str, argument: str, kind: SqlType) -> PartialColumn:
    return PartialColumn(name, f"list({argument} ORDER BY row)", f"{kind}[]")


def _one_list(name: str, argument: str, kind: SqlType) -> PartialColumn:
    return PartialColumn(name, f"flatten(list({argument} ORDER BY row) FILTER ({argument} IS NOT NULL))", str(kind))


class _State(NamedTuple):
    """A column of partial results that holds the state of an aggregate, or a part of it.

    Attributes:
        of_rows: Computes it over an argument of a type, under a name.
        of_states: Computes it in the same way over states of several parts of the rows.
        suffix: What its name has behind that of the aggregate, which a single state has itself.
        null_as: The type of states that are all NULL, of which nothing says the type.
    """

    of_rows: Callable[[str, str, SqlType], PartialColumn]
    of_states: Callable[[str, str, SqlType], PartialColumn]
    suffix: str = ""
    null_as: pa.DataType = _INTEGER


_MIN: Final = partial(_extreme, AggregateFunction.MIN)
_MAX: Final = partial(_extreme, AggregateFunction.MAX)
_STATES: Final = {
    AggregateKind.COUNT_ROWS: (_State(_counted_rows, _counts),),
    AggregateKind.COUNT: (_State(_counted, _counts),),
    AggregateKind.SUM: (_State(_sum, _sum),),
    AggregateKind.MIN: (_State(_MIN, _MIN),),
    AggregateKind.MAX: (_State(_MAX, _MAX),),
    AggregateKind.AVG: (_State(_exact_sum, _exact_sum, ".sum"), _State(_counted, _counts, ".count")),
    AggregateKind.COUNT_DISTINCT: (_State(_distinct, _distinct_of_all, null_as=_LIST),),
    AggregateKind.LIST: (_State(_listed, _one_list, null_as=_LIST),),
}
_SUMMED: Final = frozenset({AggregateKind.SUM, AggregateKind.AVG})


def _mean(sums: Any, counts: Any) -> Any:
    if pa.types.is_decimal(sums.type):
        try:
            sums = to_double(sums)
        except InexactError:
            sums = sums.cast(pa.float64())
    return pc.divide(sums.cast(pa.float64()), pc.if_else(pc.equal(counts, 0), None, counts).cast(pa.float64()))
