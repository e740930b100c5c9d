"""``INSERT ... ON CONFLICT DO UPDATE`` of one row without DuckDB: the row that results from the row that is there.

Every value of the new row is a literal or a parameter. Where no row has its key, it is the result. Otherwise each
column keeps its value, takes a value of the new row, or is computed by the arrow kernel from both; and where the
condition of DO UPDATE is not true, nothing changes. As everywhere, the arrow kernel answers exactly as DuckDB or not at
all: a value that is not one of its column's type as it stands leaves the statement to DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import msgspec
import pyarrow as pa
from msgspec.structs import force_setattr

from secateur.engine.kernels.arrow.expression import ConstantExpression, ParameterExpression
from secateur.engine.kernels.arrow.fragment import ArrowFragment
from secateur.engine.kernels.arrow.row_values import DeclinedError, RowEvaluator, compile_over_row
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.python_column import as_they_stand, canonical_as_it_stands

GivenValue: TypeAlias = ConstantExpression | ParameterExpression | None
"""A literal or parameter of its column's type; None is NULL."""


class RowUpsert(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """The change, as data.

    Attributes:
        given: The value of the new row for each column of the table.
        assigned: The columns that are assigned a literal or a parameter, which may be one of the new row.
        computed: The columns that are assigned anything else, and the condition, over the row that is there; None
            where there is neither. It gives no row where the condition is not true.
    """

    given: tuple[GivenValue, ...]
    assigned: dict[str, GivenValue]
    computed: ArrowFragment | None = None
    program: ClassVar[Any] = None
    """The program for plain values to which :attr:`computed` was compiled, or the reason why it was not."""

    def replaces_row(self, table: TableDef) -> bool:
        """Whether the new row takes the place of the row with its key, whatever that one has."""
        others = {column.name: given for column, given in zip(table.columns, self.given, strict=True)}
        for name in table.primary_key:
            others.pop(name, None)
        return self.computed is None and bool(others) and self.assigned == others

    def inserted_values(self, table: TableDef, params: Sequence[Any]) -> list[Any]:
        """The new row as plain values of all columns.

        Raises:
            DataError: A value is not one of its type as it stands: only :meth:`inserted` can make the row, or DuckDB.
        """
        return [
            canonical_as_it_stands(_value(given, params), column.type)
            for given, column in zip(self.given, table.columns, strict=True)
        ]

    def updated_values(self, table: TableDef, old: Sequence[Any], params: Sequence[Any]) -> list[Any] | None:
        """The row that replaces another one, as plain values of all columns; None where nothing changes.

        Args:
            table: The table.
            old: The values of the row that is there.
            params: The values of the parameters.

        Raises:
            DeclinedError, DataError: Only :meth:`updated` can compute it, or DuckDB.
        """
        values = list(old)
        computed = self._computed_over(table)
        if computed is not None:
            condition, outputs = computed
            if condition is not None and condition(old, params) is not True:
                return None
            for at, value in outputs:
                values[at] = value(old, params)
        for at, column in enumerate(table.columns):
            if column.name in self.assigned:
                values[at] = canonical_as_it_stands(_value(self.assigned[column.name], params), column.type)
        return values

    def _computed_over(self, table: TableDef) -> tuple[RowEvaluator | None, list[tuple[int, RowEvaluator]]] | None:
        """The condition, and the columns that are computed, over the plain values of a row."""
        if self.computed is None:
            return None
        if self.program is None:
            force_setattr(self, "program", _compiled(self.computed, table))
        if isinstance(self.program, DeclinedError):
            raise self.program
        return self.program

    def inserted(self, table: TableDef, params: Sequence[Any]) -> pa.Table | None:
        """The new row in the schema of the table; None where only DuckDB can make it. NOT NULL is not checked."""
        columns = [_array(value, column.type, params) for column, value in zip(table.columns, self.given, strict=True)]
        return (
            None
            if any(column is None for column in columns)
            else pa.Table.from_arrays(columns, schema=table.arrow_schema)
        )

    def updated(
        self, table: TableDef, old: Sequence[pa.ChunkedArray], position: int, params: Sequence[Any]
    ) -> pa.Table | None:
        """The row that replaces another one, or no row; None where only DuckDB can compute it.

        Args:
            table: The table.
            old: Columns with the row that is there, all of the table.
            position: The place of that row in them.
            params: The values of the parameters.
        """
        schema = table.arrow_schema
        row = pa.Table.from_arrays([column.slice(position, 1) for column in old], schema=schema)
        values = {name: _array(value, table.column(name).type, params) for name, value in self.assigned.items()}
        if self.computed is not None:
            import secateur.engine.kernels.arrow.kernel as arrow_kernel  # its functions take long to load

            found = arrow_kernel.run(self.computed, row, params)
            if found is None or not found.num_rows:
                return None if found is None else row.slice(0, 0)
            values.update(zip(found.column_names, found.columns, strict=True))
        columns = [values.get(name, column) for name, column in zip(schema.names, row.columns, strict=True)]
        return None if any(column is None for column in columns) else pa.Table.from_arrays(columns, schema=schema)


def _compiled(
    computed: ArrowFragment, table: TableDef
) -> tuple[RowEvaluator | None, list[tuple[int, RowEvaluator]]] | DeclinedError:
    positions = {column.name: position for position, column in enumerate(table.columns)}
    try:
        condition = None if computed.where is None else compile_over_row(computed.where, positions)
        outputs = []
        for name, expression in computed.outputs:
            at = positions[name]
            if expression.type != table.columns[at].type:
                raise DeclinedError(f"{name} is computed as another type")
            outputs.append((at, compile_over_row(expression, positions)))
        return condition, outputs
    except DeclinedError as error:
        return error


def _value(given: GivenValue, params: Sequence[Any]) -> Any:
    match given:
        case None:
            return None
        case ConstantExpression():
            return given.value
        case ParameterExpression():
            return params[given.number - 1]


def _array(given: GivenValue, type_: SqlType, params: Sequence[Any]) -> pa.Array | None:
    return as_they_stand([_value(given, params)], type_)
