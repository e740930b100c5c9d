"""Aggregates as values: the built-in ones, a function and a column, and custom ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.engine.processors.kernel import Kernel, column_of, numbered
from secateur.errors import DataError
from secateur.partitioning.types.arrow_form import array_of
from secateur.partitioning.types.arrow_layout import empty_batch, empty_table


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
    """One aggregate: a function and its argument, None for ``COUNT_ROWS``. Made by the functions of this module."""

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


def _itself(state: Any) -> Any:
    return state


@dataclass(frozen=True, slots=True)
class AggregateOperation:
    """A user-defined aggregation of the rows of a group.

    The state is a plain Python value that ``state_type`` can hold (a number, a text, bytes, a list, a dict for a
    struct): between calls it lies in an Arrow column, and between two stages it travels in one. ``accumulate`` gets the
    rows of one group as a batch, so that it can work on whole columns; it is called once for each group in each block
    of rows. All four run in a thread of the member.

    Source: Hazelcast Jet, ``AggregateOperation``.

    Attributes:
        create: Makes the state of a group without rows.
        accumulate: Given a state and the rows of one group, in order, returns the new state.
        combine: Given two states, the earlier first, returns the state of both.
        state_type: The Arrow type of the state.
        finish: Given the last state returns the result; the state itself by default.
        result_type: The Arrow type of the result; None: ``state_type``.
    """

    create: Callable[[], Any]
    accumulate: Callable[[Any, pa.RecordBatch], Any]
    combine: Callable[[Any, Any], Any]
    state_type: pa.DataType
    finish: Callable[[Any], Any] = _itself
    result_type: pa.DataType | None = None


@dataclass(frozen=True, slots=True)
class OperationGrouping:
    """A :class:`~secateur.engine.processors.grouping.Grouping` of one's own operations, by the result columns."""

    by: tuple[str, ...]
    operations: Mapping[str, AggregateOperation]

    def accumulate(self, kernel: Kernel, rows: pa.Table) -> pa.Table:
        order, starts = self._groups(kernel, rows)
        batches = rows.take(order).combine_chunks().to_batches()
        groups = [batches[0].slice(start, end - start) for start, end in _spans(starts, len(order))] if batches else []
        if not self.by and not groups:
            groups = [empty_batch(rows.schema)]
        states = {
            name: [operation.accumulate(operation.create(), group) for group in groups]
            for name, operation in self.operations.items()
        }
        return self._partials(rows, order[starts], states)

    def combine(self, kernel: Kernel, partials: pa.Table) -> pa.Table:
        order, starts = self._groups(kernel, partials)
        states = {}
        for name, operation in self.operations.items():
            values = partials.column(name).take(order).to_pylist()
            states[name] = [reduce(operation.combine, values[start:end]) for start, end in _spans(starts, len(order))]
        return self._partials(partials, order[starts], states)

    def finish(self, partials: pa.Table) -> pa.Table:
        finished = {name: partials.column(name) for name in self.by}
        for name, operation in self.operations.items():
            results = [operation.finish(state) for state in partials.column(name).to_pylist()]
            finished[name] = _array(name, "finish", results, operation.result_type or operation.state_type)
        return pa.table(finished)

    def of_nothing(self, kernel: Kernel, schema: pa.Schema | None) -> pa.Table | None:
        if schema is not None:
            return self.accumulate(kernel, empty_table(schema))
        if self.by:
            return None
        return self._partials(None, None, {name: [operation.create()] for name, operation in self.operations.items()})

    def _groups(self, kernel: Kernel, rows: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the rows group by group, groups in the order of their first rows, and the start of each group."""
        if not self.by:
            return np.arange(rows.num_rows, dtype=np.int64), np.zeros(min(rows.num_rows, 1), np.int64)
        relation = numbered(rows, self.by)
        keys = ", ".join(relation.column_names[1:])
        sql = f"SELECT row, min(row) OVER (PARTITION BY {keys}) AS first_row FROM rows ORDER BY first_row, row"
        answer = kernel.select(sql, {"rows": relation}, [("row", "BIGINT"), ("first_row", "BIGINT")])
        order, firsts = (column.to_numpy() for column in answer.columns)
        return order, np.flatnonzero(np.diff(firsts, prepend=-1))

    def _partials(
        self, rows: pa.Table | None, firsts: npt.NDArray[np.int64] | None, states: Mapping[str, list[Any]]
    ) -> pa.Table:
        found = (
            []
            if rows is None or not self.by
            else rows.select([column_of(rows.schema, name) for name in self.by]).take(pa.array(firsts)).columns
        )
        made = [_array(name, "accumulate", values, self.operations[name].state_type) for name, values in states.items()]
        return pa.Table.from_arrays([*found, *made], names=[*self.by, *states])


def _spans(starts: npt.NDArray[np.int64], count: int) -> list[tuple[int, int]]:
    return list(pairwise([*starts.tolist(), count]))


def _array(name: str, function: str, values: list[Any], type_: pa.DataType) -> pa.Array:
    try:
        return array_of(values, type_, name=name)
    except DataError as error:
        raise DataError(f"aggregate {name!r}: {function} returned a value that is not a {type_}: {error}") from error
