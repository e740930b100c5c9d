"""RETURNING of the change of one row, compiled to closures over its plain values, as the change itself is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from secateur.engine.kernels.arrow.row_values import DeclinedError, RowEvaluator, compile_over_row
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.tables.table import TableDef
from secateur.wire import ShortTable, travels_short


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
        """Compile the query; None where it needs a kernel, or values that do not travel as they are.

        Args:
            plan: The query, which reads the table alone.
            table: The table.
        """
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
        """The result: one row, or none.

        Args:
            row: The canonical values of all columns of the table; None where no row was changed.
            params: The values of the parameters.

        Raises:
            DeclinedError: Only a kernel can compute it.
        """
        if row is None or (self._condition is not None and self._condition(row, params) is not True):
            return ShortTable([[] for _ in self._outputs], 0)
        return ShortTable([[value(row, params)] for value in self._outputs], 1)
