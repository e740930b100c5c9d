"""UPDATE and DELETE of the row with one key, compiled to closures over its plain values: no kernel, and no Arrow.

So is its RETURNING. The condition of such a statement says ``=`` for every column of the primary key, and anything else
beside that. The row is found by its key, the rest of the condition is evaluated over its values, and so are the values
that an UPDATE assigns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from secateur.engine.kernels.arrow.fragment import (
    ArrowFragment,
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    ParameterExpression,
    ScalarFunction,
    conjuncts,
    walk,
)
from secateur.engine.kernels.arrow.row_values import DeclinedError, RowEvaluator, compile_over_row
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.tables.table import TableDef
from secateur.wire import ShortTable, travels_short


class KeyedChange:
    """The UPDATE or DELETE of the row with one key, compiled. Made once for a plan.

    Args:
        key: The values of the primary key, in key order.
        condition: True for a row that is changed; None for every row.
        outputs: The values of each column of the table for an UPDATE; None for a DELETE.
        parameters: All parameters that the condition and the outputs read.
    """

    __slots__ = ("_condition", "_key", "_outputs", "_parameters")

    def __init__(
        self,
        key: Sequence[RowEvaluator],
        condition: RowEvaluator | None,
        outputs: Sequence[RowEvaluator] | None,
        parameters: Sequence[RowEvaluator],
    ) -> None:
        self._key = tuple(key)
        self._parameters = tuple(parameters)
        self._condition = condition
        self._outputs = outputs

    @classmethod
    def of(cls, plan: SelectPlan, table: TableDef, *, deletes: bool) -> KeyedChange | None:
        """Compile the query of a change, if it is one of a row by its key.

        For an UPDATE it finds the row as it will be, for a DELETE the key.
        """
        arrow = plan.local.arrow
        if arrow is None or len(plan.scans) != 1 or not arrow.is_row_by_row or plan.scans[0].replicated or plan.views:
            return None
        if any(table.column(name).type.is_float for name in table.primary_key):  # NaN, and two zeros
            return None
        try:
            return cls._compiled(arrow, table, deletes=deletes)
        except DeclinedError:
            return None

    @classmethod
    def _compiled(cls, arrow: ArrowFragment, table: TableDef, *, deletes: bool) -> KeyedChange | None:
        positions = {column.name: position for position, column in enumerate(table.columns)}
        conditions = list(conjuncts(arrow.where))
        operands = {
            name: found for name in table.primary_key if (found := _operand(conditions, table, name)) is not None
        }
        if len(operands) < len(table.primary_key):
            return None
        key = [compile_over_row(operands[name][1], positions) for name in table.primary_key]
        used = {position for position, _ in operands.values()}
        values = dict(arrow.outputs)
        others = [condition for position, condition in enumerate(conditions) if position not in used]
        condition = _all_true([compile_over_row(other, positions) for other in others]) if others else None
        nodes = (node for expression in (*others, *values.values()) for node in walk(expression))
        read = dict.fromkeys(node for node in nodes if isinstance(node, ParameterExpression))
        parameters = [compile_over_row(node, {}) for node in read]
        if deletes:
            return cls(key, condition, None, parameters)
        if set(values) != set(positions):
            return None
        for column in table.columns:
            if values[column.name].type != column.type:
                return None
        outputs = [compile_over_row(values[column.name], positions) for column in table.columns]
        return cls(key, condition, outputs, parameters)

    def key(self, params: Sequence[Any]) -> list[list[Any]]:
        """The value of each key column for the row, in key order.

        Raises:
            DeclinedError: Only a kernel can say it, such as for NULL or a number of another type.
        """
        for parameter in self._parameters:  # also those that no row is there for: one may be an error
            parameter((), params)
        return [[value((), params)] for value in self._key]

    def applies(self, row: Sequence[Any], params: Sequence[Any]) -> bool:
        """Whether the row with the key is changed; ``row`` has its values, in all columns of the table.

        Raises:
            DeclinedError: Only a kernel can say it.
        """
        return self._condition is None or self._condition(row, params)

    def changed(self, row: Sequence[Any], params: Sequence[Any]) -> list[list[Any]] | None:
        """The value of each column for the row as it will be; None for one that is removed.

        Raises:
            DeclinedError: Only a kernel can compute it.
        """
        return None if self._outputs is None else [[value(row, params)] for value in self._outputs]


def _all_true(conditions: Sequence[RowEvaluator]) -> RowEvaluator:
    def evaluate(row: Sequence[Any], params: Sequence[Any]) -> bool:
        values = [condition(row, params) for condition in conditions]  # all: one that is declined may be an error
        return all(value is True for value in values)

    return evaluate


def _operand(
    conditions: Sequence[Expression], table: TableDef, name: str
) -> tuple[int, ConstantExpression | ParameterExpression] | None:
    """The number of the condition that a key column is equal to a value, and the value, which is of its type."""
    for position, condition in enumerate(conditions):
        if isinstance(condition, CallExpression) and condition.function is ScalarFunction.EQUAL:
            match condition.arguments:
                case (ColumnExpression(column), ConstantExpression() | ParameterExpression() as value) | (
                    ConstantExpression() | ParameterExpression() as value,
                    ColumnExpression(column),
                ) if column == name and value.type == table.column(name).type:
                    return position, value
    return None


class ReturnedRow:
    """The query of a RETURNING over one row, compiled. Made once for a plan.

    Args:
        outputs: The values of the columns.
        condition: True for a row that may be seen; None for every row.
    """

    __slots__ = ("_condition", "_outputs")

    def __init__(self, outputs: Sequence[RowEvaluator], condition: RowEvaluator | None) -> None:
        self._outputs = tuple(outputs)
        self._condition = condition

    @classmethod
    def of(cls, plan: SelectPlan, table: TableDef) -> ReturnedRow | None:
        """Compile the query of one table; None where it needs a kernel, or values that do not travel as they are."""
        arrow = plan.local.arrow
        if arrow is None or not arrow.is_row_by_row or plan.views or len(plan.scans) != 1:
            return None
        if plan.scans[0].table_id != table.table_id:
            return None
        if not travels_short([expression.type for _, expression in arrow.outputs]):
            return None
        positions = {column.name: position for position, column in enumerate(table.columns)}
        try:
            outputs = [compile_over_row(expression, positions) for _, expression in arrow.outputs]
            return cls(outputs, None if arrow.where is None else compile_over_row(arrow.where, positions))
        except DeclinedError:
            return None

    def rows(self, row: Sequence[Any] | None, params: Sequence[Any]) -> ShortTable:
        """The result: one row, or none where no row was changed. ``row`` has the canonical values of all columns.

        Raises:
            DeclinedError: Only a kernel can compute it.
        """
        if row is None or (self._condition is not None and self._condition(row, params) is not True):
            return ShortTable([[] for _ in self._outputs], 0)
        return ShortTable([[value(row, params)] for value in self._outputs], 1)
